package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// decidedRequest is what the record has in place of the hash of a request, if the server has claimed the
// round itself because an Approval has decided on the last call of the pause. It is stored, so it must not
// change. It cannot be equal to a hash.
const decidedRequest = "decided"

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

// noteDecisions notes what a principal has decided in the journal.
func (c *chronicle) noteDecisions(decisions []decision, by string) (notes journal.Notes) {
	for _, d := range decisions {
		notes = append(notes, c.Note(&journal.ApprovalDecided{Call: d.call.ID, By: by, Reason: c.Text(d.reason), Given: d.approve})...)
		switch {
		case !d.approve:
			notes = append(notes, c.Note(c.failure(d.call.ID, refusedText(d.reason), 0))...)
		case d.answer != nil:
			// The client has run the call and approved it with the same request.
			notes = append(notes, c.Note(c.begun(issuedCall{Call{ID: d.call.ID, Name: d.call.Tool, Toolset: d.call.Toolset, Input: d.input}, 0, false}))...)
			notes = append(notes, c.noteOutcome(*d.answer, d.call.Started)...)
		}
	}
	return notes
}

// approve decides on one call of a pause. When no call of the pause is left for the client, the program
// goes on at once.
func (c *conversation) approve(ctx context.Context, a Approval) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !a.Operator && c.record.Principal != a.Principal {
		return ErrForbidden
	}
	switch c.standing {
	case lost, unowned, pausedUnsaved:
		return ErrOwnerAway
	case paused:
	default:
		if State(c.record.State).terminal() {
			return overOf(c.record)
		}
		return c.decided(a)
	}
	i := slices.IndexFunc(c.record.Pending, func(p continuation.Call) bool { return p.ID == a.Call })
	if i < 0 || !stateOf(c.record.Pending[i]).waitsForApproval() {
		return c.decided(a)
	}
	call := c.record.Pending[i]
	if stateOf(call) == callOperator && !a.Operator {
		return ErrForbidden
	}
	to := callRefused
	if a.Approve {
		to = callApproved
	}
	pending := slices.Clone(c.record.Pending)
	pending[i].Reason = a.Reason
	if err := moveCall(&pending[i], to); err != nil {
		return err
	}
	notes := c.chronicle.noteDecisions([]decision{{call: call, approve: a.Approve, reason: a.Reason}}, a.Principal)
	if open(pending) {
		err := c.amend(ctx, func(next *continuation.Record) { next.Pending = pending })
		if err != nil {
			c.chronicle.Retract(notes)
		}
		return err
	}
	return c.goOn(ctx, pending, notes)
}

// decided returns the error for an Approval of a call that does not wait for approval. The record has the
// stage of a pending call. Of an earlier call it tells only that it was made. The caller holds mu.
func (c *conversation) decided(a Approval) error {
	number := callNumber(a.Call)
	if number == 0 || number > c.record.Issued {
		return ErrNoApproval
	}
	for _, p := range c.record.Pending {
		if state := stateOf(p); p.ID == a.Call && (state == callIssued || state == callAnswered) {
			return ErrNoApproval
		}
	}
	return ErrDecided
}

// open reports whether a call of a pause is left for the client.
func open(pending []continuation.Call) bool {
	return slices.ContainsFunc(pending, func(p continuation.Call) bool {
		state := stateOf(p)
		return state.open() && state != callApproved && state != callRefused
	})
}

// asked returns how many of the calls wait for approval.
func asked(pending []continuation.Call) (n int) {
	for _, p := range pending {
		if stateOf(p).waitsForApproval() {
			n++
		}
	}
	return n
}

// goOn claims the round of a pause in place of the client, when all calls of the pause are decided. The
// caller holds mu.
func (c *conversation) goOn(ctx context.Context, pending []continuation.Call, notes journal.Notes) error {
	select {
	case <-c.cancelled:
		c.chronicle.Retract(notes)
		return &ExpiredError{string(Cancelled), overDetails[Cancelled]}
	default:
	}
	s, err := settlementOf(pending, nil)
	if err != nil {
		return err
	}
	after, err := s.after(pending)
	if err != nil {
		return err
	}
	waited := time.Since(c.record.Since)
	notes = append(notes, c.chronicle.Note(&journal.Resumed{Round: c.record.Round, Waited: journal.Since(c.record.Since)})...)
	err = c.commit(ctx, Running, func(next *continuation.Record) {
		next.Pending = after
		next.Request, next.Answer = decidedRequest, nil
		next.Deadline = time.Now().Add(next.Budget - next.Spent)
	})
	if err != nil {
		c.chronicle.Retract(notes)
		return err
	}
	c.segment = newSegment(c.record.Round, decidedRequest, waited)
	c.deliveries <- delivery{results: s.results}
	return nil
}

// redeliver returns the delivery for a round that another server had claimed itself, if that server has died
// before it made the delivery.
func (c *conversation) redeliver() (delivery, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.standing != undelivered || c.record.Request != decidedRequest {
		return delivery{}, false
	}
	var results []sandbox.Result
	for _, p := range c.record.Pending {
		if stateOf(p).refused() {
			results = append(results, sandbox.Result{Number: p.Number, Value: quoted(refusedText(p.Reason)), Failed: true})
		}
	}
	if c.stand(running) != nil {
		return delivery{}, false
	}
	c.segment = newSegment(c.record.Round, decidedRequest, 0)
	return delivery{results: append([]sandbox.Result{}, results...)}, true
}

// An approver finds the execution of an Approval.
type approver struct {
	*common
	executions *executionTable
	successor  *successor
}

// approve implements Engine.Approve.
func (p *approver) approve(ctx context.Context, a Approval) error {
	x := p.executions.find(a.Execution)
	if x == nil {
		record, err := p.o.Store.Get(ctx, a.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return ErrExpired
		case err != nil:
			return err
		case !a.Operator && record.Principal != a.Principal:
			return ErrForbidden
		case State(record.State).terminal():
			return overOf(record)
		}
		if record.Owner != p.members.Instance() {
			if address, err := p.members.Locate(ctx, record.Owner); err == nil {
				return p.handOver(ctx, address, a)
			} else if !errors.Is(err, continuation.ErrNotFound) {
				return err
			}
		}
		if x, err = p.successor.takeOver(ctx, record); err != nil {
			return ownerAway(err)
		}
	}
	return x.conversation.approve(ctx, a)
}

// handOver asks the owner of the execution to decide.
func (p *approver) handOver(ctx context.Context, address string, a Approval) error {
	if a.HandedOver || p.o.Peers == nil {
		return ErrOwnerAway
	}
	return ownerAway(p.o.Peers.Approve(ctx, address, a))
}

// byDecision reports whether a continuation has no results but approvals. If the round was claimed by the
// server itself, such a continuation gets the answer of that round.
func (r Resume) byDecision() bool {
	return !slices.ContainsFunc(r.Results, func(r Result) bool { return r.Approve == nil })
}

// requestOf returns the hash of the request by which the round of a continuation is claimed in a record.
func requestOf(record continuation.Record, r Resume) string {
	if record.Request == decidedRequest && r.byDecision() {
		return decidedRequest
	}
	return r.Request
}
