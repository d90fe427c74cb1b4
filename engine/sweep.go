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

	"fermata/continuation"
)

// sweepInterval is the time between two searches for sandboxes whose server has died.
const sweepInterval = time.Minute

// A sweeper is what sweeps know of earlier sweeps.
type sweeper struct {
	// busy is true while a sweep is under way: there is one at a time.
	busy atomic.Bool
	// begun is true once a sweep has read all sandboxes and all records.
	begun atomic.Bool
	// absent are the servers that had no lease at the last sweep. The sandboxes of another
	// server are left alone until two sweeps have found it absent: Redis may lose the lease of a
	// living server, which renews it long before the next sweep.
	absent map[string]bool
}

// sweep destroys the sandboxes of dead servers that belong to no execution, and takes over the
// executions of the others. An error means that it could not find out which these are.
func (e *Engine) sweep(ctx context.Context) error {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	here := e.executions.sandboxes()
	absent, orphans := map[string]bool{}, map[string]bool{}
	for _, s := range found {
		if here[s.Ref] || s.Server == e.members.instance || e.pool.Stuck(s.Ref) {
			continue
		}
		if _, known := absent[s.Server]; !known {
			absent[s.Server] = !e.members.lives(ctx, s.Server)
		}
		if absent[s.Server] && (e.members.succeeds(s.Server) || e.sweeper.absent[s.Server]) {
			orphans[s.Ref] = true
		}
	}
	if len(orphans) > 0 || !e.sweeper.begun.Load() {
		if err := e.inherit(ctx, orphans); err != nil {
			return err
		}
	}
	e.sweeper.absent = absent
	e.sweeper.begun.Store(true)
	return nil
}

// takeOvers is how many executions a sweep takes over at once, and how many sandboxes it
// destroys at once: one that does not answer must not hold up the others.
const takeOvers = 16

// inherit takes over the executions of dead servers, and destroys the orphans, the sandboxes of
// dead servers, that belong to no execution.
func (e *Engine) inherit(ctx context.Context, orphans map[string]bool) error {
	records, err := e.o.Store.List(ctx)
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	var inherited []continuation.Record
	for _, record := range records {
		if State(record.State).terminal() {
			continue
		}
		ours := orphans[record.Sandbox] || e.members.succeeds(record.Owner)
		delete(orphans, record.Sandbox)
		if ours && record.Owner != e.members.instance && !e.members.lives(ctx, record.Owner) {
			inherited = append(inherited, record)
		}
	}
	var clearing sync.WaitGroup
	clearing.Go(func() {
		sideBySide(ctx, slices.Values(inherited), func(record continuation.Record) {
			if _, err := e.takeOver(ctx, record); err != nil && !errors.Is(err, continuation.ErrConflict) {
				e.o.Log.Warn("cannot take over an execution", "execution", record.ID, "err", err)
			}
		})
	})
	sideBySide(ctx, maps.Keys(orphans), func(ref string) { e.pool.Destroy(ctx, ref) })
	clearing.Wait()
	return nil
}

// sideBySide calls do for each of all, for up to takeOvers of them at once, until ctx ends.
func sideBySide[T any](ctx context.Context, all iter.Seq[T], do func(T)) {
	var doing sync.WaitGroup
	defer doing.Wait()
	slots := make(chan struct{}, takeOvers)
	for one := range all {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		doing.Go(func() {
			defer func() { <-slots }()
			do(one)
		})
	}
}
