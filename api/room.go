package api

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// roomPatience is how long an answer waits for a place or for memory.
const roomPatience = 5 * time.Second

// A Room limits the answers that hold contents of files: the number of bytes that all of them hold at once,
// and the number of answers that are made for one principal at a time.
type Room struct {
	budget *budget
	places int

	mu      sync.Mutex
	taken   map[string]int
	changed chan struct{} // closed when a place or memory has become free
}

// The errors of answers that have waited in vain for memory or for a place.
var (
	errRoomFull   = unavailable("The server holds as many contents of files for timelines as it may; retry shortly")
	errRoomPlaces = &Error{
		Status: http.StatusTooManyRequests, Seconds: 1,
		Text: "Too many timelines are made for you at once; retry shortly",
	}
)

// NewRoom returns a room for the given number of bytes, with the given number of places for each principal.
func NewRoom(bytes int64, places int) *Room {
	b := newBudget(bytes)
	b.share, b.full, b.own = bytes, errRoomFull, errRoomFull
	return &Room{budget: b, places: places, taken: map[string]int{}, changed: make(chan struct{})}
}

// A Place is the part of a room that one answer has. It belongs to one goroutine.
type Place struct {
	room  *Room
	lease *lease
}

// Enter waits for a place for an answer to a principal, for at most roomPatience. The caller must leave the
// place.
func (r *Room) Enter(ctx context.Context, principal string) (*Place, error) {
	err := r.wait(ctx, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.taken[principal] >= r.places {
			return errRoomPlaces
		}
		r.taken[principal]++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &Place{r, r.budget.lease(principal)}, nil
}

// Take adds memory to a place. It waits for the memory, for at most roomPatience.
func (p *Place) Take(ctx context.Context, bytes int64) error {
	return p.room.wait(ctx, func() error { return p.lease.take(bytes) })
}

// Leave gives the place back, with its memory.
func (p *Place) Leave() {
	p.lease.release()
	r := p.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken[p.lease.principal]--; r.taken[p.lease.principal] == 0 {
		delete(r.taken, p.lease.principal)
	}
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait calls try, and calls it again each time that a place or memory has become free, until it succeeds.
func (r *Room) wait(ctx context.Context, try func() error) error {
	var patience <-chan time.Time
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		err := try()
		if err == nil {
			return nil
		}
		if patience == nil {
			timer := time.NewTimer(roomPatience)
			defer timer.Stop()
			patience = timer.C
		}
		select {
		case <-changed:
		case <-patience:
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
