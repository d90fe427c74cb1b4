package tools

import (
	"context"
	"errors"
	"sync"

	"fermata/engine/tools/mcptool"
	"fermata/engine/tools/outgoing"
)

// How many calls run at the same time.
const (
	MaxOfPrincipal = 64  // of one principal
	MaxOfServer    = 256 // of all principals
)

// Gates bound what all toolsets use together, and the calls of each toolset, also where toolsets are
// opened again: calls that run, bytes of answers, and sessions and processes of MCP servers. They are
// safe for concurrent use.
type Gates struct {
	server *gate
	budget *outgoing.Budget
	limits *mcptool.Limits

	mu         sync.Mutex
	principals map[string]*counted
	toolsets   map[string]sized
}

// A counted gate is one principal's, and the number of calls that are at it.
type counted struct {
	*gate
	calls int
}

// A sized gate is one toolset's, and the number of its places.
type sized struct {
	*gate
	places int
}

// NewGates returns gates through which no call has gone yet.
func NewGates() *Gates {
	return &Gates{
		server: newGate(MaxOfServer), budget: outgoing.NewBudget(maxInFlight), limits: mcptool.NewLimits(),
		principals: map[string]*counted{}, toolsets: map[string]sized{},
	}
}

// toolset returns the gate of a toolset. It is the same one as before, unless the toolset has another
// bound now.
func (g *Gates) toolset(key string, places int) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if former, found := g.toolsets[key]; found && former.places == places {
		return former.gate
	}
	made := newGate(places)
	if made == nil {
		delete(g.toolsets, key)
	} else {
		g.toolsets[key] = sized{made, places}
	}
	return made
}

// enter waits until the principal, then the toolset and then the server may run one more call, for no
// longer than ctx. In this order nobody holds a place that is everybody's while it waits for one of its
// own. If it was the toolset that was busy, own is true.
func (g *Gates) enter(ctx context.Context, toolset *gate, principal string) (leave func(), own bool, err error) {
	mine := g.arrive(principal)
	if err := mine.enter(ctx, principal); err != nil {
		g.depart(principal)
		return nil, false, err
	}
	goHome := func() {
		mine.leave()
		g.depart(principal)
	}
	if err := toolset.enter(ctx, principal); err != nil {
		goHome()
		return nil, true, err
	}
	if err := g.server.enter(ctx, principal); err != nil {
		toolset.leave()
		goHome()
		return nil, false, err
	}
	return func() {
		g.server.leave()
		toolset.leave()
		goHome()
	}, false, nil
}

// arrive returns the gate of a principal.
func (g *Gates) arrive(principal string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := g.principals[principal]
	if c == nil {
		c = &counted{gate: newGate(MaxOfPrincipal)}
		g.principals[principal] = c
	}
	c.calls++
	return c.gate
}

// depart forgets the gate of a principal when no call is at it.
func (g *Gates) depart(principal string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.principals[principal]; c.calls > 1 {
		c.calls--
	} else {
		delete(g.principals, principal)
	}
}

// enter waits until the toolset may run one more call.
func (t *toolset) enter(ctx context.Context, principal string) (leave func(), err error) {
	leave, own, err := t.gates.enter(ctx, t.gate, principal)
	switch {
	case errors.Is(err, errCrowded) && own:
		return nil, failure(err, textCrowded, t.described.Key, maxWaiting)
	case errors.Is(err, errCrowded):
		return nil, failure(err, textManyWait, maxWaiting)
	case errors.Is(err, context.DeadlineExceeded) && own:
		return nil, failure(err, textBusy, t.described.Key, t.described.Concurrency)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, failure(err, textFull, MaxOfPrincipal, MaxOfServer)
	case err != nil:
		return nil, failure(err, "%s", textCancelled)
	}
	return leave, nil
}
