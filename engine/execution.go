package engine

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// An execution is one run of one program on this server. A goroutine of its own (live)
// drives the sandbox; requests meet it in its conversation.
type execution struct {
	id        string
	principal string
	e         *Engine
	sandbox   *sandbox
	// conversation is what requests meet.
	conversation *conversation
	cancelled    chan struct{}
	cancel       func()
	// counted is its part of what its principal may have.
	counted *share
	// stored is how many bytes of the latest pause are counted. It is live's own.
	stored int64
	// requestID is what the client calls the latest request.
	requestID atomic.Pointer[string]
	// rested is when the program last came to rest. It is live's own.
	rested time.Time
}

func newExecution(e *Engine, c *conversation, sb *sandbox, counted *share) *execution {
	cancelled := make(chan struct{})
	return &execution{
		id:           c.record.ID,
		principal:    c.record.Principal,
		e:            e,
		sandbox:      sb,
		conversation: c,
		cancelled:    cancelled,
		cancel:       sync.OnceFunc(func() { close(cancelled) }),
		counted:      counted,
	}
}

// live runs the program to its end, answering segment by segment. The first begins with a
// frame, or none if the program runs already.
func (x *execution) live(kind frameKind, payload [][]byte) {
	defer x.end()
	for {
		goesOn := x.settle(x.run(kind, payload))
		// What the pool has waited with can wait until the answer is on its way.
		x.e.pool.running(-1)
		if !goesOn {
			return
		}
		var ok bool
		if payload, ok = x.pause(); !ok {
			return
		}
		kind = frameResults
	}
}

// relive goes on with an execution that was taken over, from where it stands.
func (x *execution) relive(at standing) {
	switch {
	case at == running:
		x.live(0, nil)
		return
	case at == paused && x.sandbox.hello.State != "paused":
		x.leave(Expired) // Its sandbox died while it was paused.
	default:
		x.skipRepeated()
		if payload, ok := x.pause(); ok {
			kind := frameResults
			if x.conversation.copy().Round == 0 {
				kind = frameProgram
			}
			x.live(kind, payload)
			return
		}
	}
	x.end()
}

// skipRepeated takes what a paused sandbox that was taken over repeats: the calls
// that it waits for, which must not be taken for those of the next pause.
func (x *execution) skipRepeated() {
	if x.sandbox.hello.State != "paused" {
		return
	}
	timer := time.NewTimer(attachTimeout)
	defer timer.Stop()
	select {
	case f := <-x.sandbox.frames:
		f.release()
	case <-timer.C:
	case <-x.cancelled:
	}
}

// end gives back what the execution holds.
func (x *execution) end() {
	defer x.e.forget(x)
	x.counted.drop()
	defer x.conversation.saveLate(x.cancelled)
	if x.conversation.owned() {
		x.e.pool.release(x.sandbox)
	} else {
		x.e.pool.abandon(x.sandbox)
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
func (x *execution) leave(to State) ([][]byte, bool) {
	if !x.conversation.leave(to) {
		return <-x.conversation.results, true
	}
	return nil, false
}

// pause waits for the claim of the round and returns the results. It reports false
// if the execution ended instead.
func (x *execution) pause() ([][]byte, bool) {
	x.counted.move(Paused)
	record := x.conversation.copy()
	timer := time.NewTimer(time.Until(record.Deadline))
	begun := record.Round > 0 || x.sandbox.hello.State != "ready"
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
		case results := <-x.conversation.results:
			x.conversation.spend(m.stop(time.Now()))
			return results, true
		case <-rest.C:
			if !x.e.members.holds() {
				rest.Reset(stopRetry) // It may be another server's.
				continue
			}
			m.asked = time.Now()
			restless.Reset(max(x.conversation.budget(), stopTimeout))
			_ = x.sandbox.stop() // If it cannot be told it has ended, which shows.
		case f, ok := <-x.sandbox.frames:
			switch {
			case ok && f.kind == frameStopped:
				if x.sandbox.still(f) {
					x.conversation.spend(m.stop(time.Now()))
					rest.Stop()
					restless.Stop()
				}
			case ok && f.kind == frameRan && x.ran(f.payload) == nil:
				if x.conversation.budget() == 0 {
					return x.leave(TimedOut)
				}
			default:
				// It has died, or broken the rules: it cannot be gone on with.
				return x.leave(Expired)
			}
		case <-restless.C:
			x.conversation.spend(m.stop(time.Now()))
			return x.leave(TimedOut)
		case <-timer.C:
			return x.leave(Expired)
		case <-x.conversation.left:
			return nil, false
		case <-x.cancelled:
			return x.leave(Cancelled)
		}
	}
}

// stopRetry is when a server that does not hold its lease looks again.
const stopRetry = time.Second

// stopTimeout is how long the stopping of a program may take even if it has no time left.
const stopTimeout = 2 * time.Second

// ran counts the processor time that a program has used while it was stopped.
func (x *execution) ran(payload []byte) error {
	nanoseconds, err := strconv.ParseUint(string(payload), 10, 62)
	if err != nil {
		return fmt.Errorf("time that a program has run: %w", err)
	}
	x.conversation.spend(time.Duration(nanoseconds))
	return nil
}
