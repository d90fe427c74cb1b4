package files_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"fermata/engine/files"
)

func TestLimits(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.MaxFile, o.Quota, o.MaxFiles = 100_000, 250_000, 4
		s := b.open(o)
		add := func(owner files.Owner, session string, size int) error {
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

// TestRaceForTheQuota uploads files at the same time: together they stay within the quota and the
// number of files of a session.
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
		// They do not count in the quota either.
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

// TestLargeFilesStream stores and reads a file of 150 MiB, which is never in memory as a whole.
func TestLargeFilesStream(t *testing.T) {
	if testing.Short() {
		t.Skip("moves 150 MiB")
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
	for _, c := range []struct{ declared, name, content, want string }{
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
		f, err := s.Put(t.Context(), files.New{Owner: ada, Session: sid, Name: c.name, Type: c.declared, Content: bytes.NewReader([]byte(c.content))})
		if err != nil || f.Type != c.want {
			t.Errorf("type %q, name %q, content %q: got %q, %v, want %q", c.declared, c.name, c.content, f.Type, err, c.want)
		}
		_ = s.Delete(t.Context(), ada, sid, f.ID)
	}
}

// TestPutRefusesIDsAndNames stores files under malformed ids of sessions and malformed names.
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

// TestSharedQuota stores files of several agents and skills of one tenant, which share a quota
// because clients can make up as many of them as they like.
func TestSharedQuota(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.Quota = 1 << 20
		s := b.open(o)
		half := strings.Repeat("x", 600_000)
		put(t, s, ada, files.NewID(), "x", half)
		put(t, s, bob, files.NewID(), "x", half)
		put(t, s, skill, files.NewID(), "x", half)
		for _, owner := range []files.Owner{ada, skill, {Tenant: "t", Kind: "agent", ID: "s"}, {Tenant: "t", Kind: "skill", ID: "s", Version: 3}} {
			n := files.New{Owner: owner, Session: files.NewID(), Name: "x", Content: strings.NewReader(half)}
			if _, err := s.Put(t.Context(), n); !errors.Is(err, files.ErrQuota) {
				t.Errorf("Put for %+v = %v, want ErrQuota", owner, err)
			}
		}
		put(t, s, files.Owner{Tenant: "u", Kind: "skill", ID: "s", Version: 2}, files.NewID(), "x", half)
	})
}
