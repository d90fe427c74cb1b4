package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// live runs the program to its end, answering segment by segment. The first one begins with
// a delivery.
func (x *execution) live(d delivery) {
	defer x.end()
	for {
		goesOn := x.settle(x.run(d))
		// What the pool has waited with can wait until the answer is on its way.
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

// stands reports whether the sandbox is paused in the round that the record names,
// or waits for the program.
func (x *execution) stands() bool {
	switch hello := x.sandbox.Hello; hello.State {
	case sandbox.Ready:
		return x.record.Round == 0
	case sandbox.Paused:
		return hello.Round == x.record.Round
	default:
		return false
	}
}

// recall brings an execution that was taken over to where its former server left it.
func (x *execution) recall() error {
	switch {
	case State(x.record.State) == Paused:
		x.segment = answered(x.record.Round-1, x.record.Request)
		var err error
		x.segment.outcome, err = lastAnswer(x.record)
		return err
	case x.stands():
		// The round was claimed, but its results never arrived; or the execution was
		// recorded, but its program never arrived.
		x.undelivered = true
	default:
		// It runs, or came to rest when nobody listened, which it repeats.
		x.begin(x.record.Round, x.record.Request, "")
	}
	return nil
}

// relive goes on from there.
func (x *execution) relive() {
	x.mu.Lock()
	paused, stands := State(x.record.State) == Paused, x.stands()
	x.mu.Unlock()
	switch {
	case stands:
		x.skipRepeated()
		if d, ok := x.pause(); ok {
			x.live(d)
			return
		}
	case paused:
		// It died while it was paused.
		x.leave(Expired)
	default:
		x.live(delivery{})
		return
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
	case <-x.cancelled:
	}
}

// end gives back what the execution holds.
func (x *execution) end() {
	defer x.e.forget(x)
	x.counted.drop()
	defer x.saveLate()
	if x.owned() {
		x.e.pool.Release(x.sandbox)
	} else {
		x.e.pool.Abandon(x.sandbox)
	}
}

// owned reports whether the sandbox is still this server's to act on. A server that
// was away for longer than its lease asks the store, and where that does not answer
// keeps its hands off: a sandbox without a server ends by itself.
func (x *execution) owned() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lost || x.record.Version == 0 || x.e.members.holds() {
		return !x.lost
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	record, err := x.e.o.Store.Get(ctx, x.id)
	x.lost = err != nil || record.Owner != x.e.members.instance
	return !x.lost
}

// settle records how a stretch of running ended and answers its request. It
// reports whether the execution goes on, paused.
func (x *execution) settle(e ending) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.segment
	defer close(s.done)
	// Before the client has the answer, after which it may start another one.
	x.counted.move(e.state)
	next, err := move(x.record, e.state)
	if err != nil {
		s.err = err
		return false
	}
	next.Spent += e.ran
	if e.state != Paused {
		s.outcome = e.outcome(next.Session)
		s.outcome.Ran = next.Spent
		x.finish(next, s.outcome)
		return false
	}
	next.Deadline = time.Now().Add(x.e.pauseLifetime(next))
	next.Issued += e.issued
	next.Pending = e.pending
	x.e.tally.paused()
	s.outcome, s.err = x.paused(next, e.calls)
	// A pause that the store did not take can be asked for again by whoever has a
	// token of the round before it, or the key of the start.
	return s.err == nil || x.unsaved && (s.round > 0 || next.Start != "")
}

// commit writes what has happened, or notes that the store does not take it now. mu
// is held.
func (x *execution) commit(next continuation.Record) error {
	err := x.put(context.Background(), next)
	if errors.Is(err, continuation.ErrUnavailable) {
		x.become(next)
		x.unsaved = true
	}
	return err
}

// paused writes the record of a pause and returns the answer that announces it. mu
// is held.
func (x *execution) paused(next continuation.Record, calls []Call) (Outcome, error) {
	token, err := x.e.o.Signer.Sign(continuation.Claims{
		Execution: next.ID, Session: next.Session, Principal: next.Principal,
		Round: next.Round, Expires: next.Deadline,
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("sign token: %w", err)
	}
	outcome := Outcome{State: Paused, Session: next.Session, Token: token, Calls: calls}
	if next.Answer, err = outcome.encode(); err != nil {
		return Outcome{}, err
	}
	return outcome, x.commit(next)
}

// finish writes the record of an end, if anybody could ask for it. mu is held.
func (x *execution) finish(next continuation.Record, outcome Outcome) {
	if !x.lost {
		x.e.tally.ended(outcome)
	}
	next.Deadline = time.Now().Add(x.e.o.KeepAnswers)
	next.Pending, next.Tools = nil, nil
	if next.Version == 1 {
		// It never paused: there is no token, so nobody can.
		x.become(next)
		return
	}
	answer, err := outcome.encode()
	if err == nil {
		if x.e.quota.keep(next.Principal, weight(next)+int64(len(answer)), x.e.o.KeepAnswers+recordSlack) {
			next.Answer = answer
		} else {
			// Who asks again is told that it is over, as when the answer has expired.
			x.e.o.Log.Warn("an answer is not kept: too much is stored for its principal", "execution", x.id)
		}
		err = x.commit(next)
	}
	if err != nil {
		x.e.o.Log.Error("cannot record the end of an execution", "execution", x.id, "err", err)
		x.become(next)
	}
}

// pauseLifetime is how long the coming pause may last.
func (e *Engine) pauseLifetime(r continuation.Record) time.Duration {
	if !e.o.WallClock {
		return e.o.PauseTTL
	}
	return min(e.o.PauseTTL, max(0, r.Budget-time.Since(r.Created)))
}

// pause waits for the claim of the round and returns what the program goes on with. It reports
// false if the execution ended instead.
func (x *execution) pause() (delivery, bool) {
	x.counted.move(Paused)
	x.mu.Lock()
	timer := time.NewTimer(time.Until(x.record.Deadline))
	begun := x.record.Round > 0 || x.sandbox.Hello.State != sandbox.Ready
	x.mu.Unlock()
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
		case d := <-x.resumed:
			x.spend(m.stop(time.Now()))
			return d, true
		case <-rest.C:
			if !x.e.members.holds() {
				rest.Reset(stopRetry) // It may be another server's.
				continue
			}
			m.asked = time.Now()
			restless.Reset(max(x.budget(), stopTimeout))
			_ = x.sandbox.Stop() // If it cannot be told it has ended, which shows.
		case event := <-x.sandbox.Events():
			switch event := event.(type) {
			case sandbox.Stopped:
				x.spend(m.stop(time.Now()))
				rest.Stop()
				restless.Stop()
			case sandbox.Ran:
				x.spend(event.Time)
				if x.budget() == 0 {
					return x.leave(TimedOut)
				}
			default:
				// The sandbox has died, or broken the rules: the program cannot go on.
				return x.leave(Expired)
			}
		case <-restless.C:
			x.spend(m.stop(time.Now()))
			return x.leave(TimedOut)
		case <-timer.C:
			return x.leave(Expired)
		case <-x.parted:
			return delivery{}, false
		case <-x.cancelled:
			return x.leave(Cancelled)
		}
	}
}

// stopAfter is how long a pause lasts until what still runs in the sandbox is stopped.
// Most programs have come to rest by themselves when they pause: to stop them and let
// them go on would cost a client that answers at once more than its program takes.
const stopAfter = 10 * time.Millisecond

// stopRetry is when a server that does not hold its lease looks again.
const stopRetry = time.Second

// stopTimeout is how long the stopping of a program may take even if it has no time left.
const stopTimeout = 2 * time.Second

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

// spend counts time against the budget.
func (x *execution) spend(d time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.record.Spent += d
}

// part leaves the execution to a later server. It reports false if it is not paused.
func (x *execution) part() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if State(x.record.State) != Paused || x.lost || x.unsaved {
		return false
	}
	// From here on the execution is not this server's: no claim passes.
	x.lost = true
	close(x.parted)
	return true
}

// leave ends a pause without a continuation, unless a claim was first.
func (x *execution) leave(to State) (delivery, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case d := <-x.resumed:
		return d, true
	default:
	}
	if x.lost {
		return delivery{}, false
	}
	if x.undelivered {
		to = Cancelled
	}
	next, err := move(x.record, to)
	if err != nil {
		return delivery{}, false
	}
	x.counted.move(to) // What the pause has stored leaves room for the answer.
	x.finish(next, Outcome{State: to, Session: next.Session})
	return delivery{}, false
}
