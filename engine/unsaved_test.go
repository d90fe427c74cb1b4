package engine

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/python"
	"fermata/stubs"
)

// A hooked store does something else than to write or read, where a test says so.
type hooked struct {
	continuation.Store
	put func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error
	get func() error
}

func (h *hooked) Put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
	if h.put != nil {
		return h.put(ctx, r, ttl, c)
	}
	return h.Store.Put(ctx, r, ttl, c)
}

func (h *hooked) Get(ctx context.Context, id string) (continuation.Record, error) {
	if h.get != nil {
		if err := h.get(); err != nil {
			return continuation.Record{}, err
		}
	}
	return h.Store.Get(ctx, id)
}

// keyed is a start of a program that calls the tool ask and may be repeated.
func keyed(key string) Start {
	return Start{
		Principal: "ada", Session: "s", Code: json.RawMessage(`"ask"`), Tools: []stubs.Tool{{Name: "ask"}}, Timeout: time.Minute,
		Key: key, Request: "start",
	}
}

// The end of an execution that no request has begun here is recorded when the store is back.
func TestEndOfAnUndeliveredExecution(t *testing.T) {
	p := newPair(t, time.Minute)
	_, x := p.start(t, "a.1")
	b := p.engines["b.1"]
	record, err := b.o.Store.Get(t.Context(), x.id)
	if err != nil {
		t.Fatal(err)
	}
	record.Version++
	record.State, record.Request, record.Answer = string(core.Running), "r", nil
	if err := b.o.Store.Put(t.Context(), record, time.Hour, continuation.Chapter{}); err != nil {
		t.Fatal(err)
	}
	p.phonebook.lose("a.1")
	p.engines["a.1"].members.Lapse()
	y, err := p.takeOver(t, x.id)
	if err != nil {
		t.Fatal(err)
	}
	store := b.o.Store
	var away atomic.Bool
	away.Store(true)
	b.o.Store = &hooked{Store: store, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
		if away.Load() {
			return continuation.ErrUnavailable
		}
		return store.Put(ctx, r, ttl, c)
	}}
	p.views["b.1"].Die(y.sandbox.Ref)
	eventually(t, "the end is noted", func() bool { return standingOf(y) == core.StandsEndedUnsaved })
	away.Store(false)
	eventually(t, "the end is recorded", func() bool { return standingOf(y) == core.StandsEnded })
}

func standingOf(x *execution) (s core.Standing) {
	inside(x, func() { s = x.conversation.standing })
	return s
}

// inside calls do in the goroutine of an execution, or here if that has ended.
func inside(x *execution, do func()) {
	if x.ask(context.Background(), do) != nil {
		do()
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

// A start that is identical to one whose record cannot be written shares its fate, or is tried
// again, but is not taken for another start.
func TestIdenticalStartWhileTheStoreIsAway(t *testing.T) {
	p := newPair(t, time.Minute)
	a := p.engines["a.1"]
	store := a.o.Store
	entered, goOn := make(chan struct{}), make(chan struct{})
	a.o.Store = &hooked{Store: store, put: func(context.Context, continuation.Record, time.Duration, continuation.Chapter) error {
		close(entered)
		<-goOn
		a.o.Store = store
		return continuation.ErrUnavailable
	}}
	first := make(chan error, 1)
	go func() { _, err := a.Start(t.Context(), keyed("k")); first <- err }()
	<-entered
	second := make(chan error, 1)
	go func() { _, err := a.Start(t.Context(), keyed("k")); second <- err }()
	time.Sleep(200 * time.Millisecond)
	close(goOn)
	if err := <-first; !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("the first start: %v, want that the store is away", err)
	}
	if err := <-second; err != nil && !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("the identical start: %v, want it begun, or that the store is away", err)
	}
}

// A saying provider has sandboxes that say hello, with this state and round, and nothing more.
type saying struct {
	sandbox.Provider
	state sandbox.State
	round int
}

func (s *saying) Attach(context.Context, string) (sandbox.Stream, error) {
	ours, theirs := net.Pipe()
	go func() {
		var header [5]byte
		_, _ = io.ReadFull(theirs, header[:])
		payload := make([]byte, binary.BigEndian.Uint32(header[:4]))
		_, _ = io.ReadFull(theirs, payload)
		hello := fmt.Sprintf(`{"protocol":%d,"state":%q,"round":%d}`, python.Protocol, s.state, s.round)
		_, _ = theirs.Write(payload)
		_, _ = theirs.Write(append(append(binary.BigEndian.AppendUint32(nil, uint32(len(hello))), 'H'), hello...))
		_, _ = io.Copy(io.Discard, theirs)
	}()
	return ours, nil
}

// A continuation gets an answer also when the execution that it has had taken over turns out to
// have ended.
func TestContinuationOfAnEndedSandbox(t *testing.T) {
	p := newPair(t, time.Minute)
	p.meetings["b.1"].Provider = &saying{Provider: p.meetings["b.1"].Provider, state: sandbox.Ended, round: 1}
	hung := 0
	for range 8 {
		paused, _ := p.start(t, "a.1")
		p.phonebook.mu.Lock()
		delete(p.phonebook.servers, "a.1")
		p.phonebook.mu.Unlock()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := p.engines["b.1"].Resume(ctx, Resume{Principal: "ada", Token: paused.Token, Request: "r", Results: []core.Result{{CallID: "call_001"}}})
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			hung++
		}
	}
	if hung > 0 {
		t.Errorf("%d of 8 continuations got no answer", hung)
	}
}

// A pause that the store has taken although it said otherwise can be continued with the token
// that another server gives out.
func TestPauseThatWasStoredAllTheSame(t *testing.T) {
	p := newPair(t, time.Minute)
	a := p.engines["a.1"]
	store := a.o.Store
	var well atomic.Bool
	a.o.Store = &hooked{Store: store, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
		err := store.Put(ctx, r, ttl, c)
		if r.State == string(core.Paused) && !well.Load() {
			return continuation.ErrUnavailable
		}
		return err
	}}
	if _, err := a.Start(t.Context(), keyed("k")); !errors.Is(err, continuation.ErrUnavailable) {
		t.Fatalf("Start = %v, want that the store is away", err)
	}
	well.Store(true)
	paused, err := p.engines["b.1"].Start(t.Context(), keyed("k"))
	if err != nil || paused.Token == "" {
		t.Fatalf("on the other server: %+v, %v", paused, err)
	}
	for range 2 {
		if done, err := p.resume(t, "a.1", paused); err != nil || done.State != core.Completed {
			t.Errorf("Resume = %+v, %v, want it completed", done, err)
		}
	}
}

// An end while the store is away for longer than the lease is recorded when the store is back.
func TestEndWhileTheLeaseHasEnded(t *testing.T) {
	p := newPair(t, time.Minute)
	a := p.engines["a.1"]
	paused, x := p.start(t, "a.1")
	store := a.o.Store
	var away atomic.Bool
	a.o.Store = &hooked{
		Store: store,
		put: func(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
			if r.State == string(core.Running) {
				err := store.Put(ctx, r, ttl, c)
				away.Store(true)
				p.phonebook.mu.Lock()
				p.phonebook.away["a.1"] = true
				p.phonebook.mu.Unlock()
				a.members.Lapse()
				return err
			}
			if away.Load() {
				return continuation.ErrUnavailable
			}
			return store.Put(ctx, r, ttl, c)
		},
		get: func() error {
			if away.Load() {
				return continuation.ErrUnavailable
			}
			return nil
		},
	}
	if done, err := p.resume(t, "a.1", paused); err != nil || done.State != core.Completed {
		t.Errorf("Resume = %+v, %v, want it completed", done, err)
	}
	away.Store(false)
	p.phonebook.mu.Lock()
	p.phonebook.away["a.1"] = false
	p.phonebook.mu.Unlock()
	eventually(t, "the end is recorded", func() bool {
		record, err := store.Get(t.Context(), x.id)
		return err == nil && record.State == string(core.Completed)
	})
	if again, err := p.resume(t, "a.1", paused); err != nil || again.State != core.Completed {
		t.Errorf("the same again = %+v, %v, want it completed", again, err)
	}
}

// A store that has lost its latest writes tells of an earlier pause, whose results do not fit the
// calls for which the program waits.
func TestRecordOfAnEarlierPause(t *testing.T) {
	p := newPair(t, time.Minute)
	p.meetings["b.1"].Provider = &saying{Provider: p.meetings["b.1"].Provider, state: sandbox.Paused, round: 2}
	_, x := p.start(t, "a.1")
	p.phonebook.lose("a.1")
	p.engines["a.1"].members.Lapse()
	y, err := p.takeOver(t, x.id)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the execution has ended", func() bool { return standingOf(y) == core.StandsEnded })
}
