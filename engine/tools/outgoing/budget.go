package outgoing

import "sync/atomic"

// A Budget bounds the bytes of all answers that are in memory at the same time. Clients share one.
type Budget struct {
	left atomic.Int64
}

// NewBudget returns a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.left.Store(bytes)
	return b
}

// take takes bytes from the budget, or tells that there are not so many left.
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
