// Package runs has steps of executions that run in the background: each is begun, followed and ended, maybe after the
// request that has asked for it. It knows no contract, and reads no events.
package runs

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"fermata/engine/core"
)

// A Step runs an execution until it pauses or ends. It calls began when it begins, with the id of the execution and the
// number of its latest event. Only the first call counts: a start that is tried again begins again.
type Step func(ctx context.Context, began func(execution string, events int64)) (core.Outcome, error)

// A Run is a step that runs.
type Run struct {
	principal string
	cancel    context.CancelFunc
	// began is closed when execution and events are set.
	began     chan struct{}
	once      sync.Once
	execution string
	events    int64
	// ended ends when outcome and err are set.
	ended   context.Context //nolint:containedctx // it is the end of this run, not of a call
	outcome core.Outcome
	err     error
}

// Begin begins a run, which ends with its step. The end of ctx ends the step.
func Begin(ctx context.Context, step Step) *Run {
	r, run := prepare(ctx, "", step)
	go run()
	return r
}

// prepare returns a run, and the function that runs its step.
func prepare(ctx context.Context, principal string, step Step) (*Run, func()) {
	ended, end := context.WithCancel(context.WithoutCancel(ctx))
	ctx, cancel := context.WithCancel(ctx)
	r := &Run{principal: principal, cancel: cancel, began: make(chan struct{}), ended: ended}
	return r, func() {
		defer cancel()
		defer end()
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("runs: panic: %v\n%s", p, debug.Stack())
			}
		}()
		r.outcome, r.err = step(ctx, r.begin)
	}
}

func (r *Run) begin(execution string, events int64) {
	r.once.Do(func() {
		r.execution, r.events = execution, events
		close(r.began)
	})
}

// Began is closed when the execution has begun.
func (r *Run) Began() <-chan struct{} { return r.began }

// Execution returns the id of the execution, and the number of its latest event when the run began. It returns "" before
// the run has begun.
func (r *Run) Execution() (id string, events int64) {
	select {
	case <-r.began:
		return r.execution, r.events
	default:
		return "", 0
	}
}

// Done is closed when the run has its outcome.
func (r *Run) Done() <-chan struct{} { return r.ended.Done() }

// Ended reports whether the run has its outcome.
func (r *Run) Ended() bool { return r.ended.Err() != nil }

// Outcome waits for the outcome of the run.
func (r *Run) Outcome() (core.Outcome, error) {
	<-r.ended.Done()
	return r.outcome, r.err
}

// Cancel ends the step.
func (r *Run) Cancel() { r.cancel() }

// Within returns a context that ends with ctx and with the run. The caller must call stop.
func (r *Run) Within(ctx context.Context) (within context.Context, stop func()) {
	within, cancel := context.WithCancel(ctx)
	forget := context.AfterFunc(r.ended, cancel)
	return within, func() {
		forget()
		cancel()
	}
}

// A Group has the runs of all clients of a server, which may outlive their requests. It limits those for which nobody
// waits.
type Group struct {
	ctx   context.Context //nolint:containedctx // it is the end of the server, not of a call
	close context.CancelFunc
	most  int
	going sync.WaitGroup

	mu sync.Mutex
	// left counts the runs for which nobody waits, by principal.
	left map[string]int
}

// NewGroup returns a group in which at most so many runs of one principal may go on without anybody who waits. It must
// be closed.
func NewGroup(most int) *Group {
	ctx, cancel := context.WithCancel(context.Background())
	return &Group{ctx: ctx, close: cancel, most: most, left: map[string]int{}}
}

// Begin begins a run for a principal. Close ends it.
func (g *Group) Begin(principal string, step Step) *Run {
	r, run := prepare(g.ctx, principal, step)
	g.going.Go(run)
	return r
}

// Leave lets a run go on without a request that waits for it. It reports false if too many do.
func (g *Group) Leave(r *Run) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.left[r.principal] >= g.most {
		return false
	}
	g.left[r.principal]++
	g.going.Go(func() {
		<-r.Done() // The run ends when the group is closed, at the latest.
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.left[r.principal]--; g.left[r.principal] == 0 {
			delete(g.left, r.principal)
		}
	})
	return true
}

// CancelAfter ends a run whose client has left, when grace is over.
func (g *Group) CancelAfter(r *Run, grace time.Duration) {
	g.going.Go(func() {
		select {
		case <-r.Done():
		case <-time.After(grace):
		case <-g.ctx.Done():
		}
		r.Cancel()
	})
}

// Close ends all runs, and waits for that until ctx ends.
func (g *Group) Close(ctx context.Context) error {
	g.close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		g.going.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
