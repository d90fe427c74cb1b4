package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"fermata/engine/core"
)

// abortTimeout bounds how long the end of a paused execution that is cancelled may take. It takes
// one write to the store.
const abortTimeout = time.Second

// abort cancels an execution for a client. CancelDone means that it was paused, and has ended.
func abort(ctx context.Context, s switches, l *ledger) Cancelling {
	was := *l.state.Load()
	if was.Terminal() {
		return CancelCompleted
	}
	s.cancel()
	if was != core.Paused {
		return CancelRequested
	}
	ctx, stop := context.WithTimeout(ctx, abortTimeout)
	defer stop()
	select {
	case <-l.over:
	case <-l.left:
	case <-ctx.Done():
	}
	switch is := *l.state.Load(); {
	case is == core.Cancelled:
		return CancelDone
	case is.Terminal():
		return CancelCompleted
	}
	return CancelRequested
}

// switches end an execution from outside.
type switches struct {
	// cancel cancels the execution, for a client or for Close: it closes cancelled. After that no
	// claim is accepted.
	cancelled chan struct{}
	cancel    func()
	// stopping is true if the server's end is what cancels the execution.
	stopping *atomic.Bool
}

func newSwitches() switches {
	cancelled := make(chan struct{})
	return switches{cancelled: cancelled, cancel: sync.OnceFunc(func() { close(cancelled) }), stopping: new(atomic.Bool)}
}

// stop cancels the execution because the server stops.
func (s switches) stop() {
	s.stopping.Store(true)
	s.cancel()
}

// isCancelled reports whether the execution is cancelled.
func (s switches) isCancelled() bool {
	select {
	case <-s.cancelled:
		return true
	default:
		return false
	}
}
