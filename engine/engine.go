// Package engine keeps executions: it starts programs in sandboxes, pauses them at
// their tool calls, resumes them with the results, and ends them at their limits.
//
// Everything that a sandbox sends is untrusted input. Whatever a program does to itself
// ends in an Outcome; an error means trouble of the server or a mistake of the client.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"fermata/continuation"
)

// An Engine keeps executions. It is safe for concurrent use.
type Engine struct {
	*common
	// attending ends the goroutine that renews the lease. attended waits for that goroutine
	// and for those that clear up after dead servers.
	attending context.CancelFunc
	attended  sync.WaitGroup
	// clearing ends, by stop, before the executions do: take-overs stop when Close begins.
	clearing context.Context //nolint:containedctx // the goroutines outlive every request
	stop     context.CancelFunc

	requests requests
	sweeper  sweeper

	executions *executionTable
}

// New returns an engine that takes over what an earlier server left: it goes on with the
// executions that have a record, and destroys all other sandboxes. It waits a few seconds
// for that, and leaves the rest to the background. If the shared store is away, all of it
// happens when the store is back. New returns when the first sandbox is ready, and fails if
// this machine cannot make one.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		common:     newCommon(o),
		executions: newExecutionTable(),
	}
	attending, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.attending = stop
	e.clearing, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	err := e.join(ctx)
	if err == nil {
		e.attended.Go(func() { e.attend(attending) })
		if err = e.pool.First(ctx); err != nil {
			err = fmt.Errorf("make the first sandbox: %w", err)
		}
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer cancel()
		return nil, errors.Join(err, e.Close(closing))
	}
	return e, nil
}

const (
	// clearPatience is how long New waits until what an earlier server left is cleared up.
	clearPatience = 4 * time.Second
	// abandonTimeout bounds the Close of an engine that could not start.
	abandonTimeout = 10 * time.Second
)

// join makes the engine a member of its group and begins to clear up what earlier servers
// left.
func (e *Engine) join(ctx context.Context) error {
	if e.o.Registry != nil {
		if err := e.members.renew(ctx); err != nil {
			return e.storeAway(err)
		}
	}
	swept := make(chan error, 1)
	e.sweepAside(func(err error) { swept <- err })
	patience := time.NewTimer(clearPatience)
	defer patience.Stop()
	select {
	case err := <-swept:
		return e.storeAway(err)
	case <-patience.C:
		e.o.Log.Warn("what an earlier server left is not cleared up yet; that goes on in the background")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// storeAway tolerates, and logs, that the store is away: the engine waits for it to come
// back. It returns any other error.
func (e *Engine) storeAway(err error) error {
	if errors.Is(err, continuation.ErrUnavailable) {
		e.o.Log.Error("the store is not available; executions are refused until it is", "err", err)
		return nil
	}
	return err
}

// Ready reports whether the engine can take requests now.
func (e *Engine) Ready(ctx context.Context) error {
	if e.executions.isClosed() {
		return ErrClosing
	}
	if err := e.o.Store.Ping(ctx); err != nil {
		return err
	}
	if !e.members.announced() {
		// The store answers, but it does not accept writes, or has not yet accepted one.
		return fmt.Errorf("lease of this server: %w", continuation.ErrUnavailable)
	}
	return nil
}

// Close ends every execution, or with KeepPaused leaves the paused ones to a later server,
// and destroys the sandboxes that are not needed any more. It returns early, with the cause
// of ctx, if ctx ends first.
func (e *Engine) Close(ctx context.Context) error {
	executions := e.executions.close()
	e.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Concurrently, since part waits for a write of the execution that is under way.
		for _, x := range executions {
			go func() {
				if !e.o.KeepPaused || !x.conversation.part() {
					x.conversation.cancel()
				}
			}()
		}
		e.executions.wait()
		e.pool.Close()
		e.attending()
		e.attended.Wait()
		e.withdraw()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close engine: %w", context.Cause(ctx))
	}
}
