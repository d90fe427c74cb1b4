package sandbox

import (
	"sync"
	"time"
)

const (
	// calmTime is how long no program must have run before the pool fills itself at leisure.
	calmTime = 20 * time.Millisecond
	// startTime is how long a program that has just been given a sandbox is left alone.
	startTime = 5 * time.Millisecond
	// retryDelay is how long the pool makes no sandbox of a kind after it could not make one.
	retryDelay = time.Second
	// makers is how many sandboxes are made at once for those who wait.
	makers = 2
)

// A refill decides when to make a sandbox, and of which kind. To make one takes processor
// time: where nobody waits for it, programs come first.
type refill struct {
	// sizes is how many idle sandboxes of each kind there should be.
	sizes map[Kind]int
	// busy is how many programs run at this moment.
	busy int
	// calming lasts for calmTime after a program has run, starting for startTime after one
	// has been given a sandbox, resting for retryDelay after a failure.
	calming, starting delay
	resting           map[Kind]*delay
}

// newRefill returns a policy whose delays end with mu held and a call of then.
func newRefill(sizes map[Kind]int, mu sync.Locker, then func()) *refill {
	r := &refill{sizes: sizes, calming: delay{mu: mu, then: then}, starting: delay{mu: mu, then: then}, resting: map[Kind]*delay{}}
	for _, kind := range Kinds {
		r.resting[kind] = &delay{mu: mu, then: then}
	}
	return r
}

// wants returns the kind of the sandbox that should be made now, if one should. lack are the
// kinds of those who wait in vain so far, who come first. Ahead of need one sandbox is made
// at a time: at a calm time, or when half of what should be idle is missing, but not while a
// program begins.
func (r *refill) wants(lack []Kind, idle func(Kind) int, making map[Kind]int) (Kind, bool) {
	beingMade := 0
	for _, n := range making {
		beingMade += n
	}
	for _, kind := range lack {
		if !r.resting[kind].pending() {
			return kind, beingMade < makers
		}
	}
	if beingMade > 0 || r.starting.pending() {
		return "", false
	}
	calm := r.busy == 0 && !r.calming.pending()
	var wanted Kind
	for _, kind := range Kinds {
		have, size := idle(kind), r.sizes[kind]
		if have >= size || r.resting[kind].pending() || !calm && 2*have >= size {
			continue
		}
		// The kind of which the larger part is missing comes first.
		if wanted == "" || have*r.sizes[wanted] < idle(wanted)*size {
			wanted = kind
		}
	}
	return wanted, wanted != ""
}

// running notes that a program begins (1) or ceases (-1) to run. A client that answers a call
// at once has its program run again in a moment: not every end of a run begins a calm time.
func (r *refill) running(n int) {
	r.busy += n
	r.calming.stop()
	if r.busy == 0 && n < 0 {
		r.calming.start(calmTime)
	}
}

// begins notes that a program is about to begin in a sandbox that was idle.
func (r *refill) begins() {
	if !r.starting.pending() {
		r.starting.start(startTime)
	}
}

// failed notes that a sandbox could not be made.
func (r *refill) failed(kind Kind) {
	if !r.resting[kind].pending() {
		r.resting[kind].start(retryDelay)
	}
}

// stop ends all delays without a call.
func (r *refill) stop() {
	r.calming.stop()
	r.starting.stop()
	for _, d := range r.resting {
		d.stop()
	}
}

// A delay is pending for a time and then calls a function. mu guards it, and is held for
// the call.
type delay struct {
	mu    sync.Locker
	then  func()
	timer *time.Timer
}

func (d *delay) pending() bool { return d.timer != nil }

func (d *delay) start(after time.Duration) {
	var timer *time.Timer
	timer = time.AfterFunc(after, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.timer == timer {
			d.timer = nil
			d.then()
		}
	})
	d.timer = timer
}

func (d *delay) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
