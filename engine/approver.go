package engine

import (
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
	x := p.executions.find(a.Execution)
	if x == nil {
		record, err := p.o.Store.Get(ctx, a.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return core.ErrExpired
		case err != nil:
			return err
		case !a.Operator && record.Principal != a.Principal:
			return ErrForbidden
		case core.State(record.State).Terminal():
			return core.OverOf(record)
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
