package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"fermata/continuation"
	"fermata/engine/cluster"
)

// clearPatience is how long New waits until what an earlier server left is cleared up.
const clearPatience = 4 * time.Second

// An attendant keeps this server a member of its group: it renews the lease, and has the sweeper
// clear up after dead servers.
type attendant struct {
	members *cluster.Member
	sweeper *sweeper
	log     *slog.Logger
	// attending ends attend, which runs between begin and end; attended waits for it.
	attending context.CancelFunc
	attended  sync.WaitGroup
}

// join makes this server a member of its group and begins to clear up what earlier servers
// left.
func (a *attendant) join(ctx context.Context) error {
	if !a.members.Alone() {
		if err := a.members.Renew(ctx); err != nil {
			return a.storeAway(ctx, err)
		}
	}
	swept := make(chan error, 1)
	a.sweeper.aside(func(err error) { swept <- err })
	patience := time.NewTimer(clearPatience)
	defer patience.Stop()
	select {
	case err := <-swept:
		return a.storeAway(ctx, err)
	case <-patience.C:
		a.log.Warn("what an earlier server left is not cleared up yet; that goes on in the background")
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// storeAway tolerates, and logs, that the store is away: the engine waits for it to come
// back. It returns any other error, and each if the server has been told to stop.
func (a *attendant) storeAway(ctx context.Context, err error) error {
	if errors.Is(err, continuation.ErrUnavailable) && ctx.Err() == nil {
		a.log.Error("the store is not available; executions are refused until it is", "err", err)
		return nil
	}
	return err
}

// begin starts to attend, until end is called.
func (a *attendant) begin(ctx context.Context) {
	ctx, a.attending = context.WithCancel(context.WithoutCancel(ctx))
	a.attended.Go(func() { a.attend(ctx) })
}

// attend renews the lease and clears up after dead servers until ctx ends.
func (a *attendant) attend(ctx context.Context) {
	renewal, sweep := time.NewTicker(cluster.RenewEvery), time.NewTicker(sweepInterval)
	defer renewal.Stop()
	defer sweep.Stop()
	for {
		select {
		case <-renewal.C:
			if !a.members.Alone() {
				if err := a.members.Renew(ctx); err != nil {
					a.log.Warn("cannot renew the lease", "err", err)
					continue
				}
			}
			if a.sweeper.begun.Load() {
				continue
			}
			// When this server started, it could not find out what earlier servers had left.
		case <-sweep.C:
			if a.members.Alone() {
				continue
			}
		case <-ctx.Done():
			return
		}
		// In the background, so that a slow sweep does not hold up the lease.
		a.sweeper.aside(func(err error) {
			if err != nil && a.sweeper.successor.clearing.Err() == nil {
				a.log.Warn("cannot clear up after other servers", "err", err)
			}
		})
	}
}

// end leaves the group, also if begin was never called.
func (a *attendant) end() {
	if a.attending != nil {
		a.attending()
	}
	a.attended.Wait()
	a.sweeper.sweeping.Wait()
	if err := a.members.Withdraw(); err != nil {
		a.log.Warn("cannot withdraw from the other servers", "err", err)
	}
}
