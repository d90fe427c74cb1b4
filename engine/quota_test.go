package engine_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/engine"
	"fermata/engine/enginetest"
	"fermata/python"
	"fermata/stubs"
)

// puppets is a provider of sandboxes whose programs are words: "pause" calls a tool,
// "hang" runs until it is killed. After its words a program ends.
type puppets struct {
	hanging chan struct{} // gets a value when a program hangs

	mu   sync.Mutex
	made int
	live map[string]net.Conn
}

func newPuppets() *puppets {
	return &puppets{hanging: make(chan struct{}, 10), live: map[string]net.Conn{}}
}

func (p *puppets) Create(context.Context, engine.Kind) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	ref := fmt.Sprintf("puppet-%d", p.made)
	p.live[ref] = nil
	return ref, nil
}

func (p *puppets) Attach(_ context.Context, ref string) (io.ReadWriteCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, ok := p.live[ref]; !ok {
		return nil, engine.ErrGone
	}
	ours, theirs := net.Pipe()
	p.live[ref] = theirs
	go p.act(theirs)
	return ours, nil
}

func (p *puppets) Destroy(_ context.Context, ref string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stream := p.live[ref]; stream != nil {
		_ = stream.Close()
	}
	delete(p.live, ref)
	return nil
}

func (p *puppets) List(context.Context) ([]engine.Sandbox, error) { return nil, nil }

func (p *puppets) Close() error { return nil }

// act is the supervisor and the program in one. It ends with the stream.
func (p *puppets) act(stream net.Conn) {
	r := bufio.NewReader(stream)
	send := func(mark []byte, kind byte, payload string) {
		header := append(binary.BigEndian.AppendUint32(mark, uint32(len(payload))), kind)
		_, _ = stream.Write(append(header, payload...))
	}
	var words []string
	for {
		var header [5]byte
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return
		}
		payload := make([]byte, binary.BigEndian.Uint32(header[:4]))
		if _, err := io.ReadFull(r, payload); err != nil {
			return
		}
		switch header[4] {
		case 'A':
			send(payload, 'H', fmt.Sprintf(`{"protocol":%d,"state":"ready"}`, python.Protocol))
			continue
		case 'G':
			var program struct{ Code string }
			if json.Unmarshal(payload, &program) != nil {
				return
			}
			words = strings.Fields(program.Code)
		case 'K':
			words = nil
		}
		next := ""
		if len(words) > 0 {
			next, words = words[0], words[1:]
		}
		switch next {
		case "pause":
			send(nil, 'C', `[{"n":1,"tool":"tool","input":{}}]`)
		case "hang":
			p.hanging <- struct{}{}
		default:
			const exit = `{"code":0}`
			send(nil, 'X', string(binary.BigEndian.AppendUint32(nil, uint32(len(exit))))+exit)
		}
	}
}

// start runs a program of words for a principal.
func start(ctx context.Context, e *enginetest.Engine, principal, words string) (engine.Outcome, error) {
	return e.Engine.Start(ctx, engine.Start{
		Principal: principal, Session: "session", Code: json.RawMessage(fmt.Sprintf("%q", words)),
		Tools: []stubs.Tool{{Name: "tool"}}, Timeout: time.Minute,
	})
}

func TestMaxRunning(t *testing.T) {
	p := newPuppets()
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxRunning = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := start(ctx, e, "ada", "hang")
		done <- err
	}()
	<-p.hanging
	if _, err := start(t.Context(), e, "ada", "end"); !errors.Is(err, engine.ErrTooMany) {
		t.Errorf("a second program of ada: got %v, want ErrTooMany", err)
	}
	if _, err := start(t.Context(), e, "bob", "end"); err != nil {
		t.Errorf("a program of bob: got %v, want none", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatalf("Start = %v", err)
	}
	// One that has been answered counts no more, however soon the next one comes.
	for range 50 {
		if _, err := start(t.Context(), e, "ada", "end"); err != nil {
			t.Fatalf("got %v, want none: nothing runs any more", err)
		}
	}
}

func TestPausedIsNotRunning(t *testing.T) {
	p := newPuppets()
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxRunning = 1 })
	paused, err := start(t.Context(), e, enginetest.Principal, "pause hang")
	if err != nil || paused.State != engine.Paused {
		t.Fatalf("got %+v, %v, want a pause", paused, err)
	}
	if _, err := start(t.Context(), e, enginetest.Principal, "end"); err != nil {
		t.Errorf("beside a paused one: got %v, want none", err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := e.Resume(paused, "1")
		done <- err
	}()
	<-p.hanging
	if _, err := start(t.Context(), e, enginetest.Principal, "end"); !errors.Is(err, engine.ErrTooMany) {
		t.Errorf("beside a resumed one: got %v, want ErrTooMany", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Resume = %v", err)
	}
}

func TestMaxPaused(t *testing.T) {
	e := enginetest.New(t, newPuppets(), func(o *engine.Options) { o.MaxPaused = 2 })
	var last engine.Outcome
	for i := range 2 {
		var err error
		if last, err = start(t.Context(), e, enginetest.Principal, "pause pause"); err != nil {
			t.Fatalf("pause %d: %v", i, err)
		}
	}
	if _, err := start(t.Context(), e, enginetest.Principal, "end"); !errors.Is(err, engine.ErrTooMany) {
		t.Errorf("beside two paused ones: got %v, want ErrTooMany", err)
	}
	if _, err := start(t.Context(), e, "bob", "pause"); err != nil {
		t.Errorf("another principal: got %v, want none", err)
	}
	// What has begun may go on, and pause again.
	last, err := e.Resume(last, "1")
	if err != nil || last.State != engine.Paused {
		t.Fatalf("got %+v, %v, want a second pause", last, err)
	}
	if last, err = e.Resume(last, "2"); err != nil || last.State != engine.Completed {
		t.Fatalf("got %+v, %v, want the end", last, err)
	}
	if _, err := start(t.Context(), e, enginetest.Principal, "end"); err != nil {
		t.Errorf("beside one paused one: got %v, want none", err)
	}
}

func TestExpiredIsNotPaused(t *testing.T) {
	e := enginetest.New(t, newPuppets(), func(o *engine.Options) { o.MaxPaused, o.PauseTTL = 1, time.Millisecond })
	if _, err := start(t.Context(), e, "ada", "pause"); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); ; {
		_, err := start(t.Context(), e, "ada", "end")
		if err == nil {
			return
		}
		if !errors.Is(err, engine.ErrTooMany) || time.Since(began) > time.Minute {
			t.Fatalf("got %v, want none as soon as the pause has expired", err)
		}
	}
}

// A request that found no sandbox is not counted any more.
func TestRefusedIsNotRunning(t *testing.T) {
	e := enginetest.New(t, newPuppets(), func(o *engine.Options) {
		o.MaxRunning, o.MaxSandboxes, o.QueueTimeout = 1, 1, time.Millisecond
	})
	if _, err := start(t.Context(), e, "bob", "pause"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := start(t.Context(), e, "ada", "end"); !errors.Is(err, engine.ErrNoCapacity) {
			t.Errorf("got %v, want ErrNoCapacity", err)
		}
	}
}
