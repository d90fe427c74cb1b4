package boltstore_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/continuation/storetest"
)

const ttl = time.Minute

// makeStore creates a new file with n records in it and closes it.
func makeStore(t *testing.T, n int) (path string, last continuation.Record) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "records.db")
	s := open(t, path)
	defer closeStore(t, s)
	for range n {
		last = storetest.NewRecord()
		if err := s.Put(t.Context(), last, ttl, continuation.Chapter{}); err != nil {
			t.Fatalf("Put = %v, want success", err)
		}
	}
	return path, last
}

func TestRecordsSurviveReopening(t *testing.T) {
	path, r := makeStore(t, 100)
	s := open(t, path)
	defer closeStore(t, s)
	if _, err := s.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get = %v, want the record", err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 100 {
		t.Errorf("List = %d records, %v, want 100", len(list), err)
	}
}

// If a server is killed at any moment of its start, the next server finds the records: the file that names
// their boot is not written again if it is right.
func TestBootIsWrittenOnce(t *testing.T) {
	path, _ := makeStore(t, 1)
	then := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path+".boot", then, then); err != nil {
		t.Fatal(err)
	}
	closeStore(t, open(t, path))
	info, err := os.Stat(path + ".boot")
	if err != nil {
		t.Fatal(err)
	}
	if got := info.ModTime(); got.Sub(then).Abs() > time.Second {
		t.Errorf("the boot was written at %v, want it left alone since %v", got, then)
	}
}

func TestFilesArePrivate(t *testing.T) {
	path, _ := makeStore(t, 1)
	for _, name := range []string{path, path + ".boot"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != 0o600 {
			t.Errorf("mode of %s = %o, want 600", name, got)
		}
	}
}

func TestSecondServer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "records.db")
	defer closeStore(t, open(t, path))

	began := time.Now()
	_, err := boltstore.Open(path, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal("second Open = nil, want an error")
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("second Open took %v, want about a second", took)
	}
	for _, part := range []string{path, "another server"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("second Open = %v, want %q in it", err, part)
		}
	}
}

// If another program has locked the file, to read or to write it, the server does not
// start, and the records stay.
func TestFileIsLocked(t *testing.T) {
	for name, how := range map[string]int{"shared": unix.LOCK_SH, "exclusive": unix.LOCK_EX} {
		t.Run(name, func(t *testing.T) {
			path, r := makeStore(t, 1)
			f, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := unix.Flock(int(f.Fd()), how); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = boltstore.Open(path, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another process has locked") {
				t.Errorf("Open = %v, want an error that names the file and what to do", err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("Open took %v, want about a second", took)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			s := open(t, path)
			defer closeStore(t, s)
			if _, err := s.Get(t.Context(), r.ID); err != nil {
				t.Errorf("Get = %v, want the record, which is nobody's to drop", err)
			}
		})
	}
}

// Files that must not be used are replaced by an empty store and the loss is logged. None of them ends the process.
// Damaged ones are set aside.
func TestUnusableFiles(t *testing.T) {
	edit := func(name string, f func([]byte) []byte) error {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, f(b), 0o600)
	}
	pages := func(from, to int) func([]byte) []byte {
		return func(b []byte) []byte {
			size := os.Getpagesize()
			for i := from * size; i < min(to*size, len(b)); i++ {
				b[i] = 0xff
			}
			return b
		}
	}
	for name, damage := range map[string]func(path string) error{
		"earlier boot": func(path string) error {
			return os.WriteFile(path+".boot", []byte("00000000-0000-0000-0000-000000000000\n"), 0o600)
		},
		"no boot":         func(path string) error { return os.Remove(path + ".boot") },
		"empty":           func(path string) error { return os.Truncate(path, 0) },
		"one byte":        func(path string) error { return os.Truncate(path, 1) },
		"half a page":     func(path string) error { return os.Truncate(path, 2048) },
		"meta pages only": func(path string) error { return os.Truncate(path, 2*int64(os.Getpagesize())) },
		"half":            func(path string) error { return edit(path, func(b []byte) []byte { return b[:len(b)/2] }) },
		"not a database": func(path string) error {
			return os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 10_000), 0o600)
		},
		"meta pages overwritten": func(path string) error { return edit(path, pages(0, 2)) },
		"data overwritten":       func(path string) error { return edit(path, pages(2, 1<<20)) },
		"data zeroed": func(path string) error {
			return edit(path, func(b []byte) []byte { clear(b[2*os.Getpagesize():]); return b })
		},
	} {
		t.Run(name, func(t *testing.T) {
			path, _ := makeStore(t, 500)
			if err := damage(path); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+".damaged", []byte("earlier"), 0o600); err != nil {
				t.Fatal(err)
			}
			var logged bytes.Buffer
			s, err := boltstore.Open(path, slog.New(slog.NewTextHandler(&logged, nil)))
			if err != nil {
				t.Fatalf("Open = %v, want an empty store", err)
			}
			defer closeStore(t, s)
			if list, err := s.List(t.Context()); err != nil || len(list) != 0 {
				t.Errorf("List = %d records, %v, want none", len(list), err)
			}
			if err := s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}); err != nil {
				t.Errorf("Put = %v, want success", err)
			}
			if !strings.Contains(logged.String(), path) {
				t.Errorf("log = %q, want a line about %s", logged.String(), path)
			}
			aside, err := os.ReadFile(path + ".damaged.2")
			if dropped := strings.HasSuffix(name, "boot"); !dropped && (err != nil || !bytes.Equal(aside, before)) {
				t.Errorf("%d bytes were set aside (%v), want the %d of the file", len(aside), err, len(before))
			}
			if earlier, err := os.ReadFile(path + ".damaged"); err != nil || string(earlier) != "earlier" {
				t.Errorf("what was set aside earlier is %q, %v", earlier, err)
			}
		})
	}
}

func TestOpenCannotCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "records.db")
	if _, err := boltstore.Open(path, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("Open = %v, want an error about %s", err, path)
	}
}

func TestClosedStoreIsUnavailable(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "records.db"))
	closeStore(t, s)
	if err := s.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}); !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("Put after Close = %v, want ErrUnavailable", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("Ping after Close = %v, want ErrUnavailable", err)
	}
}

// childRole is the environment variable that holds the path of the store in a child: this
// test binary, started again by a test.
const childRole = "BOLTSTORE_TEST_CHILD"

// child returns a command that runs the test called name again, as the process that does
// the test's other part.
func child(t *testing.T, name, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), childRole+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

// Records that Put has written survive a kill -9.
func TestKilledServerLosesNothing(t *testing.T) {
	if path := os.Getenv(childRole); path != "" {
		s := open(t, path)
		for { // until killed
			r := storetest.NewRecord()
			if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
				t.Fatalf("Put = %v, want success", err)
			}
			fmt.Println("put", r.ID)
		}
	}

	path := filepath.Join(t.TempDir(), "records.db")
	promised := make(map[string]bool)
	for round := range 3 {
		cmd := child(t, t.Name(), path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines, before := bufio.NewScanner(out), len(promised)
		for lines.Scan() {
			if id, ok := strings.CutPrefix(lines.Text(), "put "); ok && len(id) == 36 {
				promised[id] = true
			}
			if len(promised) == before+500*(round+1) {
				_ = cmd.Process.Kill() // then read on: the child may have printed more before it died
			}
		}
		_ = cmd.Wait() // it was killed
		if len(promised) < before+500*(round+1) {
			t.Fatalf("the child put %d records, want %d", len(promised)-before, 500*(round+1))
		}
	}

	s := open(t, path)
	defer closeStore(t, s)
	list, err := s.List(t.Context())
	if err != nil {
		t.Fatalf("List = %v, want success", err)
	}
	for _, r := range list {
		delete(promised, r.ID)
	}
	if len(promised) != 0 {
		t.Errorf("%d records were promised and are lost, want 0", len(promised))
	}
}

// If the file cannot grow, one Put fails and the store keeps working.
func TestFullDisk(t *testing.T) {
	if path := os.Getenv(childRole); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		s := open(t, path)
		defer closeStore(t, s)
		kept := storetest.NewRecord()
		if err := s.Put(t.Context(), kept, ttl, continuation.Chapter{}); err != nil {
			t.Fatalf("Put = %v, want success", err)
		}
		limit := unix.Rlimit{Cur: 1 << 20, Max: 1 << 20}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
			t.Fatal(err)
		}
		big := storetest.NewRecord()
		big.Answer = bytes.Repeat([]byte("x"), 2<<20)
		for range 3 {
			if err := s.Put(t.Context(), big, ttl, continuation.Chapter{}); !errors.Is(err, continuation.ErrUnavailable) || !errors.Is(err, continuation.ErrFull) {
				t.Errorf("Put to a full disk = %v, want ErrUnavailable and ErrFull", err)
			}
		}
		kept.Version = 2
		if err := s.Put(t.Context(), kept, ttl, continuation.Chapter{}); err != nil {
			t.Errorf("small Put after that = %v, want success", err)
		}
		if list, err := s.List(t.Context()); err != nil || len(list) != 1 || list[0].Version != 2 {
			t.Errorf("List = %d records, %v, want one of version 2", len(list), err)
		}
		return
	}
	cmd := child(t, t.Name(), filepath.Join(t.TempDir(), "records.db"))
	cmd.Stdout = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Errorf("child = %v, want success", err)
	}
}

// A file that has grown large is small again after a start and has every live record.
func TestOpenShrinks(t *testing.T) {
	path, kept := makeStore(t, 50)
	s := open(t, path)
	large := storetest.NewRecord()
	large.Answer = json.RawMessage(`"` + strings.Repeat("x", 30<<20) + `"`)
	for range 2 {
		large.ID = uuid.NewString()
		if err := s.Put(t.Context(), large, ttl, continuation.Chapter{}); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), large.ID); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		large.ID = uuid.NewString()
		if err := s.Put(t.Context(), large, time.Millisecond, continuation.Chapter{}); err != nil {
			t.Fatal(err)
		}
	}
	closeStore(t, s)
	size := func() int64 {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if before < 64<<20 {
		t.Fatalf("the file has %d bytes, want a large one", before)
	}
	// A server that was killed while it compacted the file left this.
	if err := os.WriteFile(path+".new", []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s = open(t, path)
		if list, err := s.List(t.Context()); err != nil || len(list) != 50 {
			t.Errorf("List = %d records, %v, want 50", len(list), err)
		}
		if got, err := s.Get(t.Context(), kept.ID); err != nil || got.Version != kept.Version {
			t.Errorf("Get = version %d, %v, want %d", got.Version, err, kept.Version)
		}
		closeStore(t, s)
		if after := size(); after > 1<<20 {
			t.Errorf("the file has %d bytes after a start, %d before, want a small one", after, before)
		}
	}
	if _, err := os.Stat(path + ".new"); !os.IsNotExist(err) {
		t.Errorf("a file is left over: %v", err)
	}
}
