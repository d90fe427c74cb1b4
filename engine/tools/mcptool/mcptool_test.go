package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/engine/tools/source"
)

// quick returns waits that are short enough for tests.
func quick() *times {
	t := usual
	t.start, t.stop, t.write = 30*time.Second, 400*time.Millisecond, time.Second
	return &t
}

// hostileSource returns a source of the hostile server, which is closed at the end of the test.
func hostileSource(t *testing.T, mode string, change func(*Options)) *Source {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Toolset: "hostile", Command: []string{exe, "hostile", mode}, Trusted: true, times: quick()}
	if change != nil {
		change(&o)
	}
	return newSource(t, o)
}

// newSource returns a source, which is closed at the end of the test.
func newSource(t *testing.T, o Options) *Source {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// call makes a call of a principal, with a generous deadline.
func call(t *testing.T, s *Source, principal, tool, input string) (string, error) {
	t.Helper()
	return callFor(t, s, source.Call{Tool: tool, Input: json.RawMessage(input), Principal: principal, MaxResult: 5 << 20})
}

// callFor makes a call with a generous deadline.
func callFor(t *testing.T, s *Source, c source.Call) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := s.Tools(ctx); err != nil {
		t.Fatal(err)
	}
	v, err := s.Call(ctx, c)
	return string(v), err
}

// wantFailure checks the failure of a call.
func wantFailure(t *testing.T, err error, unknown bool, words string) {
	t.Helper()
	var f *source.CallError
	if !errors.As(err, &f) || f.Unknown != unknown || !strings.Contains(f.Message, words) {
		t.Errorf("error %v (%+v), want a failure with %q, unknown %v", err, f, words, unknown)
	}
}

func TestResults(t *testing.T) {
	s := hostileSource(t, "", func(o *Options) { o.Text = func(tool string) bool { return tool == "text" } })
	for _, c := range []struct{ tool, input, want string }{
		{"echo", `{"text":"hi","n":9007199254740993}`, `{"text":"hi","n":9007199254740993}`},
		{"structured", `{}`, `{"n":9007199254740993}`},
		{"json", `{}`, `{"n": 9007199254740993}`},
		{"text", `{}`, `"42"`},
		{"nothing", `{}`, `[]`},
		{"blocks", `{}`, `[{"type":"text","text":"a"},{"type":"resource_link","uri":"file:///etc/passwd","name":"x"},{"type":"hologram"}]`},
	} {
		if got, err := call(t, s, "alice", c.tool, c.input); got != c.want || err != nil {
			t.Errorf("%s: %s, %v; want %s", c.tool, got, err, c.want)
		}
	}
	if got, err := call(t, s, "alice", "deep-text", `{}`); len(got) != 602 || err != nil { // It stays a text.
		t.Errorf("a text that is nested deep: %d bytes, %v", len(got), err)
	}
	_, err := call(t, s, "alice", "deep", `{}`)
	wantFailure(t, err, false, "nested too deep: the limit is 200 levels")
	_, err = call(t, s, "alice", "error", `{}`)
	wantFailure(t, err, false, "no such city")
	_, err = call(t, s, "alice", "refused", `{}`)
	wantFailure(t, err, false, "the MCP server answered with an error: bad input")
	_, err = call(t, s, "alice", "unheard-of", `{}`)
	wantFailure(t, err, false, `has no tool "unheard-of"`)
	_, err = s.Call(t.Context(), source.Call{Tool: "structured", Input: json.RawMessage(`{}`), Principal: "alice", MaxResult: 20})
	wantFailure(t, err, false, "more than 20 bytes")
	if st := s.State(); st.State != Ready || len(st.Changes) > 0 {
		t.Errorf("state %+v, want ready", st)
	}
}

func TestTextOfATool(t *testing.T) {
	s := hostileSource(t, "", func(o *Options) { o.Text = func(string) bool { return true } })
	if got, err := call(t, s, "", "json", `{}`); got != `"{\"n\": 9007199254740993}"` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
}

func TestOnlyAndNamedTools(t *testing.T) {
	s := hostileSource(t, "", func(o *Options) { o.Only, o.Named = []string{"text", "echo"}, []string{"echo"} })
	tools, err := s.Tools(t.Context())
	if err != nil || len(tools) != 2 || tools[0].Name != "echo" || tools[1].Name != "text" || tools[0].Idempotent {
		t.Fatalf("tools %+v, %v; want echo and text, and none idempotent", tools, err)
	}
	_, err = call(t, s, "alice", "json", `{}`)
	wantFailure(t, err, false, "has no tool")

	s = hostileSource(t, "", func(o *Options) { o.Named = []string{"renamed"} })
	_, err = s.Tools(t.Context())
	wantFailure(t, err, false, "the file names tools that it does not offer: renamed")
	if st := s.State(); st.State != Unavailable || !strings.Contains(st.Reason, "renamed") {
		t.Errorf("state %+v, want unavailable", st)
	}
}

func TestSharedSessionAndIdleEnd(t *testing.T) {
	s := hostileSource(t, "", func(o *Options) {
		o.Shared = true
		o.times.idle = 300 * time.Millisecond
	})
	if s.State().State != Starting {
		t.Errorf("state %+v before the first connection, want starting", s.State())
	}
	one, err1 := call(t, s, "alice", "who", `{}`)
	two, err2 := call(t, s, "bob", "who", `{}`)
	if one != two || err1 != nil || err2 != nil {
		t.Errorf("two principals have two processes: %s, %v; %s, %v", one, err1, two, err2)
	}
	pid := pidOf(t, one)
	eventually(t, "the idle process has ended", func() bool { return !running(pid) })
	if again, err := call(t, s, "alice", "who", `{}`); err != nil || pidOf(t, again) == pid {
		t.Errorf("after an idle end: %s, %v", again, err)
	}
}

// eventually waits until is returns true. It takes seconds, or longer if the machine is busy.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); {
		if time.Now().After(end) {
			t.Fatalf("not so within 30 seconds: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// A record is a log that a test reads.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

func (r *record) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(r, nil)) }
