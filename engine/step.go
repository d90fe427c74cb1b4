package engine

import (
	"time"

	"fermata/continuation"
)

// A Step tells the log how a request has left its execution. Beside an error it tells how the
// execution stood before.
type Step struct {
	// Round is how often the program has paused, and Calls how many tool calls it has made, in all.
	Round, Calls int
	// Ran is how long the program has run, in all.
	Ran time.Duration
	// Waited is how long a start waited for its sandbox, or how long the pause was that a
	// continuation has ended.
	Waited time.Duration
	// Repeated is true if the request got the answer of an earlier one.
	Repeated bool
	// Server is the name of the server that ran the step, as journals have it; empty if it was this
	// one.
	Server string
}

// stepOf returns where an execution stands, as its record tells.
func stepOf(r continuation.Record) Step {
	return Step{Round: r.Round, Calls: r.Issued, Ran: r.Spent}
}

// Ending returns one word for how o has left its execution: its state, or the reason of a failure.
func (o Outcome) Ending() string {
	if o.State == Failed {
		return string(o.Reason)
	}
	return string(o.State)
}
