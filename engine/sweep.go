package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"fermata/continuation"
	"fermata/engine/core"
)

// sweepInterval is the time between two searches for sandboxes whose server has died.
const sweepInterval = time.Minute

// A sweeper clears up what dead servers have left.
type sweeper struct {
	*common
	executions *executionTable
	successor  *successor
	// sweeping waits for the sweep that is under way.
	sweeping sync.WaitGroup
	// busy is true while a sweep is under way: there is one at a time.
	busy atomic.Bool
	// begun is true once a sweep has read all sandboxes and all records.
	begun atomic.Bool
	// absent are the servers that had no lease at the last sweep. The sandboxes of another
	// server are left alone until two sweeps have found it absent: Redis may lose the lease of a
	// living server, which renews it long before the next sweep.
	absent map[string]bool
}

// aside starts a sweep in the background, unless one is under way, and passes its error to
// done.
func (w *sweeper) aside(done func(error)) {
	if !w.busy.CompareAndSwap(false, true) {
		return
	}
	w.sweeping.Go(func() {
		defer w.busy.Store(false)
		done(w.sweep(w.successor.clearing))
	})
}

// sweep destroys the sandboxes of dead servers that belong to no execution, and takes over the
// executions of the others. An error means that it could not find out which these are.
func (w *sweeper) sweep(ctx context.Context) error {
	found, err := w.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	here := w.executions.sandboxes()
	absent, orphans := map[string]bool{}, map[string]bool{}
	for _, s := range found {
		if here[s.Ref] || s.Server == w.members.Instance() || w.pool.Stuck(s.Ref) {
			continue
		}
		if _, known := absent[s.Server]; !known {
			absent[s.Server] = !w.members.Lives(ctx, s.Server)
		}
		if absent[s.Server] && (w.members.Succeeds(s.Server) || w.absent[s.Server]) {
			orphans[s.Ref] = true
		}
	}
	if len(orphans) > 0 || !w.begun.Load() {
		if err := w.inherit(ctx, orphans); err != nil {
			return err
		}
	}
	w.absent = absent
	w.begun.Store(true)
	return nil
}

// takeOvers is how many executions a sweep takes over at once, and how many sandboxes it
// destroys at once: one that does not answer must not hold up the others.
const takeOvers = 16

// inherit takes over the executions of dead servers, and destroys the orphans, the sandboxes of
// dead servers, that belong to no execution.
func (w *sweeper) inherit(ctx context.Context, orphans map[string]bool) error {
	records, err := w.o.Store.List(ctx)
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	var inherited []continuation.Record
	for _, record := range records {
		if core.State(record.State).Terminal() {
			continue
		}
		ours := orphans[record.Sandbox] || w.members.Succeeds(record.Owner)
		delete(orphans, record.Sandbox)
		if ours && record.Owner != w.members.Instance() && !w.members.Lives(ctx, record.Owner) {
			inherited = append(inherited, record)
		}
	}
	var clearing sync.WaitGroup
	clearing.Go(func() {
		sideBySide(ctx, slices.Values(inherited), func(record continuation.Record) {
			_, err := w.successor.takeOver(ctx, record)
			if err == nil || errors.Is(err, continuation.ErrConflict) || errors.Is(err, errBuried) {
				return // What was buried has left a line of its own.
			}
			w.o.Log.Warn("cannot take over an execution", "execution", record.ID, "err", err)
		})
	})
	sideBySide(ctx, maps.Keys(orphans), func(ref string) { w.pool.Destroy(ctx, ref) })
	clearing.Wait()
	return nil
}

// sideBySide calls do for each of all, for up to takeOvers of them at once, until ctx ends.
func sideBySide[T any](ctx context.Context, all iter.Seq[T], do func(T)) {
	var group errgroup.Group
	group.SetLimit(takeOvers)
	for one := range all {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { do(one); return nil })
	}
	_ = group.Wait() // There are no errors.
}
