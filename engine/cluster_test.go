package engine

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
	"fermata/stubs"
)

// phonebook is a Registry whose leases end when the test says so.
type phonebook struct {
	mu      sync.Mutex
	servers map[string]string
	// away are the servers that cannot reach the registry.
	away map[string]bool
}

func (p *phonebook) Announce(_ context.Context, server, address string, _ time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.away[server] {
		return continuation.ErrUnavailable
	}
	p.servers[server] = address
	return nil
}

func (p *phonebook) Locate(_ context.Context, server string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if address, ok := p.servers[server]; ok {
		return address, nil
	}
	return "", continuation.ErrNotFound
}

func (p *phonebook) Servers(context.Context) (map[string]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.servers), nil
}

func (p *phonebook) Withdraw(_ context.Context, server string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.servers, server)
	return nil
}

// lose ends a server's lease and keeps the server from renewing it.
func (p *phonebook) lose(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away[server] = true
	delete(p.servers, server)
}

// direct is a Peers without HTTP.
type direct map[string]*Engine

func (d direct) Resume(ctx context.Context, address string, r Resume) (core.Outcome, error) {
	r.HandedOver = true
	outcome, err := d[address].Resume(ctx, r)
	outcome.Execution = "" // It is not on the wire.
	return outcome, err
}

func (d direct) Cancel(ctx context.Context, address string, c Cancel) (Cancelling, error) {
	c.HandedOver = true
	return d[address].Cancel(ctx, c)
}

func (d direct) CancelSession(ctx context.Context, address string, c CancelSession) (map[string]Cancelling, error) {
	return d[address].CancelSessionHere(ctx, c), nil
}

func (d direct) Approve(ctx context.Context, address string, a Approval) error {
	a.HandedOver = true
	return d[address].Approve(ctx, a)
}

// A pair is two servers with one store and one provider.
type pair struct {
	phonebook *phonebook
	views     map[string]*sandboxtest.Script
	meetings  map[string]*meeting
	engines   direct
}

func newPair(t *testing.T, pauseTTL time.Duration) *pair {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	signer, err := continuation.NewSigner([][]byte{make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{
		phonebook: &phonebook{servers: map[string]string{}, away: map[string]bool{}},
		views:     map[string]*sandboxtest.Script{}, meetings: map[string]*meeting{}, engines: direct{},
	}
	// Every server can reach all sandboxes, as with Docker.
	script := sandboxtest.New("")
	for _, name := range []string{"a.1", "b.1"} {
		p.views[name] = script.View(name)
		p.meetings[name] = &meeting{Provider: p.views[name], all: make(chan struct{})}
		e, err := New(t.Context(), Options{
			Provider: p.meetings[name], Store: store, Signer: signer, Log: slog.New(slog.DiscardHandler),
			PauseTTL: pauseTTL, KeepAnswers: time.Minute, MaxRounds: 20, MaxCalls: 100, MaxSandboxes: 10,
			QueueTimeout: time.Minute, Instance: name, Registry: p.phonebook, Address: name, Peers: p.engines,
		})
		if err != nil {
			t.Fatal(err)
		}
		p.engines[name] = e
		t.Cleanup(func() {
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	return p
}

// start starts an execution on a server and returns it in its first pause.
func (p *pair) start(t *testing.T, on string) (paused core.Outcome, x *execution) {
	t.Helper()
	e := p.engines[on]
	paused, err := e.Start(t.Context(), Start{
		Principal: "ada", Session: "s", Code: json.RawMessage(`"ask"`), Tools: []stubs.Tool{{Name: "ask"}}, Timeout: time.Minute,
	})
	if err != nil || paused.State != core.Paused {
		t.Fatalf("Start = %+v, %v, want a pause", paused, err)
	}
	claims, err := e.o.Signer.Verify(paused.Token, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return paused, e.executions.find(claims.Execution)
}

func (p *pair) resume(t *testing.T, on string, paused core.Outcome) (core.Outcome, error) {
	t.Helper()
	return p.engines[on].Resume(t.Context(), Resume{
		Principal: "ada", Token: paused.Token, Request: "r", Results: []core.Result{{CallID: "call_001"}},
	})
}

// A server whose lease has ended loses its executions to another server. When it comes back, it
// leaves their sandboxes alone: it sends them no results, does not kill their programs, and does
// not destroy them.
func TestFencing(t *testing.T) {
	for name, back := range map[string]func(t *testing.T, p *pair, paused core.Outcome, x *execution){
		"it is asked to go on": func(t *testing.T, p *pair, paused core.Outcome, _ *execution) {
			again, err := p.resume(t, "a.1", paused)
			if err != nil || again.State != core.Completed {
				t.Errorf("Resume on the former owner = %+v, %v, want the other's answer", again, err)
			}
		},
		"it cancels": func(_ *testing.T, _ *pair, _ core.Outcome, x *execution) { x.cancel() },
		"it kills": func(t *testing.T, p *pair, _ core.Outcome, x *execution) {
			inside(x, func() {
				before := x.conversation.wait
				defer func() { x.conversation.wait = before }()
				l := p.engines["a.1"].newLife(x, nil, &mandate{})
				if e := l.kill(core.Ending{State: core.TimedOut}); e.State != core.TimedOut {
					t.Errorf("kill = %+v", e)
				}
			})
			x.cancel()
		},
		"it shuts down": func(t *testing.T, p *pair, _ core.Outcome, _ *execution) {
			if err := p.engines["a.1"].Close(t.Context()); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, time.Minute)
			paused, x := p.start(t, "a.1")
			ref := x.sandbox.Ref
			p.phonebook.lose("a.1")
			p.engines["a.1"].members.Lapse() // as if it had been away for long
			if got, err := p.takeOver(t, x.id); err != nil {
				t.Fatalf("takeOver = %v, %v", got, err)
			}
			back(t, p, paused, x)
			done, err := p.resume(t, "b.1", paused)
			if err != nil || done.State != core.Completed {
				t.Errorf("Resume on the new owner = %+v, %v, want it completed", done, err)
			}
			if heard, want := p.views["b.1"].Heard(ref), "GR"; heard != want {
				t.Errorf("the sandbox heard %q, want %q", heard, want)
			}
			if slices.Contains(p.views["a.1"].Destroyed(), ref) {
				t.Error("the former owner has destroyed the sandbox")
			}
		})
	}
}

// meeting is a provider whose Attach waits until as many calls as expected are under way, if any
// are expected.
type meeting struct {
	sandbox.Provider
	expected, come atomic.Int32
	all            chan struct{}
}

func (m *meeting) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	expected := m.expected.Load()
	if expected == 0 {
		return m.Provider.Attach(ctx, ref)
	}
	if m.come.Add(1) == expected {
		close(m.all)
	}
	select {
	case <-m.all:
		return m.Provider.Attach(ctx, ref)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A sandbox that does not answer does not hold up the take-over of the others.
func TestTakenOverAtOnce(t *testing.T) {
	p := newPair(t, time.Minute)
	var left []*execution
	for range takeOvers / 2 {
		_, x := p.start(t, "a.1")
		left = append(left, x)
	}
	p.meetings["b.1"].expected.Store(takeOvers / 2)
	heir := p.engines["b.1"]
	p.phonebook.lose("a.1")
	p.engines["a.1"].members.Lapse()
	for range 2 { // The first sweep only notes which servers are absent.
		if err := heir.attendant.sweeper.sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range left {
		if heir.executions.find(x.id) == nil {
			t.Errorf("execution %s was not taken over", x.id)
		}
	}
}

// takeOver has server b take an execution over, as a sweep or a request would.
func (p *pair) takeOver(t *testing.T, id string) (*execution, error) {
	t.Helper()
	record, err := p.engines["b.1"].o.Store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p.engines["b.1"].successor.takeOver(t.Context(), record)
}

// A take-over works between servers whose clocks differ. The deadlines that one server has set
// are then off by that difference for the other.
func TestClocksApart(t *testing.T) {
	for _, ahead := range []time.Duration{-45 * time.Second, 45 * time.Second} {
		t.Run(ahead.String(), func(t *testing.T) {
			p := newPair(t, 2*time.Minute)
			paused, x := p.start(t, "a.1")
			// As if the clock of the first server were ahead.
			store, signer := p.engines["b.1"].o.Store, p.engines["b.1"].o.Signer
			record, err := store.Get(t.Context(), x.id)
			if err != nil {
				t.Fatal(err)
			}
			record.Version++
			record.Created, record.Deadline = record.Created.Add(ahead), record.Deadline.Add(ahead)
			if err := store.Put(t.Context(), record, 5*time.Minute, continuation.Chapter{}); err != nil {
				t.Fatal(err)
			}
			paused.Token, err = signer.Sign(continuation.Claims{
				Execution: record.ID, Session: record.Session, Principal: record.Principal, Round: record.Round, Expires: record.Deadline,
			})
			if err != nil {
				t.Fatal(err)
			}
			p.phonebook.lose("a.1")
			p.engines["a.1"].members.Lapse() // as if it had been away for long
			if _, err := p.takeOver(t, x.id); err != nil {
				t.Fatal(err)
			}
			done, err := p.resume(t, "b.1", paused)
			if err != nil || done.State != core.Completed {
				t.Errorf("Resume on the new owner = %+v, %v, want it completed", done, err)
			}
		})
	}
}

// Of several concurrent take-overs of one execution, one succeeds, and the others do not touch the
// sandbox.
func TestTakeOverOnce(t *testing.T) {
	p := newPair(t, time.Minute)
	paused, x := p.start(t, "a.1")
	p.phonebook.lose("a.1")
	p.engines["a.1"].members.Lapse()
	var wg sync.WaitGroup
	var mu sync.Mutex
	passed := 0
	for range 8 {
		wg.Go(func() {
			_, err := p.takeOver(t, x.id)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				passed++
			} else if !errors.Is(err, continuation.ErrConflict) {
				t.Errorf("takeOver = %v, want ErrConflict", err)
			}
		})
	}
	wg.Wait()
	if passed != 1 {
		t.Errorf("%d of 8 have taken over, want 1", passed)
	}
	if done, err := p.resume(t, "b.1", paused); err != nil || done.State != core.Completed {
		t.Errorf("Resume = %+v, %v, want it completed", done, err)
	}
}

// A server that cannot be reached, but has its lease, keeps its executions.
func TestLeaseProtects(t *testing.T) {
	p := newPair(t, time.Minute)
	paused, x := p.start(t, "a.1")
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errQueue)
	defer cancel()
	unreachable := p.engines["b.1"]
	unreachable.o.Peers = nowhere{}
	_, err := unreachable.Resume(ctx, Resume{Principal: "ada", Token: paused.Token, Request: "r"})
	if !errors.Is(err, errQueue) {
		t.Errorf("Resume = %v, want it to wait as long as it may", err)
	}
	if p.engines["a.1"].executions.find(x.id) != x || p.engines["b.1"].executions.find(x.id) != nil {
		t.Error("the execution has another owner")
	}
	if done, err := p.resume(t, "a.1", paused); err != nil || done.State != core.Completed {
		t.Errorf("Resume = %+v, %v, want it completed", done, err)
	}
}

// nowhere is a Peers that can reach no server.
type nowhere struct{}

func (nowhere) Resume(context.Context, string, Resume) (core.Outcome, error) {
	return core.Outcome{}, ErrUnreachable
}

func (nowhere) Approve(context.Context, string, Approval) error { return ErrUnreachable }

func (nowhere) Cancel(context.Context, string, Cancel) (Cancelling, error) {
	return "", ErrUnreachable
}

func (nowhere) CancelSession(context.Context, string, CancelSession) (map[string]Cancelling, error) {
	return nil, ErrUnreachable
}

// A session that is cancelled on one server is cancelled on the others, too: also an execution of
// which the store has nothing yet.
func TestSessionElsewhere(t *testing.T) {
	p := newPair(t, time.Minute)
	answered := make(chan core.Outcome, 1)
	go func() {
		outcome, err := p.engines["a.1"].Start(t.Context(), Start{
			Principal: "ada", Session: "s", Code: json.RawMessage(`"hang"`), Timeout: time.Minute,
		})
		if err != nil {
			t.Error(err)
		}
		answered <- outcome
	}()
	<-p.views["a.1"].Hanging()
	if n, state, err := p.engines["b.1"].CancelSession(t.Context(), CancelSession{Principal: "bob", Session: "s"}); n != 0 || state != CancelUnknown || err != nil {
		t.Errorf("CancelSession for another principal = %d, %q, %v, want nothing cancelled", n, state, err)
	}
	if n, state, err := p.engines["b.1"].CancelSession(t.Context(), CancelSession{Principal: "ada", Session: "s"}); n != 1 || state != CancelRequested || err != nil {
		t.Errorf("CancelSession = %d, %q, %v, want one asked to end", n, state, err)
	}
	if outcome := <-answered; outcome.State != core.Cancelled {
		t.Errorf("Start = %+v, want it cancelled", outcome)
	}
}

// A server that does not answer may have executions of a session.
func TestSessionOfSilentServer(t *testing.T) {
	p := newPair(t, time.Minute)
	b := p.engines["b.1"]
	b.o.Peers = nowhere{}
	if n, state, err := b.CancelSession(t.Context(), CancelSession{Principal: "ada", Session: "s"}); n != 0 || !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("CancelSession = %d, %q, %v, want an error", n, state, err)
	}
	p.start(t, "b.1")
	if n, state, err := b.CancelSession(t.Context(), CancelSession{Principal: "ada", Session: "s"}); n != 1 || state != CancelDone || err != nil {
		t.Errorf("CancelSession = %d, %q, %v, want one cancelled", n, state, err)
	}
}
