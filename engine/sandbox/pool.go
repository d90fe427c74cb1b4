package sandbox

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
	// makeTimeout bounds the making of one sandbox; the first may have to wait until every
	// library is imported.
	makeTimeout = 60 * time.Second
	// markerSize is the length of a sandbox's marker, in bytes: nobody guesses it.
	markerSize = 16
)

// PoolOptions are what a Pool needs to know.
type PoolOptions struct {
	// Provider makes the sandboxes, within the Limits.
	Provider Provider
	Limits   Limits
	// Log gets what goes wrong.
	Log *slog.Logger
	// Sizes is how many sandboxes of each kind should be idle, Ceiling how many there may be
	// in all.
	Sizes   map[Kind]int
	Ceiling int
	// MaxIdle is how long a sandbox may be idle before another one takes its place; 0 is for
	// ever.
	MaxIdle time.Duration
	// Waited and Made, if set, get how long each start waited for a sandbox, in vain or not,
	// and how long each sandbox took to make.
	Waited, Made func(time.Duration)
}

// A Pool keeps idle sandboxes ahead of need and bounds how many there are. It is safe for
// concurrent use.
type Pool struct {
	// Undertaker destroys the pool's sandboxes, and those of others.
	*Undertaker

	o PoolOptions

	ctx    context.Context //nolint:containedctx // ends the makers, which outlive every request
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	idle    idle
	queue   queue
	refill  *refill
	making  map[Kind]int
	failing map[Kind]bool // the last sandbox could not be made
	live    int           // idle, used, being made and being destroyed
	ending  int           // being destroyed
	closed  bool
	counts  map[Kind]*KindStats
}

// NewPool returns a pool, which makes nothing before it is asked for something.
func NewPool(o PoolOptions) *Pool {
	p := &Pool{o: o, making: map[Kind]int{}, failing: map[Kind]bool{}, counts: map[Kind]*KindStats{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.idle = idle{mu: &p.mu, maxAge: o.MaxIdle, destroy: p.destroy, kinds: map[Kind][]*waiting{}}
	p.refill = newRefill(o.Sizes, &p.mu, p.fill)
	for _, kind := range Kinds {
		p.counts[kind] = &KindStats{}
	}
	p.Undertaker = newUndertaker(o.Provider, o.Log, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fill()
	})
	return p
}

// Take returns a sandbox of a kind for one execution of a principal. It waits in line for one
// until ctx ends.
func (p *Pool) Take(ctx context.Context, kind Kind, principal string) (*Conn, error) {
	began := time.Now()
	c, warm, err := p.take(ctx, kind, principal)
	if p.o.Waited != nil {
		p.o.Waited(time.Since(began))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	counts := p.counts[kind]
	switch {
	case err != nil:
		counts.Refused++
	case warm:
		counts.Warm++
	default:
		counts.Cold++
	}
	return c, err
}

// take is Take without its figures. A warm sandbox was idle.
func (p *Pool) take(ctx context.Context, kind Kind, principal string) (c *Conn, warm bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, ErrClosing
	}
	if c := p.idle.take(kind); c != nil {
		p.refill.begins()
		p.mu.Unlock()
		return c, true, nil
	}
	place := p.queue.join(kind, principal)
	p.fill()
	p.mu.Unlock()
	select {
	case t := <-place:
		return t.conn, false, t.err
	case <-ctx.Done():
		p.leave(kind, place)
		return nil, false, fmt.Errorf("%w: %w", ErrNoCapacity, context.Cause(ctx))
	}
}

// leave gives up a place in line, and the sandbox that may have come meanwhile.
func (p *Pool) leave(kind Kind, place chan taken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queue.leave(place) {
		return
	}
	if t := <-place; t.conn != nil {
		p.put(kind, t.conn)
		p.fill()
	}
}

// put gives a ready sandbox to the first in line who waits for its kind, or lets it wait. mu
// is held.
func (p *Pool) put(kind Kind, c *Conn) {
	switch {
	case p.closed:
		p.destroy(c)
	case !p.queue.serve(kind, c):
		p.idle.put(kind, c)
	}
}

// Release ends a sandbox that Take or Adopt returned.
func (p *Pool) Release(c *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.destroy(c)
}

// Adopt attaches to a sandbox that another server has made, and counts it.
func (p *Pool) Adopt(ctx context.Context, ref string, marker []byte) (*Conn, error) {
	c, err := Attach(ctx, p.o.Provider, ref, marker, p.o.Limits)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live++
	return c, nil
}

// Abandon lets go of a sandbox that is another server's now.
func (p *Pool) Abandon(c *Conn) {
	c.Detach()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live--
	p.fill()
}

// Running notes that a program begins (1) or ceases (-1) to run.
func (p *Pool) Running(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.refill.running(n)
		p.fill()
	}
}

// destroy ends a sandbox in the background. mu is held.
func (p *Pool) destroy(c *Conn) {
	p.ending++
	p.wg.Go(func() {
		// Not under mu: to close what a program has the other end of may take its time.
		c.Detach()
		p.Destroy(context.WithoutCancel(p.ctx), c.Ref)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ending--
		p.live--
		p.fill()
	})
}

// fill begins to make the sandboxes that are missing. Where the ceiling is reached, an idle
// sandbox makes room for someone who waits: it is of a kind that nobody waits for. mu is held.
func (p *Pool) fill() {
	for !p.closed {
		// Stuck sandboxes count, but take no more than half of the ceiling: what cannot be
		// cleared away must not end the service.
		full := p.live+min(p.stuckCount(), p.o.Ceiling/2) >= p.o.Ceiling
		lack := p.queue.lack(p.making)
		kind, ok := p.refill.wants(lack, p.idle.count, p.making)
		switch {
		case !ok:
			return
		case !full:
			beginMaking(p, kind)
			again := p.failing[kind]
			p.wg.Go(func() { _ = p.make(kind, again) }) // Those who wait are told.
		case !slices.Contains(lack, kind) || len(lack) <= p.ending || !p.idle.evict():
			return
		}
	}
}

// beginMaking counts a sandbox that is being made. mu is held.
func beginMaking(p *Pool, kind Kind) {
	p.making[kind]++
	p.live++
}

// First makes the first sandbox of each kind that should be idle, or of one kind if none
// should: it shows that sandboxes can be made.
func (p *Pool) First(ctx context.Context) error {
	stop := context.AfterFunc(ctx, p.cancel)
	var kinds []Kind
	for _, kind := range Kinds {
		if p.o.Sizes[kind] > 0 {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) == 0 {
		kinds = []Kind{Plain}
	}
	p.mu.Lock()
	for _, kind := range kinds {
		beginMaking(p, kind)
	}
	p.mu.Unlock()
	errs := make([]error, len(kinds))
	var making sync.WaitGroup
	for i, kind := range kinds {
		making.Go(func() { errs[i] = p.make(kind, true) })
	}
	making.Wait()
	err := errors.Join(errs...)
	if !stop() {
		err = errors.Join(err, context.Cause(ctx))
	}
	return err
}

// make makes a sandbox, again if the last one could not be made: a single failure may be an
// accident, for which those who wait had better wait a little longer than be refused.
func (p *Pool) make(kind Kind, again bool) error {
	began := time.Now()
	c, err := createFor(p, kind)
	if err == nil && p.o.Made != nil {
		p.o.Made(time.Since(began))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.making[kind]--
	p.failing[kind] = err != nil
	if err == nil {
		p.counts[kind].Made++
		p.put(kind, c)
		p.fill()
		return nil
	}
	p.live--
	if p.closed || p.ctx.Err() != nil {
		return err // The server stops.
	}
	p.counts[kind].Failed++
	p.o.Log.Error("cannot make a sandbox", "kind", kind, "err", err)
	if again {
		p.queue.refuse(fmt.Errorf("%w: %w", ErrNoCapacity, err), kind)
	}
	p.refill.failed(kind)
	p.fill()
	return err
}

// createFor makes a sandbox and attaches to it.
func createFor(p *Pool, kind Kind) (*Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, makeTimeout)
	defer cancel()
	ref, err := p.o.Provider.Create(ctx, kind)
	if err != nil {
		if ref != "" {
			p.retry(ref, err)
		}
		return nil, err
	}
	marker := make([]byte, markerSize)
	_, _ = rand.Read(marker) // It never fails.
	c, err := Attach(ctx, p.o.Provider, ref, marker, p.o.Limits)
	if err == nil && c.Hello.State != Ready {
		c.Detach()
		err = fmt.Errorf("new sandbox %s is %s", ref, c.Hello.State)
	}
	if err != nil {
		p.Destroy(context.WithoutCancel(ctx), ref)
		return nil, err
	}
	return c, nil
}

// Close refuses everybody, destroys the idle sandboxes and waits until all that were to be
// destroyed are, or are stuck.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.cancel()
	p.refill.stop()
	p.queue.refuse(ErrClosing, Kinds...)
	for p.idle.evict() {
		continue
	}
	p.mu.Unlock()
	p.idle.watches.Wait()
	p.wg.Wait()
	p.giveUp()
}
