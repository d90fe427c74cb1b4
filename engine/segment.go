package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/requests"
)

// A segment is the part of an execution between a request and the pause or the end that
// answers it.
type segment struct {
	// round is the round that the request claimed, 0 for a start.
	round int
	// request is the hash of the request.
	request string
	// waited is how long the start waited for its sandbox, or how long the pause was.
	waited time.Duration
	// audience are the requests that wait for the answer.
	audience audience
	// done is closed when outcome and err are set.
	done    chan struct{}
	outcome core.Outcome
	err     error
}

func newSegment(round int, request string, waited time.Duration) *segment {
	return &segment{round: round, request: request, waited: waited, done: make(chan struct{})}
}

// answered returns a segment that has its answer.
func answered(round int, request string, outcome core.Outcome, err error) *segment {
	s := newSegment(round, request, 0)
	s.finish(outcome, err)
	return s
}

// answers reports whether a request is identical to the one that began the segment. No request is,
// if there is no segment.
func (s *segment) answers(claims continuation.Claims, r Resume) bool {
	return s != nil && s.round == claims.Round && claims.Round > 0 &&
		(s.request == r.Request || s.request == decidedRequest && r.byDecision())
}

// finish sets the answer. It is called once.
func (s *segment) finish(outcome core.Outcome, err error) {
	s.outcome, s.err = outcome, err
	close(s.done)
}

// await waits for the answer, or until ctx ends, for a request of the audience. If ctx ends because the request was cancelled,
// and not because its client has gone, await calls cancel and waits for the answer to that.
func (s *segment) await(ctx context.Context, cancel func()) (core.Outcome, error) {
	select {
	case <-s.done:
		return s.outcome, s.err
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, requests.ErrCancelled) {
		s.audience.leave()
		return core.Outcome{}, err
	}
	cancel()
	<-s.done
	return s.outcome, s.err
}

// answerCancelled turns requests.ErrCancelled into the outcome of a cancelled execution.
func answerCancelled(session string, outcome core.Outcome, err error) (core.Outcome, error) {
	if errors.Is(err, requests.ErrCancelled) {
		return core.Outcome{State: core.Cancelled, Execution: outcome.Execution, Session: session}, nil
	}
	return outcome, err
}

// decidedRequest is what the record has in place of the hash of a request, if the server has claimed the
// round itself because an Approval has decided on the last call of the pause. It is stored, so it must not
// change. It cannot be equal to a hash.
const decidedRequest = "decided"

// byDecision reports whether a continuation has no results but approvals. If the round was claimed by the
// server itself, such a continuation gets the answer of that round.
func (r Resume) byDecision() bool {
	return !slices.ContainsFunc(r.Results, func(r core.Result) bool { return r.Approve == nil })
}

// requestOf returns the hash of the request by which the round of a continuation is claimed in a record.
func requestOf(record continuation.Record, r Resume) string {
	if record.Request == decidedRequest && r.byDecision() {
		return decidedRequest
	}
	return r.Request
}

// An audience counts the requests that wait for the answer of a segment.
type audience struct{ n atomic.Int32 }

// enter is called for each request that will wait, and leave if its client has gone.
func (a *audience) enter() { a.n.Add(1) }

func (a *audience) leave() { a.n.Add(-1) }

// empty reports whether nobody waits.
func (a *audience) empty() bool { return a.n.Load() <= 0 }
