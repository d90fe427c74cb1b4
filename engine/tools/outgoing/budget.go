package outgoing

import "sync/atomic"

// A Budget limits the bytes of all answers that are in memory at the same time. Clients can share one.
type Budget struct {
	left atomic.Int64
}

// NewBudget returns a budget with the given number of bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

// take takes bytes from the budget. If not enough are left, it takes none and reports false.
func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.left.Add(-n) < 0 {
		b.left.Add(n)
		return false
	}
	return true
}

// give gives bytes back.
func (b *Budget) give(n int64) {
	if b != nil {
		b.left.Add(n)
	}
}
