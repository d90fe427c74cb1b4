package files_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"fermata/engine/files"
)

func TestOldFilesAreGone(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		f := put(t, s, ada, sid, "a", "x")
		b.age(t, 23*time.Hour)
		if got := readOld(t, s, f); got != "x" {
			t.Errorf("after 23 h the file is %q", got)
		}
		later := put(t, s, ada, sid, "b", "y")
		b.age(t, 24*time.Hour)
		_, err := s.Stat(t.Context(), ada, sid, f.ID)
		if !errors.Is(err, files.ErrNotFound) {
			t.Errorf("Stat after 24 h = %v, want ErrNotFound", err)
		}
		if _, _, err := s.Read(t.Context(), ada, sid, f.ID); !errors.Is(err, files.ErrNotFound) {
			t.Errorf("Read after 24 h = %v, want ErrNotFound", err)
		}
		if got, err := s.List(t.Context(), ada, sid); err != nil || len(got) != 0 {
			t.Errorf("List after 24 h = %v, %v, want none", got, err)
		}
		if _, err := s.List(t.Context(), bob, sid); !errors.Is(err, files.ErrForeign) {
			t.Errorf("another owner's List after 24 h = %v, want ErrForeign", err)
		}
		if err := s.Delete(t.Context(), ada, sid, later.ID); !errors.Is(err, files.ErrNotFound) {
			t.Errorf("Delete after 24 h = %v, want ErrNotFound", err)
		}
	})
}

func readOld(t *testing.T, s *files.Store, f files.File) string {
	t.Helper()
	r, _, err := s.Read(t.Context(), f.Owner, f.Session, f.ID)
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestSweep(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		put(t, s, ada, sid, "a", "x")
		b.age(t, 25*time.Hour)
		kept := put(t, s, ada, files.NewID(), "b", "y")
		s.Sweep(t.Context())
		if got := b.objects(t); len(got) != 4 {
			t.Errorf("after a day the bucket has %q, want two owners of sessions and one file", got)
		}
		if got := read(t, s, ada, kept); got != "y" {
			t.Errorf("the young file is %q", got)
		}
		b.age(t, 49*time.Hour)
		s.Sweep(t.Context())
		if got := b.objects(t); len(got) != 0 {
			t.Errorf("after two days the bucket has %q, want nothing", got)
		}
		put(t, s, bob, sid, "a", "x")
		// Because of the later file, the session still belongs to its owner.
		b.age(t, 49*time.Hour)
		put(t, s, bob, sid, "b", "y")
		s.Sweep(t.Context())
		if got, err := s.List(t.Context(), ada, sid); !errors.Is(err, files.ErrForeign) {
			t.Errorf("another owner's List = %v, %v, want ErrForeign", got, err)
		}
	})
}

// TestSweepOfParts sweeps a directory with the temporary file of a server that was killed.
func TestSweepOfParts(t *testing.T) {
	dir := t.TempDir()
	o := limits()
	o.URL = "file://" + dir
	s := openStore(t, o)
	put(t, s, ada, sid, "a", "x")
	for name, age := range map[string]time.Duration{"old.tmp": 11 * time.Minute, "young.tmp": time.Minute} {
		path := filepath.Join(dir, "contents", name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s.Sweep(t.Context())
	for name, want := range map[string]error{"old.tmp": os.ErrNotExist, "young.tmp": nil} {
		if _, err := os.Stat(filepath.Join(dir, "contents", name)); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	if got, err := s.List(t.Context(), ada, sid); err != nil || len(got) != 1 {
		t.Errorf("List = %v, %v, want the file", got, err)
	}
}
