package engine

import (
	"sync"
	"time"
)

// A quota counts what each principal has on this server: executions, and bytes that are
// kept for them.
type quota struct {
	// running, paused and all are the most executions that there may be when another one is
	// started, stored is the most bytes; 0 for any number.
	running, paused, all int
	stored               int64

	mu   sync.Mutex
	held map[string]*holding
	// kept are the answers of ended executions, in the order in which they expire.
	kept []keptAnswer
}

// A holding is what a principal has. Running executions are those that wait for a sandbox, too.
type holding struct {
	running, paused int
	stored          int64
}

// A keptAnswer is counted until the store has forgotten it.
type keptAnswer struct {
	principal string
	size      int64
	until     time.Time
}

func newQuota(o Options) *quota {
	return &quota{
		running: o.MaxRunning, paused: o.MaxPaused, all: o.MaxExecutions, stored: o.MaxStored,
		held: map[string]*holding{},
	}
}

// admit counts one more execution of a principal, as running, or returns ErrTooMany.
func (q *quota) admit(principal string) (*share, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	defer q.tidy(principal)
	switch {
	case q.running > 0 && h.running >= q.running, q.paused > 0 && h.paused >= q.paused:
		return nil, ErrTooMany
	case q.all > 0 && h.running+h.paused >= q.all:
		return nil, &TooManyError{Max: q.all}
	}
	h.running++
	return &share{q: q, principal: principal, as: Running}, nil
}

// adopt counts an execution that another server has admitted, and what is stored of it.
func (q *quota) adopt(principal string, stored int64) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	h.running++
	h.stored += stored
	return &share{q: q, principal: principal, as: Running, stored: stored}
}

// keep counts the answer of an ended execution for as long as it is kept. It reports
// false, and does not count it, if the principal has too much.
func (q *quota) keep(principal string, size int64, life time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	defer q.tidy(principal)
	q.expire(time.Now())
	h := q.of(principal)
	if q.stored > 0 && h.stored+size > q.stored {
		return false
	}
	h.stored += size
	q.kept = append(q.kept, keptAnswer{principal, size, time.Now().Add(life)})
	return true
}

// expire ends the counting of answers that are not kept any more. mu is held.
func (q *quota) expire(now time.Time) {
	for len(q.kept) > 0 && now.After(q.kept[0].until) {
		k := q.kept[0]
		q.kept[0], q.kept = keptAnswer{}, q.kept[1:]
		q.held[k.principal].stored -= k.size
		q.tidy(k.principal)
	}
}

// of returns what a principal has. mu is held.
func (q *quota) of(principal string) *holding {
	h := q.held[principal]
	if h == nil {
		h = &holding{}
		q.held[principal] = h
	}
	return h
}

// tidy forgets a principal that has nothing. mu is held.
func (q *quota) tidy(principal string) {
	if h := q.held[principal]; h != nil && *h == (holding{}) {
		delete(q.held, principal)
	}
}

// A share is one execution's part of its principal's holding.
type share struct {
	q         *quota
	principal string
	as        State // guarded by q.mu
	stored    int64 // guarded by q.mu
}

// move counts the execution in state to. One that has ended is not counted any more,
// and stays so.
func (s *share) move(to State) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as.terminal() {
		return
	}
	h := s.q.held[s.principal]
	h.count(s.as, -1)
	h.count(to, 1)
	s.as = to
	if to.terminal() {
		h.stored -= s.stored
		s.stored = 0
	}
	s.q.tidy(s.principal)
}

// drop ends the counting of an execution, however it ended.
func (s *share) drop() { s.move(Completed) }

// Hold counts n bytes that are stored for the execution, or returns a storedError.
func (s *share) Hold(n int64) error {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as.terminal() {
		return nil
	}
	s.q.expire(time.Now())
	h := s.q.held[s.principal]
	if most := s.q.stored; most > 0 && h.stored+n > most {
		return &storedError{most}
	}
	h.stored += n
	s.stored += n
	return nil
}

// Release ends the counting of n bytes.
func (s *share) Release(n int64) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as.terminal() {
		return
	}
	s.q.held[s.principal].stored -= n
	s.stored -= n
}

func (h *holding) count(s State, n int) {
	switch s {
	case Running:
		h.running += n
	case Paused:
		h.paused += n
	default:
	}
}
