// Package quota counts, and bounds, what each principal has on this server: executions, the bytes that are stored for
// them, calls without a program, and calls that wait for approval.
package quota

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrTooMany means that the principal already has as many executions as it may have.
var ErrTooMany = errors.New("quota: too many executions of the principal")

// A TooManyError refuses an execution of a principal that already has Max executions, as many as it may have. It is an
// ErrTooMany.
type TooManyError struct{ Max int }

func (e *TooManyError) Error() string {
	return fmt.Sprintf("quota: at most %d executions of the principal are allowed", e.Max)
}

// Unwrap returns ErrTooMany.
func (e *TooManyError) Unwrap() error { return ErrTooMany }

// A TooManyCallsError refuses a call without a program of a principal that has Max of them under way, as many as it may
// have.
type TooManyCallsError struct{ Max int }

func (e *TooManyCallsError) Error() string {
	return fmt.Sprintf("quota: at most %d calls without a program of the principal are allowed at once", e.Max)
}

// A StoredError means that more than Max bytes would be stored for a principal.
type StoredError struct{ Max int64 }

func (e *StoredError) Error() string {
	return fmt.Sprintf("quota: more than %d bytes would be stored for the principal", e.Max)
}

// Limits are what one principal may have at the same time.
type Limits struct {
	// Running and Paused are executions in that state, Executions those in any; 0 is no limit.
	Running, Paused, Executions int
	// Stored is how many bytes may be stored; 0 is no limit.
	Stored int64
	// Calls are calls without a program, and Asked calls that wait for approval.
	Calls, Asked int
}

// A Quota has the counts of all principals.
type Quota struct {
	most Limits

	mu   sync.Mutex
	held map[string]*holding
	// kept are the answers of ended executions, in the order in which they expire.
	kept []keptAnswer
}

// A holding is what one principal has. An execution that waits for a sandbox counts as running.
type holding struct {
	running, paused int
	stored          int64
	calls           int // without a program
	asked           int // calls that wait for approval
}

// A keptAnswer is an answer in the store. It counts until the store drops it.
type keptAnswer struct {
	principal string
	size      int64
	until     time.Time
}

// New returns a quota in which nobody has anything.
func New(most Limits) *Quota { return &Quota{most: most, held: map[string]*holding{}} }

// Principals returns how many principals have anything.
func (q *Quota) Principals() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.held)
}

// Admit counts a new execution of a principal as running, or returns an ErrTooMany.
func (q *Quota) Admit(principal string) (*Share, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	defer q.tidy(principal)
	switch {
	case q.most.Running > 0 && h.running >= q.most.Running, q.most.Paused > 0 && h.paused >= q.most.Paused:
		return nil, ErrTooMany
	case q.most.Executions > 0 && h.running+h.paused >= q.most.Executions:
		return nil, &TooManyError{q.most.Executions}
	}
	h.running++
	return &Share{q: q, principal: principal, as: running}, nil
}

// Call counts a call without a program until leave is called, or returns a TooManyCallsError.
func (q *Quota) Call(principal string) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	if h.calls >= q.most.Calls {
		return nil, &TooManyCallsError{q.most.Calls}
	}
	h.calls++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		h.calls--
		q.tidy(principal)
	}, nil
}

// Adopt counts an execution that was taken over, and the bytes that are stored for it, whatever
// the limits are.
func (q *Quota) Adopt(principal string, stored int64) *Share {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	h.running++
	h.stored += stored
	return &Share{q: q, principal: principal, as: running, stored: stored}
}

// Keep counts the answer of an ended execution for as long as the store keeps it. It reports
// false, and does not count the answer, if too much would be stored for the principal.
func (q *Quota) Keep(principal string, size int64, life time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.tidy(principal)
	q.expire(time.Now())
	h := q.of(principal)
	if q.most.Stored > 0 && h.stored+size > q.most.Stored {
		return false
	}
	h.stored += size
	q.kept = append(q.kept, keptAnswer{principal, size, time.Now().Add(life)})
	return true
}

// expire stops counting the answers that the store has dropped. mu is held.
func (q *Quota) expire(now time.Time) {
	for len(q.kept) > 0 && now.After(q.kept[0].until) {
		k := q.kept[0]
		q.kept[0], q.kept = keptAnswer{}, q.kept[1:]
		q.held[k.principal].stored -= k.size
		q.tidy(k.principal)
	}
}

// of returns the holding of a principal. mu is held.
func (q *Quota) of(principal string) *holding {
	h := q.held[principal]
	if h == nil {
		h = &holding{}
		q.held[principal] = h
	}
	return h
}

// tidy forgets a principal that has nothing. mu is held.
func (q *Quota) tidy(principal string) {
	if h := q.held[principal]; h != nil && *h == (holding{}) {
		delete(q.held, principal)
	}
}

// A Share is one execution's part of its principal's holding.
type Share struct {
	q         *Quota
	principal string
	as        state // guarded by q.mu
	asked     int   // guarded by q.mu
	stored    int64 // guarded by q.mu
}

// Run counts the execution as running.
func (s *Share) Run() { s.move(running) }

// Pause counts the execution as paused.
func (s *Share) Pause() { s.move(paused) }

// Drop stops counting the execution, which has ended. It cannot be counted again.
func (s *Share) Drop() { s.move(ended) }

func (s *Share) move(to state) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as == ended {
		return
	}
	h := s.q.held[s.principal]
	h.count(s.as, -1)
	h.count(to, 1)
	s.as = to
	if to != paused { // The calls of a program that goes on are asked for again.
		h.asked -= s.asked
		s.asked = 0
	}
	if to == ended {
		h.stored -= s.stored
		s.stored = 0
	}
	s.q.tidy(s.principal)
}

// Ask counts n calls of the execution that wait for approval, in place of those that it had before. It
// reports false, and changes nothing, if the principal would have too many. Calls that were asked for
// before are asked for again, however many there are.
func (s *Share) Ask(n int, again bool) bool {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as == ended {
		return true
	}
	h := s.q.held[s.principal]
	if more := n - s.asked; more > 0 && !again && h.asked+more > s.q.most.Asked {
		return false
	}
	h.asked += n - s.asked
	s.asked = n
	return true
}

// Hold counts n bytes that are stored for the execution, or returns a StoredError.
func (s *Share) Hold(n int64) error {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as == ended {
		return nil
	}
	s.q.expire(time.Now())
	h := s.q.held[s.principal]
	if most := s.q.most.Stored; most > 0 && h.stored+n > most {
		return &StoredError{most}
	}
	h.stored += n
	s.stored += n
	return nil
}

// Release stops counting n bytes.
func (s *Share) Release(n int64) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as == ended {
		return
	}
	s.q.held[s.principal].stored -= n
	s.stored -= n
}

// A state is how an execution counts.
type state int

const (
	running state = iota
	paused
	ended
)

func (h *holding) count(as state, n int) {
	switch as {
	case running:
		h.running += n
	case paused:
		h.paused += n
	case ended:
	}
}
