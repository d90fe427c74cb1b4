package engine

import (
	"errors"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// publishResults is how long the journal waits with the results of the server's calls for a write that
// brings them along, such as that of the next calls.
const publishResults = 20 * time.Millisecond

// beginCalls records that the calls of a plan begin, before the first of them leaves. If the store is
// away none of them begins: they fail. The error is ErrOwnerAway if this server has lost the
// execution.
func beginCalls(c *ledger, p core.Plan) error {
	c.quiet()
	if c.standing != core.StandsRunning {
		return ErrOwnerAway
	}
	begun, failed, err := p.Starts(c.record, core.GiveIDs(p.Begin, c.record.Issued))
	if err != nil {
		return err
	}
	for _, b := range p.Begin {
		c.chronicle.noteBegin(b)
		if b.Refusal != "" && b.ByServer && !b.Ended {
			c.tally.call(true)
		}
	}
	err = c.amend(begun)
	if errors.Is(err, continuation.ErrUnavailable) {
		c.note(failed)
		for _, b := range p.Begin {
			if b.Refusal == "" {
				b.Refusal = core.TextStoreAway
				if !b.Ended {
					c.chronicle.Note(c.chronicle.failure(b.Entry.ID, core.TextStoreAway, 0))
				}
			}
		}
		return nil
	}
	return err
}

// endCall notes what has come of a call that the server has run, unless the program has given it up. The
// next write of the record has it.
func endCall(c *ledger, s *served) error {
	received := c.record.Received + max(s.size, int64(len(s.output)))
	if limit := c.o.MaxResults; s.message == "" && limit > 0 && received > limit {
		s.message, s.output = (&core.ResultsError{Size: received, Limit: limit}).Told(), nil
	} else if s.message == "" && c.o.Used != nil {
		c.o.Used(c.record.Principal, s.tool.Toolset, s.tool.Cost)
	}
	c.tally.call(s.message != "")
	took := journal.Since(s.call.Started)
	if s.message != "" || s.givenUp || s.again {
		received = c.record.Received
	}
	back := int64(0)
	if s.message != "" && !s.unknown {
		back = s.call.Cost
	}
	change, err := core.Settle(c.record, s.call.Number, received, back)
	if err != nil {
		return err
	}
	c.note(change)
	switch {
	case s.givenUp, s.again:
		return nil // The journal has its end already.
	case s.message != "":
		c.chronicle.Note(c.chronicle.failureTold(s.call.ID, s.message, s.details, took))
		return nil
	}
	c.chronicle.Note(&journal.CallCompleted{
		Call: s.call.ID, Record: c.chronicle.recordName(s.call.ID), Output: c.chronicle.Value(s.output), Took: took, Cost: s.tool.Cost,
	})
	return nil
}

// givenUp notes the calls that the server runs on, though the program does not wait for them any more.
func givenUp(c *ledger, calls []*served) {
	for _, s := range calls {
		c.note(core.Forget(func(p continuation.Call) bool { return p.Number == s.call.Number }))
		if !s.again {
			c.chronicle.Note(c.chronicle.failure(s.call.ID, textGivenUp, journal.Since(s.call.Started)))
		}
	}
}

// missed forgets the calls whose results the program has got. Of those that a former server has begun the journal may
// not know that.
func missed(c *ledger, awaited map[int]bool, w *crew) {
	c.note(core.Forget(func(p continuation.Call) bool {
		if core.Got(p, awaited) {
			return true
		}
		if core.StateOf(p) != core.CallBegun || awaited[p.Number] || w.Has(p.Number) {
			return false
		}
		c.chronicle.Note(&journal.CallCompleted{
			Call: p.ID, Record: c.chronicle.recordName(p.ID), Took: journal.Since(p.Started), Cost: p.Cost,
		})
		return true
	}))
}

// noteBegin notes that a call begins, and if it fails at once, that too.
func (c *chronicle) noteBegin(p *core.Proposal) {
	if p.Unbegun {
		c.Note(c.begun(core.IssuedCall{Call: core.Call{ID: p.Entry.ID, Name: p.Tool, Input: []byte(p.Input), Toolset: p.Key}, Line: p.Line, Server: p.ByServer}))
	}
	if p.Refusal != "" && !p.Ended {
		c.Note(c.failure(p.Entry.ID, p.Refusal, 0))
	}
}

// rest decides about the calls of a program that has come to rest, and lets those begin that the server
// runs. It reports false if the program goes on, or waits for the server.
func (s *stretch) rest(calls *sandbox.Calls) (e core.Ending, rested bool) {
	d := s.dispatcher
	record := s.c.record
	var p core.Plan
	err := s.checker.gently(calls.Size(), func() (err error) {
		p, e, err = d.Plan(calls, record, time.Now())
		return err
	})
	calls.Release() // From here on the calls themselves are counted, and the bytes of the frame no more.
	if err != nil || e.State == core.Failed {
		return s.rested(e, err), true
	}
	missed(s.c.ledger, p.Awaited, s.crew)
	givenUp(s.c.ledger, s.crew.giveUp(p.Awaited))
	s.crew.rest(p.Awaited, p.Wakes)
	if len(p.Begin) == 0 && s.crew.idle() {
		return s.rested(d.Pause(p, record, s.checker.maxRounds), nil), true
	}
	return s.begin(p)
}

// begin lets the calls of a plan begin, and gives the program the results that are there.
func (s *stretch) begin(p core.Plan) (core.Ending, bool) {
	if len(p.Begin) > 0 {
		if err := beginCalls(s.c.ledger, p); err != nil {
			return s.lostOwner(err)
		}
		if s.doomed != nil {
			return core.Ending{}, false // No call leaves any more.
		}
		for _, b := range p.Begin {
			if b.Refusal != "" {
				continue
			}
			if err := s.counted.Hold(int64(cap(b.Input)) + core.CallOverhead); err != nil {
				return s.broken(sandbox.Broken{Err: err, ByProgram: true}), true
			}
		}
		s.crew.begin(p)
	}
	return s.goOn(false)
}

// lostOwner returns the ending of a program whose calls cannot be recorded. If the execution is another
// server's by now, that one goes on with it.
func (s *stretch) lostOwner(err error) (core.Ending, bool) {
	if errors.Is(err, ErrOwnerAway) {
		return core.Ending{State: core.Cancelled}, true
	}
	return s.broken(sandbox.Broken{Err: err}), true
}

// served takes the result of a call that has ended, and those of others that have ended meanwhile.
func (s *stretch) served(first *served) (core.Ending, bool) {
	w := s.crew
	for next := first; next != nil; {
		s.counted.Release(next.held)
		if e, rested := (keeper{s}).open(next); rested {
			return e, true
		}
		if err := endCall(s.c.ledger, next); err != nil {
			return s.broken(sandbox.Broken{Err: err}), true
		}
		w.end(next)
		select {
		case next = <-w.done:
		default:
			next = nil
		}
	}
	return s.goOn(false)
}

// goOn gives a program that rests the results that are there. If a timer of the program is due, it goes on
// without any.
func (s *stretch) goOn(due bool) (core.Ending, bool) {
	results, now := s.crew.results(due)
	if !now {
		return core.Ending{}, false
	}
	if err := s.sandbox.Resume(results); err != nil {
		return s.sandboxLost(s.sandbox.Err()), true
	}
	return core.Ending{}, false
}
