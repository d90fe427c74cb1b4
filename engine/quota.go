package engine

import "sync"

// A quota counts the executions of each principal on this server.
type quota struct {
	// running and paused are the most there may be when another one is started, 0
	// for any number.
	running, paused int

	mu   sync.Mutex
	held map[string]*holding
}

// A holding is how many executions a principal has.
type holding struct{ running, paused int }

func newQuota(o Options) *quota {
	return &quota{running: o.MaxRunning, paused: o.MaxPaused, held: map[string]*holding{}}
}

// admit counts one more execution of a principal, as running, or returns ErrTooMany.
func (q *quota) admit(principal string) (*share, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if h := q.held[principal]; h != nil &&
		(q.running > 0 && h.running >= q.running || q.paused > 0 && h.paused >= q.paused) {
		return nil, ErrTooMany
	}
	return q.share(principal), nil
}

// adopt counts an execution that another server has admitted.
func (q *quota) adopt(principal string) *share {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.share(principal)
}

// share counts an execution. mu is held.
func (q *quota) share(principal string) *share {
	h := q.held[principal]
	if h == nil {
		h = &holding{}
		q.held[principal] = h
	}
	h.running++
	return &share{q: q, principal: principal, as: Running}
}

// A share is one execution's part of its principal's holding.
type share struct {
	q         *quota
	principal string
	as        State // guarded by q.mu
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
	if *h == (holding{}) {
		delete(s.q.held, s.principal)
	}
}

// drop ends the counting of an execution, however it ended.
func (s *share) drop() { s.move(Completed) }

func (h *holding) count(s State, n int) {
	switch s {
	case Running:
		h.running += n
	case Paused:
		h.paused += n
	default:
	}
}
