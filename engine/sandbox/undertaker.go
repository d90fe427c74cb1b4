package engine

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
	// stuckRetry is when a sandbox that could not be destroyed is tried again. It doubles
	// with each attempt, up to stuckRetryMost.
	stuckRetry     = time.Second
	stuckRetryMost = time.Minute
	// stuckNews is how long the log waits for more sandboxes to get stuck, or free.
	stuckNews = time.Second
)

// An undertaker destroys sandboxes. Those that cannot be destroyed are stuck: it tries
// again and again until they are gone or it is closed.
type undertaker struct {
	provider Provider
	log      *slog.Logger
	// freed is called when a sandbox is not stuck any more.
	freed func()

	ctx    context.Context //nolint:containedctx // ends the attempts, which outlive every request
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	stuck  map[string]error // by reference: why
	told   int              // how many of them the log knows of
	news   *time.Timer
}

func newUndertaker(o Options, freed func()) *undertaker {
	ctx, cancel := context.WithCancel(context.Background())
	return &undertaker{provider: o.Provider, log: o.Log, freed: freed, ctx: ctx, cancel: cancel, stuck: map[string]error{}}
}

// destroy ends a sandbox, or notes that it is stuck: after destroyTimeout, or when ctx ends.
func (u *undertaker) destroy(ctx context.Context, ref string) {
	if err := u.try(ctx, ref); err != nil {
		u.retry(ref, err)
	}
}

func (u *undertaker) try(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, destroyTimeout)
	defer cancel()
	return u.provider.Destroy(ctx, ref)
}

// retry notes that a sandbox is stuck and tries again in the background.
func (u *undertaker) retry(ref string, err error) {
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

// count is how many sandboxes are stuck.
func (u *undertaker) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.stuck)
}

// has reports whether a sandbox is stuck.
func (u *undertaker) has(ref string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, stuck := u.stuck[ref]
	return stuck
}

// tell logs in a moment how many sandboxes are stuck, once for all that get stuck, or
// free, together. mu is held.
func (u *undertaker) tell() {
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
func (u *undertaker) say() {
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

// close gives up what is stuck: a later server finds it.
func (u *undertaker) close() {
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
