package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

const (
	// leaseTime is how long a lease is valid after it was renewed.
	leaseTime = 6 * time.Second
	// leaseRenewal is the time between two renewals.
	leaseRenewal = leaseTime / 3
	// ownerPatience is how long a request waits for an execution whose owner does not answer:
	// long enough for the lease of a dead owner to end, and for a take-over.
	ownerPatience = leaseTime + leaseRenewal
	// ownerRetry is the time between two attempts of a request that waits.
	ownerRetry = 200 * time.Millisecond
	// storeTimeout bounds the operations on the store that do not end with a request, because
	// they record what has already happened.
	storeTimeout = 5 * time.Second
)

// A membership is the membership of this server in a group of servers that share a store.
// Without a registry there is no other server, and the lease never ends.
type membership struct {
	registry continuation.Registry
	instance string
	address  string
	// exclusive is true if no other server can reach this server's sandboxes.
	exclusive bool
	began     time.Time
	until     atomic.Int64 // end of the lease, in nanoseconds after began
}

func newMembership(o Options) *membership {
	return &membership{
		registry: o.Registry, instance: o.Instance, address: o.Address, exclusive: o.Exclusive, began: time.Now(),
	}
}

// renew renews the lease of this server.
func (m *membership) renew(ctx context.Context) error {
	// Counted from before the call, so that the lease never ends later here than in the
	// registry, and by the monotonic clock, which does not jump.
	until := time.Since(m.began) + leaseTime
	if err := m.registry.Announce(ctx, m.instance, m.address, leaseTime); err != nil {
		return err
	}
	m.until.Store(int64(until))
	return nil
}

// announced reports whether the lease of this server is valid.
func (m *membership) announced() bool {
	return m.alone() || time.Since(m.began) < time.Duration(m.until.Load())
}

// holds reports whether this server surely owns the executions that it has: no other server
// can have taken one over.
func (m *membership) holds() bool { return m.exclusive || m.announced() }

// alone reports whether this server shares its store with no other server.
func (m *membership) alone() bool { return m.registry == nil }

// locate returns the address of another server, or ErrNotFound if that server is dead.
func (m *membership) locate(ctx context.Context, instance string) (string, error) {
	if m.alone() || m.succeeds(instance) {
		return "", continuation.ErrNotFound
	}
	return m.registry.Locate(ctx, instance)
}

// lives reports whether another server is alive, or may be: only ErrNotFound means that it is
// dead.
func (m *membership) lives(ctx context.Context, instance string) bool {
	_, err := m.locate(ctx, instance)
	return !errors.Is(err, continuation.ErrNotFound)
}

// succeeds reports whether instance is an earlier process of this server, and therefore dead;
// see Options.Instance. Without a registry, every other instance is.
func (m *membership) succeeds(instance string) bool {
	before, _, _ := strings.Cut(instance, ".")
	own, _, _ := strings.Cut(m.instance, ".")
	return instance != m.instance && (m.alone() || before == own)
}

// withdraw gives the lease up, so that the other servers need not wait for its end.
func (m *membership) withdraw() error {
	if m.alone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	return m.registry.Withdraw(ctx, m.instance)
}

// ownerAway wraps the errors after which another attempt may succeed in ErrOwnerAway.
func ownerAway(err error) error {
	// ErrConflict means that the execution is being taken over, or was just started, elsewhere.
	if errors.Is(err, continuation.ErrConflict) || errors.Is(err, sandbox.ErrGone) || errors.Is(err, ErrUnreachable) {
		return fmt.Errorf("%w: %w", ErrOwnerAway, err)
	}
	return err
}

// patiently calls try again, for up to ownerPatience, as long as the error is ErrOwnerAway: the
// owner may come back, or a server may take the execution over.
func patiently(ctx context.Context, try func() (Outcome, error)) (Outcome, error) {
	for patience := time.Now().Add(ownerPatience); ; {
		outcome, err := try()
		if !errors.Is(err, ErrOwnerAway) || time.Now().After(patience) {
			return outcome, err
		}
		select {
		case <-time.After(ownerRetry):
		case <-ctx.Done():
			return outcome, context.Cause(ctx)
		}
	}
}
