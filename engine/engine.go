// Package engine keeps executions: it starts programs in sandboxes, pauses them at
// their tool calls, resumes them with the results, and ends them at their limits.
//
// Everything a sandbox sends is untrusted input. What a program does to itself is
// an Outcome; an error is the server's own trouble or the client's mistake.
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// Options are what an Engine needs to know.
type Options struct {
	// Provider makes the sandboxes.
	Provider sandbox.Provider
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
	// Files keeps the files of executions; nil if they have none. MaxInputSize bounds
	// what the inputs of one may take in its workspace, in bytes. Its outputs are kept
	// as far as Limits allow.
	Files        Files
	MaxInputSize int64
	// MaxRunning and MaxPaused refuse to start an execution for a principal that has
	// as many on this server that run, or wait for a sandbox, or are paused; 0 does
	// not. Nothing that has begun is ever refused to pause or to go on, so paused
	// executions can exceed MaxPaused by those that ran already.
	MaxRunning, MaxPaused int
	// MaxExecutions does so for the sum of both.
	MaxExecutions int
	// MaxStored bounds what is kept of the pauses and the answers of a principal on this
	// server, in bytes; 0 does not. A pause that would exceed it ends the execution, and an
	// answer that would exceed it is not kept for a client that asks again.
	MaxStored int64
	// Limits are those that the provider gives each sandbox. They bound what is read of one.
	Limits sandbox.Limits
	// PoolSizes is how many sandboxes of each kind to keep idle; MaxSandboxes bounds all there
	// are.
	PoolSizes    map[sandbox.Kind]int
	MaxSandboxes int
	// MaxIdle is how long a sandbox may wait ready before another takes its place;
	// 0 is for ever. Docker's sandboxes end themselves when no server speaks to them.
	MaxIdle time.Duration
	// QueueTimeout is how long a request waits for a sandbox.
	QueueTimeout time.Duration
	// KeepPaused makes Close leave paused executions to a later server instead of
	// ending them.
	KeepPaused bool
	// Instance names this server process; the provider marks sandboxes with it. The
	// part before a dot is the same for later processes of the same server, of which
	// there is one at a time.
	Instance string
	// Exclusive says that no other server can reach this one's sandboxes.
	Exclusive bool
	// Registry, Address and Peers let servers that share the store find each other:
	// Address is where they reach this one. Without a Registry there are no others.
	Registry continuation.Registry
	Address  string
	Peers    Peers
	// Waited and Made, if set, get how long each start waited for a sandbox, in vain or
	// not, and how long each sandbox took to make.
	Waited, Made func(time.Duration)
}

// An Engine keeps executions. It is safe for concurrent use.
type Engine struct {
	o       Options
	members *membership
	pool    *sandbox.Pool
	quota   *quota
	wg      sync.WaitGroup // executions
	// attending ends the goroutine that keeps the lease, attended waits for it and for
	// those that clear up. These end with clearing, before the executions.
	attending context.CancelFunc
	attended  sync.WaitGroup
	clearing  context.Context //nolint:containedctx // the goroutines outlive every request
	stop      context.CancelFunc

	requests requests
	tally    tally
	sweeper  sweeper
	// large lets one large batch of calls be checked at a time: that takes memory.
	large sync.Mutex

	mu         sync.Mutex
	executions map[string]*execution
	adopting   map[string]bool // being taken over
	closed     bool
}

// New returns an engine that takes over what an earlier one left: executions whose
// record lives go on, all other sandboxes are destroyed. What takes longer than a few
// seconds goes on in the background; if the store that the engine shares is away, it
// begins when that is back. New returns when the first sandbox is ready, so that a
// machine that cannot make one is found out.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{
		o: o,
		members: &membership{
			registry: o.Registry, instance: o.Instance, address: o.Address, exclusive: o.Exclusive, began: time.Now(),
		},
		pool: sandbox.NewPool(sandbox.PoolOptions{
			Provider: o.Provider, Limits: o.Limits, Log: o.Log, Sizes: o.PoolSizes,
			Ceiling: o.MaxSandboxes, MaxIdle: o.MaxIdle, Waited: o.Waited, Made: o.Made,
		}),
		quota:      newQuota(o),
		executions: map[string]*execution{},
		adopting:   map[string]bool{},
	}
	attending, stop := context.WithCancel(context.WithoutCancel(ctx))
	e.attending = stop
	e.clearing, e.stop = context.WithCancel(context.WithoutCancel(ctx))
	err := e.join(ctx)
	if err == nil {
		e.attended.Go(func() { e.attend(attending) })
		if err = e.pool.First(ctx); err != nil {
			err = fmt.Errorf("make the first sandbox: %w", err)
		}
	}
	if err != nil {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
		defer cancel()
		return nil, errors.Join(err, e.Close(closing))
	}
	return e, nil
}

const (
	// clearPatience is how long New waits for what an earlier server left to be cleared up.
	clearPatience = 4 * time.Second
	// abandonTimeout bounds the end of an engine that could not begin.
	abandonTimeout = 10 * time.Second
)

// join begins the engine's part in its group.
func (e *Engine) join(ctx context.Context) error {
	if e.o.Registry != nil {
		if err := e.members.renew(ctx); err != nil {
			return e.storeAway(err)
		}
	}
	swept := make(chan error, 1)
	e.sweepAside(func(err error) { swept <- err })
	patience := time.NewTimer(clearPatience)
	defer patience.Stop()
	select {
	case err := <-swept:
		return e.storeAway(err)
	case <-patience.C:
		e.o.Log.Warn("what an earlier server left is not cleared up yet; that goes on in the background")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// storeAway takes it that the store is away: the engine waits for it.
func (e *Engine) storeAway(err error) error {
	if errors.Is(err, continuation.ErrUnavailable) {
		e.o.Log.Error("the store is not available; executions are refused until it is", "err", err)
		return nil
	}
	return err
}

// Ready reports whether the engine can take requests now.
func (e *Engine) Ready(ctx context.Context) error {
	if e.isClosed() {
		return ErrClosing
	}
	if err := e.o.Store.Ping(ctx); err != nil {
		return err
	}
	if !e.members.announced() {
		// It answers, but does not take writes, or not yet.
		return fmt.Errorf("lease of this server: %w", continuation.ErrUnavailable)
	}
	return nil
}

func (e *Engine) isClosed() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// Close ends every execution, or leaves the paused ones to a later server, and
// destroys every sandbox that nobody needs. It returns early, with ctx's error, if
// ctx ends first.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	e.closed = true
	executions := slices.Collect(maps.Values(e.executions))
	e.mu.Unlock()
	e.stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		// Side by side: an execution of which the store is being told cannot part before
		// the store has answered.
		for _, x := range executions {
			go func() {
				if !e.o.KeepPaused || !x.conversation.part() {
					x.conversation.cancel()
				}
			}()
		}
		e.wg.Wait()
		e.pool.Close()
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

// register makes x known; from then on Close waits until it is forgotten. It returns
// ErrConflict if there is such an execution.
func (e *Engine) register(x *execution) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosing
	}
	if e.executions[x.id] != nil {
		return continuation.ErrConflict
	}
	e.executions[x.id] = x
	e.wg.Add(1)
	return nil
}

func (e *Engine) forget(x *execution) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.executions, x.id)
	e.wg.Done()
}

func (e *Engine) find(id string) *execution {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.executions[id]
}
