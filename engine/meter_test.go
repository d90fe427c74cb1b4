package engine

import (
	"testing"
	"time"
)

// A pause costs a program the time until it has stopped, but not what its server needed
// before it told it to.
func TestMeter(t *testing.T) {
	began := time.Now()
	for _, c := range []struct {
		name       string
		asked, end time.Duration // since the program came to rest; 0 is never
		want       time.Duration
	}{
		{"an answer at once", 0, 3 * time.Millisecond, 3 * time.Millisecond},
		{"an answer when the server was slow", 0, 5 * time.Second, stopAfter},
		{"stopped", stopAfter, stopAfter + 2*time.Millisecond, stopAfter + 2*time.Millisecond},
		{"stopped by a slow server", 5 * time.Second, 5*time.Second + time.Millisecond, stopAfter + time.Millisecond},
		{"not to be stopped", stopAfter, time.Minute, time.Minute},
	} {
		m := meter{began: began}
		if c.asked != 0 {
			m.asked = began.Add(c.asked)
		}
		if got := m.stop(began.Add(c.end)); got != c.want {
			t.Errorf("%s: it counts %v, want %v", c.name, got, c.want)
		}
		if got := m.stop(began.Add(time.Hour)); got != 0 {
			t.Errorf("%s: what was counted is counted again as %v", c.name, got)
		}
	}
}
