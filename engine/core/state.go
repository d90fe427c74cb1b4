package core

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

// Terminal reports whether an execution in state s has ended.
func (s State) Terminal() bool { return len(moves[s]) == 0 }

// Ends returns all terminal states.
func Ends() []State { return []State{Completed, Failed, TimedOut, Cancelled, Expired} }

// Move returns the next version of r, in state to. It is the only function that changes the
// State of a record.
func Move(r continuation.Record, to State, now time.Time) (continuation.Record, error) {
	from := State(r.State)
	if !slices.Contains(moves[from], to) {
		return r, fmt.Errorf("engine: no move from %q to %q", from, to)
	}
	r.State, r.Version, r.Since = string(to), r.Version+1, now
	if to == Paused {
		r.Round++
	}
	return r, nil
}

// A Standing is where an execution stands on this server. It tells what the State of the
// record does not: whether this server owns the execution, whether the program was given what
// the record says that it was given, and whether the store has the record.
type Standing string

// The standings.
const (
	// StandsUnowned: this server does not own the execution yet.
	StandsUnowned Standing = "unowned"
	// StandsRunning: the program runs, or is about to.
	StandsRunning Standing = "running"
	// StandsUndelivered: a former server recorded a claim or a start, and died before the sandbox had
	// the results or the program. Only the identical request can bring them again.
	StandsUndelivered Standing = "undelivered"
	// StandsPaused: the program waits for results.
	StandsPaused Standing = "paused"
	// StandsPausedUnsaved: the program waits for results, but the store was away when the pause was
	// to be recorded. A retry of the request that led to the pause records it.
	StandsPausedUnsaved Standing = "paused, unsaved"
	// StandsEnded: the execution is over.
	StandsEnded Standing = "ended"
	// StandsEndedUnsaved: the execution is over, but the store was away when the end was to be
	// recorded.
	StandsEndedUnsaved Standing = "ended, unsaved"
	// StandsLost: the execution belongs to another server, or may for all that this one knows. This
	// server leaves the sandbox and the record alone.
	StandsLost Standing = "lost"
)

// standings tells for each standing which states the record may have, and which standings may
// follow.
var standings = map[Standing]struct {
	states []State
	next   []Standing
}{
	StandsUnowned:       {[]State{Running, Paused}, []Standing{StandsRunning, StandsUndelivered, StandsPaused, StandsEnded, StandsEndedUnsaved, StandsLost}},
	StandsRunning:       {[]State{Running}, []Standing{StandsPaused, StandsPausedUnsaved, StandsEnded, StandsEndedUnsaved, StandsLost}},
	StandsUndelivered:   {[]State{Running}, []Standing{StandsRunning, StandsEnded, StandsEndedUnsaved, StandsLost}},
	StandsPaused:        {[]State{Paused}, []Standing{StandsRunning, StandsEnded, StandsEndedUnsaved, StandsLost}},
	StandsPausedUnsaved: {[]State{Paused}, []Standing{StandsRunning, StandsPaused, StandsEnded, StandsEndedUnsaved, StandsLost}},
	StandsEnded:         {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []Standing{StandsLost}},
	StandsEndedUnsaved:  {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []Standing{StandsEnded, StandsLost}},
	StandsLost:          {[]State{Running, Paused, Completed, Failed, TimedOut, Cancelled, Expired}, nil},
}

// Allows returns an error if no execution that stands at s may come to stand at another standing next.
func (s Standing) Allows(next Standing) error {
	if !slices.Contains(standings[s].next, next) {
		return fmt.Errorf("engine: an execution cannot be %q after %q", next, s)
	}
	return nil
}

// Unsaved reports whether the store lacks the latest record of an execution that stands at s.
func (s Standing) Unsaved() bool { return s == StandsPausedUnsaved || s == StandsEndedUnsaved }

// StandingIn returns where an execution stands after its record has moved to state. saved is
// true if the store has that record.
func StandingIn(state State, saved bool) Standing {
	switch {
	case state == Running:
		return StandsRunning
	case state == Paused && saved:
		return StandsPaused
	case state == Paused:
		return StandsPausedUnsaved
	case saved:
		return StandsEnded
	default:
		return StandsEndedUnsaved
	}
}
