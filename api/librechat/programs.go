package librechat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

// programs are the handlers that run programs, with and without tools.
type programs struct {
	executions runner
	inputs     inputs // nil if there are no files
	bodies     *api.Bodies
	limiters   *api.Limiters
	errors     api.ErrorStyle
	limits     Limits
	rules      rules
	live       live
	// keys returns the keys of the server's toolsets.
	keys func() []string
	// noTimelines refuses starts that ask for a timeline.
	noTimelines bool
}

// exec runs a program without tools to its end.
func (p *programs) exec(c echo.Context) error {
	api.SetContract(c, engine.Exec)
	header := c.Request().Header
	if err := checkRouting(header); err != nil {
		return err
	}
	if header.Get(workspaceHeader) != "" {
		return errWorkspace
	}
	// The hash of a body differs from the one on the path of programs with tools.
	r, err := p.receive(c, execPath+"\n")
	if err != nil {
		return err
	}
	err = tolerate(c, slipIn(r.body))
	if err == nil {
		err = tolerate(c, refuseTools(r.body.Tools))
	}
	if err != nil {
		return err
	}
	t, err := p.start(c, r, p.plainProgram)
	if err != nil {
		return err
	}
	t.encode = func(outcome core.Outcome) (int, []byte, error) { return encodeExit(outcome, prefixOf(c)) }
	return p.answer(c, t)
}

// programmatic starts or continues an execution of a program with tools.
func (p *programs) programmatic(c echo.Context) error {
	api.SetContract(c, engine.Programmatic)
	header := c.Request().Header
	if err := checkRouting(header); err != nil {
		return err
	}
	// The rate is checked after the body is read, which has a bound of its own: only the body
	// tells a start from a continuation, and a continuation is never refused for the rate, since
	// the client would lose the whole execution.
	r, err := p.receive(c, "")
	if err != nil {
		return err
	}
	t, err := p.toolTask(c, r)
	if err == nil {
		err = p.answer(c, t)
	}
	if err != nil && r.body.continues() {
		// The engine may not have seen the token.
		token, _ := unquote(r.body.Token)
		api.SetExecution(c, p.executions.ExecutionOf(token))
	}
	return err
}

// toolTask returns the task of a request that starts or continues an execution of a program with
// tools.
func (p *programs) toolTask(c echo.Context, r received) (t task, err error) {
	if err := checkWorkspace(c.Request().Header, r.body); err != nil {
		return task{}, err
	}
	if err := tolerate(c, slipIn(r.body)); err != nil {
		return task{}, err
	}
	held := r.body.continues()
	if held {
		t, err = p.resume(c, r)
	} else if err = p.limiters.Admit(c, api.ExecutionRequests); err == nil {
		t, err = p.start(c, r, p.toolProgram)
	}
	if err != nil {
		return task{}, err
	}
	t.encode = func(outcome core.Outcome) (int, []byte, error) {
		if held {
			if err := holdAnswer(p.bodies, c, outcome); err != nil {
				return 0, nil, err
			}
		}
		return encodeOutcome(outcome, p.errors, prefixOf(c))
	}
	return t, nil
}

// answer runs a task and answers with its outcome.
func (p *programs) answer(c echo.Context, t task) error {
	if p.live.wanted(c.Request().Header) {
		return p.live.answer(c, t)
	}
	outcome, err := t.run(c.Request().Context(), nil)
	api.SetExecution(c, outcome.Execution)
	api.SetStep(c, outcome)
	if err != nil {
		return err
	}
	status, body, err := t.encode(outcome)
	if err != nil {
		return err
	}
	if outcome.Include && p.live.timelines != nil {
		return p.live.timelines.Answer(c, status, body, outcome.Execution)
	}
	return api.AnswerBytes(c, status, body)
}

// A received is a request that runs a program, as it was sent.
type received struct {
	body request
	// id is the client's name for the request, and key its name for the execution. Either
	// may be empty.
	id, key string
	// hash is the hash of the body and the path. Retries have the same one.
	hash string
}

// receive reads a request that runs a program. salt makes the hashes of one body on two
// paths differ.
func (p *programs) receive(c echo.Context, salt string) (r received, err error) {
	if r.id, r.key, err = idsOf(c.Request().Header); err != nil {
		return r, err
	}
	hash := sha256.New()
	_, _ = io.WriteString(hash, salt)
	body, err := p.bodies.ReadJSON(c, p.limits.Body, hash)
	if err != nil {
		return r, err
	}
	r.hash = hex.EncodeToString(hash.Sum(nil))
	r.body, err = decode(body, p.limits)
	return r, err
}

// start returns the task of a request that starts an execution.
func (p *programs) start(c echo.Context, r received, read func(request) (program, error)) (task, error) {
	start, err := p.startOf(c, r, read)
	if err != nil {
		return task{}, err
	}
	return task{run: func(ctx context.Context, began func(string, int64)) (core.Outcome, error) {
		if began != nil {
			start.Began = func(execution string) { began(execution, 0) }
		}
		outcome, err := p.executions.Start(ctx, start)
		// A file may have been deleted since startOf found it.
		return outcome, referenceError(err)
	}}, nil
}

// resume returns the task of a request that continues an execution.
func (p *programs) resume(c echo.Context, r received) (task, error) {
	resume, err := p.resumeOf(c, r)
	if err != nil {
		return task{}, err
	}
	return task{run: func(ctx context.Context, began func(string, int64)) (core.Outcome, error) {
		resume.Began = began
		return p.executions.Resume(ctx, resume)
	}}, nil
}

// largeAnswer is the size in bytes from which an answer counts among the bodies that the
// server holds.
const largeAnswer = 1 << 20

// holdAnswer counts the memory of a large answer together with that of the request's body, so that
// a client that asks for the same answer over many connections cannot fill the server's memory
// with copies. The record keeps an answer for which there is no room: a retry gets it later.
func holdAnswer(bodies *api.Bodies, c echo.Context, outcome core.Outcome) error {
	size := len(outcome.Stdout) + len(outcome.Stderr)
	for _, call := range outcome.Calls {
		size += len(call.Input)
	}
	if size < largeAnswer {
		return nil
	}
	return bodies.Hold(c, int64(size))
}
