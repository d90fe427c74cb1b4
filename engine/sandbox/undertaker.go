package sandbox

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

const (
	// destroyTimeout bounds one attempt to destroy a sandbox.
	destroyTimeout = 8 * time.Second
	// stuckRetry is how long the undertaker waits before it tries again to destroy a sandbox.
	// The wait doubles with each attempt, up to stuckRetryMost.
	stuckRetry     = time.Second
	stuckRetryMost = time.Minute
	// stuckNews is how long the log waits for more sandboxes to get stuck, or free, so that
	// one line tells of all of them.
	stuckNews = time.Second
)

// An Undertaker destroys sandboxes. Those that cannot be destroyed are stuck: the undertaker
// tries again and again until they are gone or it is closed.
type Undertaker struct {
	provider Provider
	log      *slog.Logger
	// freed is called when a sandbox is not stuck any more.
	freed func()

	ctx    context.Context //nolint:containedctx // ends the attempts, which outlive every request
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	stuck  map[string]error // why, by reference
	told   int              // how many of them the log knows of
	news   *time.Timer
}

func newUndertaker(p Provider, log *slog.Logger, freed func()) *Undertaker {
	ctx, cancel := context.WithCancel(context.Background())
	return &Undertaker{provider: p, log: log, freed: freed, ctx: ctx, cancel: cancel, stuck: map[string]error{}}
}

// Destroy ends a sandbox. If that does not succeed within a few seconds, or before ctx ends, the
// sandbox is stuck.
func (u *Undertaker) Destroy(ctx context.Context, ref string) {
	if err := u.try(ctx, ref); err != nil {
		u.retry(ref, err)
	}
}

func (u *Undertaker) try(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	return u.provider.Destroy(ctx, ref)
}

// retry notes that a sandbox is stuck and tries again in the background.
func (u *Undertaker) retry(ref string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known := u.stuck[ref]; known {
		return
	}
	u.stuck[ref] = err
	u.tell()
	if u.closed {
		return
	}
	u.wg.Go(func() {
		for wait := stuckRetry; ; wait = min(2*wait, stuckRetryMost) {
			select {
			case <-time.After(wait):
			case <-u.ctx.Done():
				return
			}
			err := u.try(u.ctx, ref)
			if err == nil {
				break
			}
			u.mu.Lock()
			u.stuck[ref] = err
			u.mu.Unlock()
		}
		u.mu.Lock()
		delete(u.stuck, ref)
		u.tell()
		u.mu.Unlock()
		u.freed()
	})
}

// stuckCount is how many sandboxes are stuck.
func (u *Undertaker) stuckCount() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.stuck)
}

// Stuck reports whether a sandbox is stuck.
func (u *Undertaker) Stuck(ref string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, stuck := u.stuck[ref]
	return stuck
}

// tell logs in a moment how many sandboxes are stuck, once for all that get stuck, or
// free, together. mu is held.
func (u *Undertaker) tell() {
	if u.news != nil || u.closed {
		return
	}
	u.news = time.AfterFunc(stuckNews, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		u.news = nil
		u.say()
	})
}

// say logs how many sandboxes are stuck, if that has changed. mu is held.
func (u *Undertaker) say() {
	count := len(u.stuck)
	if count == u.told {
		return
	}
	u.told = count
	if count == 0 {
		u.log.Info("no sandbox is stuck any more")
		return
	}
	ref := slices.Min(slices.Collect(maps.Keys(u.stuck)))
	u.log.Error("sandboxes cannot be destroyed and are tried again", "count", count, "one", ref, "err", u.stuck[ref])
}

// giveUp gives up what is stuck: a later server will find it.
func (u *Undertaker) giveUp() {
	u.mu.Lock()
	u.closed = true
	u.cancel()
	if u.news != nil {
		u.news.Stop()
	}
	u.mu.Unlock()
	u.wg.Wait()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.say()
	if len(u.stuck) > 0 {
		u.log.Error("sandboxes are left to the next server", "count", len(u.stuck))
	}
}
