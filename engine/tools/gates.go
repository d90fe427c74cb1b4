package tools

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"fermata/engine/tools/mcptool"
	"fermata/engine/tools/outgoing"
)

// The numbers of calls that may run at the same time.
const (
	MaxOfPrincipal = 64  // of one principal
	MaxOfServer    = 256 // of all principals
)

// Gates limit what all toolsets use together (running calls, bytes of answers, sessions and processes of MCP
// servers), and the calls of each toolset. They outlive the toolsets, so that the limits hold when toolsets
// are opened again. They are safe for concurrent use.
type Gates struct {
	server *gate
	budget *outgoing.Budget
	limits *mcptool.Limits

	mu         sync.Mutex
	principals map[string]*counted
	toolsets   map[string]sized
}

// A counted is the gate of one principal, with the number of calls that use it.
type counted struct {
	*gate
	calls int
}

// A sized is the gate of one toolset, with the number of its places.
type sized struct {
	*gate
	places int
}

// NewGates returns gates without calls, for so many processes of MCP servers.
func NewGates(processes int) *Gates {
	return &Gates{
		server: newGate(MaxOfServer), budget: outgoing.NewBudget(maxInFlight), limits: mcptool.NewLimits(cmp.Or(processes, mcptool.DefaultProcesses)),
		principals: map[string]*counted{}, toolsets: map[string]sized{},
	}
}

// toolset returns the gate of a toolset. It is the same one as before, unless the number of places has
// changed.
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

// enter waits for a place of the principal, then of the toolset, and then of the server, until ctx ends. In
// this order no call holds a shared place while it waits for a place of its principal or toolset. own is true
// if ctx has ended while the call waited for the toolset.
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

// depart forgets the gate of a principal when no call uses it.
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
