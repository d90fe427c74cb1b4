package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestNoCgroups starts a server that may not make cgroups: it refuses to start, and tells the
// operator what to do.
func TestNoCgroups(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becomes another user, which takes root")
	}
	t.Parallel()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Settings{harness.RunAs: harness.Nobody}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveGroups(); err != nil {
		t.Fatal(err)
	}
	s.Groups = nil
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	err = s.Await()
	if err == nil {
		t.Fatal("a server without cgroups serves", s.Stop())
	}
	for _, want := range []string{
		"may not make cgroups", "systemd-run --user --scope -p Delegate=yes", "FERMATA_SANDBOX=docker", "FERMATA_CGROUPS=optional",
		"64 × 512 MiB", "3 × 256 MiB",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the server said %q, want %q in it", err, want)
		}
	}
	if left, _ := os.ReadDir(filepath.Join(s.Dir, "state", "sandboxes")); len(left) > 0 {
		t.Errorf("%d zygotes were started", len(left))
	}
}

// runCheck runs fermata check in the place of a server, and returns the state of each thing that
// it checks, what it printed and its exit code.
func runCheck(t *testing.T, s *harness.Server) (states map[string]string, printed string, code int) {
	t.Helper()
	s.Command = "check"
	if err := s.Launch(); err != nil {
		t.Fatal(err)
	}
	<-s.Exited
	if err := s.RemoveGroups(); err != nil {
		t.Error(err)
	}
	states, printed = map[string]string{}, s.Log.All()
	for line := range strings.Lines(printed) {
		if f := strings.Split(strings.TrimSpace(line), "  "); len(f) > 1 {
			f = slices.DeleteFunc(f, func(cell string) bool { return cell == "" })
			states[f[0]] = strings.TrimSpace(f[1])
		}
	}
	return states, printed, s.Cmd.ProcessState.ExitCode()
}

// TestCheck runs fermata check where more and more is missing.
func TestCheck(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("becomes other users, which takes root")
	}
	for _, c := range []struct {
		name     string
		settings harness.Settings
		groups   bool
		code     int
		// states are those that must not be "ok".
		states map[string]string
		says   []string
	}{
		{name: "root", groups: true, says: []string{"one for each sandbox, from 200000", "user 1000, capabilities 0000000000000000, no_new_privs 1", "it may write to /dev/shm, /mnt/data, /tmp"}},
		{name: "a user with a range", groups: true, settings: harness.Settings{harness.RunAs: harness.NobodyWithRange}, says: []string{"one for each sandbox, from 400000 to 404999"}},
		{
			name: "a user with too small a range", groups: true, settings: harness.Settings{harness.RunAs: harness.NobodyWithRange, "MAX_SANDBOXES": "5001", "PIDS": "4"},
			states: map[string]string{"users": "weaker"}, says: []string{"5000 users and 5000 groups for nobody, 5001 of both"},
		},
		{
			name: "a user", groups: true, settings: harness.Settings{harness.RunAs: harness.Nobody},
			states: map[string]string{"users": "weaker"}, says: []string{"usermod --add-subuids"},
		},
		{
			name: "a user without cgroups", settings: harness.Settings{harness.RunAs: harness.Nobody}, code: 1,
			states: map[string]string{"users": "weaker", "cgroups": "missing", "program": "missing"},
			says:   []string{"systemd-run --user --scope -p Delegate=yes", "64 × 512 MiB", "2 are missing"},
		},
		{
			name: "a user who does without cgroups", settings: harness.Settings{harness.RunAs: harness.Nobody, "CGROUPS": "optional"},
			states: map[string]string{"users": "weaker", "cgroups": "weaker"}, says: []string{"64 × 512 MiB"},
		},
		{
			name: "settings with a mistake", groups: true, settings: harness.Settings{"PIDS": "0"}, code: 1,
			states: map[string]string{"settings": "missing"}, says: []string{"--pids must be more than 0"},
		},
		{
			name: "no Python", groups: true, settings: harness.Settings{"PYTHON": "/usr/bin/python9"}, code: 1,
			states: map[string]string{"Python": "missing", "program": "missing"}, says: []string{"set FERMATA_PYTHON"},
		},
		{
			name: "no Docker", settings: harness.Settings{"SANDBOX": "docker"}, code: 1,
			states: map[string]string{"ignored": "weaker", "Docker": "missing", "program": "missing"}, says: []string{"set DOCKER_HOST", "FERMATA_PYTHON has no effect"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := harness.NewServer(harness.With(harness.Common, c.settings))
			if err != nil {
				t.Fatal(err)
			}
			s.DockerHost = "unix://" + filepath.Join(s.Dir, "no.sock")
			if !c.groups {
				if err := s.RemoveGroups(); err != nil {
					t.Fatal(err)
				}
				s.Groups = nil
			}
			states, printed, code := runCheck(t, s)
			if code != c.code {
				t.Errorf("the exit code is %d, want %d", code, c.code)
			}
			ordinary := []string{"libraries", "limit on swap", "freezer", "core dumps", "descriptors", "processes"}
			for _, what := range slices.Sorted(maps.Keys(states)) {
				// These depend on the machine.
				if want := c.states[what]; states[what] != "ok" && want == "" && !slices.Contains(ordinary, what) {
					t.Errorf("%s is %s, want ok", what, states[what])
				}
			}
			for what, want := range c.states {
				if states[what] != want {
					t.Errorf("%s is %q, want %s", what, states[what], want)
				}
			}
			for _, part := range c.says {
				if !strings.Contains(printed, part) {
					t.Errorf("%q is not said", part)
				}
			}
			if left, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*")); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
			if t.Failed() {
				t.Log(printed)
			}
		})
	}
}

// TestCheckDocker runs fermata check for the Docker sandbox.
func TestCheckDocker(t *testing.T) {
	t.Parallel()
	harness.NeedDocker(t)
	for _, c := range []struct {
		name, image string
		code        int
		says        string
	}{
		{"an image", harness.BareImage, 0, "user 1000, capabilities 0000000000000000, no_new_privs 1"},
		{"no image", "fermata-tests-none", 1, "docker build --target sandbox -t fermata-tests-none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := harness.NewServer(harness.With(harness.Common, harness.DockerSettings, harness.Settings{"DOCKER_IMAGE": c.image}))
			if err != nil {
				t.Fatal(err)
			}
			states, printed, code := runCheck(t, s)
			if code != c.code || states["Docker"] != "ok" || !strings.Contains(printed, c.says) {
				t.Errorf("the exit code is %d, want %d and %q in\n%s", code, c.code, c.says, printed)
			}
			if left, err := s.Containers(t.Context()); err != nil || len(left) > 0 {
				t.Errorf("%d containers are left, %v, want none", len(left), err)
			}
		})
	}
}
