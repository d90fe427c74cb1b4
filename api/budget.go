package api

import "sync"

// A budget bounds the memory of all bodies that the server holds at once, and what one
// principal may have of it. A body that is alone always fits, however small the budget.
type budget struct {
	total, share int64

	mu   sync.Mutex
	used int64
	by   map[string]int64 // by principal, those that have some
}

// newBudget returns a budget of which one principal may have a quarter.
func newBudget(total int64) *budget {
	return &budget{total: total, share: total / 4, by: map[string]int64{}}
}

// A lease is what one body has of a budget. It belongs to one goroutine.
type lease struct {
	from      *budget
	principal string
	held      int64
}

// lease returns a lease of nothing. The empty principal has no share of its own to keep
// to: it stands for the other servers, which carry the bodies of all.
func (b *budget) lease(principal string) *lease { return &lease{from: b, principal: principal} }

// take adds n bytes to the lease, or refuses. What it refuses was not taken.
func (l *lease) take(n int64) error {
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	if others := b.used - l.held; others > 0 && n > 0 && b.used+n > b.total {
		return errBodies
	}
	if own := b.by[l.principal]; l.principal != "" && own-l.held > 0 && own+n > b.share {
		return errOwnBodies
	}
	b.used += n
	b.by[l.principal] += n
	l.held += n
	return nil
}

// give returns n bytes of the lease.
func (l *lease) give(n int64) {
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	l.held -= n
	b.used -= n
	if b.by[l.principal] -= n; b.by[l.principal] == 0 {
		delete(b.by, l.principal)
	}
}

// release returns all of the lease.
func (l *lease) release() { l.give(l.held) }
