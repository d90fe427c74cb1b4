package engine

import (
	"context"
	"slices"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

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
