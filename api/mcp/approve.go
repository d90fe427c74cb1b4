package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/journal"
)

const (
	// statelessSince is the first version of the protocol in which a result can ask for input.
	statelessSince = "2026-07-28"
	// maxShown is the maximum size, in bytes, of an input that a person can be asked to approve. All of it is
	// shown.
	maxShown = 16 << 10
	// maxReason is how many bytes of a reason are kept.
	maxReason = 1000
)

// The reasons of refusals for which the person has given none.
const (
	reasonDeclined = "the person declined"
	reasonTooLarge = "its input is too large to be shown to a person"
	reasonCannot   = "the client could not ask a person"
)

// decisionForm is the form that a person fills in.
var decisionForm = json.RawMessage(`{"type":"object","properties":{` + //nolint:gochecknoglobals // it is a constant
	`"approve":{"type":"boolean","title":"Approve this call"},"reason":{"type":"string","title":"Reason"}},"required":["approve"]}`)

// canApprove reports whether the client can ask a person for approvals.
func (f *face) canApprove(r *sdk.CallToolRequest) bool {
	if f.stream != nil && !asksByResult(r) {
		return f.stream.asks // The SDK does not know what older clients over HTTP can do. The id of their session tells it.
	}
	p := r.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil
}

// asksByResult reports whether the client is asked for input by the result of its call.
func asksByResult(r *sdk.CallToolRequest) bool {
	p := r.Session.InitializeParams()
	return p != nil && p.ProtocolVersion >= statelessSince
}

// questionOf returns the question to a person about a call, or nil if its input is too large to be shown.
func questionOf(call core.Call) *sdk.ElicitParams {
	input := ascii(string(call.Input))
	if len(input) > maxShown {
		return nil
	}
	return &sdk.ElicitParams{
		Mode: "form", RequestedSchema: decisionForm,
		Message: fmt.Sprintf("The program wants to call %s with this input:\n%s", ascii(toolName(call.Toolset, call.Name)), input),
	}
}

// answerOf returns the answer of a person. To decline, or not to answer, is to refuse.
func answerOf(a *sdk.ElicitResult) (approve bool, reason string) {
	if a == nil || a.Action != "accept" {
		return false, reasonDeclined
	}
	approve, _ = a.Content["approve"].(bool)
	reason, _ = a.Content["reason"].(string)
	return approve, shorten(reason, maxReason)
}

// decide decides on a call.
func (f *face) decide(ctx context.Context, execution, call string, approve bool, reason string) error {
	return f.o.Executions.Approve(ctx, engine.Approval{Principal: f.who.ID, Execution: execution, Call: call, Approve: approve, Reason: reason})
}

// over reports whether a decision came too late. Others may decide as well, and the first decision counts.
func over(err error) bool {
	return errors.Is(err, engine.ErrDecided) || errors.Is(err, engine.ErrNoApproval) || errors.Is(err, core.ErrExpired)
}

// questionsOf returns the questions to a person about the open calls of a pause. It refuses a call whose
// input is too large to be shown.
func (f *face) questionsOf(ctx context.Context, l engine.Latest) (map[string]*sdk.ElicitParams, error) {
	questions := map[string]*sdk.ElicitParams{}
	for _, call := range l.Outcome.Calls {
		if !slices.Contains(l.Open, call.ID) {
			continue
		}
		if questions[call.ID] = questionOf(call); questions[call.ID] != nil {
			continue
		}
		delete(questions, call.ID)
		if err := f.decide(ctx, l.Outcome.Execution, call.ID, false, reasonTooLarge); err != nil && !over(err) {
			return nil, err
		}
	}
	return questions, nil
}

// askFor asks a client of an older version of the protocol about the first call of a pause. It returns when
// this client, or anybody else, has decided.
func (f *face) askFor(ctx context.Context, r *request, x *journal.Execution, l engine.Latest, questions map[string]*sdk.ElicitParams) error {
	call := slices.Min(slices.Collect(maps.Keys(questions)))
	decided := func(ctx context.Context) {
		f.until(ctx, x, l.Events, func(e journal.Entry) bool {
			switch e.Type {
			case journal.TypeApprovalGiven, journal.TypeApprovalRefused:
				return callOf(e) == call
			default:
				return e.Type == journal.TypeResumed || e.Type == journal.TypeEnded
			}
		}, r.teller)
	}
	if f.stream != nil {
		id := questionID(l.Outcome.Execution, call)
		if err := f.stream.ask(id, questions[call]); err != nil {
			return err
		}
		decided(ctx)
		return f.stream.withdraw(id)
	}
	asking, stop := context.WithCancel(ctx)
	defer stop()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer stop()
		decided(asking)
	}()
	defer func() {
		stop()
		<-gone
	}()
	answer, err := r.Session.Elicit(asking, questions[call])
	if asking.Err() != nil {
		return ctx.Err()
	}
	approve, reason := answerOf(answer)
	if err != nil {
		reason = reasonCannot
	}
	if err = f.decide(ctx, l.Outcome.Execution, call, approve, reason); over(err) {
		return nil
	}
	return err
}

// resume continues an execution with the answers that the client sends with the state of an earlier
// result, which is the token of a pause.
func (f *face) resume(ctx context.Context, r *request) (*sdk.CallToolResult, error) {
	resume := engine.Resume{Principal: f.who.ID, Token: r.Params.RequestState, RequestID: f.request}
	for _, id := range slices.Sorted(maps.Keys(r.Params.InputResponses)) {
		form, _ := r.Params.InputResponses[id].(*sdk.ElicitResult)
		approve, reason := answerOf(form)
		resume.Results = append(resume.Results, core.Result{CallID: id, Approve: &approve, Reason: reason})
	}
	var err error
	if resume.Request, err = hashOf(resume.Results); err != nil {
		return nil, err
	}
	run := f.runs.Begin(f.who.ID, func(ctx context.Context, began func(string, int64)) (core.Outcome, error) {
		resume.Began = began
		resume.Joined = func(execution string) { began(execution, 0) }
		return f.o.Executions.Resume(ctx, resume)
	})
	return f.await(ctx, r, run)
}
