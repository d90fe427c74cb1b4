package mcp

import (
	"context"
	"sync"
	"time"

	"fermata/api"
	"fermata/engine"
)

const (
	// keepRun is how long the outcome of a program is kept for wait_for_program.
	keepRun = 5 * time.Minute
	// maxRuns is how many programs of one principal may run, or have their outcome kept, without a
	// request that waits for them.
	maxRuns = 100
	// graceOfKey is how long a program with a request_key goes on when the connection of its request
	// is lost: its client may ask again.
	graceOfKey = time.Minute
)

// A run is a stretch of an execution that runs for a caller, who may leave meanwhile.
type run struct {
	principal string
	// began is closed when execution is set.
	began     chan struct{}
	once      sync.Once
	execution string
	events    int64
	// done is closed when outcome and err are set.
	done    chan struct{}
	outcome engine.Outcome
	err     error
	cancel  context.CancelFunc
}

// start notes the execution of a run.
func (r *run) start(execution string, events int64) {
	r.once.Do(func() {
		r.execution, r.events = execution, events
		close(r.began)
	})
}

// id returns the execution of a run, or "" if it has not begun.
func (r *run) id() string {
	select {
	case <-r.began:
		return r.execution
	default:
		return ""
	}
}

// runs are what runs for callers. It bounds what is left alone.
type runs struct {
	ctx   context.Context //nolint:containedctx // it is the end of the server, not of a call
	going sync.WaitGroup

	mu sync.Mutex
	// byExecution are the runs that were left alone, and held counts them by principal.
	byExecution map[string]*run
	held        map[string]int
}

// begin runs step in a goroutine of its own, until Close.
func (rs *runs) begin(principal string, step func(ctx context.Context, began func(string, int64)) (engine.Outcome, error)) *run {
	ctx, cancel := context.WithCancel(rs.ctx)
	r := &run{principal: principal, began: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	rs.going.Go(func() {
		defer cancel()
		defer close(r.done)
		r.outcome, r.err = step(ctx, r.start)
	})
	return r
}

// leave keeps a run for wait_for_program until some time after its end.
func (rs *runs) leave(r *run) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byExecution[r.execution] == r {
		return nil
	}
	if rs.held[r.principal] >= maxRuns {
		return &api.Error{Status: 429, Text: "Too many programs were left running or have results that nobody has fetched: use wait_for_program, or no wait_ms"}
	}
	if rs.byExecution[r.execution] == nil {
		rs.held[r.principal]++
	}
	rs.byExecution[r.execution] = r
	rs.going.Go(func() {
		select {
		case <-r.done:
		case <-rs.ctx.Done():
		}
		select {
		case <-time.After(keepRun):
		case <-rs.ctx.Done():
		}
		rs.forget(r)
	})
	return nil
}

// forget drops a run.
func (rs *runs) forget(r *run) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.byExecution[r.execution] != r {
		return
	}
	delete(rs.byExecution, r.execution)
	if rs.held[r.principal]--; rs.held[r.principal] == 0 {
		delete(rs.held, r.principal)
	}
}

// find returns the run of a principal's execution, or nil.
func (rs *runs) find(principal, execution string) *run {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if r := rs.byExecution[execution]; r != nil && r.principal == principal {
		return r
	}
	return nil
}

// abandon ends a run whose caller has left, after a while.
func (rs *runs) abandon(r *run, grace time.Duration) {
	if grace == 0 {
		r.cancel()
		return
	}
	rs.going.Go(func() {
		select {
		case <-r.done:
		case <-time.After(grace):
		case <-rs.ctx.Done():
		}
		r.cancel()
	})
}
