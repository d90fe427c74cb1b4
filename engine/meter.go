package engine

import (
	"time"

	"fermata/continuation"
)

// stopAfter is how long a pause lasts before the server stops what still runs in the sandbox.
// Most programs run nothing in a pause. Stopping them at once would delay clients that answer
// at once, for longer than a round takes.
const stopAfter = 10 * time.Millisecond

// A meter counts the time for which a program may have run in a pause: from the beginning of the
// pause until the program has stopped. If the server gives the order to stop late, the delay
// beyond stopAfter does not count.
type meter struct {
	// began is when the program came to rest, asked when it was told to stop.
	began, asked time.Time
	// still is true once the time was counted, or if there is none to count.
	still bool
}

// stop returns how long the program may have run in this pause, and 0 when it is called again.
func (m *meter) stop(now time.Time) time.Duration {
	switch {
	case m.still:
		return 0
	case m.asked.IsZero():
		m.asked = now
	}
	m.still = true
	return min(stopAfter, m.asked.Sub(m.began)) + now.Sub(m.asked)
}

// budgetOf returns how long the program may still run.
func budgetOf(o *Options, r continuation.Record) time.Duration {
	if o.WallClock {
		return max(0, r.Budget-time.Since(r.Created))
	}
	return max(0, r.Budget-r.Spent)
}
