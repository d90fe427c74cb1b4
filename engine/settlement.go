package engine

import (
	"encoding/json"
	"slices"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// A decision is what somebody has decided about a call that waits for approval.
type decision struct {
	call    continuation.Call
	approve bool
	reason  string
	// If the tool is the client's, answer is the result that came with the approval, and input the input
	// with which the client was asked to call the tool. Otherwise answer is nil.
	answer *reply
	input  json.RawMessage
}

// A settlement is what a continuation brings.
type settlement struct {
	// results are for the sandbox, and answered are the ids of their calls.
	results  []sandbox.Result
	answered map[string]bool
	// plain are the results of calls that needed no approval.
	plain     []reply
	decisions []decision
	// handed are the results that hand files over. The journal gets them when the files are kept.
	handed []handing
}

// settlementOf translates the results of a client. A ResultError names the first result whose call is
// not pending, an ApprovalError the first one that does not fit the approval of its call.
func settlementOf(pending []continuation.Call, results []Result) (settlement, error) {
	s := settlement{results: []sandbox.Result{}, answered: map[string]bool{}}
	open := make(map[string]continuation.Call, len(pending))
	for _, c := range pending {
		open[c.ID] = c
		if stateOf(c).refused() {
			s.deliver(c, sandbox.Result{Value: quoted(refusedText(c.Reason)), Failed: true})
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
		switch stateOf(call) {
		case callApproved, callRefused, callTold: // Somebody has decided on the call meanwhile.
		case callAsked, callOperator, callDecided:
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

// take takes the result of a call that needs no approval, or whose approval and result a server has taken
// that has died since.
func (s *settlement) take(call continuation.Call, r Result) error {
	if r.Approve != nil && stateOf(call).open() {
		return &ApprovalError{call.ID, "does not wait for approval"}
	}
	a := replyTo(call, r)
	s.plain = append(s.plain, a)
	s.bring(call, a)
	return nil
}

// decide takes what a result says of a call that waits for approval.
func (s *settlement) decide(call continuation.Call, r Result) error {
	answered := r.Given || r.Failed
	switch {
	case r.Approve == nil && (call.Server || !answered):
		return &ApprovalError{call.ID, "waits for approval: approve must be true or false"}
	case stateOf(call) == callOperator:
		return &ApprovalError{call.ID, "waits for the approval of an operator"}
	case answered && call.Server:
		return &ApprovalError{call.ID, "is run by the server: it takes approve and no result"}
	}
	d := decision{call: call, approve: r.Approve == nil || *r.Approve, reason: r.Reason}
	switch {
	case !d.approve:
		s.deliver(call, sandbox.Result{Value: quoted(refusedText(r.Reason)), Failed: true})
	case answered:
		a := replyTo(call, r)
		d.answer = &a
		s.bring(call, a)
	}
	s.decisions = append(s.decisions, d)
	return nil
}

// bring delivers the result of a client.
func (s *settlement) bring(call continuation.Call, a reply) {
	if len(a.files) > 0 {
		noted := stateOf(call) == callAnswered
		s.handed = append(s.handed, handing{a, len(s.results), call.Started, noted})
	}
	s.deliver(call, a.forSandbox())
}

func (s *settlement) deliver(call continuation.Call, r sandbox.Result) {
	r.Number = call.Number
	s.results = append(s.results, r)
	s.answered[call.ID] = true
}

// ask completes the decisions about calls that the client has run. asked is the answer that has the inputs
// of these calls.
func (s *settlement) ask(asked Outcome) {
	for i, d := range s.decisions {
		for _, call := range asked.Calls {
			if d.answer != nil && call.ID == d.call.ID {
				s.decisions[i].input = call.Input
			}
		}
	}
}

// refusedText returns the error of a call that was refused.
func refusedText(reason string) string {
	if reason == "" {
		return textRefused
	}
	return textRefused + ": " + reason
}

// after returns the pending calls of a pause after a settlement.
func (s *settlement) after(pending []continuation.Call) ([]continuation.Call, error) {
	pending = slices.Clone(pending)
	for i := range pending {
		call := &pending[i]
		if err := moveCall(call, s.leads(*call)); err != nil {
			return nil, err
		}
	}
	return pending, nil
}

// leads returns to which state a settlement leads a call.
func (s *settlement) leads(call continuation.Call) callState {
	from := stateOf(call)
	switch {
	case slices.ContainsFunc(s.handed, func(h handing) bool { return h.CallID == call.ID }):
		return callHanded
	case slices.ContainsFunc(s.decisions, func(d decision) bool { return d.call.ID == call.ID && d.approve && d.answer == nil }):
		return callApproved
	case !s.answered[call.ID]:
		return from
	case from == callRefused:
		return callTold
	case from == callAsked:
		return callDecided
	default:
		return callAnswered
	}
}
