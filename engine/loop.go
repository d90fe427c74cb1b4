package engine

import (
	"time"

	"fermata/engine/sandbox"
)

// An origin is where an input of an execution comes from. Origins can be combined with |.
type origin uint16

const (
	// fromSandbox is an event; nil if the stream has ended.
	fromSandbox origin = 1 << iota
	// fromCrew is a call that the server has run, and that has ended.
	fromCrew
	// fromProgram tells that a timer of the program is due.
	fromProgram
	// fromRequest is what a request wants done.
	fromRequest
	// fromErrand tells that the errand which is under way is done.
	fromErrand
	// fromCancel tells that the execution is cancelled.
	fromCancel
	// fromLimit tells that the program has run, or waited, for as long as it may.
	fromLimit
	// fromStopper tells that a paused program is to be told to stop, or has not stopped.
	fromStopper
	// fromPublisher tells that what the journal has noted is to be written.
	fromPublisher
	// fromPatience tells that the server has waited long enough for something that should not take long.
	fromPatience
)

// An input is what the goroutine of an execution has waited for.
type input struct {
	from  origin
	event sandbox.Event
	call  *served
	ask   func()
}

// A loop is all for which the goroutine of an execution waits. Only this goroutine uses it, except that others send
// to asks.
type loop struct {
	events    <-chan sandbox.Event
	asks      chan func()
	cancelled <-chan struct{}
	// crew runs the server's calls; it is nil unless the program runs.
	crew *crew
	*errands
	limit, stopper, publisher, patience clock
}

// next waits for an input of the origins that are heard. Nothing else waits in the goroutine of an execution.
func (l *loop) next(heard origin) input {
	var calls <-chan *served
	var due <-chan time.Time
	if l.crew != nil {
		calls, due = l.crew.done, l.crew.wake
	}
	var done <-chan struct{}
	if l.under != nil {
		done = l.under.done
	}
	select {
	case event := <-only(heard, fromSandbox, l.events):
		return input{from: fromSandbox, event: event}
	case call := <-only(heard, fromCrew, calls):
		return input{from: fromCrew, call: call}
	case <-only(heard, fromProgram, due):
		return input{from: fromProgram}
	case ask := <-only(heard, fromRequest, l.asks):
		return input{from: fromRequest, ask: ask}
	case <-only(heard, fromErrand, done):
		return input{from: fromErrand}
	case <-only(heard, fromCancel, l.cancelled):
		return input{from: fromCancel}
	case <-only(heard, fromLimit, l.limit.fires()):
		return input{from: fromLimit}
	case <-only(heard, fromStopper, l.stopper.fires()):
		return input{from: fromStopper}
	case <-only(heard, fromPublisher, l.publisher.fires()):
		return input{from: fromPublisher}
	case <-only(heard, fromPatience, l.patience.fires()):
		return input{from: fromPatience}
	}
}

// only returns a channel if its origin is heard, and nil otherwise.
func only[C ~<-chan T | ~chan T, T any](heard, s origin, c C) <-chan T {
	if heard&s == 0 {
		return nil
	}
	return (<-chan T)(c)
}

// A clock fires once, when the time is over for which it was set last.
type clock struct{ timer *time.Timer }

func (c *clock) set(d time.Duration) {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
}

func (c *clock) off() {
	if c.timer != nil {
		c.timer.Stop()
	}
}

func (c *clock) fires() <-chan time.Time {
	if c.timer == nil {
		return nil
	}
	return c.timer.C
}
