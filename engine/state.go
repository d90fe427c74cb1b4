package engine

import (
	"fmt"
	"slices"
	"time"

	"fermata/continuation"
)

// moves are the states that may follow each state of an execution. A state that none follows
// is terminal.
var moves = map[State][]State{
	Running: {Paused, Completed, Failed, TimedOut, Cancelled},
	Paused:  {Running, Expired, Cancelled, TimedOut},
}

// terminal reports whether an execution in state s has ended.
func (s State) terminal() bool { return len(moves[s]) == 0 }

// move returns the next version of r, in state to. It is the only function that changes the
// State of a record.
func move(r continuation.Record, to State) (continuation.Record, error) {
	from := State(r.State)
	if !slices.Contains(moves[from], to) {
		return r, fmt.Errorf("engine: no move from %q to %q", from, to)
	}
	r.State, r.Version, r.Since = string(to), r.Version+1, time.Now()
	if to == Paused {
		r.Round++
	}
	return r, nil
}

// A standing is where an execution stands on this server. It tells what the State of the
// record does not: whether this server owns the execution, whether the program was given what
// the record says that it was given, and whether the store has the record.
type standing string

const (
	// unowned: this server does not own the execution yet.
	unowned standing = "unowned"
	// running: the program runs, or is about to.
	running standing = "running"
	// undelivered: a former server recorded a claim or a start, and died before the sandbox had
	// the results or the program. Only the identical request can bring them again.
	undelivered standing = "undelivered"
	// paused: the program waits for results.
	paused standing = "paused"
	// pausedUnsaved: the program waits for results, but the store was away when the pause was
	// to be recorded. A retry of the request that led to the pause records it.
	pausedUnsaved standing = "paused, unsaved"
	// ended: the execution is over.
	ended standing = "ended"
	// endedUnsaved: the execution is over, but the store was away when the end was to be
	// recorded.
	endedUnsaved standing = "ended, unsaved"
	// lost: the execution belongs to another server, or may for all that this one knows. This
	// server leaves the sandbox and the record alone.
	lost standing = "lost"
)

// standings tells for each standing which states the record may have, and which standings may
// follow.
var standings = map[standing]struct {
	states []State
	next   []standing
}{
	unowned:       {[]State{Running, Paused}, []standing{running, undelivered, paused, ended, endedUnsaved, lost}},
	running:       {[]State{Running}, []standing{paused, pausedUnsaved, ended, endedUnsaved, lost}},
	undelivered:   {[]State{Running}, []standing{running, ended, endedUnsaved, lost}},
	paused:        {[]State{Paused}, []standing{running, ended, endedUnsaved, lost}},
	pausedUnsaved: {[]State{Paused}, []standing{running, paused, ended, endedUnsaved, lost}},
	ended:         {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []standing{lost}},
	endedUnsaved:  {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []standing{ended, lost}},
	lost:          {[]State{Running, Paused, Completed, Failed, TimedOut, Cancelled, Expired}, nil},
}

// allows returns an error if no execution that stands at s may come to stand at another standing next.
func (s standing) allows(next standing) error {
	if !slices.Contains(standings[s].next, next) {
		return fmt.Errorf("engine: an execution cannot be %q after %q", next, s)
	}
	return nil
}

// unsaved reports whether the store lacks the latest record of an execution that stands at s.
func (s standing) unsaved() bool { return s == pausedUnsaved || s == endedUnsaved }

// standingIn returns where an execution stands after its record has moved to state. saved is
// true if the store has that record.
func standingIn(state State, saved bool) standing {
	switch {
	case state == Running:
		return running
	case state == Paused && saved:
		return paused
	case state == Paused:
		return pausedUnsaved
	case saved:
		return ended
	default:
		return endedUnsaved
	}
}
