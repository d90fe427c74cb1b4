package files_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/files"
)

func TestStaging(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		stored := put(t, s, ada, files.NewID(), "stored", "old")
		before := len(b.objects(t))
		references := []files.Reference{
			{Name: "a.txt"}, {Owner: ada, Session: stored.Session, ID: stored.ID, Name: "b"}, {Name: "twice"}, {Name: "twice"},
		}
		g := s.Staging(ada, sid, references, map[int][]byte{0: []byte("new"), 2: []byte("first"), 3: []byte("second")})
		if after := len(b.objects(t)); after != before {
			t.Errorf("before Stage the bucket has %d objects, want %d", after, before)
		}
		inputs, err := g.Stage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"a.txt=new", "b=old", "twice=second"}, names(t, s, ada, inputs)); diff != "" {
			t.Errorf("Stage (-want +got):\n%s", diff)
		}
		if f := inputs[0]; f.Session != sid || f.Kind != "user" || f.Resource != f.ID || f.Type == "" || f.ReadOnly {
			t.Errorf("Stage = %+v, want a file of the session and of the user", f)
		}
		if got, err := s.List(t.Context(), ada, sid); err != nil || len(got) != 3 {
			t.Errorf("List = %v, %v, want the three new files", got, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		g.Discard(ended)
		if got, err := s.List(t.Context(), ada, sid); err != nil || len(got) != 0 {
			t.Errorf("List after Discard = %v, %v, want none", got, err)
		}
	})
}

func TestFailedStagingLeavesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		o := limits()
		o.MaxFile, o.Quota = 10, 1<<20
		s := b.open(o)
		for name, c := range map[string]struct {
			references []files.Reference
			contents   map[int][]byte
			want       error
		}{
			"too large": {
				[]files.Reference{{Name: "a"}, {Name: "b"}},
				map[int][]byte{0: []byte("x"), 1: []byte(strings.Repeat("x", 11))},
				files.ErrTooLarge,
			},
			"a file that is gone": {
				[]files.Reference{{Name: "a"}, {Owner: ada, Session: sid, ID: files.NewID(), Name: "b"}},
				map[int][]byte{0: []byte("x")},
				files.ErrNotFound,
			},
		} {
			inputs, err := s.Staging(ada, files.NewID(), c.references, c.contents).Stage(t.Context())
			if !errors.Is(err, c.want) {
				t.Errorf("%s: Stage = %v, %v, want %v", name, inputs, err, c.want)
			}
			if content, ok := errors.AsType[*files.ContentError](err); name == "too large" && (!ok || content.Index != 1 || content.Limit != 10) {
				t.Errorf("%s: Stage = %+v, want the index 1 and the limit 10", name, content)
			}
			for _, object := range b.objects(t) {
				if !strings.HasPrefix(object, "/claims/") {
					t.Errorf("%s: Stage has left %s", name, object)
				}
			}
		}
	})
}

func TestInputsByName(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		put(t, s, ada, sid, "a", "older")
		put(t, s, ada, sid, "b", "other")
		latest := put(t, s, ada, sid, "a", "latest")
		inputs, err := s.Inputs(t.Context(), []files.Reference{{Owner: ada, Session: sid, Name: "b"}, {Owner: ada, Session: sid, Name: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"b=other", "a=latest"}, names(t, s, ada, inputs)); diff != "" {
			t.Errorf("Inputs (-want +got):\n%s", diff)
		}
		if inputs[1].ID != latest.ID || inputs[1].Resource != latest.ID {
			t.Errorf("Inputs = %+v, want the id %s as the resource, too", inputs[1], latest.ID)
		}
		for _, wrong := range []struct {
			ref  files.Reference
			want error
		}{
			{files.Reference{Owner: ada, Session: sid, Name: "c"}, files.ErrNotFound},
			{files.Reference{Owner: ada, Session: files.NewID(), Name: "a"}, files.ErrNotFound},
			{files.Reference{Owner: bob, Session: sid, Name: "a"}, files.ErrForeign},
		} {
			if got, err := s.Inputs(t.Context(), []files.Reference{wrong.ref}); !errors.Is(err, wrong.want) {
				t.Errorf("Inputs of %+v = %v, %v, want %v", wrong.ref, got, err, wrong.want)
			}
		}
	})
}
