package engine

import (
	"sync"
	"time"
)

// A quota counts, and bounds, what each principal has on this server: executions, the bytes that are
// stored for them, and calls without a program.
type quota struct {
	// running, paused, all and stored are Options.MaxRunning, MaxPaused, MaxExecutions and
	// MaxStored.
	running, paused, all int
	stored               int64

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

func newQuota(o Options) *quota {
	return &quota{
		running: o.MaxRunning, paused: o.MaxPaused, all: o.MaxExecutions, stored: o.MaxStored,
		held: map[string]*holding{},
	}
}

// admit counts a new execution of a principal as running, or returns an ErrTooMany.
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

// call counts a call without a program until leave is called, or returns a TooManyCallsError.
func (q *quota) call(principal string) (leave func(), err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	if h.calls >= maxStandalone {
		return nil, &TooManyCallsError{maxStandalone}
	}
	h.calls++
	return func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		h.calls--
		q.tidy(principal)
	}, nil
}

// adopt counts an execution that was taken over, and the bytes that are stored for it, whatever
// the limits are.
func (q *quota) adopt(principal string, stored int64) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.of(principal)
	h.running++
	h.stored += stored
	return &share{q: q, principal: principal, as: Running, stored: stored}
}

// keep counts the answer of an ended execution for as long as the store keeps it. It reports
// false, and does not count the answer, if too much would be stored for the principal.
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

// expire stops counting the answers that the store has dropped. mu is held.
func (q *quota) expire(now time.Time) {
	for len(q.kept) > 0 && now.After(q.kept[0].until) {
		k := q.kept[0]
		q.kept[0], q.kept = keptAnswer{}, q.kept[1:]
		q.held[k.principal].stored -= k.size
		q.tidy(k.principal)
	}
}

// of returns the holding of a principal. mu is held.
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
	asked     int   // guarded by q.mu
	stored    int64 // guarded by q.mu
}

// move counts the execution as in state to. An execution that has ended counts no more, and
// cannot be counted again.
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
	if to != Paused { // The calls of a program that goes on are asked for again.
		h.asked -= s.asked
		s.asked = 0
	}
	if to.terminal() {
		h.stored -= s.stored
		s.stored = 0
	}
	s.q.tidy(s.principal)
}

// drop stops counting the execution, however it ended.
func (s *share) drop() { s.move(Completed) }

// ask counts n calls of the execution that wait for approval, in place of those that it had before. It
// reports false, and changes nothing, if the principal would have too many. Calls that were asked for
// before are asked for again, however many there are.
func (s *share) ask(n int, again bool) bool {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	if s.as.terminal() {
		return true
	}
	h := s.q.held[s.principal]
	if more := n - s.asked; more > 0 && !again && h.asked+more > maxAskedOfAll {
		return false
	}
	h.asked += n - s.asked
	s.asked = n
	return true
}

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

// Release stops counting n bytes.
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
