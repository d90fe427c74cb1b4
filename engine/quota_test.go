package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/enginetest"
	"fermata/engine/sandbox/sandboxtest"
	"fermata/stubs"
)

// start starts a program for a principal. words is its script, see sandboxtest.
func start(ctx context.Context, e *enginetest.Engine, principal, words string) (core.Outcome, error) {
	return e.Engine.Start(ctx, engine.Start{
		Principal: principal, Session: "session", Code: json.RawMessage(fmt.Sprintf("%q", words)),
		Tools: []stubs.Tool{{Name: "pause"}}, Timeout: time.Minute,
	})
}

func TestMaxRunning(t *testing.T) {
	p := sandboxtest.New(enginetest.Server)
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxRunning = 1 })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := start(ctx, e, "ada", "hang")
		done <- err
	}()
	<-p.Hanging()
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
	// An execution that has its answer counts no more, however soon the next one starts.
	for range 50 {
		if _, err := start(t.Context(), e, "ada", "end"); err != nil {
			t.Fatalf("got %v, want none: nothing runs any more", err)
		}
	}
}

func TestPausedIsNotRunning(t *testing.T) {
	p := sandboxtest.New(enginetest.Server)
	e := enginetest.New(t, p, func(o *engine.Options) { o.MaxRunning = 1 })
	paused, err := start(t.Context(), e, enginetest.Principal, "pause hang")
	if err != nil || paused.State != core.Paused {
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
	<-p.Hanging()
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
	e := enginetest.New(t, sandboxtest.New(enginetest.Server), func(o *engine.Options) { o.MaxPaused = 2 })
	var last core.Outcome
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
	// An execution that has started may go on, and pause again.
	last, err := e.Resume(last, "1")
	if err != nil || last.State != core.Paused {
		t.Fatalf("got %+v, %v, want a second pause", last, err)
	}
	if last, err = e.Resume(last, "2"); err != nil || last.State != core.Completed {
		t.Fatalf("got %+v, %v, want the end", last, err)
	}
	if _, err := start(t.Context(), e, enginetest.Principal, "end"); err != nil {
		t.Errorf("beside one paused one: got %v, want none", err)
	}
}

func TestExpiredIsNotPaused(t *testing.T) {
	e := enginetest.New(t, sandboxtest.New(enginetest.Server), func(o *engine.Options) { o.MaxPaused, o.PauseTTL = 1, time.Millisecond })
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

// A start that finds all sandboxes paused is told when the next pause expires, and the engine is not
// ready. While a program runs, nobody knows.
func TestFull(t *testing.T) {
	p := sandboxtest.New(enginetest.Server)
	e := enginetest.New(t, p, func(o *engine.Options) {
		o.MaxSandboxes, o.QueueTimeout, o.PauseTTL = 2, time.Millisecond, time.Minute
	})
	refused := func() time.Duration {
		t.Helper()
		_, err := start(t.Context(), e, "ada", "end")
		full, ok := errors.AsType[*engine.FullError](err)
		if !ok || !errors.Is(err, engine.ErrNoCapacity) {
			t.Fatalf("got %v, want a FullError that is an ErrNoCapacity", err)
		}
		if err := e.Ready(t.Context()); !errors.Is(err, engine.ErrNoCapacity) {
			t.Errorf("Ready = %v, want ErrNoCapacity", err)
		}
		return full.Room
	}
	patiently := func(principal, script string) core.Outcome {
		t.Helper()
		outcome, err := start(t.Context(), e, principal, script)
		for began := time.Now(); errors.Is(err, engine.ErrNoCapacity) && time.Since(began) < 10*time.Second; { // until its sandbox is made
			outcome, err = start(t.Context(), e, principal, script)
		}
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	paused := patiently(enginetest.Principal, "pause end")
	if err := e.Ready(t.Context()); err != nil {
		t.Errorf("Ready = %v beside one paused program, want nil", err)
	}
	patiently("bob", "pause")
	room := refused()
	for began := time.Now(); room == 0 && time.Since(began) < 10*time.Second; { // until bob's execution waits in its pause
		room = refused()
	}
	if room <= 0 || room > time.Minute {
		t.Errorf("the next pause expires in %v, want a time within a minute", room)
	}
	if _, err := e.Resume(paused, "1"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := start(ctx, e, "bob", "hang")
		for errors.Is(err, engine.ErrNoCapacity) { // until the sandbox of the ended program is gone
			_, err = start(ctx, e, "bob", "hang")
		}
		done <- err
	}()
	<-p.Hanging()
	if room := refused(); room != 0 {
		t.Errorf("there is room in %v beside a program that runs, want 0", room)
	}
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A start that got no sandbox counts no more.
func TestRefusedIsNotRunning(t *testing.T) {
	e := enginetest.New(t, sandboxtest.New(enginetest.Server), func(o *engine.Options) {
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
