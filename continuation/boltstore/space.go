package boltstore

import (
	"sync"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// A space counts the sizes of journals, and notes the scopes that exceed their limit.
type space struct {
	limits continuation.JournalLimits

	mu sync.Mutex
	// totals are the sums of the sizes of the journals of each scope.
	totals map[scope]int64
	// live are the journals in the file of records.
	live map[string]usage
	// beyond are the scopes that exceed their limit.
	beyond map[scope]struct{}
}

// A usage is the size of a live journal.
type usage struct {
	of   scope
	size int64
}

func newSpace(limits continuation.JournalLimits) *space {
	return &space{
		limits: limits, totals: make(map[scope]int64), live: make(map[string]usage), beyond: make(map[scope]struct{}),
	}
}

// grow notes the growth of a journal by a chapter. It reports whether a limit is exceeded now.
func (s *space) grow(id, principal string, g growth) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, known := s.live[id]
	if known && g.fresh {
		s.count(u.of, -stored.Counts(u.size))
		u, known = usage{}, false
	}
	if !known {
		u.of = scopeOf(principal)
		s.count(u.of, continuation.JournalLeast)
	}
	before := stored.Counts(u.size)
	u.size += g.bytes
	s.live[id] = u
	return s.count(u.of, stored.Counts(u.size)-before)
}

// leave notes that a journal is not in the file of records any more.
func (s *space) leave(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if u, known := s.live[id]; known {
		delete(s.live, id)
		s.count(u.of, -stored.Counts(u.size))
	}
}

// archived notes that a journal of this size was added to the archive.
func (s *space) archived(of scope, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count(of, stored.Counts(size))
}

func (s *space) gone(all []age) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range all {
		s.count(a.of, -stored.Counts(a.size))
	}
}

// count adds bytes to the total of a scope and to that of everyone, and reports whether a limit is exceeded. The
// caller holds mu.
func (s *space) count(of scope, bytes int64) (passed bool) {
	for _, of := range []scope{of, everyone} {
		s.totals[of] += bytes
		if s.totals[of] == 0 {
			delete(s.totals, of)
		}
		if s.excess(of) > 0 {
			s.beyond[of] = struct{}{}
			passed = true
		}
	}
	return passed
}

// excess returns by how many bytes the journals of a scope exceed their limit. The caller holds mu.
func (s *space) excess(of scope) int64 {
	limit := s.limits.Principal
	if of == everyone {
		limit = s.limits.All
	}
	if limit <= 0 {
		return 0
	}
	return s.totals[of] - limit
}

// full returns a scope that exceeds its limit, and by how many bytes. It returns each scope once, until its
// total grows again.
func (s *space) full() (of scope, excess int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for of := range s.beyond {
		delete(s.beyond, of)
		if excess := s.excess(of); excess > 0 {
			return of, excess
		}
	}
	return everyone, 0
}
