package survival

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// refuses starts a server that must not start, and checks what it says.
func refuses(t *testing.T, settings harness.Settings, parts ...string) {
	t.Helper()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t), settings))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.RemoveGroups() })
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	if err := s.Await(); err == nil {
		t.Errorf("a server with %v started, want it refused with %q", settings, parts)
		_ = s.Kill()
		return
	}
	for _, part := range parts {
		if text := s.Log.All(); !strings.Contains(text, part) {
			t.Errorf("a server with %v says\n%s\nwant %q in it", settings, text, part)
		}
	}
	if strings.Contains(s.Log.All(), harness.Secret) {
		t.Errorf("the server tells its secret:\n%s", s.Log.All())
	}
}

// TestForeignServers starts servers on the Redis of another one that cannot be in a group with it.
func TestForeignServers(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	const another = "another-secret-0f1e2d3c4b5a69788796a5b4"
	group := harness.Settings{"REDIS_URL": redis.URL(), "FILES_URL": harness.Bucket(t)}
	refuses(t, harness.With(group, harness.Settings{"SECRET": ""}), "FERMATA_REDIS_URL needs FERMATA_SECRET", "openssl rand -hex 32")
	first := harness.LaunchAlone(t, harness.Setup{Name: "process", Settings: harness.With(harness.Common, harness.Quick(t), group)})
	refuses(t, harness.With(group, harness.Settings{"SECRET": another}), first.URL, "none of its secrets is one of this server (FERMATA_SECRET)")
	refuses(t, harness.Settings{"REDIS_URL": redis.URL()}, first.URL, "session files", "FERMATA_FILES_URL", "s3://")
	refuses(t, harness.Settings{"REDIS_URL": redis.URL(), "PEER_URL": "http://127.0.0.1:1"}, "FERMATA_PEER_URL", "FERMATA_FILES_URL", "s3://")
	// One common secret is enough to start: secrets are changed in one server after the other.
	with := func(secrets string) *harness.Server {
		t.Helper()
		all := harness.With(harness.Common, harness.Quick(t), group, harness.Settings{"SECRET": secrets})
		return harness.LaunchAlone(t, harness.Setup{Name: "process", Settings: all})
	}
	second, hasty := with(harness.Secret+","+another), with(another+","+harness.Secret)
	for _, s := range []*harness.Server{first, second, hasty} {
		reportsReady(t, s.Alice())
	}
	const warning = "does not know the secret with which this one signs"
	if !strings.Contains(hasty.Log.All(), warning) || strings.Contains(second.Log.All(), warning) {
		t.Errorf("only one server signs with what another one does not know, but the logs are\n%s\n%s", hasty.Log.Tail(), second.Log.Tail())
	}
	pause := first.Alice().Pause(t, harness.AskOnce)
	second.Alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
}

// TestSecondServerBesideOwnFiles starts a second server beside one that has Redis, but keeps its
// files to itself.
func TestSecondServerBesideOwnFiles(t *testing.T) {
	t.Parallel()
	redis := harness.RedisAlone(t)
	if err := redis.Start(); err != nil {
		t.Fatal(err)
	}
	first := harness.LaunchAlone(t, harness.Setup{Name: "process", Settings: harness.With(harness.Common, harness.Quick(t), harness.Settings{"REDIS_URL": redis.URL()})})
	first.Alice().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	refuses(t, harness.Settings{"REDIS_URL": redis.URL(), "FILES_URL": harness.Bucket(t)}, first.URL, "keeps its session files in a directory of its own")
	if err := first.Kill(); err != nil {
		t.Fatal(err)
	}
	// It comes back at once, although its own lease has not ended.
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
}
