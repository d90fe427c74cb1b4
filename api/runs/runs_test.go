package runs_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"fermata/api/runs"
	"fermata/engine/core"
)

func TestRun(t *testing.T) {
	goOn := make(chan struct{})
	r := runs.Begin(t.Context(), func(_ context.Context, began func(string, int64)) (core.Outcome, error) {
		<-goOn
		began("x", 7)
		began("y", 8)
		<-goOn
		return core.Outcome{Execution: "x"}, errors.New("no")
	})
	if id, _ := r.Execution(); id != "" || r.Ended() {
		t.Errorf("a run that has not begun is of execution %q, ended: %v", id, r.Ended())
	}
	goOn <- struct{}{}
	<-r.Began()
	if id, events := r.Execution(); id != "x" || events != 7 {
		t.Errorf("the run is of execution %q, event %d", id, events)
	}
	within, stop := r.Within(t.Context())
	defer stop()
	goOn <- struct{}{}
	if outcome, err := r.Outcome(); outcome.Execution != "x" || err == nil {
		t.Errorf("got %+v, %v", outcome, err)
	}
	<-within.Done()
}

func TestPanic(t *testing.T) {
	r := runs.Begin(t.Context(), func(context.Context, func(string, int64)) (core.Outcome, error) { panic("oh") })
	if _, err := r.Outcome(); err == nil || !strings.Contains(err.Error(), "oh") {
		t.Errorf("got %v, want the panic", err)
	}
}

func TestGroup(t *testing.T) {
	g := runs.NewGroup(1)
	forever := func(ctx context.Context, _ func(string, int64)) (core.Outcome, error) {
		<-ctx.Done()
		return core.Outcome{}, ctx.Err()
	}
	first, second, other := g.Begin("ada", forever), g.Begin("ada", forever), g.Begin("bob", forever)
	if !g.Leave(first) || g.Leave(second) || !g.Leave(other) {
		t.Error("want one run that is left of each principal")
	}
	g.CancelAfter(second, time.Millisecond)
	if _, err := second.Outcome(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := g.Close(t.Context()); err != nil || !first.Ended() || !other.Ended() {
		t.Errorf("Close = %v", err)
	}
}
