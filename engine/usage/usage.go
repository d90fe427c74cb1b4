// Package usage counts what principals use of the tools that the server runs, by toolset and day, so that it
// can be billed.
package usage

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"fermata/continuation"
)

const (
	// every is how long a Counter counts before it writes. A crash loses what was not written.
	every = time.Second
	// writeTimeout is how long one write may take.
	writeTimeout = 5 * time.Second
	// most is how many sums may wait to be written. There is one for each principal, toolset and day.
	most = 10_000
)

// Options are the settings of a Counter. All of them must be set.
type Options struct {
	// Store keeps the sums.
	Store continuation.Usages
	// Life is how long the sums of a day are kept after its end.
	Life time.Duration
	// Log gets a message when sums are lost.
	Log *slog.Logger
}

// A Counter adds up usage in memory and writes it once a second. It never counts a call twice: if a write
// fails but may have succeeded in the store, it is not repeated. It is safe for concurrent use.
type Counter struct {
	o Options

	mu      sync.Mutex
	waiting map[key]sum
	lost    int64 // calls that did not fit into waiting

	// fed has room for one signal that there is something to write.
	fed     chan struct{}
	closing chan struct{}
	closed  chan struct{}
}

type key struct {
	day                continuation.Day
	principal, toolset string
}

type sum struct{ calls, cost int64 }

// New returns a Counter, which must be closed.
func New(o Options) *Counter {
	c := &Counter{
		o: o, waiting: map[key]sum{},
		fed: make(chan struct{}, 1), closing: make(chan struct{}), closed: make(chan struct{}),
	}
	c.feed() // The first write removes old sums that an earlier server may have left.
	go c.work()
	return c
}

// Used counts a successful call. It does not wait for the store.
func (c *Counter) Used(principal, toolset string, cost int64) {
	k := key{continuation.DayOf(time.Now()), principal, toolset}
	c.mu.Lock()
	defer c.mu.Unlock()
	s, known := c.waiting[k]
	if !known && len(c.waiting) >= most {
		c.lost++
		return
	}
	c.waiting[k] = sum{s.calls + 1, s.cost + cost}
	c.feed()
}

func (c *Counter) feed() {
	select {
	case c.fed <- struct{}{}:
	default: // There is a signal that was not received yet.
	}
}

// work writes what was counted until the Counter is closed.
func (c *Counter) work() {
	defer close(c.closed)
	for {
		select {
		case <-c.fed:
		case <-c.closing:
			c.write()
			return
		}
		select {
		case <-time.After(every):
		case <-c.closing:
		}
		c.write()
	}
}

// write writes what was counted, and removes old sums. If the write fails, its sums are lost, since they may
// have been written.
func (c *Counter) write() {
	c.mu.Lock()
	waiting, lost := c.waiting, c.lost
	c.waiting, c.lost = map[key]sum{}, 0
	c.mu.Unlock()
	add := make([]continuation.Usage, 0, len(waiting))
	calls := int64(0)
	for k, s := range waiting {
		add = append(add, continuation.Usage{Day: k.day, Principal: k.principal, Toolset: k.toolset, Calls: s.calls, Cost: s.cost})
		calls += s.calls
	}
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	if err := c.o.Store.AddUsage(ctx, add, c.o.Life); err != nil {
		c.o.Log.Warn("cannot write the usage of toolsets, so calls may be missing in it", "calls", calls, "err", err)
	}
	if lost > 0 {
		c.o.Log.Warn("too many principals used toolsets at once, so calls are missing in their usage", "calls", lost)
	}
}

// List returns the sums in the store. What was counted in the last second may be missing.
func (c *Counter) List(ctx context.Context, q continuation.UsageQuery) ([]continuation.Usage, error) {
	now := time.Now()
	q.Since = max(q.Since, continuation.DayOf(now.Add(-c.o.Life)))
	if today := continuation.DayOf(now); q.Until == "" || q.Until > today {
		q.Until = today
	}
	return c.o.Store.Usage(ctx, q)
}

// Close writes what is left. Used must not be called after it.
func (c *Counter) Close(ctx context.Context) error {
	close(c.closing)
	select {
	case <-c.closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
