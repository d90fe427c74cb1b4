package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/engine/sandbox"
	"fermata/stubs"
)

var (
	// ErrKeyReused means that a start with another payload has the same key.
	ErrKeyReused = errors.New("engine: key of another start")
	// ErrKeySpent means that the execution of this key has been continued, so that the answer
	// to its start is not kept any more.
	ErrKeySpent = errors.New("engine: the execution of this key has gone on")
)

// errQueue is the cause of the end of a start that has waited too long for a sandbox.
var errQueue = errors.New("waited too long")

// keySpace is the UUID namespace of the ids of executions with a key. It must not change.
var keySpace = uuid.MustParse("6d2b8f0e-5f0f-4a64-9a0f-3f3c1a6a2d51")

// execution returns the id of the execution that s starts. With a key, the id follows from
// principal and key, so that the store accepts the record of one start only.
func (s Start) execution() string {
	if s.Key == "" {
		return uuid.NewString()
	}
	return uuid.NewSHA1(keySpace, []byte(s.Principal+"\x00"+s.Key)).String()
}

// program returns what the sandbox runs.
func (s Start) program() (*sandbox.Program, error) {
	generate := stubs.Python
	if s.Mode == Bash {
		generate = stubs.Bash
	}
	source, err := generate(s.Tools)
	if err != nil {
		return nil, err
	}
	return &sandbox.Program{Mode: string(s.Mode), Code: s.Code, Stubs: source, Tools: toolNames(s.Tools), Args: s.Args}, nil
}

// Start runs a program until it pauses or ends. If ctx ends first, the execution is cancelled,
// since nobody has a token to continue it. With a key the execution goes on, and an identical
// start gets its outcome.
func (e *Engine) Start(ctx context.Context, s Start) (Outcome, error) {
	program, err := s.program()
	if err != nil {
		return Outcome{}, err
	}
	ctx, done, err := e.requests.begin(ctx, s.Principal, s.RequestID)
	if err != nil {
		return answerCancelled(s.Session, Outcome{}, err)
	}
	defer done()
	var outcome Outcome
	if s.Key == "" {
		outcome, err = e.startOnce(ctx, s, program)
	} else {
		outcome, err = patiently(ctx, func() (Outcome, error) { return e.startKeyed(ctx, s, program) })
	}
	return answerCancelled(s.Session, outcome, err)
}

// startOnce starts a program without a key, and cancels it if ctx ends first.
func (e *Engine) startOnce(ctx context.Context, s Start, program *sandbox.Program) (Outcome, error) {
	x, first, err := e.launch(ctx, s, program)
	if err != nil {
		return Outcome{}, err
	}
	select {
	case <-first.done:
	case <-ctx.Done():
		x.conversation.cancel()
		<-first.done
	}
	return first.outcome, first.err
}

// startKeyed starts a program, or finds the execution of an identical start, and waits for the
// outcome.
func (e *Engine) startKeyed(ctx context.Context, s Start, program *sandbox.Program) (Outcome, error) {
	x := e.executions.find(s.execution())
	if x == nil {
		record, err := e.o.Store.Get(ctx, s.execution())
		switch {
		case errors.Is(err, continuation.ErrNotFound):
			x, _, err = e.launch(ctx, s, program)
		case err == nil:
			var outcome Outcome
			if x, outcome, err = e.started(ctx, record, s); err == nil && x == nil {
				return outcome, nil
			}
		}
		if err != nil {
			return Outcome{}, ownerAway(err)
		}
	}
	first, err := x.conversation.restart(ctx, s, program, func(ctx context.Context, record continuation.Record) error {
		return give(ctx, e.o.Files, x.sandbox, record)
	})
	if err != nil {
		return Outcome{}, err
	}
	x.requestID.Store(&s.RequestID)
	return first.await(ctx, x.conversation.cancel)
}

// started returns the outcome of an earlier start with the same key, whose execution does not
// live on this server. While the owner is alive, it waits for the answer in the record. If the
// owner is dead, it takes the execution over and returns that.
func (e *Engine) started(ctx context.Context, record continuation.Record, s Start) (*execution, Outcome, error) {
	for {
		switch {
		case record.Start != s.Request:
			return nil, Outcome{}, ErrKeyReused
		case record.Request != record.Start:
			return nil, Outcome{}, ErrKeySpent
		case len(record.Answer) > 0 || State(record.State).terminal():
			outcome, err := lastAnswer(record)
			return nil, outcome, err
		case record.Owner == e.members.instance || !e.members.lives(ctx, record.Owner):
			x, err := e.takeOver(ctx, record)
			return x, Outcome{}, err
		case e.executions.isClosed():
			return nil, Outcome{}, ErrClosing
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return nil, Outcome{}, context.Cause(ctx)
		}
		var err error
		if record, err = e.o.Store.Get(ctx, record.ID); err != nil {
			return nil, Outcome{}, err
		}
	}
}

// launch takes a sandbox, starts a program in it, and returns the execution and its first
// segment. A start with a key is recorded first; ErrConflict means that there is an execution
// with this key already.
func (e *Engine) launch(ctx context.Context, s Start, program *sandbox.Program) (*execution, *segment, error) {
	if !e.members.announced() {
		// The store does not accept writes, so a pause could not be recorded either.
		return nil, nil, fmt.Errorf("start an execution: %w", continuation.ErrUnavailable)
	}
	inputs, err := encodeInputs(s.Inputs, e.o.MaxInputSize)
	if err != nil {
		return nil, nil, err
	}
	counted, err := e.quota.admit(s.Principal)
	if err != nil {
		return nil, nil, err
	}
	begun := false
	defer func() {
		if !begun {
			counted.drop()
		}
	}()
	waiting, cancel := context.WithTimeoutCause(ctx, e.o.QueueTimeout, errQueue)
	defer cancel()
	sb, err := e.pool.Take(waiting, s.kind(), s.Principal)
	if err != nil {
		return nil, nil, err
	}
	sb.CountBy(counted)
	record := continuation.Record{
		ID:        s.execution(),
		Session:   s.Session,
		Principal: s.Principal,
		State:     string(Running),
		Created:   time.Now(),
		Budget:    s.Timeout,
		Owner:     e.members.instance,
		Sandbox:   sb.Ref,
		Marker:    sb.Marker,
		Tools:     program.Tools,
		Inputs:    inputs,
		Scope:     s.Scope,
		Request:   s.Request,
	}
	if s.Key != "" {
		record.Start = s.Request
	}
	c := newConversation(e.newLedger(record))
	x := e.newExecution(c, sb, counted)
	x.requestID.Store(&s.RequestID)
	if err := give(ctx, e.o.Files, sb, c.record); err != nil {
		e.pool.Release(sb)
		return nil, nil, err
	}
	first := newSegment(0, s.Request)
	c.segment = first
	if err := e.executions.register(x); err != nil {
		e.pool.Release(sb)
		return nil, nil, err
	}
	if err := c.open(ctx, s); err != nil {
		first.finish(Outcome{}, ownerAway(err))
		e.executions.forget(x)
		e.pool.Release(sb)
		return nil, nil, err
	}
	begun = true
	go func() {
		defer e.executions.forget(x)
		x.live(delivery{program: program})
	}()
	return x, first, nil
}

func toolNames(tools []stubs.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
