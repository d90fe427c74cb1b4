package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

// roomPatience is how long an answer waits for a place or for memory.
const roomPatience = 5 * time.Second

// A Room limits answers that are made as a whole before they are sent: the number of bytes that all of them hold at
// once, and the number of answers that are made for one principal at a time.
type Room struct {
	budget *budget
	places int
	// crowded refuses an answer that has waited in vain for a place.
	crowded *Error

	mu      sync.Mutex
	taken   map[string]int
	changed chan struct{} // closed when a place or memory has become free
}

const (
	// assembledBytes is how much memory all pages, lists and documents may hold at once, and assembledPlaces how
	// many of them are made for one principal at a time.
	assembledBytes  = 256 << 20
	assembledPlaces = 4
)

// PageBytes is how much memory a page counts for while it is made: about a journal, from which it is picked.
const PageBytes = 16 << 20

// NewRoom returns a room for the given number of bytes, with the given number of places for each principal. what
// says in errors what is made there.
func NewRoom(bytes int64, places int, what string) *Room {
	b := newBudget(bytes)
	full := unavailable("The server holds as many " + what + " as it may; retry shortly")
	b.share, b.full, b.own = bytes, full, full
	return &Room{
		budget: b, places: places, taken: map[string]int{}, changed: make(chan struct{}),
		crowded: &Error{
			Status: http.StatusTooManyRequests, Seconds: 1,
			Text: "Too many " + what + " are made for you at once; retry shortly",
		},
	}
}

// Around returns a middleware for routes whose answers are made as a whole and may be large. An answer counts for the
// given number of bytes while it is made, and then for its size until it is sent. A reader that does not take its
// answer keeps its place until AnswerTimeout.
func (r *Room) Around(bytes int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			ctx := c.Request().Context()
			place, err := r.Enter(ctx, PrincipalOf(c).ID)
			if err != nil {
				return err
			}
			defer place.Leave()
			if err := place.Take(ctx, bytes); err != nil {
				return err
			}
			factsOf(c).place = place
			return next(c)
		}
	}
}

// settle has the place count for the bytes of the answer, which is made now. It keeps what it has if there is no room
// for more.
func (p *Place) settle(bytes int64) {
	if p == nil {
		return
	}
	if more := bytes - p.lease.held; more > 0 {
		_ = p.lease.take(more) // The answer is in memory already, and it is one of few.
	} else {
		p.lease.give(-more)
		p.room.tell()
	}
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
			return r.crowded
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
	r.told()
}

// tell tells those who wait that a place or memory has become free.
func (r *Room) tell() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told()
}

// told is tell, for a caller that holds mu.
func (r *Room) told() {
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
