package mcp

import (
	"context"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine"
	"fermata/engine/journal"
)

// lookAgain is after how long an execution is looked at again whose journal tells nothing.
const lookAgain = time.Second

// A request is a call of run_program or of wait_for_program.
type request struct {
	*sdk.CallToolRequest
	// wait is how long its client waits for the answer.
	wait time.Duration
	// starts is true if the program is the request's own, and not just waited for. again is true if the
	// client can make the request again.
	starts, again bool
	teller        *teller
}

// rest waits until an execution of the caller has ended, on whichever server it is, puts its approvals to
// the person if the client can ask one, and returns what has become of it. If the client has waited long
// enough, or cannot ask, it returns how the execution stands.
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
		case latest.Outcome.State != engine.Running && latest.Outcome.State != engine.Paused:
			return f.result(ctx, latest.Outcome)
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case waiting.Err() != nil:
			return f.soFar(ctx, execution)
		case latest.Outcome.State == engine.Paused:
			if result, err := f.ask(waiting, r, x, latest); result != nil || err != nil && waiting.Err() == nil {
				return result, err
			}
		default:
			f.until(waiting, x, latest.Events, rests, r.teller)
		}
	}
}

// ask asks for the approvals of a pause: by a result, or by questions of its own, after which there is no
// result yet.
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
		return f.soFar(ctx, l.Outcome.Execution) // Others must decide.
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

// rests reports whether a program comes to rest with an event.
func rests(e journal.Entry) bool { return e.Type == journal.TypePaused || e.Type == journal.TypeEnded }

// until waits for an event that fits, and tells the client of all that come. Of executions that have no
// events it returns after a while, so that its caller looks again.
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
