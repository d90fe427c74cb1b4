// Package cluster makes a server a member of a group of servers that share a store: its lease, and what it knows of the
// others.
package cluster

import (
	"context"
	"errors"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"fermata/continuation"
)

const (
	// LeaseTime is how long a lease is valid after it was renewed.
	LeaseTime = 6 * time.Second
	// RenewEvery is the time between two renewals.
	RenewEvery = LeaseTime / 3

	// withdrawTimeout is how long the registry may take to forget a server.
	withdrawTimeout = 5 * time.Second
)

// Options describe a member.
type Options struct {
	// Registry knows the members. Without one there is no other server, and the lease never ends.
	Registry continuation.Registry
	// Instance is the name of this process. What comes before the first dot is the name of the server: of the processes
	// with that name only the latest lives.
	Instance string
	// Address is where the others reach this server.
	Address string
	// Exclusive is true if no other server can reach this server's sandboxes.
	Exclusive bool
}

// A Member is this server as a member of its group.
type Member struct {
	o     Options
	began time.Time
	until atomic.Int64 // end of the lease, in nanoseconds after began
}

// New returns a member that has no lease yet.
func New(o Options) *Member { return &Member{o: o, began: time.Now()} }

// Instance returns the name of this process.
func (m *Member) Instance() string { return m.o.Instance }

// Renew renews the lease of this server.
func (m *Member) Renew(ctx context.Context) error {
	// Counted from before the call, so that the lease never ends later here than in the
	// registry, and by the monotonic clock, which does not jump.
	until := time.Since(m.began) + LeaseTime
	if err := m.o.Registry.Announce(ctx, m.o.Instance, m.o.Address, LeaseTime); err != nil {
		return err
	}
	m.until.Store(int64(until))
	return nil
}

// Lapse makes the lease end at once, as if this process had been away for long. Tests use it.
func (m *Member) Lapse() { m.until.Store(0) }

// Announced reports whether the lease of this server is valid.
func (m *Member) Announced() bool {
	return m.Alone() || time.Since(m.began) < time.Duration(m.until.Load())
}

// Holds reports whether this server surely owns the executions that it has: no other server
// can have taken one over.
func (m *Member) Holds() bool { return m.o.Exclusive || m.Announced() }

// Alone reports whether this server shares its store with no other server.
func (m *Member) Alone() bool { return m.o.Registry == nil }

// Locate returns the address of another server, or continuation.ErrNotFound if that server is dead.
func (m *Member) Locate(ctx context.Context, instance string) (string, error) {
	if m.Alone() || m.Succeeds(instance) {
		return "", continuation.ErrNotFound
	}
	return m.o.Registry.Locate(ctx, instance)
}

// Lives reports whether another server is alive, or may be: only continuation.ErrNotFound means that it is dead.
func (m *Member) Lives(ctx context.Context, instance string) bool {
	_, err := m.Locate(ctx, instance)
	return !errors.Is(err, continuation.ErrNotFound)
}

// Succeeds reports whether instance is an earlier process of this server, and therefore dead;
// see Options.Instance. Without a registry, every other instance is.
func (m *Member) Succeeds(instance string) bool {
	before, _, _ := strings.Cut(instance, ".")
	own, _, _ := strings.Cut(m.o.Instance, ".")
	return instance != m.o.Instance && (m.Alone() || before == own)
}

// Withdraw gives the lease up, so that the other servers need not wait for its end.
func (m *Member) Withdraw() error {
	if m.Alone() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTimeout)
	defer cancel()
	return m.o.Registry.Withdraw(ctx, m.o.Instance)
}

// AskOthers asks all other servers of a group at once, until ctx ends. It returns what they have answered, and the
// errors of those that have not.
func AskOthers[A any](ctx context.Context, m *Member, ask func(ctx context.Context, address string) (A, error)) ([]A, error) {
	servers, err := m.o.Registry.Servers(ctx)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(servers, func(instance, _ string) bool {
		return instance == m.o.Instance || m.Succeeds(instance)
	})
	type reply struct {
		answer A
		err    error
	}
	replies := make(chan reply, len(servers))
	for _, address := range servers {
		go func() {
			answer, err := ask(ctx, address)
			replies <- reply{answer, err}
		}()
	}
	var answers []A
	var silent []error
	for range servers {
		if r := <-replies; r.err != nil {
			silent = append(silent, r.err)
		} else {
			answers = append(answers, r.answer)
		}
	}
	return answers, errors.Join(silent...)
}
