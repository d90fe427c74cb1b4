package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/outputs"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

// shelf is a Files in memory. It refuses files whose names begin with "refused" before it reads
// them, and files whose names begin with "full" after the first byte.
type shelf struct {
	saved   map[string]string
	dropped []string
}

func (s *shelf) Open(context.Context, json.RawMessage, core.InputFile) (io.ReadCloser, error) {
	return nil, errors.New("not here")
}

func (s *shelf) Save(_ context.Context, _ json.RawMessage, session, name string, content io.Reader) (core.OutputFile, error) {
	if strings.HasPrefix(name, "refused") {
		return core.OutputFile{}, errors.New("refused")
	}
	if strings.HasPrefix(name, "full") {
		_, err := io.ReadFull(content, make([]byte, 1))
		return core.OutputFile{}, errors.Join(errors.New("full"), err)
	}
	read, err := io.ReadAll(content)
	if err != nil {
		return core.OutputFile{}, err
	}
	s.saved[name] = string(read)
	return core.OutputFile{Session: session, ID: "new " + name, Name: name, Size: int64(len(read))}, nil
}

func (s *shelf) Drop(_ context.Context, _ json.RawMessage, f core.InputFile) error {
	s.dropped = append(s.dropped, f.ID)
	return nil
}

func (s *shelf) Discard(context.Context, json.RawMessage, core.InputFile) error {
	return errors.New("not here")
}

// collected returns what is collected of a program that has left files. The supervisor answers
// the n-th request with the n-th replies, whatever the request was.
func collected(t *testing.T, inputs []core.InputFile, replies ...[]sandboxtest.Reply) (e core.Ending, kept *shelf) {
	t.Helper()
	return collectedFor(t, nil, inputs, replies...)
}

// collectedFor is collected with a contract of outputs.
func collectedFor(t *testing.T, c *outputs.Contract, inputs []core.InputFile, replies ...[]sandboxtest.Reply) (e core.Ending, kept *shelf) {
	t.Helper()
	script := sandboxtest.New("")
	script.Set(func(s *sandboxtest.Settings) { s.Replies = replies })
	ref, err := script.Create(t.Context(), sandbox.Plain)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sandbox.Attach(t.Context(), script, ref, []byte("marker"), sandbox.Limits{OutputFiles: 4, OutputFileSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	contract, err := core.EncodeContract(c)
	if err != nil {
		t.Fatal(err)
	}
	kept = &shelf{saved: map[string]string{}}
	log := slog.New(slog.DiscardHandler)
	m := &common{o: Options{Files: kept, Log: log}, members: &cluster.Member{}, checker: new(checker)}
	own := newConversation(m.newLedger(continuation.Record{Session: "own", Inputs: encoded, Outputs: contract}, nil))
	s := &stretch{life: m.newLife(newExecution(own, conn), nil, nil)}
	e = core.Ending{Printed: &core.Printed{}, LeftFiles: true}
	s.collect(&e)
	conn.Detach()
	return e, kept
}

func listed(listing string) []sandboxtest.Reply {
	return []sandboxtest.Reply{sandboxtest.Listing(listing)}
}

func content(pieces ...string) []sandboxtest.Reply {
	var replies []sandboxtest.Reply
	for _, p := range append(pieces, "") {
		replies = append(replies, sandboxtest.Piece(p))
	}
	return replies
}

// summary is the part of an ending that tests compare.
func summary(e core.Ending) string {
	var b strings.Builder
	for _, f := range e.Files {
		fmt.Fprintf(&b, "%s=%s", f.Name, f.ID)
		if f.Input != nil {
			fmt.Fprintf(&b, "<%s", f.Input.ID)
		}
		if f.Inherited {
			b.WriteString("!")
		}
		b.WriteString(" ")
	}
	fmt.Fprintf(&b, "deleted %v skipped %v %q undelivered %d", e.Deleted, e.Skipped.Reasons, e.Skipped.Names, e.Undelivered)
	return b.String()
}

func TestCollect(t *testing.T) {
	inputs := []core.InputFile{
		{Session: "other", ID: "1", Name: "same", Size: 1, SHA256: "aa"},
		{Session: "other", ID: "2", Name: "changed", Size: 1, SHA256: "bb"},
		{Session: "own", ID: "3", Name: "gone", Size: 1},
		{Session: "other", ID: "4", Name: "away", Size: 1},
		{Session: "own", ID: "5", Name: "fixed", Size: 1, ReadOnly: true},
	}
	three := `{"files":[{"name":"a"},{"name":"b"},{"name":"c"}]}`
	for _, c := range []struct {
		name    string
		inputs  []core.InputFile
		replies [][]sandboxtest.Reply
		want    string
		saved   map[string]string
		dropped []string
	}{
		{
			"everything", inputs,
			[][]sandboxtest.Reply{
				listed(`{"files":[{"name":"same","sha256":"aa"},{"name":"changed","sha256":"ba"},{"name":"new"}],"missing":["gone","away","fixed","unheard of"]}`),
				content("v2"), content("12345678"),
			},
			`changed=new changed<2 fixed=5<5! new=new new same=1<1! deleted [away gone] skipped map[] [] undelivered 0`,
			map[string]string{"changed": "v2", "new": "12345678"},
			// A file of another session stays there.
			[]string{"3"},
		},
		{
			"a file that cannot be read", nil,
			[][]sandboxtest.Reply{listed(three), content("a"), {sandboxtest.Unreadable}, content("c")},
			`a=new a c=new c deleted [] skipped map[unreadable:1] ["b"] undelivered 0`,
			map[string]string{"a": "a", "c": "c"},
			nil,
		},
		{
			"files that cannot be kept", nil,
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"refused"},{"name":"full"},{"name":"c"}]}`), content("a", "b"), content("a", "b"), content("c")},
			`c=new c deleted [] skipped map[] [] undelivered 2`,
			map[string]string{"c": "c"},
			nil,
		},
		{
			"more than was asked for", nil,
			[][]sandboxtest.Reply{listed(`{"files":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"}]}`)},
			`deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"a file that grows", nil,
			[][]sandboxtest.Reply{listed(three), content("1"), content("12345678", "9"), content("c")},
			`a=new a deleted [] skipped map[] [] undelivered 2`,
			map[string]string{"a": "1"},
			nil,
		},
		{
			"another frame in place of a file", nil,
			[][]sandboxtest.Reply{listed(three), {sandboxtest.Listing("{}")}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"an end in the middle", nil,
			[][]sandboxtest.Reply{listed(three), {sandboxtest.Piece("a"), sandboxtest.End}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"silence in the middle", nil,
			[][]sandboxtest.Reply{listed(three), {sandboxtest.Piece("a"), sandboxtest.Silence}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"no listing", inputs[4:],
			[][]sandboxtest.Reply{content("x")},
			`fixed=5<5! deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"a listing that is none", nil,
			[][]sandboxtest.Reply{listed(`[`)},
			`deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"what was left out", nil,
			[][]sandboxtest.Reply{listed(`{"reasons":{"size":2,"path":-1,"made up":7},"skipped":["` + strings.Repeat(`n","`, 30) + `"]}`)},
			`deleted [] skipped map[size:2] [` + strings.Repeat(`"n" `, 19) + `"n"] undelivered 0`,
			nil,
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				e, kept := collected(t, c.inputs, c.replies...)
				if took := time.Since(began); took > collectTimeout {
					t.Errorf("took %v, want at most %v", took, collectTimeout)
				}
				if got := summary(e); got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				if diff := cmp.Diff(c.saved, kept.saved, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("kept (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(c.dropped, kept.dropped, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("dropped (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// The names of skipped files go to the client: they are cut, and made valid UTF-8.
func TestCollectCutsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("é", maxSkippedName)
		e, _ := collected(t, nil, listed(`{"reasons":{"path":1},"skipped":["`+long+`"]}`))
		if got, want := e.Skipped.Names, []string{long[:maxSkippedName]}; !cmp.Equal(got, want) {
			t.Errorf("got names of %d bytes, want one of %d", len(strings.Join(got, "")), maxSkippedName)
		}
	})
}
