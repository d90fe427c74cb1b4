package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/envelope"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
	"fermata/engine/tools/source"
)

// A ToolCall is one call of a tool that the server runs, without a program.
type ToolCall struct {
	// Principal sends the request.
	Principal string
	// Toolset is the key of the toolset, and Tool the name of the tool.
	Toolset, Tool string
	// Input is a JSON object.
	Input json.RawMessage
	// Parent is the id of the call on whose behalf this one is made, or empty.
	Parent string
	// Depth is the number of toolsets through which the request has come.
	Depth int
	// Began, if it is set, is called with the id of the call's execution before the call is made.
	Began func(execution string)
}

// A ToolResult is the result of a ToolCall that was made.
type ToolResult struct {
	// ID is the name of the record of the call.
	ID string
	// Output is the result, as JSON. If the call has failed, there is none, and Error says why.
	Output json.RawMessage
	Error  string
	// Details are what the tool's envelope says about the failure beyond Error, or nil if it came without an
	// envelope.
	Details *envelope.Details
	Took    time.Duration
	// Cost is what the call costs, in credits.
	Cost int64
}

const (
	// standaloneTimeout is how long a call without a program may take, including the time for which it waits
	// for its lane.
	standaloneTimeout = 300 * time.Second
	// standaloneID is the id of the only call of its execution.
	standaloneID = "call_001"
)

// errCallCancelled ends a call that a client has cancelled.
var errCallCancelled = errors.New("engine: the call was cancelled")

// The errors of calls without a program that this server does not make.
const (
	textNeedsApproval = "it needs approval, for which only a program can wait"
	textTooDear       = "the call costs %d, and max_cost of the principal's policy is %d"
)

// standaloneCalls are the calls without a program that are under way on this server.
type standaloneCalls struct {
	*common
	table[*standalone]
}

// A standalone is a call without a program that is under way.
type standalone struct {
	*ledger
	switches
	principal string
}

// make implements Engine.CallTool.
func (s *standaloneCalls) make(ctx context.Context, c ToolCall) (ToolResult, error) {
	if s.o.Toolsets == nil {
		return ToolResult{}, &policy.UnknownError{Asked: c.Toolset}
	}
	if !s.members.Announced() {
		// The store does not accept writes, and a call must be recorded before it is sent.
		return ToolResult{}, fmt.Errorf("call a tool: %w", continuation.ErrUnavailable)
	}
	if err := s.o.Store.Room(ctx, c.Principal); err != nil {
		return ToolResult{}, fmt.Errorf("call a tool: %w", err)
	}
	leave, err := s.quota.Call(c.Principal)
	if err != nil {
		return ToolResult{}, err
	}
	defer leave()
	ctx, stop := context.WithTimeout(ctx, standaloneTimeout)
	defer stop()
	caller := config.CallerDirect
	if c.Parent != "" {
		caller = config.CallerCode
	}
	grant, err := s.o.Toolsets.Single(ctx, c.Principal, policy.Name{Toolset: c.Toolset, Tool: c.Tool}, caller)
	if err != nil {
		return ToolResult{}, err
	}
	defer grant.Release()
	tool := grant.Tools[0]
	if (config.Rules{Approval: tool.Approval}).NeedsApproval() {
		return ToolResult{}, &policy.Refusal{Toolset: c.Toolset, Tool: c.Tool, Rule: textNeedsApproval}
	}

	call := &standalone{ledger: s.newLedger(s.newCall(c, tool)), switches: newSwitches(), principal: c.Principal}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cancelled := call.cancel
	call.cancel = func() { cancelled(); cancel(errCallCancelled) }
	if err := s.register(call.id, call); err != nil {
		return ToolResult{}, err
	}
	defer s.forget(call.id)
	if err := beginCall(call.ledger); err != nil {
		return ToolResult{}, err
	}
	if c.Began != nil {
		c.Began(call.id)
	}
	answer, state, err := s.run(ctx, grant, c, call.chronicle.Summary().RecordNameOf(standaloneID))
	s.tally.call(err != nil)
	s.endCall(call, state, answer)
	if refused, ok := errors.AsType[*SpentError](err); ok {
		return ToolResult{}, refused
	}
	return answer, nil
}

// run runs a call, and returns its answer and how it has ended. name is the call's in the records.
func (s *standaloneCalls) run(ctx context.Context, grant *host.Grant, c ToolCall, name string) (ToolResult, core.State, error) {
	began := time.Now()
	result, err := s.call(ctx, grant, c.Principal, tools.Request{Toolset: c.Toolset, Tool: c.Tool, Input: c.Input, Key: name, Depth: c.Depth})
	answer := ToolResult{ID: name, Output: result.Output, Took: time.Since(began), Cost: result.Cost}
	state := core.Completed
	switch {
	case err != nil && ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded):
		answer.Error, state = err.Error(), core.Cancelled
	case err != nil:
		answer.Error, state = err.Error(), core.Failed
		if failed, ok := errors.AsType[*source.CallError](err); ok {
			answer.Details = failed.Details
		}
	case s.o.Used != nil:
		s.o.Used(c.Principal, c.Toolset, result.Cost)
	}
	return answer, state, err
}

// call makes a call if its principal may pay for it.
func (s *standaloneCalls) call(ctx context.Context, grant *host.Grant, principal string, r tools.Request) (tools.Result, error) {
	tool := grant.Tools[0]
	if most := grant.MaxCost; most != nil && tool.Cost > *most {
		return tools.Result{}, fmt.Errorf(textTooDear, tool.Cost, *most)
	}
	result, _, err := s.caller.call(ctx, grant, charge{principal, tool.Lane, tool.Cost}, r)
	return result, err
}

// newCall returns the record and the journal of a call that is about to begin.
func (s *standaloneCalls) newCall(c ToolCall, tool host.Tool) (continuation.Record, *chronicle) {
	now := time.Now()
	r := continuation.Record{
		ID: uuid.NewString(), Principal: c.Principal, State: string(core.Running), Created: now, Since: now,
		Deadline: now.Add(standaloneTimeout), Budget: standaloneTimeout, Owner: s.members.Instance(), Issued: 1, Cost: tool.Cost,
		Pending: []continuation.Call{{Number: 1, ID: standaloneID, Started: now, Toolset: c.Toolset, Tool: c.Tool, Cost: tool.Cost}},
	}
	summary := journal.Summary{
		ID: r.ID, Principal: r.Principal, Status: journal.StatusRunning, Contract: journal.ContractTool, Parent: c.Parent,
		Created: journal.Moment(now), Calls: 1, Budget: r.Budget.Milliseconds(), Tools: []string{c.Tool},
		Server: journal.ServerName(r.Owner),
	}
	w := journal.NewWriter(s.o.Journal, summary, 0)
	summary = w.Summary()
	w.Note(
		&journal.Started{
			Execution: r.ID, Contract: summary.Contract, Toolsets: []string{c.Toolset}, Timeout: summary.Budget, Parent: c.Parent,
		},
		&journal.CallStarted{
			Call: standaloneID, Record: summary.RecordNameOf(standaloneID), Tool: c.Tool, Toolset: c.Toolset,
			Runner: journal.RunnerServer, Input: w.Value(c.Input),
		},
	)
	return r, &chronicle{Writer: w, id: r.ID, words: s.o.Words}
}

// beginCall records that the call begins. The call must not be sent before that.
func beginCall(c *ledger) error {
	if err := c.own(asItIs); err != nil {
		return fmt.Errorf("record a call: %w", err)
	}
	return c.stand(core.StandsRunning)
}

// noteCallEnd notes how the call has ended.
func noteCallEnd(c *chronicle, state core.State, result ToolResult) {
	w, took := c, result.Took.Milliseconds()
	var last journal.Event = &journal.CallCompleted{
		Call: standaloneID, Record: result.ID, Output: w.Value(result.Output), Took: took, Cost: result.Cost,
	}
	if result.Error != "" {
		last = callFailed(w.Writer, standaloneID, result.ID, result.Error, result.Details, took)
	}
	w.Note(last)
	w.End(&journal.Ended{Status: core.StatusOf(state), Error: w.Text(result.Error), Ran: took, Calls: 1})
}

// finishCall writes the end of the call, which noteCallEnd has noted.
func finishCall(c *ledger, state core.State, result ToolResult) error {
	return c.commit(state, func(next *continuation.Record) {
		next.Spent, next.Pending, next.Cost, next.Deadline = result.Took, nil, result.Cost, time.Now()
	})
}

// endCall records the end of a call. If the store is not available, it goes on trying after the answer to
// the call was sent, until the answer need not be kept any longer or the call is cancelled.
func (s *standaloneCalls) endCall(c *standalone, state core.State, result ToolResult) {
	noteCallEnd(c.chronicle, state, result)
	err := finishCall(c.ledger, state, result)
	if err == nil {
		return
	}
	s.o.Log.Error("cannot record the end of a call", "execution", c.id, "err", err)
	s.living.Go(func() {
		retry := time.NewTicker(saveRetry)
		defer retry.Stop()
		for until := time.Now().Add(s.o.KeepAnswers); c.rewrite() != nil && time.Now().Before(until); {
			select {
			case <-retry.C:
			case <-c.cancelled:
				return
			}
		}
	})
}

// close lets no further call in, and cancels those that are under way.
func (s *standaloneCalls) close() {
	for _, c := range s.table.close() {
		c.stop()
	}
}

// isStandalone reports whether a record is that of a call without a program. Only such a record has no
// sandbox.
func isStandalone(r continuation.Record) bool { return r.Sandbox == "" }

// buryCall records the end of a call without a program whose server, from, has died. It returns errBuried if
// it succeeds. If several servers try, only one succeeds.
func buryCall(c *ledger, from string) error {
	if err := c.own(asItIs); err != nil {
		return err
	}
	summary := c.chronicle.Summary()
	lost := ToolResult{ID: summary.RecordNameOf(standaloneID), Error: core.TextRestarted}
	if len(c.record.Pending) > 0 {
		lost.Took = time.Since(c.record.Pending[0].Started)
	}
	lost.Cost = c.record.Cost // The call may have taken effect.
	noteCallEnd(c.chronicle, core.Failed, lost)
	if err := finishCall(c, core.Failed, lost); err != nil {
		return err
	}
	c.o.logLostCall(c.record, from)
	return errBuried
}
