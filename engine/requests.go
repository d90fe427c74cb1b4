package engine

import (
	"context"
	"errors"
	"sync"
	"time"
)

// ErrRequestInUse means that another request has this id, or it is another
// principal's.
var ErrRequestInUse = errors.New("engine: request id is in use")

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
