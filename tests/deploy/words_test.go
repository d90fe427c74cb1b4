package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestSettingsInWords starts servers with mistakes in their settings. Each of them ends, and says
// which setting is wrong, where, and what to write.
func TestSettingsInWords(t *testing.T) {
	t.Parallel()
	hidden, err := os.MkdirTemp("/tmp", "fermata-tests-") //nolint:usetesting // sandboxes cover /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(hidden) })
	if out, err := exec.Command(harness.Python(), "-m", "venv", "--without-pip", hidden).CombinedOutput(); err != nil {
		t.Fatalf("make an interpreter: %v\n%s", err, out)
	}
	// An interpreter that introduces itself well and then ends. What it says is the reason, and no guess.
	ending := func(name, how string) string {
		path := filepath.Join(hidden, name)
		script := "#!/bin/sh\ncase \"$*\" in *zygote) " + how + ";; *) printf '%s\\n' \"$0\" 3.12.1 /usr;; esac\n"
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		settings harness.Settings
		says     []string
	}{
		{harness.Settings{"PAUSE_TTL": "300"}, []string{"FERMATA_PAUSE_TTL", "such as 500ms, 30s, 5m or 24h", `got "300"`}},
		{harness.Settings{"MEMORY": "1MiB"}, []string{"FERMATA_MEMORY", "at least 16 MiB", "is 1.0 MiB"}},
		{harness.Settings{"PYTHON": "/bin/ls"}, []string{"FERMATA_PYTHON", `"/bin/ls"`, "exit status 2", "cannot access"}},
		{harness.Settings{"PYTHON": filepath.Join(hidden, "bin", "python3")}, []string{"FERMATA_PYTHON", hidden, "a /tmp of its own", "-m venv /opt/fermata-python"}},
		{harness.Settings{"PYTHON": ending("lacking", "echo \"AttributeError: module 'os' has no attribute 'fork'\" >&2; exit 1")}, []string{"gone: AttributeError: module 'os' has no attribute 'fork'"}},
		{harness.Settings{"PYTHON": ending("silent", "exit 3")}, []string{"the zygote has ended (exit status 3) and has said nothing"}},
		{harness.Settings{"REDIS_URL": "localhost:6379"}, []string{"FERMATA_REDIS_URL", "redis://localhost:6379"}},
		{harness.Settings{"REDIS_URL": "redis://h:6379/zero"}, []string{"FERMATA_REDIS_URL"}},
		{harness.Settings{"ADDR": "8000"}, []string{"FERMATA_ADDR", "HOST:PORT", "127.0.0.1:8000", `"8000"`}},
		{harness.Settings{"ADDR": "::1:8006"}, []string{"FERMATA_ADDR", "[::1]:8000"}},
		{harness.Settings{"ADDR": ":99999"}, []string{"FERMATA_ADDR", "from 0 to 65535"}},
		{harness.Settings{"POOL_SIZE": "500"}, []string{"FERMATA_POOL_SIZE", "--max-sandboxes, which is 256", "is 500"}},
		{harness.Settings{"QUEUE_TIMEOUT": "90s"}, []string{"FERMATA_QUEUE_TIMEOUT", "between 0s and 1m0s", "is 1m30s"}},
		{harness.Settings{"API_KEYS": "me:canary-a,:canary-b"}, []string{"FERMATA_API_KEYS", "there is an empty name"}},
		{harness.Settings{"SECRET": "canary"}, []string{"FERMATA_SECRET", "has 6 bytes, want at least 32", "openssl rand -hex 32"}},
		{harness.Settings{"API_KEYS": "me:same-key,you:same-key"}, []string{"FERMATA_API_KEYS", "me and you have the same key"}},
	} {
		s, err := harness.NewServer(harness.With(harness.Common, c.settings))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Launch(); err != nil {
			t.Fatal(err)
		}
		if err := s.Await(); err == nil {
			t.Errorf("a server with %v serves", c.settings)
			_ = s.Stop()
			continue
		}
		if err := s.RemoveGroups(); err != nil {
			t.Error(err)
		}
		if strings.Contains(s.Log.All(), "FERMATA_MEMORY") && c.settings["MEMORY"] == "" {
			t.Errorf("a server with %v guesses that it has too little memory: %s", c.settings, s.Log.All())
		}
		if strings.Contains(s.Log.All(), "canary") {
			t.Errorf("a server with %v tells a secret: %s", c.settings, s.Log.All())
		}
		for _, part := range c.says {
			if text := s.Log.All(); !strings.Contains(text, part) {
				t.Errorf("a server with %v says %q, want %q in it", c.settings, text, part)
			}
		}
	}
}

// TestStraySettings starts a server with settings that it does not know, or that have no effect: it
// says so and serves.
func TestStraySettings(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.With(harness.Quick(t), harness.Settings{
		"MAXSANDBOXES": "3", "DOCKER_IMAGE": "foo", "TEST_ANYTHING": "1",
	}))
	log := s.Log.All()
	for _, part := range []string{
		"FERMATA_MAXSANDBOXES is not a setting, and is ignored; did you mean FERMATA_MAX_SANDBOXES?",
		"FERMATA_DOCKER_IMAGE has no effect with FERMATA_SANDBOX=process",
	} {
		if !strings.Contains(log, part) {
			t.Errorf("the log is\n%s\nwant %q in it", log, part)
		}
	}
	if strings.Contains(log, "TEST_ANYTHING") {
		t.Errorf("the log tells of a variable of the tests:\n%s", log)
	}
}

// TestHealthCommand asks a server with the command that the image has for it.
func TestHealthCommand(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Quick(t))
	ask := func(code int, says string, settings harness.Settings) {
		t.Helper()
		asking, err := harness.NewServer(harness.With(s.Settings, settings))
		if err != nil {
			t.Fatal(err)
		}
		asking.Command = "health"
		if err := asking.Launch(); err != nil {
			t.Fatal(err)
		}
		<-asking.Exited
		if err := asking.RemoveGroups(); err != nil {
			t.Error(err)
		}
		if got := asking.Cmd.ProcessState.ExitCode(); got != code || !strings.Contains(asking.Log.All(), says) {
			t.Errorf("fermata health with %v exits with %d and says %q, want %d and %q", settings, got, asking.Log.All(), code, says)
		}
	}
	ask(0, "healthy", nil)
	ask(1, "connection refused", harness.Settings{"ADDR": harness.FreeAddr(t)})
}
