package engine

import (
	"maps"
	"slices"
	"sync"

	"fermata/continuation"
)

// A table has what lives on this server, by the ids of executions. It is safe for concurrent use.
type table[T any] struct {
	mu     sync.Mutex
	byID   map[string]T
	closed bool
	// living waits for all that is in the table.
	living sync.WaitGroup
}

// register lets requests find x. From then on wait waits until the id is forgotten. register returns
// ErrConflict if the id is taken already, and ErrClosing after close.
func (t *table[T]) register(id string, x T) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosing
	}
	if _, taken := t.byID[id]; taken {
		return continuation.ErrConflict
	}
	if t.byID == nil {
		t.byID = map[string]T{}
	}
	t.byID[id] = x
	t.living.Add(1)
	return nil
}

func (t *table[T]) forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
	t.living.Done()
}

// find returns what has this id, or the zero value.
func (t *table[T]) find(id string) T {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}

// close lets nothing further in, and returns what lives.
func (t *table[T]) close() []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	return slices.Collect(maps.Values(t.byID))
}

func (t *table[T]) isClosed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// wait waits until everything is forgotten.
func (t *table[T]) wait() { t.living.Wait() }
