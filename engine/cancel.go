package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"fermata/continuation"
)

// A Cancel is a request to cancel what another one has begun.
type Cancel struct {
	// Principal is who asks.
	Principal string
	// RequestID is the id that the client gave to the other request.
	RequestID string
	// HandedOver says that another server has handed the request over to this one.
	HandedOver bool
}

// A Cancelling is what became of a Cancel.
type Cancelling string

// The outcomes of a Cancel, which servers tell each other. They may not change.
const (
	// CancelUnknown: no such request. One that comes later is refused.
	CancelUnknown Cancelling = "unknown"
	// CancelRequested: it is on its way.
	CancelRequested Cancelling = "requested"
	// CancelCompleted: the request was answered before.
	CancelCompleted Cancelling = "completed"
)

// cancelTimeout bounds how long the other servers may take over a Cancel: clients
// wait for two seconds.
const cancelTimeout = 1500 * time.Millisecond

// Cancel ends the execution that a request has begun or gone on with, whichever
// server has it, or refuses the request if it comes later. The error is
// ErrForbidden if the request is another principal's, and wraps
// continuation.ErrUnavailable if it may be on a server that does not answer.
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

// cancelElsewhere asks the other servers: one may have the request, and another one
// the execution that it was handed over for.
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

// drop cancels the execution whose last request was the cancelled one, if it belongs to
// who asks. It reports whether it was running: the client had left before it cancelled.
func (e *Engine) drop(c Cancel) bool {
	x := e.findByRequest(c)
	if x == nil {
		return false
	}
	x.conversation.cancel()
	return State(x.conversation.copy().State) == Running
}

// findByRequest asks whose the executions are: a request is forgotten long before an
// execution, and then anybody may use its id.
func (e *Engine) findByRequest(c Cancel) *execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.executions {
		if last := x.requestID.Load(); last != nil && *last == c.RequestID && x.principal == c.Principal {
			return x
		}
	}
	return nil
}
