//go:build linux

package process

import (
	"os"
	"path/filepath"
	"testing"
)

// TestCgroupMounts checks where the process's own group is taken to be.
func TestCgroupMounts(t *testing.T) {
	mount := t.TempDir()
	makeFiles(t, mount, "a/b/cgroup.procs")
	for _, c := range []struct{ name, root, own, want string }{
		{"a machine", "/", "/a/b", "a/b"},
		{"the root, or that of a namespace", "/", "/", ""},
		{"a part of the hierarchy", "/x", "/x/a", "a"},
		{"another part of it", "/x", "/y", ""},
	} {
		got := unifiedMount(t, c.own, c.root, mount)
		if want := filepath.Join(mount, c.want); got != want {
			t.Errorf("%s: the group is %q, want %q", c.name, got, want)
		}
	}
	if got := unifiedMount(t, "/", "/../..", mount); got != "" {
		t.Errorf("a namespace without a mount of its own: the group is %q, want none", got)
	}
}

// unifiedMount is where the group own is, if root is mounted.
func unifiedMount(t *testing.T, own, root, mount string) string {
	t.Helper()
	proc := t.TempDir()
	for name, text := range map[string]string{
		"cgroup": "0::" + own + "\n",
		"mountinfo": "20 1 0:19 / /proc rw - proc proc rw\n" +
			"30 1 0:26 " + root + " " + mount + " rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n",
	} {
		if err := os.WriteFile(filepath.Join(proc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mounts, err := cgroupMounts(proc)
	if err != nil {
		t.Fatal(err)
	}
	return mounts[""]
}

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
