package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"fermata/continuation"
)

// A Cancel is a request to cancel another request and the execution that it has started or
// continued.
type Cancel struct {
	// Principal sends the request.
	Principal string
	// RequestID is the id that the client gave to the other request.
	RequestID string
	// HandedOver is true if another server has passed the request on to this one.
	HandedOver bool
}

// A Cancelling is the outcome of a Cancel.
type Cancelling string

// The outcomes of a Cancel. Servers send each other these texts, so they must not change.
const (
	// CancelUnknown: no request with this id has come yet. If one comes later, it is refused.
	CancelUnknown Cancelling = "unknown"
	// CancelRequested: the request is being cancelled.
	CancelRequested Cancelling = "requested"
	// CancelCompleted: the request already had its answer.
	CancelCompleted Cancelling = "completed"
)

// cancelTimeout bounds how long the other servers may take to handle a Cancel. Clients wait for
// two seconds.
const cancelTimeout = 1500 * time.Millisecond

// Cancel ends the execution that a request has started or continued, on whichever server it is.
// If the request has not come yet, it is refused when it comes. The error is ErrForbidden if the
// request is another principal's. It wraps continuation.ErrUnavailable if the request may be on
// a server that does not answer.
func (e *Engine) Cancel(ctx context.Context, c Cancel) (Cancelling, error) {
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
