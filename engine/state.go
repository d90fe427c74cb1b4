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

// move returns r in state to, as its next version. Nothing else writes State.
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
