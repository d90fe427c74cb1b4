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
	// PoolSize is how many sandboxes wait ready; MaxSandboxes bounds all there are.
	PoolSize, MaxSandboxes int
	// MaxIdle is how long a sandbox may wait ready before another takes its place;
	// 0 is for ever. Docker's sandboxes end themselves when no server speaks to them.
	MaxIdle time.Duration
	// QueueTimeout is how long a request waits for a sandbox.
	QueueTimeout time.Duration
}

// An Engine keeps executions. It is safe for concurrent use.
type Engine struct {
	o        Options
	instance string
	pool     *pool
	wg       sync.WaitGroup // executions

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
		instance:   uuid.NewString(),
		pool:       newPool(o),
		executions: map[string]*execution{},
	}
	if err := e.adopt(ctx); err != nil {
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
	source, err := stubs.Python(s.Tools)
	if err != nil {
		return Outcome{}, err
	}
	program, err := json.Marshal(struct {
		Code  json.RawMessage `json:"code"`
		Stubs string          `json:"stubs"`
	}{s.Code, source})
	if err != nil {
		return Outcome{}, fmt.Errorf("encode program: %w", err)
	}
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
		Owner:     e.instance,
		Sandbox:   sb.ref,
		Marker:    sb.marker,
		Tools:     toolNames(s.Tools),
	}
	x := newExecution(e, record, sb)
	first := x.begin(0, "")
	if !e.register(x) {
		e.pool.release(sb)
		return Outcome{}, ErrClosing
	}
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
	claims, expired := e.o.Signer.Verify(r.Token, time.Now())
	if expired != nil && !errors.Is(expired, continuation.ErrTokenExpired) {
		return Outcome{}, expired
	}
	if claims.Principal != r.Principal {
		return Outcome{}, ErrForbidden
	}
	x := e.find(claims.Execution)
	if x == nil {
		return e.kept(ctx, claims, r)
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

// kept answers a request for an execution that does not live here any more: with
// the last answer if it is the request that led to it.
func (e *Engine) kept(ctx context.Context, claims continuation.Claims, r Resume) (Outcome, error) {
	record, err := e.o.Store.Get(ctx, claims.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return Outcome{}, ErrExpired
	}
	if err != nil {
		return Outcome{}, err
	}
	if record.Session != claims.Session {
		return Outcome{}, continuation.ErrToken
	}
	if !State(record.State).terminal() || record.Round != claims.Round || record.Request != r.Request {
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

// Close ends every execution and destroys every sandbox. It returns early, with
// ctx's error, if ctx ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	for _, x := range e.executions {
		x.cancel()
	}
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.wg.Wait()
		e.pool.close()
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

// adopt takes over the sandboxes of earlier servers.
func (e *Engine) adopt(ctx context.Context) error {
	refs, err := e.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	if len(refs) == 0 {
		return nil
	}
	records, err := e.o.Store.List(ctx)
	if err != nil {
		return fmt.Errorf("list executions: %w", err)
	}
	bySandbox := map[string]continuation.Record{}
	for _, r := range records {
		if !State(r.State).terminal() {
			bySandbox[r.Sandbox] = r
		}
	}
	for _, ref := range refs {
		record, ok := bySandbox[ref]
		if ok && e.adoptOne(ctx, record) {
			continue
		}
		if err := e.o.Provider.Destroy(ctx, ref); err != nil {
			e.o.Log.Error("cannot destroy a sandbox that was left over", "err", err)
		}
	}
	return nil
}

// adoptOne goes on with an execution in the state in which its sandbox says it is.
func (e *Engine) adoptOne(ctx context.Context, record continuation.Record) bool {
	sb, err := attach(ctx, e.o.Provider, record.Sandbox, record.Marker)
	if err != nil {
		e.o.Log.Warn("cannot take over an execution", "execution", record.ID, "err", err)
		return false
	}
	record.Owner = e.instance
	x := newExecution(e, record, sb)
	if err := x.recall(); err != nil {
		e.o.Log.Warn("cannot read the kept answer of an execution", "execution", record.ID, "err", err)
	}
	e.pool.adopted()
	e.register(x)
	e.wg.Go(x.relive)
	return true
}

func toolNames(tools []stubs.Tool) []string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return names
}
