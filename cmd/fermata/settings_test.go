package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

// parse parses the settings of serve as run does.
func parse(t *testing.T, args ...string) (*settings, error) {
	t.Helper()
	var s settings
	return &s, (&command{name: "serve", common: new(commonFlags), options: &s}).parse(args)
}

// settingsOfServe returns the settings of serve.
func settingsOfServe() []*setting {
	return settingsOf(reflect.ValueOf(new(settings)).Elem(), "", "")
}

func TestDefaults(t *testing.T) {
	s, err := parse(t, "--api-keys=k")
	if err != nil {
		t.Fatal(err)
	}
	for name, pair := range map[string][2]int64{
		"max-body":   {int64(s.HTTP.MaxBody), 50_000_000},
		"max-result": {int64(s.Executions.MaxResult), 5_000_000},
		"memory":     {int64(s.Sandbox.Memory), 512 << 20},
		"output":     {int64(s.Sandbox.Output), 1 << 20},
		"pause-ttl":  {int64(s.Executions.PauseTTL.Seconds()), 300},
		"log-level":  {int64(s.Log.Level), int64(slog.LevelInfo)},
	} {
		if pair[0] != pair[1] {
			t.Errorf("--%s is %d, want %d", name, pair[0], pair[1])
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("FERMATA_API_KEYS", "ada:a:b, bare-key")
	t.Setenv("FERMATA_PAUSE_TTL", "7s")
	t.Setenv("FERMATA_CPUS", "1.5")
	t.Setenv("FERMATA_PIDS", "9")
	t.Setenv("FERMATA_MEMORY", "1GiB")
	t.Setenv("FERMATA_LOG_LEVEL", "debug")
	t.Setenv("FERMATA_SECRET", "first,second")
	s, err := parse(t, "--pause-ttl=8s")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, k := range s.HTTP.APIKeys {
		keys = append(keys, k.Name+" "+k.Key.reveal())
	}
	// The name of the last key is the start of sha256("bare-key"). It must not change, because
	// executions belong to it.
	got := fmt.Sprintf("%v %v %v %v %d %v %d %s", keys, s.Executions.PauseTTL, s.Sandbox.CPUs, s.Sandbox.PIDs, s.Sandbox.Memory, s.Log.Level, len(s.Executions.Secret), s.Executions.Secret[1].reveal())
	if want := "[ada a:b key-330efbf7 bare-key] 8s 1.5 9 1073741824 DEBUG 2 second"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"FERMATA_API_KEYS", "FERMATA_AUTH=off"}},
		{[]string{"--api-keys=name:"}, []string{"--api-keys", "there is an empty one"}},
		{[]string{"--api-keys=:very-secret"}, []string{"--api-keys", "there is an empty name"}},
		{[]string{"--auth=maybe"}, []string{"--auth", `keys, off, not "maybe"`}},
		{[]string{"--sandbox=vm"}, []string{"--sandbox"}},
		{[]string{"--memory=much"}, []string{"--memory", "512MiB", `"much"`}},
		{[]string{"--memory=1EiB", "--disk=100EiB"}, []string{"--disk"}},
		{[]string{"--log-level=loud"}, []string{"--log-level"}},
		{[]string{"--pause-ttl=300"}, []string{"--pause-ttl", "such as 500ms, 30s, 5m or 24h", `got "300"`}},
		{[]string{"--auth=off", "--pause-ttl=0s"}, []string{"--pause-ttl must be more than 0 (FERMATA_PAUSE_TTL)"}},
		{[]string{"--auth=off", "--memory=1MiB"}, []string{"--memory must be at least 16 MiB", "is 1.0 MiB (FERMATA_MEMORY)"}},
		{[]string{"--auth=off", "--addr=8000"}, []string{"--addr must be HOST:PORT, such as 127.0.0.1:8000", `is "8000" (FERMATA_ADDR)`}},
		{[]string{"--auth=off", "--addr=::1:8006"}, []string{"--addr must be", "[::1]:8000"}},
		{[]string{"--auth=off", "--metrics-addr=:99999"}, []string{"--metrics-addr must be", "from 0 to 65535"}},
		{[]string{"--auth=off", "--redis-url=very-secret:6379", "--secret=x"}, []string{"--redis-url must be", "redis://localhost:6379", "FERMATA_REDIS_URL"}},
		{[]string{"--auth=off", "--drain-delay=6m"}, []string{"--drain-delay must be between 0s and 5m0s"}},
		{[]string{"--pids=0", "--cpus=0", "--max-body=0B"}, []string{"no API keys", "--pids must be", "--cpus must be", "--max-body must be"}},
		{[]string{"--queue-timeout=61s"}, []string{"--queue-timeout must be between 0s and 1m0s, and is 1m1s"}},
		{[]string{"--rate-executions=20"}, []string{"--rate-executions", `such as 20/30s, or off, got "20"`}},
		{[]string{"--rate-uploads=0/5m"}, []string{"--rate-uploads"}},
		{[]string{"--rate-lists=5/0s"}, []string{"--rate-lists"}},
		{[]string{"--max-running=-1", "--max-paused=-1"}, []string{"--max-running must be 0 or more", "--max-paused must be 0 or more"}},
		{[]string{"--auth=off", "--tools-package=class"}, []string{"--tools-package must be the name of a Python package", "no keyword"}},
		{[]string{"--max-rounds=0"}, []string{"--max-rounds must be between 1 and 10000"}},
		{[]string{"--max-rounds=10001"}, []string{"--max-rounds must be between 1 and 10000"}},
		{[]string{"--max-executions=-1"}, []string{"--max-executions", "0 or more, or auto"}},
		{[]string{"--max-executions=many", "--max-stored=0B"}, []string{"--max-executions", `got "many"`}},
		{[]string{"--max-stored=0B"}, []string{"--max-stored must be more than 0"}},
		{[]string{"--auth=off", "--jwt-jwks={}"}, []string{"FERMATA_AUTH=off", "FERMATA_JWT_"}},
		{[]string{"--jwt-jwks={}", "--jwt-tenant="}, []string{"--jwt-tenant must be"}},
		{[]string{"--jwt-kid=x"}, []string{"no API keys", "FERMATA_JWT_"}},
		{[]string{"--files-url=gs://bucket", "--files-life=0s", "--output-files=-1"}, []string{"--files-url must be", "--files-life must be", "--output-files must be"}},
		{[]string{"--files-url=file://relative/dir"}, []string{"--files-url must be file:///directory or s3://bucket"}},
		{[]string{"--file-size=10MB", "--files-quota=0B"}, []string{"--output-file-size must be at most --file-size", "--files-quota must be"}},
		{[]string{"--addr=:8000", "--api-keys=ada:1234567,bob:12345678"}, []string{"at least 8 characters, and that of ada has 7", "openssl rand -hex 24"}},
		{[]string{"--addr=10.0.0.1:8000", "--api-keys=äöüßéèê"}, []string{"has 7"}},
		{[]string{"--addr=:8000", "--api-keys=ada:12345678", "--operator-keys=ops:1234567"}, []string{"--operator-keys must be keys of at least 8 characters, and that of ops has 7"}},
		{[]string{"--operator-keys=ops:12345678"}, []string{"there are no API keys"}},
		{[]string{"--auth=off", "--operator-keys=ops:12345678"}, []string{"FERMATA_AUTH=off", "FERMATA_OPERATOR_KEYS"}},
		{[]string{"--api-keys=ada:very-secret", "--operator-keys=ops:very-secret"}, []string{"same key, as that of ada and of ops"}},
		{[]string{"--api-keys=anonymous:very-secret,jwt:a:b:very-secret"}, []string{`the name "anonymous"`, `the name "jwt"`}},
		{
			[]string{"--cors-origins=*,https://A.example,https://a.example/,https://a.example:443,null"},
			[]string{`--cors-origins has "*"`, `"https://A.example": browsers`, `"https://a.example/": want`, `"https://a.example:443": browsers`, `"null": want`},
		},
		{[]string{"--max-connections=0", "--body-budget=0B"}, []string{"--max-connections must be", "--body-budget must be"}},
		{[]string{"--peer-addr=:8001"}, []string{"--peer-addr must be empty without FERMATA_REDIS_URL"}},
		{[]string{"--auth=off", "--peer-url=http://a:8000"}, []string{"--peer-url must be empty without FERMATA_REDIS_URL"}},
		{[]string{"--auth=off", "--redis-url=redis://a"}, []string{"FERMATA_REDIS_URL needs FERMATA_SECRET", "openssl rand -hex 32"}},
		{
			[]string{"--auth=off", "--redis-url=redis://a", "--secret=very-secret", "--peer-url=http://a:8000", "--files-url=file:///a"},
			[]string{"FERMATA_PEER_URL", "FERMATA_FILES_URL", "s3://my-bucket"},
		},
		{[]string{"--pool-size=300"}, []string{"--pool-size must be between 0 and --max-sandboxes, which is 256, and is 300 (FERMATA_POOL_SIZE)"}},
	} {
		_, err := parse(t, c.args...)
		if err == nil {
			t.Errorf("%v passed, want an error with %q", c.args, c.want)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v: got %q, want %q in it", c.args, err, part)
			}
		}
		if strings.Contains(err.Error(), "very-secret") {
			t.Errorf("%v: %q tells the key", c.args, err)
		}
	}
}

// If there are several clients, none of them can have all sandboxes. A single client can.
func TestMaxExecutions(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"--api-keys=ada:1,bob:2"}, 64},
		{[]string{"--api-keys=ada:1,bob:2", "--max-sandboxes=3", "--pool-size=1"}, 1},
		{[]string{"--api-keys=ada:1,bob:2", "--max-executions=7"}, 7},
		{[]string{"--api-keys=ada:1,bob:2", "--max-executions=0"}, 0},
		{[]string{"--api-keys=1,2"}, 64},
		{[]string{"--api-keys=ada:1,ada:2"}, 0},
		{[]string{"--api-keys=ada:1", "--jwt-jwks={}"}, 64},
		{[]string{"--jwt-jwks={}"}, 64},
		{[]string{"--auth=off", "--api-keys=ada:1,bob:2"}, 0},
	} {
		s, err := parse(t, c.args...)
		if err != nil {
			t.Fatalf("%v: %v", c.args, err)
		}
		if got := s.maxExecutions(); got != c.want {
			t.Errorf("%v: a client may have %d executions, want %d", c.args, got, c.want)
		}
	}
}

// Short keys are accepted only for addresses that can be reached only from this machine.
func TestShortKeys(t *testing.T) {
	for addr, ok := range map[string]bool{
		"127.0.0.1:0": true, "localhost:8000": true, "[::1]:8000": true, "127.9.9.9:1": true,
		":8000": false, "0.0.0.0:8000": false, "[::]:8000": false, "10.0.0.1:8000": false, "fermata:8000": false,
	} {
		if _, err := parse(t, "--addr="+addr, "--api-keys=ada:short"); (err == nil) != ok {
			t.Errorf("a short key at %s: %v, want it accepted: %t", addr, err, ok)
		}
		if _, err := parse(t, "--addr="+addr, "--api-keys=ada:long-key"); err != nil {
			t.Errorf("a key of 8 characters at %s: %v, want it accepted", addr, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	s, err := parse(t, "--api-keys=ada:very-secret,very-secret-too", "--secret=very-secret")
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "secret", s.Executions.Secret[0], "key", s.HTTP.APIKeys[0], "settings", s)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "secret", s.Executions.Secret[0], "key", s.HTTP.APIKeys[0], "settings", s)
	encoded, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, printed := range []string{
		fmt.Sprintf("%v %+v %#v %s %q", s, s, s, s.Executions.Secret, s.Executions.Secret),
		fmt.Sprintf("%v %+v %#v %v", s.HTTP.APIKeys, s.HTTP.APIKeys, s.HTTP.APIKeys, s.HTTP.APIKeys[0]),
		log.String(), string(encoded),
	} {
		if strings.Contains(printed, "very-secret") {
			t.Errorf("printed %s", printed)
		}
	}
}

// Errors about variables of the environment tell their values, but not those of secrets.
func TestSecretsOfTheEnvironmentAreNotPrinted(t *testing.T) {
	for name, value := range map[string]string{
		"FERMATA_API_KEYS": `ada:hush-secret,:hush"secret`, "FERMATA_OPERATOR_KEYS": ":hush-secret", "FERMATA_SECRET": "hush-secret, ",
		"FERMATA_REDIS_SECRET": "hush-secret,,", "FERMATA_REDIS_URL": "hush-secret", "FERMATA_JWT_HS256_SECRET": " ",
		"CODEAPI_JWT_HS256_SECRET": " ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			for _, command := range []string{"serve", "mcp"} {
				err := run(t.Context(), []string{command}, io.Discard, io.Discard)
				if err == nil {
					t.Fatalf("fermata %s accepts %s=%q", command, name, value)
				}
				if text := err.Error(); strings.Contains(text, "hush") || !strings.Contains(text, name) {
					t.Errorf("fermata %s with %s=%q says %s", command, name, value, text)
				}
			}
		})
	}
	t.Setenv("FERMATA_PAUSE_TTL", "300")
	if err := run(t.Context(), []string{"serve"}, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), `FERMATA_PAUSE_TTL="300"`) {
		t.Errorf("got %v, want an error that tells the value", err)
	}
}

func TestEverySettingHasHelp(t *testing.T) {
	for _, s := range settingsOfServe() {
		if s.tag.Get("help") == "" || s.group == "" {
			t.Errorf("--%s has the help %q and the group %q, want both", s.name, s.tag.Get("help"), s.group)
		}
		if want := "FERMATA_" + strings.ToUpper(strings.ReplaceAll(s.name, "-", "_")); len(s.variables) == 0 || s.variables[0] != want {
			t.Errorf("--%s comes from %v, want %s first", s.name, s.variables, want)
		}
		for _, alias := range s.variables[min(1, len(s.variables)):] {
			if !strings.HasPrefix(alias, "CODEAPI_") && !strings.HasPrefix(alias, "PTC_") {
				t.Errorf("--%s comes from %s, too, want only names of LibreChat's and Refly's servers", s.name, alias)
			}
		}
	}
}
