package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// makeTimeout bounds the making of one sandbox; the first may have to wait for
	// every library to be imported.
	makeTimeout = 60 * time.Second
	// retryDelay is how long the pool rests after it could not make a sandbox.
	retryDelay = time.Second
	// markerSize is the length of a sandbox's marker, in bytes: nobody guesses it.
	markerSize = 16
	// calmTime is how long no program must have run for the pool to be filled at leisure.
	calmTime = 20 * time.Millisecond
	// startTime is how long a program that has just been given a sandbox is left alone.
	startTime = 5 * time.Millisecond
	// makers is how many sandboxes are made at once for those who wait.
	makers = 2
)

// A pool keeps sandboxes ready ahead of need and bounds how many there are.
type pool struct {
	provider   Provider
	log        *slog.Logger
	undertaker *undertaker
	// size is how many idle sandboxes there should be, ceiling how many of any kind.
	size, ceiling int
	// limits bound what they may send.
	limits frameLimits
	// maxIdle is how old an idle one may get, 0 for any age.
	maxIdle time.Duration
	// waited and made get durations, if they are set.
	waited, made func(time.Duration)

	ctx    context.Context //nolint:containedctx // ends the makers, which outlive every request
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	idle    []*sandbox
	waiting []turn // in the order in which they are served
	served  int    // the rank of the latest that was
	making  int
	failing bool // the last sandbox could not be made
	live    int  // idle, used, being made and being destroyed
	busy    int  // programs that run at this moment
	// calming is pending while a program has run a moment ago.
	calming *time.Timer
	// starting is pending while a program has just begun.
	starting *time.Timer
	resting  *time.Timer
	closed   bool
	counts   poolCounts
}

type taken struct {
	sandbox *sandbox
	err     error
}

// A turn is a place in line.
type turn struct {
	taken     chan taken
	principal string
	// rank is one more than that of the principal's place before it: principals that wait are
	// served in turns, each first come, first served.
	rank int
}

func newPool(o Options) *pool {
	ctx, cancel := context.WithCancel(context.Background())
	p := &pool{
		provider: o.Provider, log: o.Log, size: o.PoolSize, ceiling: o.MaxSandboxes, maxIdle: o.MaxIdle,
		limits: newFrameLimits(o), waited: o.Waited, made: o.Made, ctx: ctx, cancel: cancel,
	}
	p.undertaker = newUndertaker(o, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fill()
	})
	return p
}

// full reports whether there may be no more sandboxes. Stuck ones count, but take no more
// than half of the ceiling: what cannot be cleared away must not end the service. mu is
// held.
func (p *pool) full() bool { return p.live+min(p.undertaker.count(), p.ceiling/2) >= p.ceiling }

// take returns a sandbox for one execution of a principal. It waits in line for one until
// ctx ends.
func (p *pool) take(ctx context.Context, principal string) (*sandbox, error) {
	began := time.Now()
	s, warm, err := p.get(ctx, principal)
	if p.waited != nil {
		p.waited(time.Since(began))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.counts.refused++
	case warm:
		p.counts.warm++
	default:
		p.counts.cold++
	}
	return s, err
}

// get is take without its figures. A warm sandbox was there already.
func (p *pool) get(ctx context.Context, principal string) (s *sandbox, warm bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, ErrClosing
	}
	for len(p.idle) > 0 {
		s := p.idle[0]
		p.idle = p.idle[1:]
		close(s.taken)
		if !s.gone() {
			p.spare()
			p.mu.Unlock()
			return s, true, nil
		}
		p.destroy(s)
	}
	turn := p.join(principal)
	p.fill()
	p.mu.Unlock()
	select {
	case t := <-turn:
		return t.sandbox, false, t.err
	case <-ctx.Done():
		p.leave(turn)
		return nil, false, fmt.Errorf("%w: %w", ErrNoCapacity, context.Cause(ctx))
	}
}

// join takes a place in line. mu is held.
func (p *pool) join(principal string) chan taken {
	t := turn{taken: make(chan taken, 1), principal: principal, rank: p.served + 1}
	place := 0
	for i, other := range p.waiting {
		if other.principal == principal {
			t.rank = other.rank + 1
		}
		if other.rank <= t.rank {
			place = i + 1
		}
	}
	p.waiting = slices.Insert(p.waiting, place, t)
	return t.taken
}

// leave gives up a place in line, and the sandbox that may have come meanwhile.
func (p *pool) leave(turn chan taken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.waiting {
		if t.taken == turn {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			return
		}
	}
	if t := <-turn; t.sandbox != nil {
		p.put(t.sandbox)
	}
}

// put gives a ready sandbox to whoever waits first, or keeps it. mu is held.
func (p *pool) put(s *sandbox) {
	switch {
	case p.closed:
		p.destroy(s)
	case len(p.waiting) > 0:
		first := p.waiting[0]
		first.taken <- taken{sandbox: s}
		p.waiting, p.served = p.waiting[1:], first.rank
	default:
		p.keep(s)
	}
}

// keep lets a sandbox wait until it is taken, or is too old, or ends. mu is held.
func (p *pool) keep(s *sandbox) {
	taken := make(chan struct{})
	s.taken = taken
	p.idle = append(p.idle, s)
	p.wg.Go(func() {
		var old <-chan time.Time
		if p.maxIdle > 0 {
			timer := time.NewTimer(p.maxIdle - time.Since(s.born))
			defer timer.Stop()
			old = timer.C
		}
		select {
		case <-taken:
			return
		case <-s.ended:
		case <-old:
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if i := slices.Index(p.idle, s); i >= 0 {
			p.idle = slices.Delete(p.idle, i, i+1)
			p.destroy(s)
		}
	})
}

// release ends a sandbox that take returned.
func (p *pool) release(s *sandbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.destroy(s)
}

// adopted counts a sandbox that was not made here.
func (p *pool) adopted() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live++
}

// abandon lets go of a sandbox that is another server's now.
func (p *pool) abandon(s *sandbox) {
	s.detach()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	p.fill()
}

// running notes that a program begins (1) or ceases (-1) to run. Ahead of need the
// pool is filled when none does, and none is about to: a client that answers a tool
// call at once has its program run again in a moment.
func (p *pool) running(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy += n
	if p.calming != nil {
		p.calming.Stop()
		p.calming = nil
	}
	if p.busy == 0 && n < 0 && !p.closed {
		p.calm()
	}
	p.fill()
}

// calm fills the pool when nothing has run for a while. mu is held.
func (p *pool) calm() {
	var timer *time.Timer
	timer = time.AfterFunc(calmTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.calming == timer {
			p.calming = nil
			p.fill()
		}
	})
	p.calming = timer
}

// spare lets a program begin before another sandbox is made. mu is held.
func (p *pool) spare() {
	if p.starting != nil {
		return
	}
	p.starting = time.AfterFunc(startTime, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.starting = nil
		p.fill()
	})
}

// destroy ends a sandbox in the background. mu is held.
func (p *pool) destroy(s *sandbox) {
	p.wg.Go(func() {
		// Not under mu: to close what a program has the other end of may take its time.
		s.detach()
		p.undertaker.destroy(context.WithoutCancel(p.ctx), s.ref)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.live--
		p.fill()
	})
}

// fill starts to make the sandboxes that are missing. mu is held.
func (p *pool) fill() {
	for !p.closed && p.resting == nil && p.wants() && !p.full() {
		p.making++
		p.live++
		again := p.failing
		p.wg.Go(func() { _ = p.make(again) }) // Those who wait are told.
	}
}

// wants reports whether one more sandbox should be made now. Those who wait come
// first; ahead of need one is made at a time, and at a calm time unless the pool is
// half empty, but not while a program begins.
func (p *pool) wants() bool {
	if len(p.waiting) > p.making {
		return p.making < makers
	}
	ready := len(p.idle) + p.making - len(p.waiting)
	if ready >= p.size || p.making > 0 {
		return false
	}
	return p.starting == nil && (p.busy == 0 && p.calming == nil || 2*ready < p.size)
}

// first makes the first sandbox, which shows that one can be made.
func (p *pool) first(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cancel)
	p.mu.Lock()
	p.making++
	p.live++
	p.mu.Unlock()
	err := p.make(true)
	if !stop() {
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}

// make makes a sandbox, again if the last one could not be made: once may be an
// accident, and those who wait had better wait a little longer.
func (p *pool) make(again bool) error {
	began := time.Now()
	s, err := p.create()
	if err == nil && p.made != nil {
		p.made(time.Since(began))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making--
	p.failing = err != nil
	if err == nil {
		p.counts.made++
		p.put(s)
		p.fill()
		return nil
	}
	p.live--
	if p.closed {
		return err
	}
	p.counts.failed++
	p.log.Error("cannot make a sandbox", "err", err)
	if again {
		for _, turn := range p.waiting {
			turn.taken <- taken{err: fmt.Errorf("%w: %w", ErrNoCapacity, err)}
		}
		p.waiting = nil
	}
	if p.resting == nil {
		p.resting = time.AfterFunc(retryDelay, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.resting = nil
			p.fill()
		})
	}
	return err
}

func (p *pool) create() (*sandbox, error) {
	ctx, cancel := context.WithTimeout(p.ctx, makeTimeout)
	defer cancel()
	ref, err := p.provider.Create(ctx, Scientific)
	if err != nil {
		if ref != "" {
			p.undertaker.retry(ref, err)
		}
		return nil, err
	}
	marker := make([]byte, markerSize)
	// It never fails.
	_, _ = rand.Read(marker)
	s, err := attach(ctx, p.provider, ref, marker, p.limits)
	if err == nil && s.hello.State != "ready" {
		s.detach()
		err = fmt.Errorf("new sandbox %s is %s", ref, s.hello.State)
	}
	if err != nil {
		p.undertaker.destroy(context.WithoutCancel(ctx), ref)
		return nil, err
	}
	return s, nil
}

// close refuses everybody, destroys the idle sandboxes and waits until all that
// were to be destroyed are, or are stuck.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	for _, timer := range []*time.Timer{p.resting, p.calming, p.starting} {
		if timer != nil {
			timer.Stop()
		}
	}
	for _, turn := range p.waiting {
		turn.taken <- taken{err: ErrClosing}
	}
	p.waiting = nil
	for _, s := range p.idle {
		close(s.taken)
		p.destroy(s)
	}
	p.idle = nil
	p.mu.Unlock()
	p.wg.Wait()
	p.undertaker.close()
}
