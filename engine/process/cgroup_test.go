package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBeforeMove checks that a server that is started again uses the groups of the
// earlier one.
func TestBeforeMove(t *testing.T) {
	dir := t.TempDir()
	makeFiles(t, dir,
		"fresh/cgroup.controllers",
		"again/cgroup.controllers", "again/fermata/cgroup.controllers", "again/fermata-server/cgroup.controllers",
		"service/cgroup.controllers", "service/fermata-server/cgroup.procs",
		"named/cgroup.controllers", "named/fermata-server/cgroup.controllers",
	)
	for own, want := range map[string]string{
		"fresh":                  "fresh",
		"again":                  "again",
		"again/fermata-server":   "again",
		"service/fermata-server": "service",
		"named/fermata-server":   "named/fermata-server",
	} {
		if got := beforeMove(filepath.Join(dir, own)); got != filepath.Join(dir, want) {
			t.Errorf("in %s: groups are made in %s, want %s", own, got, want)
		}
	}
}

// makeFiles makes files that say which controllers there are.
func makeFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("cpuset cpu io memory pids\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
