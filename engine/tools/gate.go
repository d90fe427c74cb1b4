package tools

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxWaiting is how many calls of one principal may wait for a toolset.
const maxWaiting = 2000

// errCrowded means that too many calls of a principal wait.
var errCrowded = errors.New("too many calls wait")

// A gate limits how many calls run at the same time. When a place becomes free, the waiting principals take
// turns, so that none of them waits for all calls of another one. A nil gate has no limit.
type gate struct {
	mu   sync.Mutex
	free int
	// turns are the principals that wait, the next one first, and waiting has their calls.
	turns   []string
	waiting map[string][]chan struct{}
}

// newGate returns a gate with a number of places, or nil if the number is 0, which means no limit.
func newGate(places int) *gate {
	if places <= 0 {
		return nil
	}
	return &gate{free: places, waiting: map[string][]chan struct{}{}}
}

// enter waits for a place until ctx ends. The caller must call leave after the call.
func (g *gate) enter(ctx context.Context, principal string) error {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	if g.free > 0 {
		g.free--
		g.mu.Unlock()
		return nil
	}
	if len(g.waiting[principal]) >= maxWaiting {
		g.mu.Unlock()
		return errCrowded
	}
	mine := make(chan struct{})
	if len(g.waiting[principal]) == 0 {
		g.turns = append(g.turns, principal)
	}
	g.waiting[principal] = append(g.waiting[principal], mine)
	g.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	if !g.forget(principal, mine) { // The call has got its place at the same moment.
		g.leave()
	}
	return ctx.Err()
}

// forget removes a call from those that wait, and reports whether it was among them.
func (g *gate) forget(principal string, mine chan struct{}) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.waiting[principal], mine)
	if i < 0 {
		return false
	}
	g.waiting[principal] = slices.Delete(g.waiting[principal], i, i+1)
	if len(g.waiting[principal]) == 0 {
		delete(g.waiting, principal)
		g.turns = slices.DeleteFunc(g.turns, func(p string) bool { return p == principal })
	}
	return true
}

// leave gives the place to the next call, or makes it free if no call waits.
func (g *gate) leave() {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.turns) == 0 {
		g.free++
		return
	}
	principal := g.turns[0]
	g.turns = g.turns[1:]
	calls := g.waiting[principal]
	close(calls[0])
	if len(calls) == 1 {
		delete(g.waiting, principal)
		return
	}
	g.waiting[principal] = calls[1:]
	g.turns = append(g.turns, principal)
}
