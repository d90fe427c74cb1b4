package api

import "sync"

// DefaultBodyBudget is how many bytes the bodies of all requests may hold at once.
const DefaultBodyBudget = 512 << 20

// A budget bounds the memory of all bodies that the server holds at once, and the share of
// one principal. A body always fits if it is the only one, however small the budget.
type budget struct {
	total, share int64
	// full and own refuse what exceeds the total, and the share of one principal.
	full, own *Error

	mu   sync.Mutex
	used int64
	by   map[string]int64 // by principal, without those that hold nothing
}

// newBudget returns a budget. One principal may have a quarter of it.
func newBudget(total int64) *budget {
	return &budget{total: total, share: total / 4, full: errBodies, own: errOwnBodies, by: map[string]int64{}}
}

// A lease is the part of a budget that one request holds. It belongs to one goroutine.
type lease struct {
	from      *budget
	principal string
	held      int64
}

// lease returns a lease that holds nothing yet. The empty principal is not bound to a share:
// it stands for the other servers of the group, which carry the bodies of all principals.
func (b *budget) lease(principal string) *lease { return &lease{from: b, principal: principal} }

// take adds n bytes to the lease. If it returns an error, it has added nothing.
func (l *lease) take(n int64) error {
	b := l.from
	b.mu.Lock()
	defer b.mu.Unlock()
	if others := b.used - l.held; others > 0 && n > 0 && b.used+n > b.total {
		return b.full
	}
	if own := b.by[l.principal]; l.principal != "" && own-l.held > 0 && own+n > b.share {
		return b.own
	}
	b.used += n
	b.by[l.principal] += n
	l.held += n
	return nil
}

// give returns n bytes to the budget.
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

// release returns all bytes to the budget.
func (l *lease) release() { l.give(l.held) }
