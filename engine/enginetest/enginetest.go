// Package enginetest holds the conformance suite of sandbox.Provider, and an engine
// for the tests of a provider to run programs with. It knows no provider.
package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/sandbox/sandboxtest"
	"fermata/stubs"
)

// Server is the instance that the provider of a test has to mark sandboxes with.
const Server = sandboxtest.Server

// Principal owns every execution of an Engine.
const Principal = "tester"

// patience is how long anything may take on a busy machine.
const patience = 2 * time.Minute

// An Engine runs programs for a test.
type Engine struct {
	*engine.Engine
	t testing.TB
	// Store keeps the records.
	Store continuation.Store
	// provider and dead let a test kill the engine.
	provider *mortal
}

// New returns an engine over p, which ends with the test.
func New(t testing.TB, p sandbox.Provider, change ...func(*engine.Options)) *Engine {
	t.Helper()
	return newEngine(t, p, openStore(t), Server, change...)
}

func openStore(t testing.TB) continuation.Store {
	t.Helper()
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return store
}

func newEngine(t testing.TB, p sandbox.Provider, store continuation.Store, instance string, change ...func(*engine.Options)) *Engine {
	t.Helper()
	signer, err := continuation.NewSigner([][]byte{make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{t: t, Store: store, provider: &mortal{Provider: p, streams: map[string]sandbox.Stream{}}}
	o := engine.Options{
		Provider: e.provider, Store: mortalStore{store, &e.provider.dead}, Signer: signer, Instance: instance,
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
		PauseTTL: time.Minute, KeepAnswers: time.Minute,
		MaxRounds: 20, MaxCalls: 1000, PoolSizes: map[sandbox.Kind]int{sandbox.Plain: 1}, MaxSandboxes: 8, QueueTimeout: patience,
	}
	for _, f := range change {
		f(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if e.Engine, err = engine.New(ctx, o); err != nil {
		t.Fatalf("New = %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return e
}

// Start runs code until it pauses or ends.
func (e *Engine) Start(code string, timeout time.Duration, tools ...string) core.Outcome {
	e.t.Helper()
	text, err := json.Marshal(code)
	if err != nil {
		e.t.Fatal(err)
	}
	start := engine.Start{Principal: Principal, Session: "session", Code: text, Timeout: timeout}
	for _, name := range tools {
		start.Tools = append(start.Tools, stubs.Tool{Name: name})
	}
	outcome, err := e.Engine.Start(e.t.Context(), start)
	if err != nil {
		e.t.Fatalf("Start = %v", err)
	}
	return outcome
}

// Resume answers every call of a pause with value.
func (e *Engine) Resume(paused core.Outcome, value string) (core.Outcome, error) {
	resume := engine.Resume{Principal: Principal, Token: paused.Token, Request: paused.Token + value}
	for _, c := range paused.Calls {
		resume.Results = append(resume.Results, core.Result{CallID: c.ID, Value: json.RawMessage(value)})
	}
	return e.Engine.Resume(e.t.Context(), resume)
}

// Facts runs code, which must print one JSON value, and decodes that into facts.
func (e *Engine) Facts(code string, facts any) {
	e.t.Helper()
	outcome := e.Start(code, 30*time.Second)
	if outcome.State != core.Completed {
		e.t.Fatalf("the program ended %+v, want completed", outcome)
	}
	if err := json.Unmarshal([]byte(outcome.Stdout), facts); err != nil {
		e.t.Fatalf("the program printed %q: %v", outcome.Stdout, err)
	}
}

// Die ends the engine as kill -9 would, in the middle of writing a frame to every
// sandbox it has.
func (e *Engine) Die() { e.provider.die() }

// errDead is what a dead engine's provider answers.
var errDead = errors.New("enginetest: the server is dead")

// A mortal provider can be cut off.
type mortal struct {
	sandbox.Provider
	dead atomic.Bool

	mu sync.Mutex
	// streams are those that were attached, by the sandbox's reference.
	streams map[string]sandbox.Stream
}

func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead.Store(true)
	for _, s := range m.streams {
		// A header that claims a thousand bytes of results, and ten of them. The
		// sandbox may have ended, and the stream with it.
		_, _ = fmt.Fprint(s, "\x00\x00\x03\xe8R0123456789")
		_ = s.Close()
	}
}

func (m *mortal) Create(ctx context.Context, kind sandbox.Kind) (string, error) {
	if m.dead.Load() {
		return "", errDead
	}
	return m.Provider.Create(ctx, kind)
}

func (m *mortal) Attach(ctx context.Context, ref string) (sandbox.Stream, error) {
	s, err := m.Provider.Attach(ctx, ref)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead.Load() {
		return nil, errors.Join(errDead, s.Close())
	}
	m.streams[ref] = s
	return s, nil
}

func (m *mortal) Destroy(ctx context.Context, ref string) error {
	m.mu.Lock()
	_, attached := m.streams[ref]
	m.mu.Unlock()
	if attached && m.dead.Load() {
		return nil
	}
	return m.Provider.Destroy(ctx, ref)
}

// A mortalStore takes nothing from a dead engine.
type mortalStore struct {
	continuation.Store
	dead *atomic.Bool
}

func (s mortalStore) Put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
	if s.dead.Load() {
		return errDead
	}
	return s.Store.Put(ctx, r, ttl, c)
}
