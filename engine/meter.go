package engine

import "time"

// stopAfter is how long a pause lasts until what still runs in the sandbox is stopped.
// Most programs have come to rest by themselves when they pause: to stop them and let
// them go on would cost a client that answers at once more than its program takes.
const stopAfter = 10 * time.Millisecond

// A meter counts the time for which a program may have run in a pause: until it has been
// seen to have stopped. If the server itself is late with the order to stop, the delay beyond
// stopAfter does not count against the program.
type meter struct {
	// began is when the program came to rest, asked when it was told to stop.
	began, asked time.Time
	// still says that it has stopped.
	still bool
}

// stop returns the time that has not been counted yet, and counts no more.
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
