package mcptool

import (
	"context"
	"errors"
	"time"
)

// session returns the session of a principal, and opens one if there is none. While a session is being
// opened, all calls of the principal wait for it, each until its own ctx ends.
func (s *Source) session(ctx context.Context, principal string) (*session, error) {
	s.mu.Lock()
	sl := s.slots[principal]
	if sl == nil {
		if s.forget(); len(s.slots) >= maxSlots {
			s.mu.Unlock()
			return nil, errManyUsers
		}
		sl = &slot{}
		s.slots[principal] = sl
	}
	if sn := sl.session; sn != nil {
		s.mu.Unlock()
		return sn, nil
	}
	if sl.ready == nil {
		err := s.ctx.Err()
		switch {
		case err != nil:
			err = errClosed
		case s.backOff.blocked() != nil:
			err = s.backOff.blocked()
		default:
			err = sl.backOff.blocked()
		}
		if err == nil {
			err = s.o.Limits.take(principal)
		}
		if err != nil {
			s.mu.Unlock()
			return nil, err
		}
		sl.ready, sl.err = make(chan struct{}), nil
		s.wg.Go(func() { s.live(sl, principal) })
	}
	ready := sl.ready
	s.mu.Unlock()
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, errors.Join(errNotYet, ctx.Err())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case sl.session != nil:
		return sl.session, nil
	case sl.err != nil:
		return nil, sl.err
	default:
		return nil, errEnded // right after its start
	}
}

// enter takes a place for the process of a session, if it will have one, and opens the session.
func (s *Source) enter(principal string) (*session, error) {
	if s.o.URL == "" {
		if err := s.o.Limits.enter(s.ctx, principal, s.o.times.stop+s.o.times.write); err != nil {
			return nil, err
		}
	}
	sn, err := openSession(s, principal)
	if err != nil && s.o.URL == "" {
		s.o.Limits.leave(nil, principal)
	}
	return sn, err
}

// leave closes a session, and gives the place of its process back.
func (s *Source) leave(sn *session, principal string) {
	sn.close()
	if sn.proc != nil {
		s.o.Limits.leave(sn, principal)
	}
}

// live opens the session of a slot, waits until it has ended, and closes it.
func (s *Source) live(sl *slot, principal string) {
	defer s.o.Limits.give(principal)
	sn, err := s.enter(principal)
	s.mu.Lock()
	if err == nil && s.pinned == nil {
		err = s.pin(sn.first)
	}
	if err == nil {
		sl.session, s.failed, s.backOff = sn, "", backOff{}
		if sn.proc != nil {
			s.o.Limits.settle(sn, principal)
		}
	} else if s.ctx.Err() == nil && !errors.Is(err, errManyProcesses) {
		why := reasonOf(err)
		if s.pinned == nil || principal == "" {
			s.failed = why
			s.backOff.fail(s.o.times, why)
		} else {
			sl.backOff.fail(s.o.times, why) // The server has worked for others, and may do so still.
		}
		s.o.Log.Warn("the MCP server of a toolset is unavailable", "toolset", s.o.Toolset, "principal", principal, "reason", string(why), "err", s.o.Mask(cause(err).Error()))
	}
	sl.err = err
	close(sl.ready)
	s.mu.Unlock()
	if err != nil {
		if sn != nil {
			s.leave(sn, principal)
		}
		s.mu.Lock()
		sl.ready = nil
		s.mu.Unlock()
		return
	}
	s.compare(sn, sn.first)
	sn.wait(s.ctx)
	defer s.leave(sn, principal)
	s.mu.Lock()
	defer s.mu.Unlock()
	sl.session, sl.ready = nil, nil
	if why := sn.guard.reason(nil); why != nil && time.Since(sn.began) < s.o.times.steady {
		sl.backOff.fail(s.o.times, why)
	} else {
		sl.backOff = backOff{}
		delete(s.slots, principal)
	}
}

// openSession opens a session for a principal, within the time that a server has for its start.
func openSession(s *Source, principal string) (*session, error) {
	if s.o.URL == "" {
		select { // Only some start at the same time, so that they do not take it from each other.
		case s.o.Limits.starting <- struct{}{}:
			defer func() { <-s.o.Limits.starting }()
		case <-s.ctx.Done():
			return nil, errClosed
		}
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.o.times.start)
	defer cancel()
	return open(ctx, &s.o, principal)
}

// forget drops the slots that have nothing that must be remembered. The caller holds mu.
func (s *Source) forget() {
	if len(s.slots) < maxSlots {
		return
	}
	for principal, sl := range s.slots {
		if sl.session == nil && sl.ready == nil && sl.backOff.blocked() == nil {
			delete(s.slots, principal)
		}
	}
}
