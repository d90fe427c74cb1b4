package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"fermata/continuation"
)

// shelf is a Files that keeps what it is given in memory. It refuses names that begin
// with "refused" before it reads, and those that begin with "full" after the first byte.
type shelf struct {
	saved   map[string]string
	dropped []string
}

func (s *shelf) Open(context.Context, json.RawMessage, InputFile) (io.ReadCloser, error) {
	return nil, errors.New("not here")
}

func (s *shelf) Save(_ context.Context, _ json.RawMessage, session, name string, content io.Reader) (OutputFile, error) {
	if strings.HasPrefix(name, "refused") {
		return OutputFile{}, errors.New("refused")
	}
	if strings.HasPrefix(name, "full") {
		_, err := io.ReadFull(content, make([]byte, 1))
		return OutputFile{}, errors.Join(errors.New("full"), err)
	}
	read, err := io.ReadAll(content)
	if err != nil {
		return OutputFile{}, err
	}
	s.saved[name] = string(read)
	return OutputFile{Session: session, ID: "new " + name, Name: name}, nil
}

func (s *shelf) Drop(_ context.Context, _ json.RawMessage, f InputFile) error {
	s.dropped = append(s.dropped, f.ID)
	return nil
}

// A reply is a frame of a supervisor; the zero one ends it, silence is none.
type reply struct {
	kind    frameKind
	payload string
}

const silence frameKind = 's'

// collected returns what is collected of a program that has left files. Its supervisor
// answers the n-th request with the n-th replies, whatever was asked.
func collected(t *testing.T, inputs []InputFile, replies ...[]reply) (e ending, kept *shelf) {
	t.Helper()
	ours, theirs := net.Pipe()
	sb := &sandbox{stream: ours, frames: make(chan frame), ended: make(chan struct{}), quit: make(chan struct{})}
	go sb.read()
	go func() {
		defer func() { _ = theirs.Close() }()
		r := bufio.NewReader(theirs)
		for _, answer := range replies {
			var header [frameHeader]byte
			if _, err := io.ReadFull(r, header[:]); err != nil {
				return
			}
			if _, err := r.Discard(int(binary.BigEndian.Uint32(header[:4]))); err != nil {
				return
			}
			for _, f := range answer {
				if f.kind == silence {
					_, _ = r.ReadByte()
				}
				if f.kind == silence || f.kind == 0 {
					return
				}
				if err := writeFrame(theirs, f.kind, []byte(f.payload)); err != nil {
					return
				}
			}
		}
		_, _ = r.ReadByte() // Until the stream is closed.
	}()
	encoded, err := json.Marshal(inputs)
	if err != nil {
		t.Fatal(err)
	}
	kept = &shelf{saved: map[string]string{}}
	x := &execution{
		e:            &Engine{o: Options{Files: kept, MaxOutputFiles: 4, MaxOutputSize: 8, Log: slog.New(slog.DiscardHandler)}},
		conversation: newConversation(&ledger{record: continuation.Record{Session: "own", Inputs: encoded}}),
		sandbox:      sb,
	}
	e = ending{leftFiles: true}
	x.collect(&e)
	sb.detach()
	return e, kept
}

func listed(listing string) []reply { return []reply{{frameListing, listing}} }

func content(pieces ...string) []reply {
	var replies []reply
	for _, p := range append(pieces, "") {
		replies = append(replies, reply{frameContent, p})
	}
	return replies
}

// summary is what is compared of an ending.
func summary(e ending) string {
	var b strings.Builder
	for _, f := range e.files {
		fmt.Fprintf(&b, "%s=%s", f.Name, f.ID)
		if f.Input != nil {
			fmt.Fprintf(&b, "<%s", f.Input.ID)
		}
		if f.Inherited {
			b.WriteString("!")
		}
		b.WriteString(" ")
	}
	fmt.Fprintf(&b, "deleted %v skipped %v %q undelivered %d", e.deleted, e.skipped.Reasons, e.skipped.Names, e.undelivered)
	return b.String()
}

func TestCollect(t *testing.T) {
	inputs := []InputFile{
		{Session: "other", ID: "1", Name: "same", Size: 1, SHA256: "aa"},
		{Session: "other", ID: "2", Name: "changed", Size: 1, SHA256: "bb"},
		{Session: "own", ID: "3", Name: "gone", Size: 1},
		{Session: "other", ID: "4", Name: "away", Size: 1},
		{Session: "own", ID: "5", Name: "fixed", Size: 1, ReadOnly: true},
	}
	three := `{"files":[{"name":"a"},{"name":"b"},{"name":"c"}]}`
	for _, c := range []struct {
		name    string
		inputs  []InputFile
		replies [][]reply
		want    string
		saved   map[string]string
		dropped []string
	}{
		{
			"everything", inputs,
			[][]reply{
				listed(`{"files":[{"name":"same","sha256":"aa"},{"name":"changed","sha256":"ba"},{"name":"new"}],"missing":["gone","away","fixed","unheard of"]}`),
				content("v2"), content("12345678"),
			},
			`changed=new changed<2 fixed=5<5! new=new new same=1<1! deleted [away gone] skipped map[] [] undelivered 0`,
			map[string]string{"changed": "v2", "new": "12345678"},
			// What lives in another session stays there.
			[]string{"3"},
		},
		{
			"a file that cannot be read", nil,
			[][]reply{listed(three), content("a"), {{frameLost, ""}}, content("c")},
			`a=new a c=new c deleted [] skipped map[unreadable:1] ["b"] undelivered 0`,
			map[string]string{"a": "a", "c": "c"},
			nil,
		},
		{
			"files that cannot be kept", nil,
			[][]reply{listed(`{"files":[{"name":"refused"},{"name":"full"},{"name":"c"}]}`), content("a", "b"), content("a", "b"), content("c")},
			`c=new c deleted [] skipped map[] [] undelivered 2`,
			map[string]string{"c": "c"},
			nil,
		},
		{
			"more than was asked for", nil,
			[][]reply{listed(`{"files":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"d"},{"name":"e"}]}`)},
			`deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"a file that grows", nil,
			[][]reply{listed(three), content("1"), content("12345678", "9"), content("c")},
			`a=new a deleted [] skipped map[] [] undelivered 2`,
			map[string]string{"a": "1"},
			nil,
		},
		{
			"another frame in place of a file", nil,
			[][]reply{listed(three), {{frameListing, "{}"}}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"an end in the middle", nil,
			[][]reply{listed(three), {{frameContent, "a"}, {}}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"silence in the middle", nil,
			[][]reply{listed(three), {{frameContent, "a"}, {silence, ""}}},
			`deleted [] skipped map[] [] undelivered 3`,
			nil,
			nil,
		},
		{
			"no listing", inputs[4:],
			[][]reply{content("x")},
			`fixed=5<5! deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"a listing that is none", nil,
			[][]reply{listed(`[`)},
			`deleted [] skipped map[] [] undelivered 0`,
			nil,
			nil,
		},
		{
			"what was left out", nil,
			[][]reply{listed(`{"reasons":{"size":2,"path":-1,"made up":7},"skipped":["` + strings.Repeat(`n","`, 30) + `"]}`)},
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

// Names of what was left out are cut and made valid: they go to the client.
func TestCollectCutsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("é", maxSkippedName)
		e, _ := collected(t, nil, listed(`{"reasons":{"path":1},"skipped":["`+long+`"]}`))
		if got, want := e.skipped.Names, []string{long[:maxSkippedName]}; !cmp.Equal(got, want) {
			t.Errorf("got names of %d bytes, want one of %d", len(strings.Join(got, "")), maxSkippedName)
		}
	})
}
