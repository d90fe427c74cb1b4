// Package engine keeps executions: it starts programs in sandboxes, pauses them at
// their tool calls, resumes them with the results, and ends them at their limits.
//
// Everything that a sandbox sends is untrusted input. Whatever a program does to itself
// ends in an Outcome; an error means trouble of the server or a mistake of the client.
package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/requests"
)

// An Engine keeps executions. It is safe for concurrent use.
type Engine struct {
	*common
	executions *executionTable
	starter    *starter
	resumer    *resumer
	canceller  *canceller
	approver   *approver
	successor  *successor
	attendant  *attendant
	standalone *standaloneCalls
}

// New returns an engine that takes over what an earlier server left: it goes on with the
// executions that have a record, and destroys all other sandboxes. It waits a few seconds
// for that, and leaves the rest to the background. If the shared store is away, all of it
// happens when the store is back. New returns when the first sandbox is ready, and fails if
// this machine cannot make one.
func New(ctx context.Context, o Options) (*Engine, error) {
	m, executions, inFlight := newCommon(o), newExecutionTable(), new(requests.Table)
	alone := &standaloneCalls{common: m}
	heir := newSuccessor(ctx, m, executions)
	e := &Engine{
		common:     m,
		executions: executions,
		starter:    &starter{common: m, executions: executions, requests: inFlight, successor: heir},
		resumer: &resumer{
			signer: o.Signer, requests: inFlight,
			router: &router{common: m, executions: executions, successor: heir},
		},
		canceller: &canceller{common: m, requests: inFlight, executions: executions, standalone: alone, successor: heir},
		approver:  &approver{common: m, executions: executions, successor: heir},
		successor: heir,
		attendant: &attendant{
			members: m.members, log: o.Log,
			sweeper: &sweeper{common: m, executions: executions, successor: heir},
		},
		standalone: alone,
	}
	err := e.attendant.join(ctx)
	if err == nil {
		e.attendant.begin(ctx)
		if err = e.pool.First(ctx); err != nil {
			err = fmt.Errorf("make the first sandbox: %w", err)
		}
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer cancel()
		return nil, errors.Join(err, e.Close(closing))
	}
	return e, nil
}

// abandonTimeout bounds the Close of an engine that could not start.
const abandonTimeout = 10 * time.Second

// Start runs a program until it pauses or ends. If ctx ends first, the execution is cancelled,
// since nobody has a token to continue it. With a key the execution goes on, and an identical
// start gets its outcome.
func (e *Engine) Start(ctx context.Context, s Start) (core.Outcome, error) {
	return e.starter.start(ctx, s)
}

// Resume continues a paused execution until it pauses again or ends. If ctx ends first, the
// execution goes on, and an identical request gets its outcome.
func (e *Engine) Resume(ctx context.Context, r Resume) (core.Outcome, error) {
	return e.resumer.resume(ctx, r)
}

// ExecutionOf returns the id of the execution that a token continues, or "" if the token is not
// genuine. The execution may have ended.
func (e *Engine) ExecutionOf(token string) string { return e.resumer.executionOf(token) }

// Cancel ends an execution, on whichever server it is. If c names a request that has not come yet,
// the request is refused when it comes; the error is ErrForbidden if it is another principal's. If c
// has a token that is not genuine, the error is continuation.ErrToken. It wraps
// continuation.ErrUnavailable if the request may be on a server that does not answer.
func (e *Engine) Cancel(ctx context.Context, c Cancel) (Cancelling, error) {
	return e.canceller.cancel(ctx, c)
}

// CancelSession ends all executions of a session that have not ended, and returns how many it has
// cancelled. CancelUnknown means that there are no executions of this session that the principal may
// cancel, CancelCompleted that all have ended, and CancelRequested that some of them ran. After an
// error, some may be cancelled.
func (e *Engine) CancelSession(ctx context.Context, c CancelSession) (cancelled int, state Cancelling, err error) {
	return e.canceller.cancelSession(ctx, c)
}

// CancelSessionHere cancels for another server the executions of a session that live on this server,
// and returns what became of each, by its id.
func (e *Engine) CancelSessionHere(ctx context.Context, c CancelSession) map[string]Cancelling {
	return e.canceller.cancelSessionHere(ctx, c)
}

// EndForgotten ends the journal of an execution whose record has run out without an end: no server
// was there to end it. It does nothing if the execution has a record, or has ended.
func (e *Engine) EndForgotten(ctx context.Context, id string) error {
	return e.successor.endForgotten(ctx, id)
}

// Stats returns the figures. It does not wait for the store or a sandbox.
func (e *Engine) Stats() Stats {
	s := Stats{Pool: e.pool.Stats(), Executions: map[core.State]int{core.Running: 0, core.Paused: 0}}
	e.tally.read(&s)
	e.executions.count(s.Executions)
	return s
}

// Ready reports whether the engine can start executions now. The error joins all reasons why it
// cannot: ErrClosing, ErrNoCapacity if a start would have to wait for a sandbox, and
// continuation.ErrUnavailable.
func (e *Engine) Ready(ctx context.Context) error {
	if e.executions.isClosed() {
		return ErrClosing
	}
	var full error
	if e.pool.Full() {
		full = ErrNoCapacity
	}
	err := e.o.Store.Ping(ctx)
	if err == nil && !e.members.Announced() {
		// The store answers, but it does not accept writes, or has not yet accepted one.
		err = fmt.Errorf("lease of this server: %w", continuation.ErrUnavailable)
	}
	if err == nil {
		err = e.o.Store.Room(ctx, e.o.Instance)
	}
	return errors.Join(full, err)
}

// Close ends every execution, or with KeepPaused leaves the paused ones to a later server,
// and destroys the sandboxes that are not needed any more. It returns early, with the cause
// of ctx, if ctx ends first.
func (e *Engine) Close(ctx context.Context) error {
	executions := e.executions.close()
	e.standalone.close()
	e.successor.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Concurrently, since part waits for a write of the execution that is under way.
		for _, x := range executions {
			go func() {
				if !e.o.KeepPaused || !x.part() {
					x.stop()
				}
			}()
		}
		e.executions.wait()
		e.standalone.wait()
		e.pool.Close()
		e.attendant.end()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close engine: %w", context.Cause(ctx))
	}
}

// Approve decides on a call that waits for approval, on whichever server its execution is. The error
// is ErrExpired if there is no such execution, ErrForbidden if it is another principal's or if only an
// operator may decide, ErrNoApproval if no such call waits for approval, and ErrDecided if somebody was
// first.
func (e *Engine) Approve(ctx context.Context, a Approval) error { return e.approver.approve(ctx, a) }

// CallTool makes one call without a program. The call has a journal of its own. A call that was made
// and has failed is a ToolResult. If the call was not made, the error is a *policy.UnknownError, a
// *policy.Refusal, a *host.UnavailableError, a *TooManyCallsError or a *SpentError. Any other error is an
// error of the server.
func (e *Engine) CallTool(ctx context.Context, c ToolCall) (ToolResult, error) {
	return e.standalone.make(ctx, c)
}
