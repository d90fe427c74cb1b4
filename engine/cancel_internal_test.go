package engine

import "testing"

// A server that has answered a request, and one that has its execution, tell different things of one
// Cancel. A word of a newer server counts for nothing.
func TestCancellingsOfTwoServers(t *testing.T) {
	for _, c := range []struct{ a, b, want Cancelling }{
		{CancelUnknown, CancelUnknown, CancelUnknown},
		{CancelUnknown, CancelCompleted, CancelCompleted},
		{CancelCompleted, CancelDone, CancelDone},
		{CancelCompleted, CancelRequested, CancelRequested},
		{CancelUnknown, "other", CancelUnknown},
	} {
		if got := c.a.or(c.b); got != c.want {
			t.Errorf("%q or %q is %q, want %q", c.a, c.b, got, c.want)
		}
		if got := c.b.or(c.a); c.b != "other" && got != c.want {
			t.Errorf("%q or %q is %q, want %q", c.b, c.a, got, c.want)
		}
	}
}
