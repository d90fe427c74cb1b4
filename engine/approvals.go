package engine

import (
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// approve decides on one call of a pause. When no call of the pause is left for the client, the program
// goes on at once.
func (c *conversation) approve(a Approval) error {
	if !a.Operator && c.record.Principal != a.Principal {
		return ErrForbidden
	}
	switch c.standing {
	case core.StandsLost, core.StandsUnowned, core.StandsPausedUnsaved:
		return ErrOwnerAway
	case core.StandsPaused:
	default:
		if core.State(c.record.State).Terminal() {
			return core.OverOf(c.record)
		}
		return decided(c.record, a)
	}
	i := slices.IndexFunc(c.record.Pending, func(p continuation.Call) bool { return p.ID == a.Call })
	if i < 0 || !core.StateOf(c.record.Pending[i]).WaitsForApproval() {
		return decided(c.record, a)
	}
	call := c.record.Pending[i]
	if core.StateOf(call) == core.CallOperator && !a.Operator {
		return ErrForbidden
	}
	pending, err := core.Approve(c.record.Pending, i, a.Approve, a.Reason)
	if err != nil {
		return err
	}
	notes := c.chronicle.noteDecisions([]core.Decision{{Call: call, Approve: a.Approve, Reason: a.Reason}}, a.Principal)
	if core.ForClient(pending) {
		err := c.amend(func(next *continuation.Record) { next.Pending = pending })
		if err != nil {
			c.chronicle.Retract(notes)
		}
		return err
	}
	return c.goOn(pending, notes)
}

// decided returns the error for an Approval of a call that does not wait for approval. The record has the
// stage of a pending call. Of an earlier call it tells only that it was made.
func decided(r continuation.Record, a Approval) error {
	number := core.CallNumber(a.Call)
	if number == 0 || number > r.Issued {
		return ErrNoApproval
	}
	for _, p := range r.Pending {
		if state := core.StateOf(p); p.ID == a.Call && (state == core.CallIssued || state == core.CallAnswered) {
			return ErrNoApproval
		}
	}
	return ErrDecided
}

// goOn claims the round of a pause in place of the client, when all calls of the pause are decided.
func (c *conversation) goOn(pending []continuation.Call, notes journal.Notes) error {
	if c.isCancelled() {
		c.chronicle.Retract(notes)
		return core.Aborted()
	}
	s, err := core.SettlementOf(pending, nil)
	if err != nil {
		return err
	}
	decided := c.record
	decided.Pending = pending
	change, err := s.Claim(decided, decidedRequest, decided.Received, time.Now())
	if err != nil {
		return err
	}
	waited := time.Since(c.record.Since)
	notes = append(notes, c.chronicle.Note(&journal.Resumed{Round: c.record.Round, Waited: journal.Since(c.record.Since)})...)
	err = c.commit(core.Running, change)
	if err != nil {
		c.chronicle.Retract(notes)
		return err
	}
	c.segment = newSegment(c.record.Round, decidedRequest, waited)
	c.brought = &delivery{results: s.Results}
	return nil
}

// redeliver returns the delivery for a round that another server had claimed itself, if that server has died
// before it made the delivery.
func (c *conversation) redeliver() (delivery, bool) {
	if c.standing != core.StandsUndelivered || c.record.Request != decidedRequest {
		return delivery{}, false
	}
	var results []sandbox.Result
	for _, p := range c.record.Pending {
		if core.StateOf(p).Refused() {
			results = append(results, sandbox.Result{Number: p.Number, Value: core.Quoted(core.RefusedText(p.Reason)), Failed: true})
		}
	}
	if c.stand(core.StandsRunning) != nil {
		return delivery{}, false
	}
	c.segment = newSegment(c.record.Round, decidedRequest, 0)
	return delivery{results: append([]sandbox.Result{}, results...)}, true
}
