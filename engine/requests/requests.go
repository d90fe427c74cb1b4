// Package requests remembers the ids that clients have given to requests, so that a request can be cancelled before it
// comes and while it is in flight.
package requests

import (
	"context"
	"errors"
	"sync"
	"time"
)

var (
	// ErrInUse means that another request in flight has this id, or that the id belongs to a request of another
	// principal.
	ErrInUse = errors.New("requests: id is in use")
	// ErrCancelled is the cause of a request that was cancelled.
	ErrCancelled = errors.New("requests: request was cancelled")
	// ErrForeign means that the request to cancel is another principal's.
	ErrForeign = errors.New("requests: request of another principal")
)

// A State is where a request stood when it was cancelled.
type State int

const (
	// Unknown means that it had not come. If it comes later, it is refused.
	Unknown State = iota
	// InFlight means that its context has ended.
	InFlight
	// Answered means that it had its answer.
	Answered
)

const (
	// rememberTime is how long the id of a request is remembered after its answer, or after a
	// Cancel that came before the request.
	rememberTime = 5 * time.Minute
	// rememberMost bounds how many ids are remembered. Beyond it, the oldest id of the principal
	// with the most ids is forgotten.
	rememberMost = 1 << 16
	// tidyInterval is the time between two rounds of forgetting old ids.
	tidyInterval = time.Second
)

// A Table is the memory of one server. The zero value is ready for use.
type Table struct {
	mu sync.Mutex
	// byID are the requests that have come.
	byID map[string]*request
	// early are the requests that were cancelled before they came. Two principals can cancel
	// the same id, since the request, and so its principal, is not known yet.
	early map[earlyRequest]bool
	// past are the requests that are not in flight, by principal, in the order in which they are
	// forgotten. remembered counts them all. tidied is when old ones were last forgotten.
	past       map[string][]pastRequest
	remembered int
	tidied     time.Time
}

// A request is a request that has come.
type request struct {
	principal string
	// cancel ends the request. It is nil when the request is not in flight any more.
	cancel context.CancelCauseFunc
}

type earlyRequest struct{ principal, id string }

// A pastRequest is a request that was answered, or one that was cancelled before it came.
type pastRequest struct {
	earlyRequest
	answered *request
	forget   time.Time
}

// Begin notes that a request is in flight until done is called. Cancel ends the context that
// Begin returns. ErrCancelled means that the request was cancelled before it came.
func (q *Table) Begin(ctx context.Context, principal, id string) (_ context.Context, done func(), err error) {
	if id == "" {
		return ctx, func() {}, nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tidy()
	if q.early[earlyRequest{principal, id}] {
		return nil, nil, ErrCancelled
	}
	if known := q.byID[id]; known != nil && (known.cancel != nil || known.principal != principal) {
		return nil, nil, ErrInUse
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

// Cancel cancels a request that is in flight. If the request has not come yet, Cancel notes that
// it must not run.
func (q *Table) Cancel(principal, id string) (State, error) {
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
		return Unknown, nil
	case known.principal != principal:
		return 0, ErrForeign
	case known.cancel != nil:
		known.cancel(ErrCancelled)
		return InFlight, nil
	default:
		return Answered, nil
	}
}

// remember notes a request that is not in flight any more. mu is held.
func (q *Table) remember(p pastRequest) {
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

// tidy forgets old requests. mu is held.
func (q *Table) tidy() {
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

// forget forgets the n oldest requests of a principal. mu is held.
func (q *Table) forget(principal string, n int) {
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
