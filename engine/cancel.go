package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/requests"
)

// cancelTimeout bounds how long the other servers may take to handle a Cancel. Clients wait for
// two seconds.
const cancelTimeout = 1500 * time.Millisecond

// A canceller cancels requests, and executions.
type canceller struct {
	*common
	requests   *requests.Table
	executions *executionTable
	standalone *standaloneCalls
	successor  *successor
}

// cancel is Engine.Cancel.
func (c *canceller) cancel(ctx context.Context, which Cancel) (Cancelling, error) {
	switch {
	case which.Token != "":
		return c.cancelToken(ctx, which)
	case which.Execution != "":
		return c.cancelExecution(ctx, which)
	}
	known, err := c.requests.Cancel(which.Principal, which.RequestID)
	if err != nil {
		return "", ErrForbidden
	}
	state := map[requests.State]Cancelling{requests.Unknown: CancelUnknown, requests.InFlight: CancelRequested, requests.Answered: CancelCompleted}[known]
	if state == CancelCompleted {
		// The request had its answer, and has perhaps left its execution paused. Or its client has
		// gone away, and what it has continued still runs.
		if x := c.executions.findByRequest(which); x != nil {
			state = state.or(abort(ctx, x.switches, x.conversation.ledger))
		}
	}
	if which.HandedOver || c.members.Alone() || c.o.Peers == nil {
		return state, nil
	}
	return c.cancelElsewhere(ctx, which, state)
}

// cancelElsewhere passes a Cancel on to the other servers. One of them may have the request, and
// another one the execution to which the request was handed over.
func (c *canceller) cancelElsewhere(ctx context.Context, which Cancel, state Cancelling) (Cancelling, error) {
	states, silent := askOthers(ctx, c.members, func(ctx context.Context, address string) (Cancelling, error) {
		return c.o.Peers.Cancel(ctx, address, which)
	})
	if errors.Is(silent, ErrForbidden) {
		return "", ErrForbidden
	}
	for _, s := range states {
		state = state.or(s)
	}
	if state == CancelUnknown && silent != nil {
		return "", fmt.Errorf("%w: %w", continuation.ErrUnavailable, silent)
	}
	return state, nil
}

// askOthers asks all other servers at once, for cancelTimeout at most.
func askOthers[A any](ctx context.Context, m *cluster.Member, ask func(ctx context.Context, address string) (A, error)) ([]A, error) {
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	return cluster.AskOthers(ctx, m, ask)
}

// cancelToken ends the execution that a token is for.
func (c *canceller) cancelToken(ctx context.Context, which Cancel) (Cancelling, error) {
	claims, err := c.o.Signer.Verify(which.Token, time.Now())
	switch {
	case err != nil && !errors.Is(err, continuation.ErrTokenExpired):
		return "", err
	case !which.may(claims.Principal):
		return CancelUnknown, nil
	}
	which.Token, which.Execution = "", claims.Execution
	state, err := c.cancelExecution(ctx, which)
	if err == nil && state == CancelUnknown {
		state = CancelCompleted // There was such an execution, or it would have no token.
	}
	return state, err
}

// cancelExecution ends an execution, on whichever server it is.
func (c *canceller) cancelExecution(ctx context.Context, which Cancel) (Cancelling, error) {
	if id, err := uuid.Parse(which.Execution); err != nil || id.String() != which.Execution {
		return CancelUnknown, nil
	}
	if call := c.standalone.find(which.Execution); call != nil {
		if !which.may(call.principal) {
			return CancelUnknown, nil
		}
		return abort(ctx, call.switches, call.ledger), nil
	}
	x := c.executions.find(which.Execution)
	if x == nil {
		record, err := c.o.Store.Get(ctx, which.Execution)
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			return c.forgotten(ctx, which)
		case err != nil:
			return "", err
		case !which.may(record.Principal):
			return CancelUnknown, nil
		case core.State(record.State).Terminal():
			return CancelCompleted, nil
		}
		if record.Owner != c.members.Instance() && !which.HandedOver && c.o.Peers != nil {
			address, err := c.members.Locate(ctx, record.Owner)
			if err == nil {
				ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
				defer cancel()
				return c.o.Peers.Cancel(ctx, address, which)
			}
			if !errors.Is(err, continuation.ErrNotFound) {
				return "", err
			}
		}
		x, err = c.successor.takeOver(ctx, record)
		switch {
		case errors.Is(err, errBuried):
			return CancelRequested, nil
		case err != nil:
			return "", ownerAway(err)
		}
	}
	if !which.may(x.principal) {
		return CancelUnknown, nil
	}
	return abort(ctx, x.switches, x.conversation.ledger), nil
}

// forgotten answers a Cancel of an execution that has no record: it has ended if its journal is there, and is unknown
// otherwise.
func (c *canceller) forgotten(ctx context.Context, which Cancel) (Cancelling, error) {
	summary, err := c.o.Store.Summary(ctx, which.Execution)
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return CancelUnknown, nil
	case err != nil:
		return "", err
	case !which.may(summary.Principal):
		return CancelUnknown, nil
	}
	return CancelCompleted, nil
}
