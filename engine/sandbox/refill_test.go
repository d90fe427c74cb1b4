package sandbox

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestRefill(t *testing.T) {
	one, two := map[Kind]int{Plain: 1}, map[Kind]int{Plain: 2, Scientific: 2}
	for _, tt := range []struct {
		name  string
		sizes map[Kind]int
		// before brings about what the policy knows of the past.
		before       func(r *refill)
		lack         []Kind
		idle, making map[Kind]int
		want         Kind // empty for none
	}{
		{name: "nothing is wanted"},
		{name: "one is missing", sizes: one, want: Plain},
		{name: "none is missing", sizes: one, idle: one},
		{name: "more than enough", sizes: one, idle: two},
		{name: "one is being made", sizes: two, making: one},
		{name: "one of another kind is being made", sizes: map[Kind]int{Scientific: 2}, making: one},
		{name: "the larger part is missing of one", sizes: two, idle: one, want: Scientific},
		{name: "parts count, not numbers", sizes: map[Kind]int{Plain: 4, Scientific: 1}, idle: map[Kind]int{Plain: 1}, want: Scientific},
		{name: "as much is missing of both", sizes: two, idle: map[Kind]int{Plain: 1, Scientific: 1}, want: Plain},

		{name: "a program runs, and half is there", sizes: two, before: func(r *refill) { r.running(1) }, idle: map[Kind]int{Plain: 1, Scientific: 1}},
		{name: "a program runs, and less than half is there", sizes: two, before: func(r *refill) { r.running(1) }, idle: one, want: Scientific},
		{name: "one has just run", sizes: two, before: func(r *refill) { r.running(1); r.running(-1) }, idle: map[Kind]int{Plain: 1, Scientific: 1}},
		{name: "two have run, one goes on", sizes: two, before: func(r *refill) { r.running(1); r.running(1); r.running(-1) }, idle: map[Kind]int{Plain: 1, Scientific: 1}},
		{name: "a program begins", sizes: one, before: (*refill).begins},
		{name: "it could not be made a moment ago", sizes: one, before: func(r *refill) { r.failed(Plain) }},
		{name: "the other could not", sizes: two, before: func(r *refill) { r.failed(Plain) }, want: Scientific},

		{name: "one waits", lack: []Kind{Plain}, want: Plain},
		{name: "the first in line comes first", lack: []Kind{Scientific, Plain, Plain}, want: Scientific},
		{name: "who waits comes before what is missing", sizes: one, lack: []Kind{Scientific}, want: Scientific},
		{name: "one waits while one is being made", lack: []Kind{Plain}, making: one, want: Plain},
		{name: "one waits while two are being made", lack: []Kind{Plain}, making: map[Kind]int{Plain: 1, Scientific: 1}},
		{name: "one waits while a program begins", lack: []Kind{Plain}, before: func(r *refill) { r.running(1); r.begins() }, want: Plain},
		{name: "one waits for what could not be made", lack: []Kind{Plain}, before: func(r *refill) { r.failed(Plain) }},
		{name: "others wait for what can", lack: []Kind{Plain, Scientific}, before: func(r *refill) { r.failed(Plain) }, want: Scientific},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			mu.Lock() // No delay ends meanwhile.
			defer mu.Unlock()
			r := newRefill(tt.sizes, &mu, func() {})
			defer r.stop()
			if tt.before != nil {
				tt.before(r)
			}
			got, ok := r.wants(tt.lack, func(k Kind) int { return tt.idle[k] }, tt.making)
			if !ok { // It is wanted, but not now.
				got = ""
			}
			if got != tt.want {
				t.Errorf("wants = %q, want %q", got, tt.want)
			}
		})
	}
}

// A delay that is stopped, or begun anew, does not call at its first end.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		calls := 0
		d := delay{mu: &mu, then: func() { calls++ }}
		check := func(when string, want int, pending bool) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if calls != want || d.pending() != pending {
				t.Errorf("%s: %d calls, pending is %v, want %d and %v", when, calls, d.pending(), want, pending)
			}
		}
		mu.Lock()
		d.start(time.Second)
		d.stop()
		d.start(2 * time.Second)
		mu.Unlock()
		time.Sleep(time.Second)
		check("after a stopped delay", 0, true)
		time.Sleep(time.Second)
		check("at the end", 1, false)
	})
}
