package core

import (
	"encoding/json"
	"slices"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// A Decision is what somebody has decided about a call that waits for approval.
type Decision struct {
	Call    continuation.Call
	Approve bool
	Reason  string
	// If the tool is the client's, answer is the result that came with the approval, and input the input
	// with which the client was asked to call the tool. Otherwise answer is nil.
	Answer *Reply
	Input  json.RawMessage
}

// A Settlement is what a continuation brings.
type Settlement struct {
	// Results are for the sandbox, and answered are the ids of their calls.
	Results  []sandbox.Result
	answered map[string]bool
	// Plain are the results of calls that needed no approval.
	Plain     []Reply
	Decisions []Decision
	// Handed are the results that hand files over. The journal gets them when the files are kept.
	Handed []Handing
}

// SettlementOf translates the results of a client. A ResultError names the first result whose call is
// not pending, an ApprovalError the first one that does not fit the approval of its call.
func SettlementOf(pending []continuation.Call, results []Result) (Settlement, error) {
	s := Settlement{Results: []sandbox.Result{}, answered: map[string]bool{}}
	open := make(map[string]continuation.Call, len(pending))
	for _, c := range pending {
		open[c.ID] = c
		if StateOf(c).Refused() {
			s.deliver(c, sandbox.Result{Value: Quoted(RefusedText(c.Reason)), Failed: true})
		}
	}
	for _, r := range results {
		call, ok := open[r.CallID]
		if !ok {
			return s, &ResultError{CallID: r.CallID}
		}
		// The call is not pending any more, so a second result for it is an error.
		delete(open, r.CallID)
		var err error
		switch StateOf(call) {
		case CallApproved, CallRefused, CallTold: // Somebody has decided on the call meanwhile.
		case CallAsked, CallOperator, CallDecided:
			err = s.decide(call, r)
		default:
			err = s.take(call, r)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// take accepts the result of a call that needs no approval, or whose approval and result another server has accepted
// before it died.
func (s *Settlement) take(call continuation.Call, r Result) error {
	if r.Approve != nil && StateOf(call).Open() {
		return &ApprovalError{call.ID, "does not wait for approval"}
	}
	a := replyTo(call, r)
	s.Plain = append(s.Plain, a)
	s.bring(call, a)
	return nil
}

// decide takes what a result says of a call that waits for approval.
func (s *Settlement) decide(call continuation.Call, r Result) error {
	answered := r.Given || r.Failed
	switch {
	case r.Approve == nil && (call.Server || !answered):
		return &ApprovalError{call.ID, "waits for approval: approve must be true or false"}
	case StateOf(call) == CallOperator:
		return &ApprovalError{call.ID, "waits for the approval of an operator"}
	case answered && call.Server:
		return &ApprovalError{call.ID, "is run by the server: it takes approve and no result"}
	}
	d := Decision{Call: call, Approve: r.Approve == nil || *r.Approve, Reason: r.Reason}
	switch {
	case !d.Approve:
		s.deliver(call, sandbox.Result{Value: Quoted(RefusedText(r.Reason)), Failed: true})
	case answered:
		a := replyTo(call, r)
		d.Answer = &a
		s.bring(call, a)
	}
	s.Decisions = append(s.Decisions, d)
	return nil
}

// bring delivers the result of a client.
func (s *Settlement) bring(call continuation.Call, a Reply) {
	if len(a.Files) > 0 {
		noted := StateOf(call) == CallAnswered
		s.Handed = append(s.Handed, Handing{a, len(s.Results), call.Started, noted})
	}
	s.deliver(call, a.ForSandbox())
}

func (s *Settlement) deliver(call continuation.Call, r sandbox.Result) {
	r.Number = call.Number
	s.Results = append(s.Results, r)
	s.answered[call.ID] = true
}

// Ask completes the decisions about calls that the client has run. asked is the answer that has the inputs
// of these calls.
func (s *Settlement) Ask(asked Outcome) {
	for i, d := range s.Decisions {
		for _, call := range asked.Calls {
			if d.Answer != nil && call.ID == d.Call.ID {
				s.Decisions[i].Input = call.Input
			}
		}
	}
}

// Approve returns the pending calls after an approval of the i-th of them that has come by itself.
func Approve(pending []continuation.Call, i int, approve bool, reason string) ([]continuation.Call, error) {
	to := CallRefused
	if approve {
		to = CallApproved
	}
	pending = slices.Clone(pending)
	pending[i].Reason = reason
	return pending, MoveCall(&pending[i], to)
}

// RefusedText returns the error of a call that was refused.
func RefusedText(reason string) string {
	if reason == "" {
		return textRefused
	}
	return textRefused + ": " + reason
}

// after returns the pending calls of a pause after a settlement.
func (s *Settlement) after(pending []continuation.Call) ([]continuation.Call, error) {
	pending = slices.Clone(pending)
	for i := range pending {
		call := &pending[i]
		if err := MoveCall(call, s.leads(*call)); err != nil {
			return nil, err
		}
	}
	return pending, nil
}

// leads returns to which state a settlement leads a call.
func (s *Settlement) leads(call continuation.Call) CallState {
	from := StateOf(call)
	switch {
	case slices.ContainsFunc(s.Handed, func(h Handing) bool { return h.CallID == call.ID }):
		return CallHanded
	case slices.ContainsFunc(s.Decisions, func(d Decision) bool { return d.Call.ID == call.ID && d.Approve && d.Answer == nil }):
		return CallApproved
	case !s.answered[call.ID]:
		return from
	case from == CallRefused:
		return CallTold
	case from == CallAsked:
		return CallDecided
	default:
		return CallAnswered
	}
}
