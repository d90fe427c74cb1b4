package mcp

import (
	"context"
	"sync"
	"time"

	"fermata/api"
	"fermata/engine"
)

const (
	// maxRuns is how many programs of one principal may go on after the request that has started them.
	maxRuns = 100
	// graceOfKey is how long a program with a request_key goes on after the connection of its request was
	// lost, since its client may send the request again.
	graceOfKey = time.Minute
)

// A run is one step of an execution that is made for a caller. It may outlive the caller's request.
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

// runs keeps the runs of all callers, and limits those for which nobody waits.
type runs struct {
	ctx   context.Context //nolint:containedctx // it is the end of the server, not of a call
	going sync.WaitGroup

	mu sync.Mutex
	// held counts the runs for which nobody waits, by principal.
	held map[string]int
}

// begin runs step in a goroutine of its own. Close ends it.
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

// leave lets a run go on without a request that waits for it.
func (rs *runs) leave(r *run) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.held[r.principal] >= maxRuns {
		return &api.Error{Status: 429, Text: "Too many programs were left running: use wait_for_program, or no wait_ms"}
	}
	rs.held[r.principal]++
	rs.going.Go(func() {
		<-r.done // The run ends when the server is closed, at the latest.
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if rs.held[r.principal]--; rs.held[r.principal] == 0 {
			delete(rs.held, r.principal)
		}
	})
	return nil
}

// abandon ends a run whose caller has left, when grace is over.
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
