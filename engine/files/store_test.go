package files_test

import (
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

// A bucket opens stores that share one bucket. dir is the directory that contains its objects.
type bucket struct {
	open func(files.Options) *files.Store
	dir  string
}

// onEach runs a test with a bucket that is a directory and with one on an S3 server.
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

// objects returns the names of all files below the directory of a bucket, including temporary
// ones.
func (b bucket) objects(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // It was removed while we walked.
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

// age makes all objects in the bucket older.
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

// aboutNow ignores small differences between times.
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
			t.Errorf("the bucket has %q, want only the owner of the session", got)
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

// TestRaceForASession lets owners create the same session at the same moment: one of them gets
// it.
func TestRaceForASession(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		for range 20 {
			session := files.NewID()
			var won atomic.Int64
			var uploads, arrived sync.WaitGroup
			arrived.Add(16)
			for i := range 16 {
				owner := files.Owner{Tenant: "t", Kind: "user", ID: strconv.Itoa(i)}
				uploads.Go(func() {
					// No upload ends before all have seen that the session has no owner.
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
			uploads.Wait()
			if got := won.Load(); got != 1 {
				t.Errorf("%d of 16 owners have the session, want 1", got)
			}
		}
	})
}

// A meeting is an empty file whose end is reached when the function returns.
type meeting func()

func (m meeting) Read([]byte) (int, error) {
	m()
	return 0, io.EOF
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

// TestStoredForm reads objects whose keys and contents are written down here, because those of
// stored files must not change.
func TestStoredForm(t *testing.T) {
	const (
		adaKey   = "57766bd52c1885c32aaa2e9c5b1b68b397eccc0f6e69fa9d8bdd0352a4df338b"
		skillKey = "8f05af24f02241b7fdc9edecf0d9fab84e5bdc33dad24e20014e3229378e761d"
		shared   = "f37446618f5c340b1b8e8bc5bae4c05e094cbb3e11e87cf7468d2ff56b572fcc"
		hash     = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881" // of x
		fid, gid = "ABCDEFGHIJKLMNOPQRSTU", "0123456789-_abcdefghi"
		other    = "ABCDEFGHIJKLMNOPQRST_"
	)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"claims/" + sid:   adaKey,
		"claims/" + other: skillKey,
		"files/" + adaKey + "/" + sid + "." + fid: `{"session":"` + sid + `","id":"` + fid + `","name":"a/b","size":1,"sha256":"` + hash +
			`","type":"text/csv","read_only":true,"made":"2026-01-02T03:04:05.6Z"}`,
		"contents/" + adaKey + "/" + adaKey + "/" + sid + "." + fid: "x",
		"drops/" + adaKey + "/" + sid + "." + fid:                   "",
		"files/" + skillKey + "/" + other + "." + gid: `{"session":"` + other + `","id":"` + gid + `","name":"c","size":1,"sha256":"` + hash +
			`","type":"text/plain","made":"2026-01-02T03:04:05Z"}`,
		"contents/" + shared + "/" + skillKey + "/" + other + "." + gid: "x",
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	o := limits()
	o.URL = "file://" + dir
	s := openStore(t, o)
	want := files.File{
		Session: sid, ID: fid, Name: "a/b", Size: 1, SHA256: hash, Type: "text/csv", ReadOnly: true,
		Modified: time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC), ETag: hash[:32], Owner: ada,
	}
	if got := read(t, s, ada, want); got != "x" {
		t.Errorf("the user's file is %q, want x", got)
	}
	of, err := s.Stat(t.Context(), skill, other, gid)
	if err != nil {
		t.Fatal(err)
	}
	if got := read(t, s, skill, of); got != "x" {
		t.Errorf("the skill's file is %q, want x", got)
	}
	if got, err := s.SessionInputs(t.Context(), ada, sid); len(got) != 0 || err != nil {
		t.Errorf("SessionInputs = %v, %v, want none: a program has deleted the file", got, err)
	}
	if got, err := s.Foreign(t.Context(), bob, sid); !got || err != nil {
		t.Errorf("Foreign = %v, %v, want true", got, err)
	}
}

// TestContent reads parts of a file that is larger than the parts in which it was stored.
func TestContent(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.MaxFile, o.Quota = 16<<20, 16<<20
		s := b.open(o)
		content := strings.Repeat("0123456789abcdef", 12<<16)
		size := int64(len(content))
		f := put(t, s, ada, sid, "a", content)
		for _, part := range [][2]int64{{0, size}, {0, 1}, {5, 9}, {5 << 20, 5<<20 + 3}, {size - 1, size}, {3, size}} {
			r, err := s.Content(t.Context(), f, part[0], part[1])
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			if err := errors.Join(err, r.Close()); err != nil || string(got) != content[part[0]:part[1]] {
				t.Errorf("Content from %d to %d: %d bytes, %v, want %d others", part[0], part[1], len(got), err, part[1]-part[0])
			}
		}
		if err := s.Delete(t.Context(), ada, sid, f.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Content(t.Context(), f, 0, 1); !errors.Is(err, files.ErrNotFound) {
			t.Errorf("Content of a deleted file = %v, want ErrNotFound", err)
		}
	})
}
