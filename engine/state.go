package engine

import (
	"fmt"
	"slices"

	"fermata/continuation"
)

// moves are the legal moves of an execution. A state without moves is terminal.
var moves = map[State][]State{
	Running: {Paused, Completed, Failed, TimedOut, Cancelled},
	Paused:  {Running, Expired, Cancelled, TimedOut},
}

// terminal reports whether an execution in state s has ended.
func (s State) terminal() bool { return len(moves[s]) == 0 }

// move returns the next version of r, in state to. Nothing else writes State.
func move(r continuation.Record, to State) (continuation.Record, error) {
	from := State(r.State)
	if !slices.Contains(moves[from], to) {
		return r, fmt.Errorf("engine: no move from %q to %q", from, to)
	}
	r.State, r.Version = string(to), r.Version+1
	if to == Paused {
		r.Round++
	}
	return r, nil
}

// A standing is where an execution stands on this server. It tells what the state in the
// record does not: whether this server owns the execution, whether the program has been
// given what the record says it has, and whether the store has the record.
type standing string

const (
	// unowned: this server does not own the execution yet. Its next write must be the first
	// one to claim it.
	unowned standing = "unowned"
	// running: the program runs, or is about to.
	running standing = "running"
	// undelivered: a former server recorded a claim, or a start, and died before it handed
	// over the results, or the program. Only the identical request can do that now.
	undelivered standing = "undelivered"
	// paused: the program waits for results.
	paused standing = "paused"
	// pausedUnsaved: the same, and the store was away when the pause was to be recorded. A
	// retry of the request that led to the pause writes it.
	pausedUnsaved standing = "paused, unsaved"
	// ended: nothing comes any more.
	ended standing = "ended"
	// endedUnsaved: the same, and the store was away when the end was to be recorded.
	endedUnsaved standing = "ended, unsaved"
	// lost: another server has taken the execution over, or will.
	lost standing = "lost"
)

// standings are the states that the record may have in each standing, and the standings
// that may follow.
var standings = map[standing]struct {
	states []State
	next   []standing
}{
	unowned:       {[]State{Running, Paused}, []standing{running, undelivered, paused, ended, endedUnsaved, lost}},
	running:       {[]State{Running}, []standing{paused, pausedUnsaved, ended, endedUnsaved, lost}},
	undelivered:   {[]State{Running}, []standing{running, ended, endedUnsaved, lost}},
	paused:        {[]State{Paused}, []standing{running, ended, endedUnsaved, lost}},
	pausedUnsaved: {[]State{Paused}, []standing{paused, ended, endedUnsaved, lost}},
	ended:         {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []standing{lost}},
	endedUnsaved:  {[]State{Completed, Failed, TimedOut, Cancelled, Expired}, []standing{ended, lost}},
	lost:          {[]State{Running, Paused, Completed, Failed, TimedOut, Cancelled, Expired}, nil},
}

// unsaved reports whether the store does not have the record of an execution that stands at s.
func (s standing) unsaved() bool { return s == pausedUnsaved || s == endedUnsaved }

// standingIn is where an execution of this server stands whose record has moved to a state.
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
