package engine

import (
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// A pausing is one pause of an execution. It counts the time for which the program may have run in the pause.
type pausing struct {
	*life
	meter meter
}

// inItsPause reports whether the sandbox waits in the pause that the record tells of. It may have
// ended; and a store that has lost its latest writes tells of an earlier pause.
func inItsPause(h sandbox.Hello, r continuation.Record) bool {
	return h.State == sandbox.Paused && h.Round == restsOf(r)
}

// claimed waits until a request claims the round, and returns what the program goes on with. It
// reports false if the execution ended instead.
func (p *pausing) claimed() (delivery, bool) {
	p.counted.Pause()
	until := p.c.record.Deadline
	p.pausedUntil.Store(&until)
	defer p.pausedUntil.Store(nil)
	p.limit.set(time.Until(until))
	defer p.limit.off()
	p.stopper.set(stopAfter)
	defer p.stopper.off()
	p.meter.began = p.restedAt
	if p.meter.began.IsZero() {
		p.meter.began = time.Now() // The execution was taken over in this pause.
	}
	if p.c.record.Round == 0 && p.sandbox.Hello.State == sandbox.Ready {
		p.stopper.off() // The sandbox has not been given its program yet.
		p.mute, p.meter.still = true, true
		defer func() { p.mute = false }()
	}
	for {
		switch d, ok := p.c.take(); {
		case ok:
			p.c.spend(p.meter.stop(time.Now()))
			return d, true
		case p.c.standing == core.StandsLost:
			return delivery{}, false
		}
		if to, why := p.hear(); why != "" {
			p.leave(to, why)
			return delivery{}, false
		}
	}
}

// hear waits for one input of a paused execution. If the execution has to end, it returns why, and the state.
func (p *pausing) hear() (to core.State, why string) {
	if p.doomed != nil {
		return core.Cancelled, core.PauseCancelled
	}
	switch in := p.next(fromSandbox | fromRequest | fromErrand | fromPublisher | fromCancel | fromLimit | fromStopper); in.from {
	case fromRequest:
		p.serve(in)
	case fromErrand:
		p.conclude()
	case fromPublisher:
		p.catchUp()
	case fromCancel:
		return core.Cancelled, core.PauseCancelled
	case fromLimit:
		return core.Expired, core.PauseRanOut
	case fromStopper:
		if p.meter.asked.IsZero() {
			p.order()
			return "", ""
		}
		p.c.spend(p.meter.stop(time.Now()))
		return core.TimedOut, core.PauseSpent
	default:
		return p.hearSandbox(in.event)
	}
	return "", ""
}

// order tells what still runs of a paused program to stop. The program gets as much time for that as its budget has.
func (p *pausing) order() {
	if !p.members.Holds() {
		p.stopper.set(stopRetry) // Another server may have taken the execution over.
		return
	}
	p.meter.asked = time.Now()
	p.stopper.set(max(budgetOf(p.c.o, p.c.record), stopTimeout))
	_ = p.sandbox.Stop() // An error means that the sandbox has ended, as its events tell, too.
}

// hearSandbox handles one event of a paused program. If the execution has to end, it returns why, and the state.
func (p *pausing) hearSandbox(event sandbox.Event) (to core.State, why string) {
	if exit, ok := event.(sandbox.Exit); ok && exit.Over != "" {
		// It had printed too much before it came to a stop. The pause goes on, and the continuation is told, with the
		// output.
		e := core.Exited(exit)
		p.flooded, p.events, p.mute = &e, nil, true
		event = sandbox.Stopped{}
	}
	switch event := event.(type) {
	case sandbox.Stopped:
		p.c.spend(p.meter.stop(time.Now()))
		p.stopper.off()
	case sandbox.Ran:
		p.c.spend(event.Time)
		if budgetOf(p.c.o, p.c.record) == 0 {
			return core.TimedOut, core.PauseSpent
		}
	case sandbox.Output:
		if p.c.chronicle.noteOutput(event) {
			p.catchUp()
		}
	default:
		// The sandbox has died or has broken the protocol: the program cannot go on.
		return core.Expired, core.PauseLost
	}
	return "", ""
}

const (
	// stopRetry is how long a server without a lease waits before it looks again whether it may
	// stop a paused program.
	stopRetry = time.Second
	// stopTimeout is the least time that a program gets to come to a stop in a pause, even if
	// its budget is spent.
	stopTimeout = 2 * time.Second
)
