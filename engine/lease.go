package engine

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"fermata/continuation"
)

const (
	// leaseTime is how long a server counts as alive after it has last said so.
	leaseTime = 6 * time.Second
	// leaseRenewal is how often it does.
	leaseRenewal = leaseTime / 3
	// ownerPatience is how long a request waits for an execution whose server is
	// away: until the lease of a dead one has ended, and somebody could take over.
	ownerPatience = leaseTime + leaseRenewal
	// ownerRetry is how often it looks meanwhile.
	ownerRetry = 200 * time.Millisecond
)

// A membership is this server's part in a group of servers that share a store.
// Without a registry it is the only one, and its lease never ends.
type membership struct {
	registry continuation.Registry
	instance string
	address  string
	// exclusive says that no other server can reach this one's sandboxes.
	exclusive bool
	began     time.Time
	until     atomic.Int64 // end of the lease, nanoseconds since began
}

// renew says that this server lives.
func (m *membership) renew(ctx context.Context) error {
	// The lease counts from before the call: nobody else may think it longer. A
	// step of the wall clock does not change it.
	until := time.Since(m.began) + leaseTime
	if err := m.registry.Announce(ctx, m.instance, m.address, leaseTime); err != nil {
		return err
	}
	m.until.Store(int64(until))
	return nil
}

// announced reports whether the other servers know that this one lives.
func (m *membership) announced() bool {
	return m.alone() || time.Since(m.began) < time.Duration(m.until.Load())
}

// holds reports whether no other server can have taken over an execution since
// this one last said that it lives.
func (m *membership) holds() bool { return m.exclusive || m.announced() }

// alone reports whether no other server has this one's store.
func (m *membership) alone() bool { return m.registry == nil }

// locate returns the address of another server that lives.
func (m *membership) locate(ctx context.Context, instance string) (string, error) {
	if m.alone() || m.succeeds(instance) {
		return "", continuation.ErrNotFound
	}
	return m.registry.Locate(ctx, instance)
}

// lives reports whether another server lives, or may do so for all we know.
func (m *membership) lives(ctx context.Context, instance string) bool {
	_, err := m.locate(ctx, instance)
	return !errors.Is(err, continuation.ErrNotFound)
}

// succeeds reports whether an instance is an earlier one of this server, and so
// dead: the part of the name before the dot belongs to one server at a time.
func (m *membership) succeeds(instance string) bool {
	before, _, _ := strings.Cut(instance, ".")
	own, _, _ := strings.Cut(m.instance, ".")
	return instance != m.instance && (m.alone() || before == own)
}

// attend renews the lease and clears up after dead servers until ctx ends.
func (e *Engine) attend(ctx context.Context) {
	renewal, sweep := time.NewTicker(leaseRenewal), time.NewTicker(sweepInterval)
	defer renewal.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-renewal.C:
			if !e.members.alone() {
				if err := e.members.renew(ctx); err != nil {
					e.o.Log.Warn("cannot renew the lease", "err", err)
					continue
				}
			}
			if e.sweeper.begun.Load() {
				continue
			}
			// What is left could not be looked for when this server started.
		case <-sweep.C:
			if e.members.alone() {
				continue
			}
		case <-ctx.Done():
			return
		}
		// Whatever holds up the sweep, the lease goes on.
		e.sweepAside(func(err error) {
			if err != nil && e.clearing.Err() == nil {
				e.o.Log.Warn("cannot clear up after other servers", "err", err)
			}
		})
	}
}

// sweepAside sweeps in the background, unless the last sweep still goes on.
func (e *Engine) sweepAside(done func(error)) {
	if !e.sweeper.busy.CompareAndSwap(false, true) {
		return
	}
	e.attended.Go(func() {
		defer e.sweeper.busy.Store(false)
		done(e.sweep(e.clearing))
	})
}

// withdraw tells the other servers that this one has gone, so that they need not
// wait for the end of its lease.
func (e *Engine) withdraw() {
	if e.members.alone() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := e.members.registry.Withdraw(ctx, e.members.instance); err != nil {
		e.o.Log.Warn("cannot withdraw from the other servers", "err", err)
	}
}
