package engine

import (
	"maps"
	"sync"

	"fermata/engine/sandbox"
)

// Stats are the figures of an engine: what there is at this moment, and counts of what
// has been since it began.
type Stats struct {
	Pool sandbox.PoolStats
	// Executions counts those that live here: Running and Paused.
	Executions map[State]int
	// Ended counts by terminal state, all of which are there.
	Ended map[State]uint64
	// Failures counts those that ended Failed by reason, all of which are there.
	Failures map[Reason]uint64
	// Pauses counts rounds.
	Pauses uint64
	// Takeovers counts executions of dead servers that went on here.
	Takeovers uint64
}

// Stats returns the figures of this moment. It waits for nothing but locks.
func (e *Engine) Stats() Stats {
	s := Stats{Pool: e.pool.Stats(), Executions: map[State]int{Running: 0, Paused: 0}}
	e.tally.read(&s)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, x := range e.executions {
		if state := *x.conversation.state.Load(); !state.terminal() {
			s.Executions[state]++
		}
	}
	return s
}

// A tally counts what executions have done.
type tally struct {
	mu        sync.Mutex
	pauses    uint64
	takeovers uint64
	ends      map[State]uint64
	failures  map[Reason]uint64
}

// note counts what has happened to an execution.
func (t *tally) note(events []event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range events {
		switch e.kind {
		case pausedEvent:
			t.pauses++
		case takenOverEvent:
			t.takeovers++
		case endedEvent:
			t.ended(e.outcome)
		}
	}
}

// ended counts an end. mu is held.
func (t *tally) ended(o Outcome) {
	if t.ends == nil {
		t.ends, t.failures = map[State]uint64{}, map[Reason]uint64{}
	}
	t.ends[o.State]++
	if o.State == Failed {
		t.failures[o.Reason]++
	}
}

// read writes the counts to s, with zeros: an alert on the first of a kind needs a
// figure from before it.
func (t *tally) read(s *Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Pauses, s.Takeovers = t.pauses, t.takeovers
	s.Ended, s.Failures = map[State]uint64{}, map[Reason]uint64{}
	for _, to := range moves {
		for _, state := range to {
			if state.terminal() {
				s.Ended[state] = 0
			}
		}
	}
	for _, reason := range reasons {
		s.Failures[reason] = 0
	}
	maps.Copy(s.Ended, t.ends)
	maps.Copy(s.Failures, t.failures)
}
