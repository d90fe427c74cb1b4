package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/engine"
)

const (
	// statelessSince is the version of the protocol from which on a result can ask for input.
	statelessSince = "2026-07-28"
	// maxShown is the largest input that a person can be asked to approve, in bytes: all of it is shown.
	maxShown = 16 << 10
	// maxReason is how much of a reason is kept, in bytes.
	maxReason = 1000
)

// decision is the form that a person fills in.
var decision = json.RawMessage(`{"type":"object","properties":{` + //nolint:gochecknoglobals // it is a constant
	`"approve":{"type":"boolean","title":"Approve this call"},"reason":{"type":"string","title":"Reason"}},"required":["approve"]}`)

// canApprove reports whether the client can ask a person for approvals.
func canApprove(r *sdk.CallToolRequest) bool {
	p := r.Session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	// Over HTTP, older clients can be asked only in a session, which this server does not keep.
	return asksByResult(r) || r.Extra == nil || r.Extra.Header == nil
}

// asksByResult reports whether the client is asked by the result of its call.
func asksByResult(r *sdk.CallToolRequest) bool {
	p := r.Session.InitializeParams()
	return p != nil && p.ProtocolVersion >= statelessSince
}

// ask asks for the approvals for which a run has paused: by a result, whose state is the token of the
// pause, or by requests of its own.
func (f *face) ask(ctx context.Context, r *sdk.CallToolRequest, run *run, p program) (*sdk.CallToolResult, error) {
	questions := sdk.InputRequestMap{}
	refused := map[string]string{}
	for _, call := range run.outcome.Calls {
		if len(ascii(string(call.Input))) > maxShown {
			refused[call.ID] = "its input is too large to be shown to a person"
			continue
		}
		questions[call.ID] = &sdk.ElicitParams{
			Mode: "form", RequestedSchema: decision,
			Message: fmt.Sprintf("The program wants to call %s with this input:\n%s", ascii(toolName(call.Toolset, call.Name)), ascii(string(call.Input))),
		}
	}
	switch {
	case !canApprove(r):
		f.cancel(ctx, run)
		return nil, api.BadRequest("this program waits for approval, for which this client cannot ask; it was ended")
	case len(questions) > 0 && asksByResult(r):
		return &sdk.CallToolResult{InputRequests: questions, RequestState: run.outcome.Token}, nil
	}
	answers := sdk.InputResponseMap{}
	for id, q := range questions {
		form, _ := q.(*sdk.ElicitParams)
		answer, err := r.Session.Elicit(ctx, form)
		if err != nil {
			f.cancel(ctx, run)
			return nil, err
		}
		answers[id] = answer
	}
	return f.resume(ctx, r, run.outcome.Token, answers, refused, p)
}

// cancel ends the execution of a run that has paused.
func (f *face) cancel(ctx context.Context, run *run) {
	_, err := f.o.Executions.Cancel(context.WithoutCancel(ctx), engine.Cancel{Principal: f.who.ID, Token: run.outcome.Token})
	if err != nil {
		f.o.Log.Error("a program that nobody can approve could not be ended", "execution", run.outcome.Execution, "err", err)
	}
}

// decide goes on with the answers that the client sends with the state of an earlier result.
func (f *face) decide(ctx context.Context, r *sdk.CallToolRequest, p program) (*sdk.CallToolResult, error) {
	return f.resume(ctx, r, r.Params.RequestState, r.Params.InputResponses, nil, p)
}

// resume continues an execution with decisions. Whoever declines, or does not answer, refuses.
func (f *face) resume(ctx context.Context, r *sdk.CallToolRequest, token string, answers sdk.InputResponseMap, refused map[string]string, p program) (*sdk.CallToolResult, error) {
	resume := engine.Resume{Principal: f.who.ID, Token: token, RequestID: f.request}
	for _, id := range slices.Sorted(maps.Keys(answers)) {
		approve, reason := false, "the person declined"
		if form, ok := answers[id].(*sdk.ElicitResult); ok && form.Action == "accept" {
			approve, _ = form.Content["approve"].(bool)
			reason, _ = form.Content["reason"].(string)
		}
		resume.Results = append(resume.Results, engine.Result{CallID: id, Approve: &approve, Reason: shorten(reason, maxReason)})
	}
	for _, id := range slices.Sorted(maps.Keys(refused)) {
		resume.Results = append(resume.Results, engine.Result{CallID: id, Approve: new(false), Reason: refused[id]})
	}
	var err error
	if resume.Request, err = hashOf(resume.Results); err != nil {
		return nil, err
	}
	//nolint:contextcheck // it may outlive the request
	run := f.runs.begin(f.who.ID, func(ctx context.Context, began func(string, int64)) (engine.Outcome, error) {
		resume.Began = began
		return f.o.Executions.Resume(ctx, resume)
	})
	return f.await(ctx, r, run, p)
}
