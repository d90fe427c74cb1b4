package engine

import (
	"sync/atomic"
	"time"

	"fermata/engine/sandbox"
)

// An execution is one run of one program on this server. A goroutine of its own (live)
// drives the sandbox; requests meet it in its conversation.
type execution struct {
	id        string
	principal string
	e         *Engine
	sandbox   *sandbox.Conn
	// conversation is what requests meet.
	conversation *conversation
	// counted is its part of what its principal may have.
	counted *share
	// stored is how many bytes of the latest pause are counted. It is live's own.
	stored int64
	// requestID is what the client calls the latest request.
	requestID atomic.Pointer[string]
	// rested is when the program last came to rest. It is live's own.
	rested time.Time
}

func newExecution(e *Engine, c *conversation, sb *sandbox.Conn, counted *share) *execution {
	return &execution{
		id:           c.record.ID,
		principal:    c.record.Principal,
		e:            e,
		sandbox:      sb,
		conversation: c,
		counted:      counted,
	}
}

// live runs the program to its end, answering segment by segment. The first one begins with
// a delivery.
func (x *execution) live(d delivery) {
	defer x.end()
	for {
		goesOn := x.settle(x.run(d))
		// The pool refills only now, after the answer has been sent: to make a sandbox takes
		// processor time.
		x.e.pool.Running(-1)
		if !goesOn {
			return
		}
		var ok bool
		if d, ok = x.pause(); !ok {
			return
		}
	}
}

// relive goes on with an execution that was taken over, from where it stands.
func (x *execution) relive(at standing) {
	switch {
	case at == running:
		x.live(delivery{})
		return
	case at == paused && x.sandbox.Hello.State != sandbox.Paused:
		x.leave(Expired) // Its sandbox died while it was paused.
	default:
		x.skipRepeated()
		if d, ok := x.pause(); ok {
			x.live(d)
			return
		}
	}
	x.end()
}

// skipRepeated takes what a paused sandbox that was taken over repeats: the calls
// that it waits for, which must not be taken for those of the next pause.
func (x *execution) skipRepeated() {
	if x.sandbox.Hello.State != sandbox.Paused {
		return
	}
	timer := time.NewTimer(attachTimeout)
	defer timer.Stop()
	select {
	case event := <-x.sandbox.Events():
		if calls, ok := event.(*sandbox.Calls); ok {
			calls.Release()
		}
	case <-timer.C:
	case <-x.conversation.cancelled:
	}
}

// end gives back what the execution holds.
func (x *execution) end() {
	defer x.e.forget(x)
	x.counted.drop()
	defer x.conversation.saveLate(x.conversation.cancelled)
	if x.conversation.owned() {
		x.e.pool.Release(x.sandbox)
	} else {
		x.e.pool.Abandon(x.sandbox)
	}
}

// settle answers the request of a stretch of running that has come to rest. It reports
// whether the execution goes on, paused.
func (x *execution) settle(e ending) bool {
	// Before the client has the answer, after which it may start another execution.
	x.counted.move(e.state)
	return x.conversation.settle(e)
}

// leave ends a pause without a continuation, unless a claim came first: then it returns what
// the claim has brought.
func (x *execution) leave(to State) (delivery, bool) {
	if !x.conversation.leave(to) {
		return <-x.conversation.deliveries, true
	}
	return delivery{}, false
}

// pause waits for the claim of the round and returns what the program goes on with. It reports
// false if the execution ended instead.
func (x *execution) pause() (delivery, bool) {
	x.counted.move(Paused)
	record := x.conversation.copy()
	timer := time.NewTimer(time.Until(record.Deadline))
	begun := record.Round > 0 || x.sandbox.Hello.State != sandbox.Ready
	defer timer.Stop()
	rest := time.NewTimer(stopAfter)
	defer rest.Stop()
	// This timer runs while the program has been told to stop and has not stopped yet.
	restless := time.NewTimer(time.Hour)
	restless.Stop()
	defer restless.Stop()
	m := meter{began: x.rested}
	if x.rested.IsZero() {
		m.began = time.Now() // It was taken over.
	}
	if !begun {
		rest.Stop() // Its program is still to come.
		m.still = true
	}
	for {
		select {
		case d := <-x.conversation.deliveries:
			x.conversation.spend(m.stop(time.Now()))
			return d, true
		case <-rest.C:
			if !x.e.members.holds() {
				rest.Reset(stopRetry) // It may be another server's.
				continue
			}
			m.asked = time.Now()
			restless.Reset(max(x.conversation.budget(), stopTimeout))
			_ = x.sandbox.Stop() // A sandbox that cannot be told has ended, which its events show.
		case event := <-x.sandbox.Events():
			switch event := event.(type) {
			case sandbox.Stopped:
				x.conversation.spend(m.stop(time.Now()))
				rest.Stop()
				restless.Stop()
			case sandbox.Ran:
				x.conversation.spend(event.Time)
				if x.conversation.budget() == 0 {
					return x.leave(TimedOut)
				}
			default:
				// The sandbox has died, or broken the rules: the program cannot go on.
				return x.leave(Expired)
			}
		case <-restless.C:
			x.conversation.spend(m.stop(time.Now()))
			return x.leave(TimedOut)
		case <-timer.C:
			return x.leave(Expired)
		case <-x.conversation.left:
			return delivery{}, false
		case <-x.conversation.cancelled:
			return x.leave(Cancelled)
		}
	}
}

// stopRetry is when a server that does not hold its lease looks again.
const stopRetry = time.Second

// stopTimeout is how long the stopping of a program may take even if it has no time left.
const stopTimeout = 2 * time.Second
