package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"fermata/continuation"
)

var (
	// ErrUnreachable means that no connection to another server could be made, so
	// that it has not seen the request.
	ErrUnreachable = errors.New("engine: server is unreachable")
	// ErrOwnerAway means that the server that holds an execution is away, and its
	// sandbox cannot be reached from here. It may come back.
	ErrOwnerAway = errors.New("engine: the execution's server is away")
)

// Peers are the other servers that share a store with this one.
type Peers interface {
	// Resume has the server at address handle r, which that server does not hand
	// over again.
	Resume(ctx context.Context, address string, r Resume) (Outcome, error)
}

const (
	// leaseTime is how long a server counts as alive after it has last said so.
	leaseTime = 6 * time.Second
	// leaseRenewal is how often it does.
	leaseRenewal = leaseTime / 3
)

// A membership is this server's part in a group of servers that share a store.
// Without a registry it is the only one, and its lease never ends.
type membership struct {
	registry continuation.Registry
	instance string
	address  string
	until    atomic.Int64 // end of the lease, Unix nanoseconds
}

// renew says that this server lives.
func (m *membership) renew(ctx context.Context) error {
	// The lease counts from before the call: nobody else may think it longer.
	until := time.Now().Add(leaseTime)
	if err := m.registry.Announce(ctx, m.instance, m.address, leaseTime); err != nil {
		return err
	}
	m.until.Store(until.UnixNano())
	return nil
}

// holds reports whether no other server can have taken over an execution since
// this one last said that it lives.
func (m *membership) holds() bool {
	return m.registry == nil || time.Now().UnixNano() < m.until.Load()
}

// locate returns the address of another server that lives.
func (m *membership) locate(ctx context.Context, instance string) (string, error) {
	if m.registry == nil {
		return "", continuation.ErrNotFound
	}
	return m.registry.Locate(ctx, instance)
}

// lives reports whether another server lives, or may do so for all we know.
func (m *membership) lives(ctx context.Context, instance string) bool {
	_, err := m.locate(ctx, instance)
	return !errors.Is(err, continuation.ErrNotFound)
}

// attend renews the lease and clears up after dead servers until ctx ends.
func (e *Engine) attend(ctx context.Context) {
	renewal, sweep := time.NewTicker(leaseRenewal), time.NewTicker(sweepInterval)
	defer renewal.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-renewal.C:
			if err := e.members.renew(ctx); err != nil {
				e.o.Log.Warn("cannot renew the lease", "err", err)
			}
		case <-sweep.C:
			if err := e.sweep(ctx); err != nil {
				e.o.Log.Warn("cannot clear up after other servers", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// withdraw tells the other servers that this one has gone, so that they need not
// wait for the end of its lease.
func (e *Engine) withdraw() {
	if e.members.registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := e.members.registry.Withdraw(ctx, e.members.instance); err != nil {
		e.o.Log.Warn("cannot withdraw from the other servers", "err", err)
	}
}

// sweepInterval is how often a server looks for sandboxes whose server has died.
const sweepInterval = time.Minute

// sweep destroys sandboxes that have neither an execution nor a living server, and
// takes over those that have an execution but no server.
func (e *Engine) sweep(ctx context.Context) error {
	found, err := e.o.Provider.List(ctx)
	if err != nil {
		return fmt.Errorf("list sandboxes: %w", err)
	}
	others := found[:0]
	for _, s := range found {
		if s.Server != e.members.instance && !e.members.lives(ctx, s.Server) {
			others = append(others, s)
		}
	}
	if len(others) == 0 {
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
	for _, s := range others {
		record, ok := bySandbox[s.Ref]
		if ok && (record.Owner == e.members.instance || e.members.lives(ctx, record.Owner)) {
			// Another server has taken it over.
			continue
		}
		if ok {
			_, err := e.takeOver(ctx, record)
			if err == nil || errors.Is(err, continuation.ErrConflict) {
				continue
			}
			e.o.Log.Warn("cannot take over an execution", "execution", record.ID, "err", err)
		}
		if err := e.o.Provider.Destroy(ctx, s.Ref); err != nil {
			e.o.Log.Error("cannot destroy a sandbox that was left over", "err", err)
		}
	}
	return nil
}

// takeOver makes this server the owner of an execution whose server has died, and
// goes on with it in the state in which its sandbox is. Of servers that try at
// once the store lets one pass; the others get ErrConflict.
func (e *Engine) takeOver(ctx context.Context, record continuation.Record) (*execution, error) {
	sb, err := attach(ctx, e.o.Provider, record.Sandbox, record.Marker)
	if err != nil {
		return nil, err
	}
	record.Owner = e.members.instance
	record.Version++
	if err := e.o.Store.Put(ctx, record, max(0, time.Until(record.Deadline))+recordSlack); err != nil {
		sb.detach()
		return nil, err
	}
	x := newExecution(e, record, sb, e.quota.adopt(record.Principal))
	if err := x.recall(); err != nil {
		e.o.Log.Warn("cannot read the kept answer of an execution", "execution", record.ID, "err", err)
	}
	e.pool.adopted()
	if !e.register(x) {
		x.counted.drop()
		sb.detach()
		return nil, ErrClosing
	}
	e.wg.Go(x.relive)
	return x, nil
}

// elsewhere handles a request for an execution that does not live here: its last
// answer may be kept, its server may live, or it may be taken over. It returns the
// execution in the last case, the outcome in the others.
func (e *Engine) elsewhere(ctx context.Context, claims continuation.Claims, r Resume) (*execution, Outcome, error) {
	record, err := e.o.Store.Get(ctx, claims.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil, Outcome{}, ErrExpired
	}
	if err != nil {
		return nil, Outcome{}, err
	}
	if record.Session != claims.Session {
		return nil, Outcome{}, continuation.ErrToken
	}
	if State(record.State).terminal() {
		outcome, err := kept(record, claims, r)
		return nil, outcome, err
	}
	if record.Owner == e.members.instance {
		// It has ended here a moment ago, or while the store was away.
		return nil, Outcome{}, ErrExpired
	}
	address, err := e.members.locate(ctx, record.Owner)
	if err != nil && !errors.Is(err, continuation.ErrNotFound) {
		return nil, Outcome{}, err
	}
	if err == nil {
		if r.HandedOver || e.o.Peers == nil {
			return nil, Outcome{}, ErrOwnerAway
		}
		outcome, err := e.o.Peers.Resume(ctx, address, r)
		if !errors.Is(err, ErrUnreachable) {
			return nil, outcome, err
		}
	}
	x, err := e.takeOver(ctx, record)
	switch {
	case errors.Is(err, continuation.ErrConflict):
		// Somebody was first; the client finds him by trying again.
		return nil, Outcome{}, ErrInFlight
	case errors.Is(err, ErrGone):
		return nil, Outcome{}, ErrOwnerAway
	}
	return x, Outcome{}, err
}
