package engine

import (
	"maps"
	"sync"

	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// Stats are the figures of an engine: some of this moment, some counted since it was made.
type Stats struct {
	Pool sandbox.PoolStats
	// Executions counts the executions of this server that are Running and Paused.
	Executions map[core.State]int
	// Ended counts the executions that have ended. It has every terminal state as a key.
	Ended map[core.State]uint64
	// Failures counts the executions that ended as Failed. It has every reason as a key.
	Failures map[core.Reason]uint64
	// Pauses counts pauses.
	Pauses uint64
	// Calls counts the calls that the server has run, for programs and without one, by how they have
	// ended: completed, failed.
	Calls map[string]uint64
	// Takeovers counts executions that this server has taken over and gone on with.
	Takeovers uint64
}

// An event tells what has happened to an execution.
type event struct {
	kind eventKind
	// outcome is the end, in an endedEvent.
	outcome core.Outcome
}

type eventKind int

const (
	pausedEvent eventKind = iota + 1
	endedEvent
	takenOverEvent
)

// A tally counts what executions have done.
type tally struct {
	mu        sync.Mutex
	pauses    uint64
	takeovers uint64
	completed uint64 // calls that the server has run
	failed    uint64 // and those that have failed, also before they were made
	ends      map[core.State]uint64
	failures  map[core.Reason]uint64
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

// call counts a call of a tool that the server runs.
func (t *tally) call(failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if failed {
		t.failed++
	} else {
		t.completed++
	}
}

// ended counts an end. mu is held.
func (t *tally) ended(o core.Outcome) {
	if t.ends == nil {
		t.ends, t.failures = map[core.State]uint64{}, map[core.Reason]uint64{}
	}
	t.ends[o.State]++
	if o.State == core.Failed {
		t.failures[o.Reason]++
	}
}

// read writes the counts to s, zeros included: an alert on the first failure for a reason needs
// the zero before it.
func (t *tally) read(s *Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.Pauses, s.Takeovers = t.pauses, t.takeovers
	s.Calls = map[string]uint64{"completed": t.completed, "failed": t.failed}
	s.Ended, s.Failures = map[core.State]uint64{}, map[core.Reason]uint64{}
	for _, state := range core.Ends() {
		s.Ended[state] = 0
	}
	for _, reason := range core.Reasons() {
		s.Failures[reason] = 0
	}
	maps.Copy(s.Ended, t.ends)
	maps.Copy(s.Failures, t.failures)
}
