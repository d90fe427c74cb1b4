package files_test

import (
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/core"
	"fermata/engine/files"
)

func scopeOf(t *testing.T, user files.Owner) json.RawMessage {
	t.Helper()
	scope, err := files.ScopeOf(user)
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

// opened returns the contents of an input, as an execution of the user gets them.
func opened(t *testing.T, s *files.Store, user files.Owner, f core.InputFile) (string, error) {
	t.Helper()
	content, err := s.Open(t.Context(), scopeOf(t, user), f)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(content)
	return string(text), errors.Join(err, content.Close())
}

// names returns the names and the contents of inputs.
func names(t *testing.T, s *files.Store, user files.Owner, inputs []core.InputFile) (got []string) {
	t.Helper()
	for _, f := range inputs {
		text, err := opened(t, s, user, f)
		if err != nil {
			t.Errorf("Open %s: %v", f.Name, err)
		}
		got = append(got, f.Name+"="+text)
	}
	return got
}

func TestInputs(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		other := files.NewID()
		mine, ours := put(t, s, ada, sid, "stored", "mine"), put(t, s, skill, other, "SKILL.md", "ours")
		refs := []files.Reference{
			{Owner: ada, Session: sid, ID: mine.ID, Name: "a", Resource: "r"},
			{Owner: skill, Session: other, ID: ours.ID, Name: "b/c", Resource: "s"},
		}
		inputs, err := s.Inputs(t.Context(), refs)
		if err != nil {
			t.Fatal(err)
		}
		want := []core.InputFile{
			{Session: sid, ID: mine.ID, Name: "a", Size: 4, SHA256: mine.SHA256, Type: mine.Type, Kind: "user", Resource: "r"},
			{Session: other, ID: ours.ID, Name: "b/c", Size: 4, SHA256: ours.SHA256, Type: ours.Type, ReadOnly: true, Kind: "skill", Resource: "s", Version: 2},
		}
		if diff := cmp.Diff(want, inputs); diff != "" {
			t.Errorf("Inputs (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"a=mine", "b/c=ours"}, names(t, s, ada, inputs)); diff != "" {
			t.Errorf("contents (-want +got):\n%s", diff)
		}
		// An execution of another user can only open files of its own tenant.
		if text, err := opened(t, s, bob, inputs[0]); !errors.Is(err, files.ErrForeign) {
			t.Errorf("Open of another user's file = %q, %v, want ErrForeign", text, err)
		}
		if text, err := opened(t, s, files.Owner{Tenant: "u", Kind: "user", ID: "ada"}, inputs[1]); !errors.Is(err, files.ErrForeign) {
			t.Errorf("Open of another tenant's file = %q, %v, want ErrForeign", text, err)
		}
		for _, wrong := range []struct {
			ref  files.Reference
			want error
		}{
			{files.Reference{Owner: bob, Session: sid, ID: mine.ID, Name: "x"}, files.ErrForeign},
			{files.Reference{Owner: ada, Session: other, ID: ours.ID, Name: "x"}, files.ErrForeign},
			{files.Reference{Owner: ada, Session: sid, ID: files.NewID(), Name: "x"}, files.ErrNotFound},
			// It would be replaced, but must not be believed.
			{files.Reference{Owner: bob, Session: sid, ID: mine.ID, Name: "a"}, files.ErrForeign},
		} {
			if got, err := s.Inputs(t.Context(), append([]files.Reference{wrong.ref}, refs...)); !errors.Is(err, wrong.want) {
				t.Errorf("Inputs of %+v = %v, %v, want %v", wrong.ref, got, err, wrong.want)
			}
		}
	})
}

func TestSessionInputs(t *testing.T) {
	onEach(t, func(t *testing.T, b bucket) {
		s := b.open(limits())
		look := func(want ...string) []core.InputFile {
			t.Helper()
			inputs, err := s.SessionInputs(t.Context(), ada, sid)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, names(t, s, ada, inputs)); diff != "" {
				t.Errorf("the session has (-want +got):\n%s", diff)
			}
			return inputs
		}
		drop := func(f core.InputFile) {
			t.Helper()
			if err := s.Drop(t.Context(), scopeOf(t, ada), f); err != nil {
				t.Fatal(err)
			}
		}
		look()
		put(t, s, ada, sid, "a", "1")
		put(t, s, ada, sid, "b", "1")
		put(t, s, ada, sid, "d/x", "1")
		// Both versions of a may have the same time, if the bucket rounds to seconds.
		put(t, s, ada, sid, "a", "2")
		inputs := look("b=1", "d/x=1", "a=2")
		// The earlier version does not come back.
		drop(inputs[2])
		drop(inputs[0])
		inputs = look("d/x=1")
		put(t, s, ada, sid, "a", "3")
		drop(inputs[0])
		put(t, s, ada, sid, "d", "now a file")
		look("a=3", "d=now a file")
		put(t, s, ada, sid, "a/b/c", "now in a directory")
		look("d=now a file", "a/b/c=now in a directory")

		if got, err := s.SessionInputs(t.Context(), bob, sid); !errors.Is(err, files.ErrForeign) {
			t.Errorf("SessionInputs of another user = %v, %v, want ErrForeign", got, err)
		}
		for owner, want := range map[files.Owner]bool{ada: false, bob: true} {
			if got, err := s.Foreign(t.Context(), owner, sid); got != want || err != nil {
				t.Errorf("Foreign(%s) = %v, %v, want %v", owner.ID, got, err, want)
			}
		}
		// The notes of deletions are swept together with the files.
		b.age(t, 49*time.Hour)
		_ = b.open(limits())
		for deadline := time.Now().Add(10 * time.Second); len(b.objects(t)) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the bucket has %q, want nothing", b.objects(t))
			}
		}
	})
}
