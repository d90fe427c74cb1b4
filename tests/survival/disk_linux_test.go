package survival

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"fermata/tests/harness"
)

// TestFullDisk fills the disk of the state directory. Starts are refused before they run, and what has ended meanwhile
// is told when there is space again: a start with a key gets its answer, and its program has run once.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s, err := harness.NewServer(harness.With(harness.Common, harness.Quick(t)))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.Dir, "state")
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=700"); err != nil {
		t.Skipf("a small disk cannot be made here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	harness.StopAfter(t, s)
	c := s.Alice()
	filler := filepath.Join(dir, "filler")
	fill := func() {
		t.Helper()
		f, err := os.Create(filler)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		for _, size := range []int{1 << 20, 4 << 10, 1} {
			for err = error(nil); err == nil; {
				_, err = f.Write(make([]byte, size))
			}
			if !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
		}
	}
	pause := c.Pause(t, harness.AskOnce)
	begun := harness.NewMark()
	late := harness.Program{Code: begun.Line() + "import time\ntime.sleep(3)\nprint('x' * 200_000)"}
	answers := make(chan harness.Answer, 2)
	go func() { answers <- c.Post(t, late) }()
	go func() { answers <- c.PostKeyed(t, "late", late) }()
	begun.Await(t, 2)
	fill()
	isUnavailable(t, c, harness.Program{Code: "print(1)"})
	for range 2 {
		if a := <-answers; a.HTTPStatus != 503 || a.Header.Get("Retry-After") == "" {
			t.Errorf("a program that ended meanwhile: got %d %s with %d bytes of output, want 503", a.HTTPStatus, a.Status, len(a.Stdout))
		}
	}
	reportsReady(t, c, "store")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	reportsReady(t, c)
	again := c.PostKeyed(t, "late", late)
	if again.HTTPStatus != 200 || again.Status != "completed" || len(again.Stdout) != 200_001 {
		t.Errorf("got %d %s with %d bytes of output, want the answer of the start", again.HTTPStatus, again.Status, len(again.Stdout))
	}
	j := &harness.Journal{ID: again.Execution()}
	if err := j.Tells(t.Context(), c, again); err != nil {
		t.Error(err)
	}
	c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
}
