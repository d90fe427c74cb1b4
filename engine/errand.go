package engine

import "time"

// An errand is work that may have to wait: for the store, for files, for a sandbox that is read by it. Meanwhile the
// execution hears that the program has to die.
type errand struct {
	// done is closed when the work is done; err is what has come of it.
	done chan struct{}
	err  error
	// then takes what has come of it, in the goroutine of the execution.
	then func(error)
	// stop ends the work early; nil if nothing does. patience is how long the execution waits at once, 0 without a limit.
	stop     func()
	patience time.Duration
}

// errands are the work that is done for one execution, one at a time. While an errand is under way the record of the
// execution does not change.
type errands struct {
	under *errand
	// wait waits for the errand that is under way, and reports false if that lasts too long. Without it nothing is heard
	// meanwhile, and nothing lasts too long: no program runs.
	wait func(e *errand) bool
}

// send sends out an errand, which gets a goroutine of its own. None is under way.
func (r *errands) send(e *errand, work func() error) {
	e.done = make(chan struct{})
	r.under = e
	go func() {
		defer close(e.done)
		e.err = work()
	}()
}

// conclude takes what has come of the errand that is done.
func (r *errands) conclude() {
	e := r.under
	r.under = nil
	e.then(e.err)
}

// finish waits for the errand that is under way, if there is one. It reports false if that lasts too long.
func (r *errands) finish() bool {
	if r.under == nil {
		return true
	}
	if r.wait == nil {
		<-r.under.done
	} else if !r.wait(r.under) {
		return false
	}
	r.conclude()
	return true
}

// quiet waits until no errand is under way.
func (r *errands) quiet() {
	for !r.finish() {
	}
}

// prompt is how long an errand may take before somebody stands in for a goroutine that does it itself.
const prompt = 5 * time.Millisecond

// do does work itself, as an errand without an end of its own. Most of it is done at once, and another goroutine for it
// would make each round slower; if it lasts, a stand-in waits in place of the caller.
func (r *errands) do(work func() error) error {
	r.quiet()
	if r.wait == nil {
		return work()
	}
	e := &errand{done: make(chan struct{})}
	r.under = e
	stoodIn := make(chan struct{})
	standIn := time.AfterFunc(prompt, func() {
		defer close(stoodIn)
		r.wait(e)
	})
	err := work()
	close(e.done)
	if !standIn.Stop() {
		<-stoodIn
	}
	r.under = nil
	return err
}
