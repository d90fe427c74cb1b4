package engine

import (
	"context"
	"encoding/json"
	"errors"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// A router takes requests to the server on which their execution lives.
type router struct {
	*common
	executions *executionTable
	successor  *successor
}

// route returns the execution that claims are for, after a take-over if need be. If another server owns it, or it has
// ended, route returns that answer and a nil execution.
func (t *router) route(ctx context.Context, claims continuation.Claims, r Resume) (*execution, core.Outcome, error) {
	if x := t.executions.find(claims.Execution); x != nil {
		return x, core.Outcome{}, nil
	}
	return t.elsewhere(ctx, claims, r)
}

// elsewhere handles a request for an execution that does not live on this server. If the
// execution has ended, elsewhere returns the answer in the record; if its owner is alive, the
// answer of the owner. Otherwise it takes the execution over and returns it.
func (t *router) elsewhere(ctx context.Context, claims continuation.Claims, r Resume) (*execution, core.Outcome, error) {
	record, err := t.o.Store.Get(ctx, claims.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, core.Outcome{}, t.over(ctx, claims.Execution)
	}
	if err != nil {
		return nil, core.Outcome{}, err
	}
	if record.Session != claims.Session {
		return nil, core.Outcome{}, continuation.ErrToken
	}
	if core.State(record.State).Terminal() {
		outcome, err := kept(record, claims, r)
		return nil, outcome, err
	}
	if record.Owner != t.members.Instance() {
		address, err := t.members.Locate(ctx, record.Owner)
		if err == nil {
			if r.Began != nil {
				r.Began(record.ID, record.Events)
			}
			outcome, err := t.handOver(ctx, address, r)
			outcome.Step.Server = journal.ServerName(record.Owner)
			return nil, outcome, err
		}
		if !errors.Is(err, continuation.ErrNotFound) {
			return nil, core.Outcome{}, err
		}
	}
	x, err := t.successor.takeOver(ctx, record)
	return x, core.Outcome{}, ownerAway(err)
}

// handOver hands a request over to the owner of its execution. An owner that cannot be reached
// may be alive, so its executions are not taken over before its lease has ended.
func (t *router) handOver(ctx context.Context, address string, r Resume) (core.Outcome, error) {
	if r.HandedOver || t.o.Peers == nil {
		return core.Outcome{}, ErrOwnerAway
	}
	// This call goes on if the request is cancelled: Cancel reaches the owner as well, and the
	// owner's answer is the one that an identical request gets.
	outcome, err := t.o.Peers.Resume(context.WithoutCancel(ctx), address, r)
	return outcome, ownerAway(err)
}

// kept returns the answer in the record of an ended execution, if r is the request that led to
// it.
func kept(record continuation.Record, claims continuation.Claims, r Resume) (core.Outcome, error) {
	if record.Round != claims.Round || record.Request != requestOf(record, r) {
		return core.Outcome{}, core.OverOf(record)
	}
	return core.LastAnswer(record)
}

// over tells how an execution has ended of which the store has no record any more.
func (t *router) over(ctx context.Context, id string) error {
	stored, err := t.o.Store.Summary(ctx, id)
	var s journal.Summary
	if err == nil {
		err = json.Unmarshal(stored.Content, &s)
	}
	if err != nil || !stored.Ended {
		return core.ErrForgotten
	}
	state := core.State(s.Status)
	if s.Status == journal.StatusError {
		state = core.Failed
	}
	return core.OverOf(continuation.Record{State: string(state), Reason: s.Reason, Detail: s.Detail})
}
