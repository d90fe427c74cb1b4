package deploy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestStateDirectoryIsClosed starts a server on a state directory that other users can read, which
// it closes, and on one that belongs to another user, which it refuses.
func TestStateDirectoryIsClosed(t *testing.T) {
	t.Parallel()
	s, err := harness.NewServer(harness.Common)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir, "state")
	if err := errors.Join(os.Chmod(dir, 0o755), s.Start()); err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 || !strings.Contains(s.Log.All(), "was open to other users") {
		t.Errorf("the state directory has mode %v (%v), want 0700 and a line in the log", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		return
	}
	foreign, err := harness.NewServer(harness.Common)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.RemoveGroups() }()
	if err := os.Chown(filepath.Join(foreign.Dir, "state"), 4321, 4321); err != nil {
		t.Fatal(err)
	}
	if err := foreign.Start(); err == nil {
		harness.StopAfter(t, foreign)
		t.Error("a server runs on the state directory of another user")
	}
	if !strings.Contains(foreign.Log.All(), "belongs to another user") {
		t.Errorf("the server says %q, want whose the directory is", foreign.Log.All())
	}
}
