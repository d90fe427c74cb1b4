package sandbox

import (
	"slices"
	"sync"
	"time"
)

// idle holds the sandboxes that wait for a program, by kind. mu guards it and is held when
// its methods are called, but for watch.
type idle struct {
	mu sync.Locker
	// maxAge is how old a sandbox may get here, 0 for any age.
	maxAge time.Duration
	// destroy ends a sandbox that has ended by itself, or is too old. mu is held.
	destroy func(*Conn)
	watches sync.WaitGroup
	kinds   map[Kind][]*waiting
}

// waiting is a sandbox that waits.
type waiting struct {
	*Conn
	// over is closed when it waits no more.
	over chan struct{}
}

// put lets a sandbox wait.
func (i *idle) put(kind Kind, c *Conn) {
	w := &waiting{Conn: c, over: make(chan struct{})}
	i.kinds[kind] = append(i.kinds[kind], w)
	i.watches.Go(func() { i.watch(kind, w) })
}

// watch destroys a sandbox that has ended by itself, or has become too old, while it waits.
func (i *idle) watch(kind Kind, w *waiting) {
	var old <-chan time.Time
	if i.maxAge > 0 {
		timer := time.NewTimer(i.maxAge - time.Since(w.born))
		defer timer.Stop()
		old = timer.C
	}
	select {
	case <-w.over:
		return
	case <-w.ended:
	case <-old:
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if at := slices.Index(i.kinds[kind], w); at >= 0 {
		i.kinds[kind] = slices.Delete(i.kinds[kind], at, at+1)
		i.destroy(w.Conn)
	}
}

// take returns the oldest sandbox of a kind that can be used, or nil.
func (i *idle) take(kind Kind) *Conn {
	for len(i.kinds[kind]) > 0 {
		c := i.first(kind)
		select {
		case <-c.Events():
			// It has ended or, against the rules, has spoken.
			i.destroy(c)
		default:
			return c
		}
	}
	return nil
}

// first takes the oldest sandbox of a kind, of which there is one.
func (i *idle) first(kind Kind) *Conn {
	w := i.kinds[kind][0]
	i.kinds[kind] = i.kinds[kind][1:]
	close(w.over)
	return w.Conn
}

// evict destroys a sandbox of the kind of which most wait. It reports false if none waits.
func (i *idle) evict() bool {
	var most Kind
	for _, kind := range Kinds {
		if len(i.kinds[kind]) > len(i.kinds[most]) {
			most = kind
		}
	}
	if most == "" {
		return false
	}
	i.destroy(i.first(most))
	return true
}

// count returns how many sandboxes of a kind wait.
func (i *idle) count(kind Kind) int { return len(i.kinds[kind]) }
