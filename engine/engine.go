// Package engine keeps executions: it starts programs in sandboxes, pauses them at
// their tool calls, resumes them with the results, and ends them at their limits.
//
// Everything a sandbox sends is untrusted input. What a program does to itself is
// an Outcome; an error is the server's own trouble or the client's mistake.
package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
	"fermata/stubs"
)

// Options are what an Engine needs to know.
type Options struct {
	// Provider makes the sandboxes.
	Provider Provider
	// Store keeps the records.
	Store continuation.Store
	// Signer makes the tokens.
	Signer *continuation.Signer
	// Log gets what goes wrong on the server's side.
	Log *slog.Logger
	// PauseTTL is how long a pause may last.
	PauseTTL time.Duration
	// KeepAnswers is how long the last answer of an ended execution is kept.
	KeepAnswers time.Duration
	// WallClock makes the run budget count the time of pauses, too.
	WallClock bool
	// MaxRounds and MaxCalls bound the pauses and the tool calls of an execution.
	MaxRounds, MaxCalls int
	// MaxResults bounds the results of an execution, in bytes; 0 does not.
	MaxResults int64
	// Files keeps the files of executions; nil if they have none. A program's files
	// are kept up to MaxOutputFiles, each up to MaxOutputSize bytes.
	Files          Files
	MaxOutputFiles int
	MaxOutputSize  int64
	// MaxRunning and MaxPaused refuse to start an execution for a principal that has
	// as many on this server that run, or wait for a sandbox, or are paused; 0 does
	// not. Nothing that has begun is ever refused to pause or to go on, so paused
	// executions can exceed MaxPaused by those that ran already.
	MaxRunning, MaxPaused int
	// PoolSize is how many sandboxes wait ready; MaxSandboxes bounds all there are.
	PoolSize, MaxSandboxes int
	// MaxIdle is how long a sandbox may wait ready before another takes its place;
	// 0 is for ever. Docker's sandboxes end themselves when no server speaks to them.
	MaxIdle time.Duration
	// QueueTimeout is how long a request waits for a sandbox.
	QueueTimeout time.Duration
	// KeepPaused makes Close leave paused executions to a later server instead of
	// ending them.
	KeepPaused bool
	// Instance names this server process; the provider marks sandboxes with it.
	Instance string
	// Registry, Address and Peers let servers that share the store find each other:
	// Address is where they reach this one. Without a Registry there are no others.
	Registry continuation.Registry
	Address  string
	Peers    Peers
}

// An Engine keeps executions. It is safe for concurrent use.
type Engine struct {
	o       Options
	members *membership
	pool    *pool
	quota   *quota
	wg      sync.WaitGroup // executions
	// attending ends the goroutine that keeps the lease, attended waits for it.
	attending context.CancelFunc
	attended  sync.WaitGroup

	mu         sync.Mutex
	executions map[string]*execution
	closed     bool
}

// New returns an engine that has taken over what an earlier one left: executions
// whose record lives go on, all other sandboxes are destroyed. It returns when the
// first sandbox is ready, so that a machine that cannot make one is found out.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		o:          o,
		members:    &membership{registry: o.Registry, instance: o.Instance, address: o.Address},
		pool:       newPool(o),
		quota:      newQuota(o),
		executions: map[string]*execution{},
	}
	attending, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.attending = stop
	if o.Registry != nil {
		if err := e.members.renew(ctx); err != nil {
			return nil, errors.Join(err, e.Close(ctx))
		}
		e.attended.Go(func() { e.attend(attending) })
	}
	if err := e.sweep(ctx); err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	s, err := e.pool.take(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the first sandbox: %w", err), e.Close(ctx))
	}
	e.pool.mu.Lock()
	e.pool.put(s)
	e.pool.mu.Unlock()
	return e, nil
}

// Start runs a program until it pauses or ends. If ctx ends first the execution is
// cancelled: nobody has a token to go on with it.
func (e *Engine) Start(ctx context.Context, s Start) (Outcome, error) {
	program, err := s.program()
	if err != nil {
		return Outcome{}, err
	}
	inputs, err := s.inputs()
	if err != nil {
		return Outcome{}, err
	}
	counted, err := e.quota.admit(s.Principal)
	if err != nil {
		return Outcome{}, err
	}
	begun := false
	defer func() {
		if !begun {
			counted.drop()
		}
	}()
	waiting, cancel := context.WithTimeoutCause(ctx, e.o.QueueTimeout, errQueue)
	defer cancel()
	sb, err := e.pool.take(waiting)
	if err != nil {
		return Outcome{}, err
	}
	now := time.Now()
	record := continuation.Record{
		Format:    continuation.RecordFormat,
		ID:        uuid.NewString(),
		Session:   s.Session,
		Principal: s.Principal,
		State:     string(Running),
		Created:   now,
		Budget:    s.Timeout,
		Owner:     e.members.instance,
		Sandbox:   sb.ref,
		Marker:    sb.marker,
		Tools:     toolNames(s.Tools),
		Inputs:    inputs,
		Scope:     s.Scope,
	}
	x := newExecution(e, record, sb, counted)
	if err := x.give(ctx, s.Inputs); err != nil {
		e.pool.release(sb)
		return Outcome{}, err
	}
	first := x.begin(0, "")
	if !e.register(x) {
		e.pool.release(sb)
		return Outcome{}, ErrClosing
	}
	begun = true
	e.wg.Go(func() { x.live(frameProgram, [][]byte{program}) })
	select {
	case <-first.done:
	case <-ctx.Done():
		x.cancel()
		<-first.done
	}
	return first.outcome, first.err
}

// errQueue is the cause of a request that has waited too long for a sandbox.
var errQueue = errors.New("waited too long")

// Resume goes on with a paused execution until it pauses again or ends. The round
// is consumed even if ctx ends first: the outcome is kept for an identical retry.
func (e *Engine) Resume(ctx context.Context, r Resume) (Outcome, error) {
	claims, err := e.o.Signer.Verify(r.Token, time.Now())
	expired := err
	if err != nil && !errors.Is(err, continuation.ErrTokenExpired) {
		return Outcome{}, err
	}
	if claims.Principal != r.Principal {
		return Outcome{}, ErrForbidden
	}
	x := e.find(claims.Execution)
	if x == nil {
		var outcome Outcome
		if x, outcome, err = e.elsewhere(ctx, claims, r); x == nil {
			return outcome, err
		}
	}
	running, err := x.resume(ctx, claims, r, expired)
	if err != nil {
		return Outcome{}, err
	}
	select {
	case <-running.done:
		return running.outcome, running.err
	case <-ctx.Done():
		return Outcome{}, context.Cause(ctx)
	}
}

// kept returns the last answer of an execution that has ended to the request that
// led to it.
func kept(record continuation.Record, claims continuation.Claims, r Resume) (Outcome, error) {
	if record.Round != claims.Round || record.Request != r.Request {
		return Outcome{}, ErrExpired
	}
	var outcome Outcome
	if err := json.Unmarshal(record.Answer, &outcome); err != nil {
		return Outcome{}, fmt.Errorf("read kept answer of execution %s: %w", record.ID, err)
	}
	return outcome, nil
}

// Ready reports whether the engine can take requests now.
func (e *Engine) Ready(ctx context.Context) error {
	e.mu.Lock()
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return ErrClosing
	}
	return e.o.Store.Ping(ctx)
}

// Close ends every execution, or leaves the paused ones to a later server, and
// destroys every sandbox that nobody needs. It returns early, with ctx's error, if
// ctx ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	for _, x := range e.executions {
		if !e.o.KeepPaused || !x.part() {
			x.cancel()
		}
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.wg.Wait()
		e.pool.close()
		e.attending()
		e.attended.Wait()
		e.withdraw()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close engine: %w", context.Cause(ctx))
	}
}

func (e *Engine) register(x *execution) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return false
	}
	e.executions[x.id] = x
	return true
}

func (e *Engine) forget(x *execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.executions, x.id)
}

func (e *Engine) find(id string) *execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.executions[id]
}

// program is what the worker is told to run.
func (s Start) program() ([]byte, error) {
	source, err := stubs.Python(s.Tools)
	if s.Mode == Bash {
		source, err = stubs.Bash(s.Tools)
	}
	if err != nil {
		return nil, err
	}
	program, err := json.Marshal(struct {
		Mode  Mode            `json:"mode,omitempty"`
		Code  json.RawMessage `json:"code"`
		Stubs string          `json:"stubs"`
		Tools []string        `json:"tools,omitempty"`
		Args  []string        `json:"args,omitempty"`
	}{s.Mode, s.Code, source, toolNames(s.Tools), s.Args})
	if err != nil {
		return nil, fmt.Errorf("encode program: %w", err)
	}
	return program, nil
}

// inputs is what the record keeps of the input files.
func (s Start) inputs() (json.RawMessage, error) {
	if len(s.Inputs) == 0 {
		return nil, nil
	}
	inputs, err := json.Marshal(s.Inputs)
	if err != nil {
		return nil, fmt.Errorf("encode inputs: %w", err)
	}
	return inputs, nil
}

func toolNames(tools []stubs.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
