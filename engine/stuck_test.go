package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
)

// A sticky provider has sandboxes that cannot be destroyed: an earlier server's, or its own.
type sticky struct {
	*sandboxtest.Script
	mu sync.Mutex
	// left are the sandboxes of an earlier server, stuck all that cannot be destroyed.
	left  []string
	stuck map[string]bool
	// With deaf, Attach hangs; with silent, List does.
	deaf, silent bool
}

func newSticky() *sticky { return &sticky{Script: sandboxtest.New("home.2"), stuck: map[string]bool{}} }

func (p *sticky) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *sticky) is(what *bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *what
}

func (p *sticky) Destroy(ctx context.Context, ref string) error {
	p.mu.Lock()
	stuck := p.stuck[ref]
	p.mu.Unlock()
	if stuck {
		<-ctx.Done()
		return fmt.Errorf("sandbox %s does not end: %w", ref, ctx.Err())
	}
	return p.Script.Destroy(ctx, ref)
}

func (p *sticky) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	if p.is(&p.deaf) && strings.HasPrefix(ref, "left") {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.Script.Attach(ctx, ref)
}

func (p *sticky) List(ctx context.Context) ([]sandbox.Sandbox, error) {
	if p.is(&p.silent) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []sandbox.Sandbox
	for _, ref := range p.left {
		list = append(list, sandbox.Sandbox{Ref: ref, Server: "home.1"})
	}
	return list, nil
}

// leave adds n sandboxes of an earlier server that cannot be destroyed.
func (p *sticky) leave(n int) {
	for i := range n {
		ref := fmt.Sprintf("left%03d", i)
		p.left = append(p.left, ref)
		p.stuck[ref] = true
	}
}

// A lockedBuffer holds a log, and is safe for concurrent use.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func stickyOptions(t *testing.T, p sandbox.Provider, log io.Writer) Options {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	signer, err := continuation.NewSigner([][]byte{make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Provider: p, Store: store, Signer: signer, Log: slog.New(slog.NewTextHandler(log, nil)),
		PauseTTL: time.Minute, KeepAnswers: time.Minute, MaxRounds: 20, MaxCalls: 100, MaxSandboxes: 10,
		QueueTimeout: time.Second, Instance: "home.2", Exclusive: true,
	}
}

// A hundred sandboxes that cannot be destroyed hold up neither the start of a server nor its end.
// They are counted, tried again, and reported in one line of the log.
func TestStuckSandboxes(t *testing.T) {
	var log lockedBuffer
	provider := newSticky()
	provider.leave(100)
	o := stickyOptions(t, provider, &log)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		e, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("New took %v, want at most 10s", took)
		}
		time.Sleep(2 * time.Minute)
		if got := e.Stats().Pool.Stuck; got != 100 {
			t.Errorf("%d sandboxes are stuck, want 100", got)
		}
		if text := log.String(); !strings.Contains(text, "count=100") || !strings.Contains(text, "does not end") {
			t.Errorf("the log does not tell how many are stuck and why:\n%s", text)
		}
		// As many are stuck as the ceiling allows in all; half of the ceiling still serves.
		var used []*sandbox.Conn
		takeFive := func() {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for range 5 {
				s, err := e.pool.Take(ctx, sandbox.Scientific, "alice")
				if err != nil {
					t.Fatalf("take = %v", err)
				}
				used = append(used, s)
			}
		}
		takeFive()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.pool.Take(ctx, sandbox.Scientific, "alice"); !errors.Is(err, ErrNoCapacity) {
			t.Errorf("take of a sixth = %v, want ErrNoCapacity: stuck ones count", err)
		}
		provider.set(func() { clear(provider.stuck) })
		time.Sleep(2 * time.Minute) // Longer than the wait between two attempts.
		if got := e.Stats().Pool.Stuck; got != 0 {
			t.Errorf("%d sandboxes are stuck, want none any more", got)
		}
		if lines := strings.Count(log.String(), "no sandbox is stuck any more"); lines != 1 {
			t.Errorf("%d lines of the log say that none is stuck, want 1:\n%s", lines, log.String())
		}
		takeFive()
		// Some of the server's own sandboxes get stuck as well.
		provider.set(func() {
			for _, s := range used[:3] {
				provider.stuck[s.Ref] = true
			}
		})
		for _, s := range used {
			e.pool.Release(s)
		}
		time.Sleep(time.Minute)
		if got := e.Stats().Pool; got.Stuck != 3 || got.Live-got.Idle != 0 {
			t.Errorf("got %+v, want 3 stuck and none else that is not idle", got)
		}
		began = time.Now()
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("Close took %v, want at most 10s", took)
		}
	})
}

// Executions whose sandboxes do not answer hold up neither the start of a server nor its end. The
// server records those that it gives up as lost.
func TestStuckExecutions(t *testing.T) {
	for _, tt := range []struct {
		name string
		stay time.Duration
		lost int
	}{
		{"it serves", time.Minute, 40},
		{"it is closed at once", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log lockedBuffer
			provider := newSticky()
			provider.leave(40)
			provider.deaf = true
			o := stickyOptions(t, provider, &log)
			for _, ref := range provider.left {
				err := o.Store.Put(t.Context(), continuation.Record{
					Format: continuation.RecordFormat, ID: ref, Version: 1, State: string(core.Paused), Round: 1, Owner: "home.1",
					Sandbox: ref, Budget: time.Minute, Deadline: time.Now().Add(time.Hour), Answer: json.RawMessage(`{}`),
				}, time.Hour, continuation.Chapter{})
				if err != nil {
					t.Fatal(err)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				e, err := New(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("New took %v, want at most 10s", took)
				}
				time.Sleep(tt.stay)
				began = time.Now()
				if err := e.Close(t.Context()); err != nil {
					t.Errorf("Close = %v", err)
				}
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("Close took %v, want at most 10s", took)
				}
			})
			records, err := o.Store.List(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			lost := 0
			for _, r := range records {
				if core.State(r.State) == core.Expired {
					lost++
				}
			}
			if lost != tt.lost {
				t.Errorf("%d executions are recorded as lost, want %d", lost, tt.lost)
			}
		})
	}
}

// A provider whose List hangs holds up neither the start of a server, nor its lease, nor its end.
func TestSilentProvider(t *testing.T) {
	var log lockedBuffer
	provider := newSticky()
	provider.leave(1)
	provider.silent = true
	o := stickyOptions(t, provider, &log)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		book := &phonebook{servers: map[string]string{}, away: map[string]bool{}}
		o.Registry, o.Address = book, "here"
		e, err := New(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("New took %v, want at most 10s", took)
		}
		time.Sleep(2 * cluster.LeaseTime)
		if !e.members.Announced() {
			t.Error("the lease has ended since the provider is silent")
		}
		provider.set(func() { provider.silent = false })
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
}
