package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"fermata/continuation"
)

// ErrRequestInUse means that another request has this id, or it is another
// principal's.
var ErrRequestInUse = errors.New("engine: request id is in use")

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

// errCancelled is the cause of a request that was cancelled.
var errCancelled = errors.New("engine: request was cancelled")

const (
	// rememberTime is how long the id of a request is known after its answer, or
	// after it was cancelled before it came.
	rememberTime = 5 * time.Minute
	// rememberMost bounds how many are. Beyond it the principal who has most of them loses
	// the oldest of its own.
	rememberMost = 1 << 16
	// tidyInterval is how often those whose time is over are forgotten.
	tidyInterval = time.Second
)

// requests knows the ids that clients have given to requests.
type requests struct {
	mu   sync.Mutex
	byID map[string]*request
	// early are requests that were cancelled before they came: by principal, too,
	// since whose they are is not known yet.
	early map[earlyRequest]bool
	// past is what is not in flight, by principal, in the order in which it is forgotten;
	// remembered is how many there are, tidied when the last ones were forgotten.
	past       map[string][]pastRequest
	remembered int
	tidied     time.Time
}

// A request is one that has come.
type request struct {
	principal string
	// cancel ends it while it is in flight; then it is nil.
	cancel context.CancelCauseFunc
}

type earlyRequest struct{ principal, id string }

// A pastRequest is an answered request, or an early one.
type pastRequest struct {
	earlyRequest
	answered *request
	forget   time.Time
}

// begin notes that a request is in flight, until done is called. It is cancelled
// with the context that begin returns; errCancelled means that it was before it came.
func (q *requests) begin(ctx context.Context, principal, id string) (_ context.Context, done func(), err error) {
	if id == "" {
		return ctx, func() {}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tidy()
	if q.early[earlyRequest{principal, id}] {
		return nil, nil, errCancelled
	}
	if known := q.byID[id]; known != nil && (known.cancel != nil || known.principal != principal) {
		return nil, nil, ErrRequestInUse
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &request{principal: principal, cancel: cancel}
	if q.byID == nil {
		q.byID = map[string]*request{}
	}
	q.byID[id] = r
	return ctx, func() {
		cancel(nil)
		q.mu.Lock()
		defer q.mu.Unlock()
		r.cancel = nil
		q.remember(pastRequest{earlyRequest{principal, id}, r, time.Now().Add(rememberTime)})
	}, nil
}

// cancel cancels a request that is in flight, or notes that it is not to run when it
// comes.
func (q *requests) cancel(principal, id string) (Cancelling, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tidy()
	switch known := q.byID[id]; {
	case known == nil:
		if early := (earlyRequest{principal, id}); !q.early[early] {
			if q.early == nil {
				q.early = map[earlyRequest]bool{}
			}
			q.early[early] = true
			q.remember(pastRequest{early, nil, time.Now().Add(rememberTime)})
		}
		return CancelUnknown, nil
	case known.principal != principal:
		return "", ErrForbidden
	case known.cancel != nil:
		known.cancel(errCancelled)
		return CancelRequested, nil
	default:
		return CancelCompleted, nil
	}
}

// remember notes what is not in flight any more. mu is held.
func (q *requests) remember(p pastRequest) {
	if q.past == nil {
		q.past = map[string][]pastRequest{}
	}
	q.past[p.principal] = append(q.past[p.principal], p)
	if q.remembered++; q.remembered <= rememberMost {
		return
	}
	most := p.principal
	for principal, own := range q.past {
		if len(own) > len(q.past[most]) {
			most = principal
		}
	}
	q.forget(most, 1)
}

// tidy forgets what is old. mu is held.
func (q *requests) tidy() {
	now := time.Now()
	if now.Sub(q.tidied) < tidyInterval {
		return
	}
	q.tidied = now
	for principal, own := range q.past {
		old := 0
		for old < len(own) && now.After(own[old].forget) {
			old++
		}
		q.forget(principal, old)
	}
}

// forget forgets the n oldest of a principal. mu is held.
func (q *requests) forget(principal string, n int) {
	own := q.past[principal]
	for _, p := range own[:n] {
		switch {
		case p.answered == nil:
			delete(q.early, p.earlyRequest)
		case q.byID[p.id] == p.answered:
			delete(q.byID, p.id)
		}
	}
	clear(own[:n])
	q.remembered -= n
	if q.past[principal] = own[n:]; len(own) == n {
		delete(q.past, principal)
	}
}

// answerCancelled gives a request that was cancelled early its answer.
func answerCancelled(session string, outcome Outcome, err error) (Outcome, error) {
	if errors.Is(err, errCancelled) {
		return Outcome{State: Cancelled, Session: session}, nil
	}
	return outcome, err
}

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
	x.cancel()
	x.mu.Lock()
	defer x.mu.Unlock()
	return State(x.record.State) == Running
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
