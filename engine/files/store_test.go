package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"fermata/engine/files"
)

var (
	ada   = files.Owner{Tenant: "t", Kind: "user", ID: "ada"}
	bob   = files.Owner{Tenant: "t", Kind: "user", ID: "bob"}
	skill = files.Owner{Tenant: "t", Kind: "skill", ID: "s", Version: 2}
)

const sid = "abcdefghijklmnopqrstu"

func limits() files.Options {
	return files.Options{MaxFile: 1 << 20, Quota: 8 << 20, MaxFiles: 10, Life: 24 * time.Hour}
}

func openStore(t *testing.T, o files.Options) *files.Store {
	t.Helper()
	s, err := files.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}

// A bucket opens stores on one place, and dir is where that keeps its objects.
type bucket struct {
	open func(files.Options) *files.Store
	dir  string
}

// onEach runs a test on a directory and on an S3 server.
func onEach(t *testing.T, test func(t *testing.T, b bucket)) {
	t.Run("directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "files")
		test(t, bucket{func(o files.Options) *files.Store {
			o.URL = "file://" + dir
			return openStore(t, o)
		}, dir})
	})
	t.Run("S3", func(t *testing.T) {
		open, dir := openS3(t)
		test(t, bucket{open, dir})
	})
}

// objects returns the names of all files of a bucket: there is nothing else that could
// be left behind.
func (b bucket) objects(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was removed a moment ago.
		}
		if err == nil && !d.IsDir() {
			names = append(names, strings.TrimPrefix(path, b.dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// age makes everything in the bucket older.
func (b bucket) age(t *testing.T, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	for _, name := range b.objects(t) {
		if err := os.Chtimes(filepath.Join(b.dir, name), then, then); err != nil {
			t.Fatal(err)
		}
	}
}

func put(t *testing.T, s *files.Store, owner files.Owner, session, name, content string) files.File {
	t.Helper()
	f, err := s.Put(t.Context(), files.New{Owner: owner, Session: session, Name: name, Content: strings.NewReader(content)})
	if err != nil {
		t.Fatalf("Put %s = %v", name, err)
	}
	return f
}

func read(t *testing.T, s *files.Store, owner files.Owner, f files.File) string {
	t.Helper()
	r, got, err := s.Read(t.Context(), owner, f.Session, f.ID)
	if err != nil {
		t.Fatalf("Read %s = %v", f.Name, err)
	}
	content, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil {
		t.Fatalf("reading %s: %v", f.Name, err)
	}
	if diff := cmp.Diff(f, got, aboutNow); diff != "" {
		t.Errorf("Read describes it differently (-Put +Read):\n%s", diff)
	}
	return string(content)
}

// aboutNow ignores what the clocks of two machines may differ by.
var aboutNow = cmpopts.EquateApproxTime(2 * time.Second)

func TestFilesComeBackAsTheyWere(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		large := strings.Repeat("0123456789abcdef", 1<<16)
		for name, content := range map[string]string{
			"a.csv": "a,b\n1,2\n", "empty": "", "out/plot ü 名前.png": "\x89PNG\r\n\x1a\n", "large": large, strings.Repeat("名", 256): "x",
		} {
			f := put(t, s, skill, sid, name, content)
			hash := sha256.Sum256([]byte(content))
			wanted := files.File{
				Session: sid, ID: f.ID, Name: name, Size: int64(len(content)), SHA256: hex.EncodeToString(hash[:]),
				Type: f.Type, ETag: f.ETag, Modified: time.Now(), Owner: skill,
			}
			if diff := cmp.Diff(wanted, f, aboutNow); diff != "" {
				t.Errorf("Put %s (-want +got):\n%s", name, diff)
			}
			if !files.ValidID(f.ID) || f.Type == "" || f.ETag == "" || f.Modified.Location() != time.UTC {
				t.Errorf("Put %s = %+v", name, f)
			}
			if got := read(t, s, skill, f); got != content {
				t.Errorf("%s has come back as %.50q of %d bytes, want %.50q of %d", name, got, len(got), content, len(content))
			}
		}
	})
}

func TestListIsSortedAndAnotherServerSeesIt(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		for _, name := range []string{"c", "a", "B", "a/b", "c"} {
			put(t, s, ada, sid, name, name)
		}
		other := b.open(limits())
		got, err := other.List(t.Context(), ada, sid)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range got {
			names = append(names, f.Name)
			if read(t, other, ada, f) != f.Name {
				t.Errorf("%s has another file's content", f.Name)
			}
		}
		if diff := cmp.Diff([]string{"B", "a", "a/b", "c", "c"}, names); diff != "" {
			t.Errorf("names (-want +got):\n%s", diff)
		}
	})
}

func TestDelete(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		f := put(t, s, ada, sid, "a", "x")
		if err := s.Delete(t.Context(), ada, sid, f.ID); err != nil {
			t.Fatalf("Delete = %v", err)
		}
		if err := s.Delete(t.Context(), ada, sid, f.ID); !errors.Is(err, files.ErrNotFound) {
			t.Errorf("second Delete = %v, want ErrNotFound", err)
		}
		if _, err := s.Stat(t.Context(), ada, sid, f.ID); !errors.Is(err, files.ErrNotFound) {
			t.Errorf("Stat = %v, want ErrNotFound", err)
		}
		if got, err := s.List(t.Context(), ada, sid); err != nil || len(got) != 0 {
			t.Errorf("List = %v, %v, want none", got, err)
		}
		if got := b.objects(t); len(got) != 1 {
			t.Errorf("the bucket has %q, want only the claim", got)
		}
	})
}

func TestOwnersAreKeptApart(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		f := put(t, s, ada, sid, "a", "secret")
		for name, c := range map[string]struct {
			owner       files.Owner
			session, id string
			want        error
		}{
			"another user":    {bob, sid, f.ID, files.ErrForeign},
			"another kind":    {files.Owner{Tenant: "t", Kind: "agent", ID: "ada"}, sid, f.ID, files.ErrForeign},
			"another tenant":  {files.Owner{Tenant: "u", Kind: "user", ID: "ada"}, sid, f.ID, files.ErrForeign},
			"another version": {files.Owner{Tenant: "t", Kind: "user", ID: "ada", Version: 1}, sid, f.ID, files.ErrForeign},
			"shifted fields":  {files.Owner{Tenant: "tu", Kind: "ser", ID: "ada"}, sid, f.ID, files.ErrForeign},
			"unknown session": {ada, files.NewID(), f.ID, files.ErrNotFound},
			"unknown file":    {ada, sid, files.NewID(), files.ErrNotFound},
			"no session":      {ada, "", f.ID, files.ErrNotFound},
			"climbing":        {bob, "../../../../../../x/y", f.ID, files.ErrNotFound},
			"climbing file":   {bob, sid, "../abcdefghijklmnopqr", files.ErrNotFound},
		} {
			if got, err := s.Stat(t.Context(), c.owner, c.session, c.id); !errors.Is(err, c.want) {
				t.Errorf("%s: Stat = %+v, %v, want %v", name, got, err, c.want)
			}
			if _, got, err := s.Read(t.Context(), c.owner, c.session, c.id); !errors.Is(err, c.want) {
				t.Errorf("%s: Read = %+v, %v, want %v", name, got, err, c.want)
			}
			if err := s.Delete(t.Context(), c.owner, c.session, c.id); !errors.Is(err, c.want) {
				t.Errorf("%s: Delete = %v, want %v", name, err, c.want)
			}
			if c.owner == ada || c.session != sid {
				continue
			}
			got, err := s.List(t.Context(), c.owner, c.session)
			if len(got) != 0 || !errors.Is(err, files.ErrForeign) {
				t.Errorf("%s: List = %+v, %v, want ErrForeign", name, got, err)
			}
			before := len(b.objects(t))
			if f, err := s.Put(t.Context(), files.New{Owner: c.owner, Session: c.session, Name: "a", Content: strings.NewReader("x")}); !errors.Is(err, files.ErrForeign) {
				t.Errorf("%s: Put = %+v, %v, want ErrForeign", name, f, err)
			}
			if after := len(b.objects(t)); after != before {
				t.Errorf("%s: a refused Put has left %d objects", name, after-before)
			}
		}
		if got := read(t, s, ada, f); got != "secret" {
			t.Errorf("the file is now %q", got)
		}
	})
}

// Of owners that make a session at the same moment one has it.
func TestRaceForASession(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		for range 20 {
			session := files.NewID()
			var won atomic.Int64
			var group, arrived sync.WaitGroup
			arrived.Add(16)
			for i := range 16 {
				owner := files.Owner{Tenant: "t", Kind: "user", ID: strconv.Itoa(i)}
				group.Go(func() {
					// All have seen that the session is nobody's before one makes it its own.
					content := io.MultiReader(strings.NewReader(owner.ID), meeting(arrived.Done), meeting(arrived.Wait))
					f, err := s.Put(t.Context(), files.New{Owner: owner, Session: session, Name: "a", Content: content})
					switch {
					case err == nil:
						won.Add(1)
						if got := read(t, s, owner, f); got != owner.ID {
							t.Errorf("%s reads %q", owner.ID, got)
						}
					case !errors.Is(err, files.ErrForeign):
						t.Errorf("Put = %v, want ErrForeign", err)
					}
				})
			}
			group.Wait()
			if got := won.Load(); got != 1 {
				t.Errorf("%d of 16 owners have the session, want 1", got)
			}
		}
	})
}

// A meeting is an empty file that is at its end when something has happened.
type meeting func()

func (m meeting) Read([]byte) (int, error) {
	m()
	return 0, io.EOF
}

func TestLimits(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.MaxFile, o.Quota, o.MaxFiles = 100_000, 250_000, 4
		s := b.open(o)
		add := func(owner files.Owner, session string, size int) error {
			// One byte more than declared would be noticed, whatever the length of a read.
			_, err := s.Put(t.Context(), files.New{Owner: owner, Session: session, Name: "f", Content: io.LimitReader(zeros{}, int64(size))})
			return err
		}
		check := func(err, want error, what string) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: Put = %v, want %v", what, err, want)
			}
		}
		check(add(ada, sid, 100_001), files.ErrTooLarge, "one byte too large")
		check(add(ada, sid, 1<<30), files.ErrTooLarge, "much too large")
		if got := b.objects(t); len(got) != 0 {
			t.Errorf("refused files have left %q", got)
		}
		check(add(ada, sid, 100_000), nil, "as large as may be")
		check(add(ada, sid, 100_000), nil, "the second")
		check(add(ada, sid, 50_001), files.ErrQuota, "beyond the quota")
		check(add(ada, files.NewID(), 50_001), files.ErrQuota, "beyond the quota in another session")
		check(add(bob, files.NewID(), 100_000), nil, "another owner")
		check(add(ada, sid, 0), nil, "the third")
		check(add(ada, sid, 0), nil, "the fourth")
		check(add(ada, sid, 0), files.ErrFull, "the fifth")

		another := b.open(o)
		_, err := another.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: "f", Content: strings.NewReader("")})
		check(err, files.ErrFull, "on another server")
		list, err := s.List(t.Context(), ada, sid)
		if err != nil || len(list) != 4 {
			t.Fatalf("List = %v, %v, want 4 files", list, err)
		}
		for _, f := range list {
			if err := s.Delete(t.Context(), ada, sid, f.ID); err != nil {
				t.Fatal(err)
			}
		}
		check(add(ada, sid, 100_000), nil, "after all were deleted")
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Transfers at the same time do not slip through the quota or the number of files.
func TestRaceForTheQuota(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.Quota, o.MaxFiles = 500_000, 8
		s := b.open(o)
		var group sync.WaitGroup
		var kept atomic.Int64
		for range 16 {
			group.Go(func() {
				_, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: "f", Content: io.LimitReader(zeros{}, 100_000)})
				switch {
				case err == nil:
					kept.Add(1)
				case !errors.Is(err, files.ErrQuota) && !errors.Is(err, files.ErrFull):
					t.Errorf("Put = %v, want ErrQuota or ErrFull", err)
				}
			})
		}
		group.Wait()
		list, err := s.List(t.Context(), ada, sid)
		if err != nil || len(list) != int(kept.Load()) || len(list) > 5 {
			t.Errorf("List has %d files, %v; %d were kept and 5 fit", len(list), err, kept.Load())
		}
	})
}

func TestCutTransfersLeaveNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.MaxFile, o.Quota = 64<<20, 64<<20
		s := b.open(o)
		cut := errors.New("the client has gone")
		for _, size := range []int64{0, 100, 1 << 20, 12 << 20} {
			content := io.MultiReader(io.LimitReader(zeros{}, size), failing{cut})
			if _, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: "f", Content: content}); !errors.Is(err, cut) {
				t.Errorf("cut after %d bytes: Put = %v, want %v", size, err, cut)
			}
			ctx, cancel := context.WithCancel(t.Context())
			content = io.MultiReader(io.LimitReader(zeros{}, size), cancelling(cancel), io.LimitReader(zeros{}, 1<<20))
			if f, err := s.Put(ctx, files.New{Owner: ada, Session: sid, Name: "f", Content: content}); err == nil {
				t.Errorf("cancelled after %d bytes: Put = %+v", size, f)
			}
		}
		if got := b.objects(t); len(got) != 0 {
			t.Errorf("cut transfers have left %q", got)
		}
		// Nor has the account kept anything.
		f, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: "f", Content: io.LimitReader(zeros{}, 64<<20)})
		if err != nil || f.Size != 64<<20 {
			t.Errorf("Put of as much as the quota = %+v, %v", f, err)
		}
	})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type cancelling context.CancelFunc

func (c cancelling) Read([]byte) (int, error) {
	c()
	return 0, io.EOF
}

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
			t.Errorf("after a day the bucket has %q, want two claims and one file", got)
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
		// A later file keeps the session its owner's.
		b.age(t, 49*time.Hour)
		put(t, s, bob, sid, "b", "y")
		s.Sweep(t.Context())
		if got, err := s.List(t.Context(), ada, sid); !errors.Is(err, files.ErrForeign) {
			t.Errorf("another owner's List = %v, %v, want ErrForeign", got, err)
		}
	})
}

// A server that was killed leaves a part of a file in a directory.
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

// A file is a stream on its way in and out: 150 MB are never in memory at once.
func TestLargeFilesStream(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 150 MB")
	}
	onEach(t, func(t *testing.T, b bucket) {
		const size = 150 << 20
		o := limits()
		o.MaxFile, o.Quota = size, size
		s := b.open(o)
		peak := watchHeap(t)
		f, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: "f", Content: io.LimitReader(zeros{}, size)})
		if err != nil || f.Size != size {
			t.Fatalf("Put = %+v, %v", f, err)
		}
		r, _, err := s.Read(t.Context(), ada, sid, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		h := sha256.New()
		n, err := io.Copy(h, r)
		if err := errors.Join(err, r.Close()); err != nil || n != size || hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
			t.Errorf("read %d bytes, %v, hash %x; want %d and %s", n, err, h.Sum(nil), size, f.SHA256)
		}
		if got := peak(); got > 100<<20 {
			t.Errorf("the heap was %d MiB, want at most 100", got>>20)
		}
	})
}

func TestMediaTypes(t *testing.T) {
	s := openStore(t, func() files.Options { o := limits(); o.URL = "file://" + t.TempDir(); return o }())
	for _, c := range []struct{ said, name, content, want string }{
		{"text/csv", "a", "x", "text/csv"},
		{"Text/CSV; Charset=utf-8", "a", "x", "text/csv; charset=utf-8"},
		{"application/octet-stream", "a.png", "", "image/png"},
		{"", "a.png", "", "image/png"},
		{"", "a", "\x89PNG\r\n\x1a\n", "image/png"},
		{"", "a", "", "text/plain; charset=utf-8"},
		{"no type", "a", "\x00", "application/octet-stream"},
		{"text/html\r\nX: y", "a", "\x00", "application/octet-stream"},
		{"text/" + strings.Repeat("x", 200), "a", "\x00", "application/octet-stream"},
	} {
		f, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: c.name, Type: c.said, Content: bytes.NewReader([]byte(c.content))})
		if err != nil || f.Type != c.want {
			t.Errorf("type %q, name %q, content %q: got %q, %v, want %q", c.said, c.name, c.content, f.Type, err, c.want)
		}
		_ = s.Delete(t.Context(), ada, sid, f.ID)
	}
}

func TestCloseEndsTheSweeping(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := limits()
	o.URL = "file://" + t.TempDir()
	s, err := files.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}

// Nothing is stored under a session or a name that could not be found again.
func TestPutRefusesIDsAndNames(t *testing.T) {
	o := limits()
	o.URL = "file://" + t.TempDir()
	s := openStore(t, o)
	for _, c := range []struct{ session, name string }{
		{"", "a"}, {"short", "a"}, {"../../../../../../../", "a"}, {"abcdefghijklmnopqrst.", "a"}, {sid, "../a"}, {sid, ""},
	} {
		if f, err := s.Put(t.Context(), files.New{Owner: ada, Session: c.session, Name: c.name, Content: strings.NewReader("x")}); err == nil {
			t.Errorf("Put in session %q as %q = %+v", c.session, c.name, f)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, address := range []string{"", "/tmp", "http://localhost/", "file:///dev/null", "s3://bucket?nonsense=1", ":"} {
		o := limits()
		o.URL = address
		if s, err := files.Open(t.Context(), o); err == nil {
			t.Errorf("Open(%q) succeeded", address)
			_ = s.Close()
		}
	}
}
