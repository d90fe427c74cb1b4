package core

import (
	"encoding/json"
	"slices"
	"time"

	"fermata/continuation"
)

// A Change is what something leaves in the next version of a record. The state is no part of it: see Move.
type Change func(next *continuation.Record)

// Claim returns what the claim of a round leaves in the record r of a pause: the calls stay, in case that the server
// dies before the program has their results. received is how many bytes of results the execution has got in all.
func (s *Settlement) Claim(r continuation.Record, request string, received int64, now time.Time) (Change, error) {
	after, err := s.after(r.Pending)
	if err != nil {
		return nil, err
	}
	return func(next *continuation.Record) {
		next.Received, next.Pending = received, after
		next.Request, next.Answer = request, nil
		next.Deadline = now.Add(next.Budget - next.Spent)
	}, nil
}

// Pause returns what a pause leaves in the record. rests is how often the program has come to rest, and answer what
// its client is told.
func (e Ending) Pause(rests int, answer json.RawMessage, deadline time.Time) Change {
	return func(next *continuation.Record) {
		next.Spent += e.Ran
		next.Issued += e.Fresh
		next.Rests = rests
		next.Pending, next.Answer, next.Deadline = e.Pending, answer, deadline
	}
}

// End returns what the end of an execution leaves in its record. ran is added to the time that the program has run,
// and keep is how long a client can ask for the answer, which is no part of the change.
func (o Outcome) End(ran, keep time.Duration, now time.Time) Change {
	return func(next *continuation.Record) {
		next.Spent += ran
		next.Deadline = now
		if Repeatable(*next) {
			next.Deadline = now.Add(keep)
		}
		next.Pending, next.Tools, next.Outputs = nil, nil, nil
		next.Reason, next.Detail = string(o.Reason), o.Why()
	}
}

// Repeatable reports whether a client can ask for the answer of an execution again: with a token, with the key of the
// start, or by the id.
func Repeatable(r continuation.Record) bool { return r.Round > 0 || r.Start != "" || r.Kept }

// Starts returns what the calls of a plan that begin, or fail at once, leave in the record r: those that begin are
// recorded before the first of them leaves. Their ids were given; issued is how many calls have ids. If the store does
// not accept that, none begins, and failed is the change of the record. A call that an earlier server has begun stays
// when it fails, until the program has got that: otherwise the next server would take it for a new one.
func (p Plan) Starts(r continuation.Record, issued int) (begun, failed Change, err error) {
	var begin, others, again []continuation.Call
	reserved := int64(0)
	for _, b := range p.Begin {
		if b.Refusal == "" {
			begin = append(begin, b.Entry)
			reserved += b.Entry.Cost
		}
	}
	for _, call := range r.Pending {
		i := slices.IndexFunc(p.Begin, func(b *Proposal) bool { return b.Number == call.Number })
		state := StateOf(call)
		if i >= 0 && state == CallBegun {
			if err := MoveCall(&call, CallEnded); err != nil {
				return nil, nil, err
			}
			state = CallEnded
		}
		switch {
		case i >= 0 && p.Begin[i].Refusal == "":
			reserved -= call.Cost // A former server has reserved it. If the call is not repeated it may have taken effect.
			if state == CallEnded {
				again = append(again, call)
			}
		case i < 0 && state.Open(), state == CallEnded:
			others = append(others, call)
		}
	}
	begun = func(next *continuation.Record) {
		next.Pending, next.Issued, next.Cost = slices.Concat(begin, others), issued, next.Cost+reserved
	}
	failed = func(next *continuation.Record) { next.Pending, next.Issued = slices.Concat(again, others), issued }
	return begun, failed, nil
}

// Forget returns the change of a record from which calls are taken that have ended.
func Forget(ended func(continuation.Call) bool) Change {
	return func(next *continuation.Record) { next.Pending = slices.DeleteFunc(slices.Clone(next.Pending), ended) }
}

// Settle returns what the end of a call that the server has run leaves in the record r. The call stays until the
// program has got the result. received is how many bytes of results the execution has got in all, and back is what of
// the cost of the call is given back.
func Settle(r continuation.Record, number int, received, back int64) (Change, error) {
	pending := slices.Clone(r.Pending)
	for i := range pending {
		if pending[i].Number == number {
			if err := MoveCall(&pending[i], CallEnded); err != nil {
				return nil, err
			}
			pending[i].Cost -= back
		}
	}
	return func(next *continuation.Record) {
		next.Pending, next.Received, next.Cost = pending, received, next.Cost-back
	}, nil
}

// Got reports whether a call has ended whose result the program has got: it does not wait for the call any more.
func Got(c continuation.Call, awaited map[int]bool) bool {
	return StateOf(c) == CallEnded && !awaited[c.Number]
}
