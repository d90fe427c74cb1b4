package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/journal"
)

// cancelTimeout bounds how long the other servers may take to handle a Cancel. Clients wait for
// two seconds.
const cancelTimeout = 1500 * time.Millisecond

// A canceller cancels requests, and executions.
type canceller struct {
	*common
	requests   *requests
	executions *executionTable
	standalone *standaloneCalls
	successor  *successor
}

// cancel is Engine.Cancel.
func (c *canceller) cancel(ctx context.Context, which Cancel) (Cancelling, error) {
	switch {
	case which.Token != "":
		return c.cancelToken(ctx, which)
	case which.Execution != "":
		return c.cancelExecution(ctx, which)
	}
	state, err := c.requests.cancel(which.Principal, which.RequestID)
	if err != nil {
		return "", err
	}
	if state == CancelCompleted {
		// The request had its answer, and has perhaps left its execution paused. Or its client has
		// gone away, and what it has continued still runs.
		if x := c.executions.findByRequest(which); x != nil {
			state = state.or(x.conversation.abort(ctx))
		}
	}
	if which.HandedOver || c.members.alone() || c.o.Peers == nil {
		return state, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	servers, err := c.members.registry.Servers(ctx)
	if err != nil {
		if state != CancelUnknown {
			return state, nil
		}
		return "", err
	}
	maps.DeleteFunc(servers, func(instance, _ string) bool {
		return instance == c.members.instance || c.members.succeeds(instance)
	})
	return c.cancelElsewhere(ctx, servers, which, state)
}

// cancelElsewhere passes a Cancel on to the other servers. One of them may have the request, and
// another one the execution to which the request was handed over.
func (c *canceller) cancelElsewhere(ctx context.Context, servers map[string]string, which Cancel, state Cancelling) (Cancelling, error) {
	type reply struct {
		state Cancelling
		err   error
	}
	replies := make(chan reply, len(servers))
	for _, address := range servers {
		go func() {
			state, err := c.o.Peers.Cancel(ctx, address, which)
			replies <- reply{state, err}
		}()
	}
	var silent error
	for range servers {
		switch r := <-replies; {
		case errors.Is(r.err, ErrForbidden):
			return "", ErrForbidden
		case r.err != nil:
			silent = r.err
		default:
			state = state.or(r.state)
		}
	}
	if state == CancelUnknown && silent != nil {
		return "", fmt.Errorf("%w: %w", continuation.ErrUnavailable, silent)
	}
	return state, nil
}

// cancelToken ends the execution that a token is for.
func (c *canceller) cancelToken(ctx context.Context, which Cancel) (Cancelling, error) {
	claims, err := c.o.Signer.Verify(which.Token, time.Now())
	switch {
	case err != nil && !errors.Is(err, continuation.ErrTokenExpired):
		return "", err
	case !which.may(claims.Principal):
		return CancelUnknown, nil
	}
	which.Token, which.Execution = "", claims.Execution
	state, err := c.cancelExecution(ctx, which)
	if err == nil && state == CancelUnknown {
		state = CancelCompleted // There was such an execution, or it would have no token.
	}
	return state, err
}

// cancelExecution ends an execution, on whichever server it is.
func (c *canceller) cancelExecution(ctx context.Context, which Cancel) (Cancelling, error) {
	if id, err := uuid.Parse(which.Execution); err != nil || id.String() != which.Execution {
		return CancelUnknown, nil
	}
	if call := c.standalone.find(which.Execution); call != nil {
		if !which.may(call.copy().Principal) {
			return CancelUnknown, nil
		}
		return call.abort(ctx), nil
	}
	x := c.executions.find(which.Execution)
	if x == nil {
		record, err := c.o.Store.Get(ctx, which.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return c.forgotten(ctx, which)
		case err != nil:
			return "", err
		case !which.may(record.Principal):
			return CancelUnknown, nil
		case State(record.State).terminal():
			return CancelCompleted, nil
		}
		if record.Owner != c.members.instance && !which.HandedOver && c.o.Peers != nil {
			address, err := c.members.locate(ctx, record.Owner)
			if err == nil {
				ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
				defer cancel()
				return c.o.Peers.Cancel(ctx, address, which)
			}
			if !errors.Is(err, continuation.ErrNotFound) {
				return "", err
			}
		}
		x, err = c.successor.takeOver(ctx, record)
		switch {
		case errors.Is(err, errBuried):
			return CancelRequested, nil
		case err != nil:
			return "", ownerAway(err)
		}
	}
	if !which.may(x.principal) {
		return CancelUnknown, nil
	}
	return x.conversation.abort(ctx), nil
}

// forgotten returns what is told of an execution that has no record: it has ended, as far as
// anybody knows of it.
func (c *canceller) forgotten(ctx context.Context, which Cancel) (Cancelling, error) {
	summary, err := c.o.Store.Summary(ctx, which.Execution)
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return CancelUnknown, nil
	case err != nil:
		return "", err
	case !which.may(summary.Principal):
		return CancelUnknown, nil
	}
	return CancelCompleted, nil
}

// A CancelSession is a request to cancel the executions of a session.
type CancelSession struct {
	// Principal sends the request. If it is empty, the executions may be anybody's.
	Principal string
	// Session is the id of the session.
	Session string
}

const (
	// sessionTimeout bounds a CancelSession.
	sessionTimeout = 20 * time.Second
	// sessionPage is how many executions of a session are looked up at once.
	sessionPage = 100
)

// cancelSession is Engine.CancelSession.
func (c *canceller) cancelSession(ctx context.Context, which CancelSession) (cancelled int, state Cancelling, err error) {
	ctx, stop := context.WithTimeout(ctx, sessionTimeout)
	defer stop()
	state = CancelUnknown
	// One that cannot be cancelled now must not keep the others alive.
	var failed []error
	done := map[string]bool{}
	cancel := func(id string) {
		if done[id] {
			return
		}
		done[id] = true
		s, err := c.cancelExecution(ctx, Cancel{Principal: which.Principal, Execution: id})
		if err != nil {
			failed = append(failed, err)
		}
		if s == CancelDone || s == CancelRequested {
			cancelled++
		}
		state = state.or(s)
	}
	// The store does not yet list those that have just begun.
	for _, id := range c.executions.ofSession(which) {
		cancel(id)
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
	return cancelled, state, errors.Join(failed...)
}
