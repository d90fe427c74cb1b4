package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
)

const (
	// sessionTimeout bounds a CancelSession.
	sessionTimeout = 20 * time.Second
	// sessionPage is how many executions of a session are looked up at once.
	sessionPage = 100
)

// cancelSession implements Engine.CancelSession. It asks the servers before the store, because the store does
// not list executions that have just begun.
func (c *canceller) cancelSession(ctx context.Context, which CancelSession) (cancelled int, state Cancelling, err error) {
	ctx, stop := context.WithTimeout(ctx, sessionTimeout)
	defer stop()
	state = CancelUnknown
	done := c.cancelSessionHere(ctx, which)
	var silent error
	if !c.members.Alone() && c.o.Peers != nil {
		var others []map[string]Cancelling
		others, silent = askOthers(ctx, c.members, func(ctx context.Context, address string) (map[string]Cancelling, error) {
			return c.o.Peers.CancelSession(ctx, address, which)
		})
		for _, outcomes := range others {
			maps.Copy(done, outcomes)
		}
	}
	count := func(s Cancelling) {
		if s == CancelDone || s == CancelRequested {
			cancelled++
		}
		state = state.or(s)
	}
	for _, s := range done {
		count(s)
	}
	// If an execution cannot be cancelled now, the other ones are cancelled nevertheless.
	var failed []error
	cancel := func(id string) {
		if _, known := done[id]; known {
			return
		}
		s, err := c.cancelExecution(ctx, Cancel{Principal: which.Principal, Execution: id})
		if err != nil {
			failed = append(failed, err)
		}
		done[id] = s
		count(s)
	}
	viewer := journal.Viewer{Principal: which.Principal, Operator: which.Principal == ""}
	history := journal.NewHistory(c.o.Store, c.successor.endForgotten)
	for next := new(continuation.Place); next != nil; {
		var page []journal.Summary
		page, next, err = history.List(ctx, viewer, journal.Filter{Session: which.Session}, *next, sessionPage)
		if err != nil {
			return cancelled, state, err
		}
		for _, s := range page {
			if journal.Terminal(s.Status) {
				state = state.or(CancelCompleted)
			} else {
				cancel(s.ID)
			}
		}
	}
	if state == CancelUnknown && silent != nil {
		// A server that does not answer may have executions of the session.
		failed = append(failed, fmt.Errorf("%w: %w", continuation.ErrUnavailable, silent))
	}
	return cancelled, state, errors.Join(failed...)
}

// cancelSessionHere implements Engine.CancelSessionHere.
func (c *canceller) cancelSessionHere(ctx context.Context, which CancelSession) map[string]Cancelling {
	outcomes := map[string]Cancelling{}
	for _, x := range c.executions.ofSession(which) {
		outcomes[x.id] = abort(ctx, x.switches, x.conversation.ledger)
	}
	return outcomes
}
