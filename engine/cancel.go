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

// Cancel ends the execution that a request has started or continued, on whichever server it is.
// If the request has not come yet, it is refused when it comes. The error is ErrForbidden if the
// request is another principal's. It wraps continuation.ErrUnavailable if the request may be on
// a server that does not answer.
func (e *Engine) Cancel(ctx context.Context, c Cancel) (Cancelling, error) {
	if c.Execution != "" {
		return e.cancelExecution(ctx, c)
	}
	state, err := e.requests.cancel(c.Principal, c.RequestID)
	if err != nil {
		return "", err
	}
	if state == CancelCompleted && e.drop(c) {
		state = CancelRequested
	}
	if c.HandedOver || e.members.alone() || e.o.Peers == nil {
		return state, nil
	}
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	servers, err := e.members.registry.Servers(ctx)
	if err != nil {
		if state != CancelUnknown {
			return state, nil
		}
		return "", err
	}
	maps.DeleteFunc(servers, func(instance, _ string) bool {
		return instance == e.members.instance || e.members.succeeds(instance)
	})
	return e.cancelElsewhere(ctx, servers, c, state)
}

// cancelElsewhere passes a Cancel on to the other servers. One of them may have the request, and
// another one the execution to which the request was handed over.
func (e *Engine) cancelElsewhere(ctx context.Context, servers map[string]string, c Cancel, state Cancelling) (Cancelling, error) {
	type reply struct {
		state Cancelling
		err   error
	}
	replies := make(chan reply, len(servers))
	for _, address := range servers {
		go func() {
			state, err := e.o.Peers.Cancel(ctx, address, c)
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
func (e *Engine) cancelExecution(ctx context.Context, c Cancel) (Cancelling, error) {
	x := e.executions.find(c.Execution)
	if x == nil {
		record, err := e.o.Store.Get(ctx, c.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return CancelUnknown, nil
		case err != nil:
			return "", err
		case State(record.State).terminal():
			return CancelCompleted, nil
		}
		if record.Owner != e.members.instance && !c.HandedOver && e.o.Peers != nil {
			address, err := e.members.locate(ctx, record.Owner)
			if err == nil {
				ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
				defer cancel()
				return e.o.Peers.Cancel(ctx, address, c)
			}
			if !errors.Is(err, continuation.ErrNotFound) {
				return "", err
			}
		}
		x, err = e.takeOver(ctx, record)
		switch {
		case errors.Is(err, errBuried):
			return CancelRequested, nil
		case err != nil:
			return "", ownerAway(err)
		}
	}
	if (*x.conversation.state.Load()).terminal() {
		return CancelCompleted, nil
	}
	x.conversation.cancel()
	return CancelRequested, nil
}

// drop ends the principal's execution whose latest request is the cancelled one. It reports
// whether that execution was running, as it is if the client went away before it cancelled.
func (e *Engine) drop(c Cancel) bool {
	x := e.executions.findByRequest(c)
	if x == nil {
		return false
	}
	x.conversation.cancel()
	return *x.conversation.state.Load() == Running
}
