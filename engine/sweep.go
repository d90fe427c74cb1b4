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

// sweepInterval is how often a server looks for sandboxes whose server has died.
const sweepInterval = time.Minute

// A sweeper is what one sweep knows of those before it.
type sweeper struct {
	// busy says that one goes on: there is one at a time.
	busy atomic.Bool
	// begun says that one has found out what there is.
	begun atomic.Bool
	// absent are the servers that did not live then. Redis may lose the word of a
	// living one, which then says it again long before the next sweep.
	absent map[string]bool
}

// sweep destroys sandboxes that have neither an execution nor a living server, and
// takes over those that have an execution but no server. An error means that it could
// not find out which these are.
func (e *Engine) sweep(ctx context.Context) error {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	here := e.sandboxesHere()
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

// sandboxesHere are those of the executions that live here.
func (e *Engine) sandboxesHere() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	here := make(map[string]bool, len(e.executions))
	for _, x := range e.executions {
		here[x.sandbox.Ref] = true
	}
	return here
}

// takeOvers is how many executions are taken over at once, and how many sandboxes are
// destroyed meanwhile: one that does not answer must not keep the others waiting.
const takeOvers = 16

// inherit takes over the executions of dead servers and destroys those of their
// sandboxes that have none.
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

// sideBySide does something with each of many, with takeOvers of them at once. When ctx
// has ended it begins with no more of them.
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
