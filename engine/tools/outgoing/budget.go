package outgoing

import "sync"

// A Budget limits the bytes of all answers that are in memory at the same time. A principal may have a quarter of
// them, and more only as long as half of the budget is left for others. Clients can share one.
type Budget struct {
	share, reserve int64

	mu    sync.Mutex
	left  int64
	taken map[string]int64 // by principal
}

// NewBudget returns a budget with the given number of bytes.
func NewBudget(bytes int64) *Budget {
	return &Budget{left: bytes, share: bytes / 4, reserve: bytes / 2, taken: map[string]int64{}}
}

// take takes bytes from the budget for a principal. If not enough are left, it takes none and reports false.
func (b *Budget) take(principal string, n int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left || b.taken[principal]+n > b.share && b.left-n < b.reserve {
		return false
	}
	b.left -= n
	b.taken[principal] += n
	return true
}

// give gives bytes of a principal back.
func (b *Budget) give(principal string, n int64) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
	if b.taken[principal] -= n; b.taken[principal] <= 0 {
		delete(b.taken, principal)
	}
}

// Hold returns a holding of a principal, which has nothing yet.
func (b *Budget) Hold(principal string) *Holding { return &Holding{budget: b, principal: principal} }

// A Holding is what a principal has taken from a budget for one answer. It is safe for concurrent use. A nil Holding
// has no limit.
type Holding struct {
	budget    *Budget
	principal string

	mu       sync.Mutex
	taken    int64
	released bool
}

// Grow takes bytes until the holding has so many. If not enough are left, or the holding was released, it takes none
// and reports false.
func (h *Holding) Grow(bytes int64) bool {
	if h == nil {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	more := bytes - h.taken
	switch {
	case h.released:
		return false
	case more <= 0:
		return true
	case !h.budget.take(h.principal, more):
		return false
	}
	h.taken = bytes
	return true
}

// Release gives everything back. From then on the holding takes nothing.
func (h *Holding) Release() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.budget.give(h.principal, h.taken)
	h.taken, h.released = 0, true
}
