package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"fermata/continuation"
)

// cancelTimeout bounds how long the other servers may take to handle a Cancel. Clients wait for
// two seconds.
const cancelTimeout = 1500 * time.Millisecond

// A canceller cancels requests, and executions.
type canceller struct {
	*common
	requests   *requests
	executions *executionTable
	successor  *successor
}

// cancel is Engine.Cancel.
func (c *canceller) cancel(ctx context.Context, which Cancel) (Cancelling, error) {
	if which.Execution != "" {
		return c.cancelExecution(ctx, which)
	}
	state, err := c.requests.cancel(which.Principal, which.RequestID)
	if err != nil {
		return "", err
	}
	if state == CancelCompleted && c.drop(which) {
		state = CancelRequested
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
		case r.state == CancelRequested, state == CancelUnknown:
			state = r.state
		}
	}
	if state == CancelUnknown && silent != nil {
		return "", fmt.Errorf("%w: %w", continuation.ErrUnavailable, silent)
	}
	return state, nil
}

// cancelExecution ends an execution, on whichever server it is. CancelUnknown means that no server
// has it any more.
func (c *canceller) cancelExecution(ctx context.Context, which Cancel) (Cancelling, error) {
	x := c.executions.find(which.Execution)
	if x == nil {
		record, err := c.o.Store.Get(ctx, which.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return CancelUnknown, nil
		case err != nil:
			return "", err
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
	if x.conversation.state.Load().terminal() {
		return CancelCompleted, nil
	}
	x.conversation.cancel()
	return CancelRequested, nil
}

// drop ends the principal's execution whose latest request is the cancelled one. It reports
// whether that execution was running, as it is if the client went away before it cancelled.
func (c *canceller) drop(which Cancel) bool {
	x := c.executions.findByRequest(which)
	if x == nil {
		return false
	}
	x.conversation.cancel()
	return *x.conversation.state.Load() == Running
}
