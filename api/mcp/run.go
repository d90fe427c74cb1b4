package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/api/runs"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/files"
	"fermata/engine/journal"
)

// A program has the arguments of run_program.
type program struct {
	Code     string   `json:"code"`
	Language string   `json:"language"`
	Toolsets []string `json:"toolsets"`
	Session  string   `json:"session"`
	Timeout  *int64   `json:"timeout"`
	Wait     *int64   `json:"wait_ms"`
	Key      string   `json:"request_key"`

	timeout, wait time.Duration
}

// check refuses what the input schema forbids, since clients need not check that.
func (p *program) check() (err error) {
	if p.Code == "" {
		return api.BadRequest("code is required: the program, a string that is not empty")
	}
	switch p.Language {
	case "":
		p.Language = "python"
	case "python", "bash":
	default:
		return api.BadRequest("language must be python or bash")
	}
	if len(p.Toolsets) > maxToolsets {
		return api.BadRequestf("toolsets has %d entries, at most %d are allowed", len(p.Toolsets), maxToolsets)
	}
	if p.Session != "" && !files.ValidID(p.Session) {
		return api.BadRequest("session is not one of ours: leave it out, or take it from an earlier result")
	}
	if len(p.Key) > maxKey {
		return api.BadRequestf("request_key has %d bytes, at most %d are allowed", len(p.Key), maxKey)
	}
	if p.timeout, err = within("timeout", p.Timeout, api.MinTimeout, api.MaxTimeout, api.DefaultTimeout); err != nil {
		return err
	}
	p.wait, err = within("wait_ms", p.Wait, 0, api.MaxTimeout, forever)
	return err
}

// maxLeft is how many programs of one principal may go on after the request that has started them, and graceOfKey how
// long a program with a request_key goes on after the connection of its request was lost, since its client may send the
// request again.
const (
	maxLeft    = 100
	graceOfKey = time.Minute
)

var errTooManyLeft = &api.Error{Status: 429, Text: "Too many programs were left running: use wait_for_program, or no wait_ms"}

// forever is how long a client waits that does not set wait_ms. It is longer than any program runs.
const forever = time.Hour

// runProgram implements the tool run_program.
func (f *face) runProgram(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var p program
	if err := decode(r, &p); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	done, err := f.o.Readers.Admit(f.who.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	asked := &request{r, p.wait, true, p.Key != "" && f.lossy, newTeller(ctx, r)}
	if r.Params.RequestState != "" {
		return f.resume(ctx, asked)
	}
	if f.admit != nil {
		if err := f.admit(); err != nil {
			return nil, err
		}
	}
	start, err := f.startOf(ctx, r, p)
	if err != nil {
		return nil, err
	}
	run := f.runs.Begin(f.who.ID, func(ctx context.Context, began func(string, int64)) (core.Outcome, error) {
		start.Began = func(execution string) { began(execution, 0) }
		start.Joined = start.Began
		return f.o.Executions.Start(ctx, start)
	})
	return f.await(ctx, asked, run)
}

// startOf returns the start for which a call of run_program asks.
func (f *face) startOf(ctx context.Context, r *sdk.CallToolRequest, p program) (engine.Start, error) {
	code, err := api.Encode(p.Code)
	if err != nil {
		return engine.Start{}, err
	}
	owner, session := api.OwnerOf(f.who), p.Session
	var inputs []core.InputFile
	if session == "" {
		session = files.NewID()
	} else if inputs, err = f.o.Files.SessionInputs(ctx, owner, session); err != nil {
		if errors.Is(err, files.ErrForeign) {
			err = api.BadRequest("session is not one of yours: leave it out, or take it from an earlier result")
		}
		return engine.Start{}, err
	}
	scope, err := files.ScopeOf(owner)
	if err != nil {
		return engine.Start{}, err
	}
	start := engine.Start{
		Principal: f.who.ID, Session: session, Code: code, Toolsets: p.Toolsets, Timeout: p.timeout,
		Approvals: f.canApprove(r), Keep: p.Wait != nil, RequestID: f.request, Depth: f.depth, Inputs: inputs, Scope: scope, Contract: engine.MCP, WantValue: true,
	}
	if p.Language == "bash" {
		start.Mode = engine.Bash
	}
	if p.Key != "" {
		start.Key = "mcp:" + p.Key
	}
	// The hash does not include wait_ms, so that a retry may wait for another time.
	start.Request, err = hashOf(program{Code: p.Code, Language: p.Language, Toolsets: p.Toolsets, Session: p.Session, Timeout: new(p.timeout.Milliseconds())})
	return start, err
}

// hashOf returns the hash by which the engine recognizes retries.
func hashOf(v any) (string, error) {
	encoded, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(append([]byte("mcp\n"), encoded...))
	return hex.EncodeToString(sum[:]), nil
}

// await waits for a run for as long as the client waits, notifies the client of its progress, and returns
// its result.
func (f *face) await(ctx context.Context, r *request, run *runs.Run) (*sdk.CallToolResult, error) {
	f.accompany(ctx, r, run)
	if run.Ended() {
		return f.finish(ctx, r, run)
	}
	select { // It may still wait for a sandbox.
	case <-run.Began():
	case <-run.Done():
		return f.finish(ctx, r, run)
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		f.abandon(ctx, r, run)
		return nil, ctx.Err()
	}
	if !f.runs.Leave(run) {
		run.Cancel()
		return nil, errTooManyLeft
	}
	execution, _ := run.Execution()
	return f.soFar(ctx, execution)
}

// accompany notifies the client of the progress of a run, until the run is done or the client has waited
// long enough.
func (f *face) accompany(ctx context.Context, r *request, run *runs.Run) {
	ctx, stop := context.WithTimeout(ctx, r.wait)
	defer stop()
	told := make(chan struct{})
	go func() {
		defer close(told)
		f.progress(ctx, r.teller, run)
	}()
	select {
	case <-run.Done():
	case <-ctx.Done():
	}
	stop()
	<-told // No notification may be sent after the answer.
}

// abandon ends a program for which its client does not wait any more. If the client can send the request
// again, the program ends only after it has had time to do so.
func (f *face) abandon(ctx context.Context, r *request, run *runs.Run) {
	if r.again {
		f.runs.CancelAfter(run, graceOfKey)
		return
	}
	run.Cancel()
	if id, _ := run.Execution(); id != "" {
		f.cancel(ctx, id)
	}
}

// cancel ends an execution.
func (f *face) cancel(ctx context.Context, execution string) {
	_, err := f.o.Executions.Cancel(context.WithoutCancel(ctx), engine.Cancel{Principal: f.who.ID, Execution: execution})
	if err != nil {
		f.o.Log.Error("a program for which nobody waits could not be ended", "execution", execution, "err", err)
	}
}

// finish returns the result of a run that has paused or ended.
func (f *face) finish(ctx context.Context, r *request, run *runs.Run) (*sdk.CallToolResult, error) {
	outcome, err := run.Outcome()
	switch {
	case errors.Is(err, engine.ErrKeyReused):
		return nil, &api.Error{Status: 409, Text: "request_key was used for another program: choose a new one"}
	case errors.Is(err, engine.ErrKeySpent):
		// The program of this request_key has gone on since.
	case err != nil:
		return nil, err
	case outcome.State != core.Paused:
		return f.result(ctx, outcome)
	}
	result, err := f.rest(ctx, r, outcome.Execution)
	if ctx.Err() != nil && r.starts && !r.again {
		f.cancel(ctx, outcome.Execution)
	}
	return result, err
}

// waitForProgram implements the tool wait_for_program.
func (f *face) waitForProgram(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var asked struct {
		Execution string `json:"execution"`
		Wait      *int64 `json:"wait_ms"`
	}
	if err := decode(r, &asked); err != nil {
		return nil, err
	}
	if asked.Execution == "" {
		return nil, api.BadRequest("execution is required: it is in the result of run_program")
	}
	wait, err := within("wait_ms", asked.Wait, 0, maxWait, maxWait/2)
	if err != nil {
		return nil, err
	}
	done, err := f.o.Readers.Admit(f.who.ID)
	if err != nil {
		return nil, err
	}
	defer done()
	waits := &request{r, wait, false, true, newTeller(ctx, r)}
	if r.Params.RequestState != "" {
		return f.resume(ctx, waits)
	}
	return f.rest(ctx, waits, asked.Execution)
}

// errNoExecution is the answer about an execution that does not exist, was forgotten, or belongs to another
// principal.
var errNoExecution = &api.Error{Status: 404, Text: "There is no such execution, or it is not kept any more"}

// find returns an execution of the caller.
func (f *face) find(ctx context.Context, execution string) (*journal.Execution, error) {
	x, err := f.o.History.Find(ctx, journal.Viewer{Principal: f.who.ID}, execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, errNoExecution
	}
	return x, err
}
