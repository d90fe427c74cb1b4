package engine

import (
	"cmp"
	"context"
	"errors"

	"fermata/continuation"
	"fermata/engine/core"
)

// An approver finds the execution of an Approval.
type approver struct {
	*common
	executions *executionTable
	successor  *successor
}

// approve implements Engine.Approve.
func (p *approver) approve(ctx context.Context, a Approval) error {
	for {
		x, err := p.find(ctx, a)
		if x == nil {
			return err
		}
		asked := x.ask(ctx, func() { err = x.conversation.approve(a) })
		if errors.Is(asked, errEnded) {
			continue // Its record tells how.
		}
		return cmp.Or(asked, err)
	}
}

// find returns the execution of an approval, after a take-over if need be. If another server has it, or it has ended, find
// returns what is to be told and a nil execution.
func (p *approver) find(ctx context.Context, a Approval) (*execution, error) {
	if x := p.executions.find(a.Execution); x != nil {
		return x, nil
	}
	record, err := p.o.Store.Get(ctx, a.Execution)
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return nil, core.ErrExpired
	case err != nil:
		return nil, err
	case !a.Operator && record.Principal != a.Principal:
		return nil, ErrForbidden
	case core.State(record.State).Terminal():
		return nil, core.OverOf(record)
	}
	if record.Owner != p.members.Instance() {
		if address, err := p.members.Locate(ctx, record.Owner); err == nil {
			return nil, p.handOver(ctx, address, a)
		} else if !errors.Is(err, continuation.ErrNotFound) {
			return nil, err
		}
	}
	x, err := p.successor.takeOver(ctx, record)
	return x, ownerAway(err)
}

// handOver asks the owner of the execution to decide.
func (p *approver) handOver(ctx context.Context, address string, a Approval) error {
	if a.HandedOver || p.o.Peers == nil {
		return ErrOwnerAway
	}
	return ownerAway(p.o.Peers.Approve(ctx, address, a))
}
