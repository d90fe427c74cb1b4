//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"fermata/engine/sandbox"
)

const (
	// clearTimeout bounds how long the start of a server, or of a zygote, waits until what a
	// dead zygote has left is cleared away.
	clearTimeout = time.Second
	// watchInterval is how often the zygote is asked whether it still answers.
	watchInterval = 5 * time.Second
	// watchTries is how often in a row it may not answer, each time for watchInterval.
	watchTries = 2
)

// zygotes are the zygote that makes the sandboxes of this server, and those of earlier
// servers whose sandboxes are still there.
type zygotes struct {
	launcher

	users *users

	mu sync.Mutex
	// newest makes new sandboxes; it is nil until one is needed.
	newest *zygote
	// all has the newest and those of earlier servers, by id.
	all    map[string]*zygote
	closed bool

	// unwatch ends the goroutine that watches the newest zygote, watched waits for it.
	unwatch context.CancelFunc
	watched sync.WaitGroup
}

// openZygotes finds the zygotes that earlier servers left, and starts one for this server.
// Close is to be called also after an error.
func openZygotes(ctx context.Context, l launcher) (*zygotes, error) {
	watching, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	s := &zygotes{launcher: l, users: newUsers(l.ids.count), all: map[string]*zygote{}, unwatch: unwatch}
	if err := s.adopt(ctx); err != nil {
		return s, err
	}
	if _, err := s.current(ctx); err != nil {
		return s, err
	}
	s.watched.Go(func() { s.watch(watching) })
	return s, nil
}

// adopt finds the zygotes that earlier servers left, and clears away the dead ones. What
// cannot be cleared away now is listed as sandboxes, for the engine to destroy later.
func (s *zygotes) adopt(ctx context.Context) error {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return fmt.Errorf("read sandbox directory: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	var adopting sync.WaitGroup
	for _, e := range entries {
		z := joinZygote(s.o.Dir, e.Name(), s.cgroups)
		s.mu.Lock()
		s.all[z.dir.id] = z
		s.mu.Unlock()
		names, err := z.dir.sandboxes()
		if err != nil {
			return err
		}
		for _, name := range names {
			s.users.keep(name)
		}
		adopting.Go(func() {
			var err error
			if !z.alive() {
				err = s.removeAll(ctx, z)
			}
			if err = errors.Join(err, s.retire(ctx, z)); err != nil {
				s.o.Log.Warn("cannot clear away what an earlier server left", "zygote", z.dir.id, "err", err)
			}
		})
	}
	adopting.Wait()
	return nil
}

// current returns the zygote that makes new sandboxes; if it has died, another one.
func (s *zygotes) current(ctx context.Context) (*zygote, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, sandbox.ErrClosing
	}
	if s.newest != nil && s.newest.alive() {
		return s.newest, nil
	}
	if s.newest != nil {
		s.bury(ctx)
	}
	z, err := s.start(ctx)
	if err != nil {
		return nil, err
	}
	s.newest, s.all[z.dir.id] = z, z
	return z, nil
}

// bury clears away what the newest zygote has left, which has died. If it cannot, the
// sandboxes stay listed. mu is held.
func (s *zygotes) bury(ctx context.Context) {
	z := s.newest
	s.newest = nil
	s.o.Log.Error("the zygote has died, starting another", "said", z.whyEnded())
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	err := s.removeAll(ctx, z)
	if err == nil {
		delete(s.all, z.dir.id)
		err = errors.Join(z.leave(), z.dir.remove())
	}
	if err != nil {
		s.o.Log.Warn("cannot clear away what a zygote left", "zygote", z.dir.id, "err", err)
	}
}

// find returns the zygote with an id.
func (s *zygotes) find(id string) (*zygote, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	z, ok := s.all[id]
	return z, ok
}

// list returns the sandboxes of all zygotes.
func (s *zygotes) list() ([]sandbox.Sandbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []sandbox.Sandbox
	for id, z := range s.all {
		names, err := z.dir.sandboxes()
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			list = append(list, sandbox.Sandbox{Ref: id + "/" + name, Server: z.dir.server})
		}
	}
	return list, nil
}

// watch replaces the newest zygote when it does not answer any more, until ctx ends.
func (s *zygotes) watch(ctx context.Context) {
	ticks := time.NewTicker(watchInterval)
	defer ticks.Stop()
	for {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		z := s.newest
		s.mu.Unlock()
		if z == nil {
			continue
		}
		answered := false
		for try := 0; try < watchTries && !answered && ctx.Err() == nil; try++ {
			asking, cancel := context.WithTimeout(ctx, watchInterval)
			answered = z.answers(asking)
			cancel()
		}
		if !answered && ctx.Err() == nil {
			s.replace(ctx, z)
		}
	}
}

// replace has the next sandboxes made by another zygote. The old one ends when all of its
// sandboxes have ended, or are being destroyed.
func (s *zygotes) replace(ctx context.Context, z *zygote) {
	s.mu.Lock()
	if s.newest != z {
		s.mu.Unlock()
		return
	}
	s.newest = nil
	s.mu.Unlock()
	s.o.Log.Error("the zygote does not answer, starting another", "zygote", z.dir.id, "said", lastWords(z))
	z.giveUp()
	if err := s.retire(ctx, z); err != nil {
		s.o.Log.Warn("cannot end the zygote that does not answer", "zygote", z.dir.id, "err", err)
	}
}

// retire ends a zygote that makes no new sandboxes when the last of its sandboxes has ended
// or is being destroyed: a sandbox that does not end when it is killed may end with its zygote.
func (s *zygotes) retire(ctx context.Context, z *zygote) error {
	s.mu.Lock()
	needed, err := z.needed()
	if err != nil || needed || s.closed || z == s.newest || s.all[z.dir.id] != z || z.retiring {
		s.mu.Unlock()
		return err
	}
	z.retiring = true
	s.mu.Unlock()
	err = z.end()
	if err == nil {
		err = s.removeAll(ctx, z)
	}
	s.mu.Lock()
	z.retiring = false
	if err == nil {
		delete(s.all, z.dir.id)
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return errors.Join(z.leave(), z.dir.remove())
}

// removeAll removes what the sandboxes of a dead zygote have left.
func (s *zygotes) removeAll(ctx context.Context, z *zygote) error {
	names, err := z.dir.sandboxes()
	errs := []error{err}
	for _, name := range names {
		errs = append(errs, s.remove(ctx, z, name))
	}
	return errors.Join(errs...)
}

// remove removes what a sandbox without processes has left. The socket is the last: by it
// a later server finds the rest, should this one be killed.
func (s *zygotes) remove(ctx context.Context, z *zygote, name string) error {
	if err := s.cgroups.remove(ctx, name); err != nil {
		return err
	}
	if err := z.dir.forget(name); err != nil {
		return err
	}
	s.users.free(name)
	return nil
}

// close lets go of the zygotes. One that has sandboxes stays until the last of them has
// ended; the others end now. A zygote that does not end is left to a later server.
func (s *zygotes) close() error {
	s.unwatch()
	s.watched.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for _, z := range s.all {
		needed, err := z.needed()
		if err == nil && !needed {
			err = s.endNow(z)
		}
		if err != nil {
			s.o.Log.Error("a zygote is left to the next server", "zygote", z.dir.id, "err", err)
		}
		errs = append(errs, z.leave())
	}
	return errors.Join(errs...)
}

// endNow ends a zygote and removes what it leaves.
func (s *zygotes) endNow(z *zygote) error {
	ctx, cancel := context.WithTimeout(context.Background(), clearTimeout)
	defer cancel()
	if err := errors.Join(z.end(), s.removeAll(ctx, z)); err != nil {
		return err
	}
	return z.dir.remove()
}
