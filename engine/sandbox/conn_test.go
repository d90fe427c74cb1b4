package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/python"
)

// A single provider has one sandbox, whose supervisor the test plays.
type single struct {
	Provider
	stream Stream
}

func (s single) Attach(context.Context, string) (Stream, error) { return s.stream, nil }

// attached returns a connection to a supervisor that says hello and then these frames, and
// ends the stream after them.
func attached(t *testing.T, said ...frame) *Conn {
	t.Helper()
	ours, theirs := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, theirs) }()
	go func() {
		defer func() { _ = theirs.Close() }()
		_, _ = io.WriteString(theirs, "marker")
		hello := fmt.Appendf(nil, `{"protocol":%d,"state":"running","round":3,"ran":5}`, python.Protocol)
		for _, f := range append([]frame{{kind: frameHello, payload: hello}}, said...) {
			if err := writeFrame(theirs, f.kind, f.payload); err != nil {
				return
			}
		}
	}()
	c, err := Attach(t.Context(), single{stream: ours}, "ref", []byte("marker"), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Detach)
	if want := (Hello{Protocol: python.Protocol, State: Running, Round: 3, Ran: 5}); c.Hello != want {
		t.Errorf("hello = %+v, want %+v", c.Hello, want)
	}
	return c
}

func said(kind frameKind, payload string) frame { return frame{kind: kind, payload: []byte(payload)} }

// What a sandbox tells comes in its order, and an exit with the report before it.
func TestEvents(t *testing.T) {
	c := attached(
		t, said(frameRan, "7"), said(frameCalls, `[{"n":4,"tool":"t","input":{"a":1}},{"n":5,"tool":"u","input":{}}]`),
		said(frameStopped, ""), said(frameOutput, "\x01\x00\x00\x00\x00\x00\x00\x00\x00a"),
		said(frameOutput, "\x02\x00\x00\x00\x00\x00\x0f\xff\xfeb\xff"), said(frameStopped, "1"), said(frameDone, `{"exit":3}`),
		frame{kind: frameExit, payload: exitPayload(`{"stdout":1,"stderr":1}`, "ab")},
	)
	var got []Event
	for e := range c.Events() {
		if calls, ok := e.(*Calls); ok {
			var tools []string
			for call, err := range calls.All() {
				tools = append(tools, fmt.Sprint(call.Number, call.Tool, call.Input, err))
			}
			if want := []string{`4t{"a":1} <nil>`, `5u{} <nil>`}; !slices.Equal(tools, want) {
				t.Errorf("calls = %q, want %q", tools, want)
			}
			continue
		}
		got = append(got, e)
	}
	want := []Event{
		Ran{7},
		Stopped{},
		Output{Data: []byte("a")},
		Output{Stderr: true, Offset: 1<<20 - 2, Data: []byte("b\xff")},
		Exit{Report: &Report{Exit: 3}, Stdout: []byte("a"), Stderr: []byte("b")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if !errors.Is(c.Err(), io.EOF) {
		t.Errorf("Err = %v at the end, want EOF", c.Err())
	}
}

// What breaks the protocol is told with whose doing it is.
func TestBrokenProtocol(t *testing.T) {
	for _, tt := range []struct {
		name      string
		said      frame
		byProgram bool
	}{
		{"too many bytes of calls", said(frameCalls, strings.Repeat("x", maxCallsFrame+1)), true},
		{"a report that is none", said(frameDone, "x"), true},
		{"an exit that is none", said(frameExit, "x"), false},
		{"a time that is none", said(frameRan, "-1"), false},
		{"a hello that is none", said(frameHello, "x"), false},
		{"output without a head", said(frameOutput, "\x01\x00\x00\x00\x00\x00\x00\x00"), false},
		{"output of no stream", said(frameOutput, "\x00\x00\x00\x00\x00\x00\x00\x00\x00a"), false},
		{"output of another stream", said(frameOutput, "\x03\x00\x00\x00\x00\x00\x00\x00\x00a"), false},
		{"output that is none", said(frameOutput, "\x01\x00\x00\x00\x00\x00\x00\x00\x00"), false},
		{"output beyond the limit", said(frameOutput, "\x01\x00\x00\x00\x00\x00\x10\x00\x00a"), false},
		{"output far beyond the limit", said(frameOutput, "\x01\xff\xff\xff\xff\xff\xff\xff\xffa"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := attached(t, tt.said)
			b, ok := (<-c.Events()).(Broken)
			if !ok || b.Err == nil || b.ByProgram != tt.byProgram {
				t.Errorf("got %+v, %v, want it broken, by the program: %v", b, ok, tt.byProgram)
			}
		})
	}
}

// A frame that nobody may send ends the stream.
func TestBrokenStream(t *testing.T) {
	c := attached(t, said(frameKill, ""), said(frameRan, "7"))
	if e, ok := <-c.Events(); ok || !errors.Is(c.Err(), errProtocol) {
		t.Errorf("got %v, %v, want the end of the stream for breaking the protocol", e, c.Err())
	}
}

// Large calls are counted until they are released; those that may not be taken are refused
// with the holder's own error.
func TestCallsAreCounted(t *testing.T) {
	ada := &counter{most: 100_000}
	calls := said(frameCalls, `[{"n":1,"tool":"t","input":{"x":"`+strings.Repeat("x", 60_000)+`"}}]`)
	c := attached(t, said(frameRan, "1"), said(frameRan, "1"), calls, calls, said(frameRan, "1"), calls)
	c.CountBy(ada)
	skip := func() {
		t.Helper()
		if e, ok := (<-c.Events()).(Ran); !ok {
			t.Fatalf("got %T, want Ran", e)
		}
	}
	skip()
	skip()
	first, ok := (<-c.Events()).(*Calls)
	if !ok || ada.held() < int64(first.Size()) {
		t.Fatalf("%d bytes are held, want those of the calls", ada.held())
	}
	if b, ok := (<-c.Events()).(Broken); !ok || !b.ByProgram || !errors.Is(b.Err, errFull) {
		t.Errorf("got %+v, %v, want the second refused by its holder", b, ok)
	}
	first.Release()
	skip() // The third calls are read only now.
	third, ok := (<-c.Events()).(*Calls)
	if !ok {
		t.Fatal("the third calls were not taken after the first were released")
	}
	third.Release()
	if ada.held() != 0 {
		t.Errorf("%d bytes are held at the end, want none", ada.held())
	}
}

// A sandbox that does not answer is not waited for, nor one that answers something else.
func TestAttachFails(t *testing.T) {
	for name, answer := range map[string]struct {
		bytes string
		want  error
	}{
		"silence":           {"", context.DeadlineExceeded},
		"another marker":    {"parker", context.DeadlineExceeded},
		"no hello":          {"marker\x00\x00\x00\x017E7", nil},
		"half a hello":      {"marker\x00\x00\x00\x02H{", context.DeadlineExceeded},
		"a protocol of old": {"marker\x00\x00\x00\x02H{}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				go func() { _, _ = io.WriteString(theirs, answer.bytes) }()
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				c, err := Attach(ctx, single{stream: ours}, "ref", []byte("marker"), Limits{})
				if err == nil || answer.want != nil && !errors.Is(err, answer.want) {
					t.Errorf("Attach = %v, %v, want %v", c, err, answer.want)
				}
				if _, err := ours.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("the stream is not closed: %v", err)
				}
			})
		})
	}
}
