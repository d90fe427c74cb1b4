package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

var (
	// ErrUnreachable means that no connection to another server could be made. That server
	// has not seen the request.
	ErrUnreachable = errors.New("engine: server is unreachable")
	// ErrOwnerAway means that the owner of an execution does not answer, and that this server
	// cannot take the execution over, or not yet. The owner may come back.
	ErrOwnerAway = errors.New("engine: the execution's server is away")
)

// A router takes requests to the server on which their execution lives.
type router struct {
	*common
	executions *executionTable
	successor  *successor
}

// route returns the execution that claims are for, after a take-over if need be. If the execution
// lives on another server, or nowhere any more, route returns no execution, but the answer.
func (t *router) route(ctx context.Context, claims continuation.Claims, r Resume) (*execution, Outcome, error) {
	if x := t.executions.find(claims.Execution); x != nil {
		return x, Outcome{}, nil
	}
	return t.elsewhere(ctx, claims, r)
}

// elsewhere handles a request for an execution that does not live on this server. If the
// execution has ended, elsewhere returns the answer in the record; if its owner is alive, the
// answer of the owner. Otherwise it takes the execution over and returns it.
func (t *router) elsewhere(ctx context.Context, claims continuation.Claims, r Resume) (*execution, Outcome, error) {
	record, err := t.o.Store.Get(ctx, claims.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, Outcome{}, ErrExpired
	}
	if err != nil {
		return nil, Outcome{}, err
	}
	if record.Session != claims.Session {
		return nil, Outcome{}, continuation.ErrToken
	}
	if State(record.State).terminal() {
		outcome, err := kept(record, claims, r)
		return nil, outcome, err
	}
	if record.Owner != t.members.instance {
		address, err := t.members.locate(ctx, record.Owner)
		if err == nil {
			if r.Began != nil {
				r.Began(record.ID, record.Events)
			}
			outcome, err := t.handOver(ctx, address, r)
			return nil, outcome, err
		}
		if !errors.Is(err, continuation.ErrNotFound) {
			return nil, Outcome{}, err
		}
	}
	x, err := t.successor.takeOver(ctx, record)
	return x, Outcome{}, ownerAway(err)
}

// ownerAway wraps the errors after which another attempt may succeed in ErrOwnerAway.
func ownerAway(err error) error {
	// ErrConflict means that the execution is being taken over, or was just started, elsewhere.
	if errors.Is(err, continuation.ErrConflict) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrOwnerAway, err)
	}
	return err
}

// handOver hands a request over to the owner of its execution. An owner that cannot be reached
// may be alive, so its executions are not taken over before its lease has ended.
func (t *router) handOver(ctx context.Context, address string, r Resume) (Outcome, error) {
	if r.HandedOver || t.o.Peers == nil {
		return Outcome{}, ErrOwnerAway
	}
	// This call goes on if the request is cancelled: Cancel reaches the owner as well, and the
	// owner's answer is the one that an identical request gets.
	outcome, err := t.o.Peers.Resume(context.WithoutCancel(ctx), address, r)
	return outcome, ownerAway(err)
}

// patiently calls try again, for up to ownerPatience, as long as the error is ErrOwnerAway: the
// owner may come back, or a server may take the execution over.
func patiently(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for patience := time.Now().Add(ownerPatience); ; {
		outcome, err := try()
		if !errors.Is(err, ErrOwnerAway) || time.Now().After(patience) {
			return outcome, err
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return outcome, context.Cause(ctx)
		}
	}
}

// kept returns the answer in the record of an ended execution, if r is the request that led to
// it.
func kept(record continuation.Record, claims continuation.Claims, r Resume) (Outcome, error) {
	if record.Round != claims.Round || record.Request != r.Request {
		return Outcome{}, ErrExpired
	}
	return lastAnswer(record)
}
