package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// lookAgain is the interval at which the state of an execution without events is checked.
const lookAgain = time.Second

// A request is a call of run_program or of wait_for_program.
type request struct {
	*sdk.CallToolRequest
	// wait is how long the client waits for the answer.
	wait time.Duration
	// starts is true if the request has started the program, and false if it only waits for it. again is
	// true if the client can send the request again.
	starts, again bool
	teller        *teller
}

// rest waits until an execution of the caller has ended, on whichever server it is, and returns its result.
// If calls wait for approval and the client can ask a person, rest asks for the approvals. If the client has
// waited long enough, or cannot ask, rest returns the present state of the execution.
func (f *face) rest(ctx context.Context, r *request, execution string) (*sdk.CallToolResult, error) {
	waiting, stop := context.WithTimeout(ctx, r.wait)
	defer stop()
	for {
		x, err := f.find(ctx, execution)
		if err != nil {
			return nil, err
		}
		latest, err := f.o.Executions.Latest(ctx, f.who.ID, execution)
		switch {
		case errors.Is(err, engine.ErrNotKept) && x.Ended():
			return f.soFar(ctx, execution)
		case errors.Is(err, engine.ErrNotKept):
			// There is no record yet.
		case err != nil:
			return nil, err
		case latest.Outcome.State != core.Running && latest.Outcome.State != core.Paused:
			return f.result(ctx, latest.Outcome)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case waiting.Err() != nil:
			return f.soFar(ctx, execution)
		case latest.Outcome.State == core.Paused:
			if result, err := f.ask(waiting, r, x, latest); result != nil || err != nil && waiting.Err() == nil {
				return result, err
			}
		default:
			f.until(waiting, x, latest.Events, rests, r.teller)
		}
	}
}

// ask asks for the approvals of a pause: either by the result that it returns, or by requests to the client,
// after which it returns no result.
func (f *face) ask(ctx context.Context, r *request, x *journal.Execution, l engine.Latest) (*sdk.CallToolResult, error) {
	questions := map[string]*sdk.ElicitParams{}
	can := f.canApprove(r.CallToolRequest)
	if can {
		var err error
		if questions, err = f.questionsOf(ctx, l); err != nil || len(questions) == 0 && len(l.Open) > 0 {
			return nil, err
		}
	}
	switch {
	case len(questions) == 0 && r.starts:
		return f.soFar(ctx, l.Outcome.Execution) // This client cannot decide, but others can.
	case len(questions) == 0:
		f.until(ctx, x, l.Events, func(e journal.Entry) bool { return e.Type == journal.TypeResumed || rests(e) }, r.teller)
		return nil, nil
	case asksByResult(r.CallToolRequest):
		requests := sdk.InputRequestMap{}
		for id, q := range questions {
			requests[id] = q
		}
		return &sdk.CallToolResult{InputRequests: requests, RequestState: l.Outcome.Token}, nil
	}
	return nil, f.askFor(ctx, r, x, l, questions)
}

// rests reports whether an event says that the program has come to rest.
func rests(e journal.Entry) bool { return e.Type == journal.TypePaused || e.Type == journal.TypeEnded }

// until waits for an event for which fits returns true, and notifies the client of all events until then. If
// an execution has no events, it returns after lookAgain, so that the caller can check its state.
func (f *face) until(ctx context.Context, x *journal.Execution, after int64, fits func(journal.Entry) bool, t *teller) {
	found := false
	f.follow(ctx, x, after, func(e journal.Entry) bool {
		t.hear(e)
		found = fits(e)
		return !found
	}, t.tick)
	if found {
		return
	}
	select {
	case <-time.After(lookAgain):
	case <-ctx.Done():
	}
}
