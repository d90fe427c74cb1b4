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
	// ErrUnreachable means that no connection to another server could be made, so
	// that it has not seen the request.
	ErrUnreachable = errors.New("engine: server is unreachable")
	// ErrOwnerAway means that the server that holds an execution is away, and its
	// sandbox cannot be reached from here. It may come back.
	ErrOwnerAway = errors.New("engine: the execution's server is away")
)

// Peers are the other servers that share a store with this one. None of them hands
// over again what was handed over to it.
type Peers interface {
	// Resume has the server at address handle r.
	Resume(ctx context.Context, address string, r Resume) (Outcome, error)
	// Cancel has the server at address do what it can about c.
	Cancel(ctx context.Context, address string, c Cancel) (Cancelling, error)
}

// elsewhere handles a request for an execution that does not live here: its last
// answer may be kept, its server may live, or it may be taken over. It returns the
// execution in the last case, the outcome in the others.
func (e *Engine) elsewhere(ctx context.Context, claims continuation.Claims, r Resume) (*execution, Outcome, error) {
	record, err := e.o.Store.Get(ctx, claims.Execution)
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
	if record.Owner != e.members.instance {
		address, err := e.members.locate(ctx, record.Owner)
		if err == nil {
			outcome, err := e.handOver(ctx, address, r)
			return nil, outcome, err
		}
		if !errors.Is(err, continuation.ErrNotFound) {
			return nil, Outcome{}, err
		}
	}
	x, err := e.takeOver(ctx, record)
	return x, Outcome{}, ownerAway(err)
}

// ownerAway makes one error of those after which another look may find more.
func ownerAway(err error) error {
	// The first means that somebody else is taking the execution over.
	if errors.Is(err, continuation.ErrConflict) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrOwnerAway, err)
	}
	return err
}

// handOver has the owner handle a request. An owner that cannot be reached may live
// all the same: nobody takes its executions over before its lease has ended.
func (e *Engine) handOver(ctx context.Context, address string, r Resume) (Outcome, error) {
	if r.HandedOver || e.o.Peers == nil {
		return Outcome{}, ErrOwnerAway
	}
	// A request that is cancelled is cancelled at its owner, too, whose answer counts:
	// it is the one that an identical request gets.
	outcome, err := e.o.Peers.Resume(context.WithoutCancel(ctx), address, r)
	return outcome, ownerAway(err)
}

// patiently tries again, for a while, what fails since an owner is away: it may come
// back, or somebody may take over.
func patiently(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for patience := time.Now().Add(ownerPatience); ; {
		outcome, err := try()
		if !errors.Is(err, ErrOwnerAway) || time.Now().After(patience) {
			return outcome, err
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return Outcome{}, context.Cause(ctx)
		}
	}
}

// kept returns the last answer of an execution that has ended to the request that
// led to it.
func kept(record continuation.Record, claims continuation.Claims, r Resume) (Outcome, error) {
	if record.Round != claims.Round || record.Request != r.Request {
		return Outcome{}, ErrExpired
	}
	return lastAnswer(record)
}
