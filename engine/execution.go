package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

const (
	// killTimeout is how long a sandbox may take to report after it was told to end
	// its program; then it is destroyed and what was printed is lost.
	killTimeout = 3 * time.Second
	// storeTimeout bounds one write of what has already happened.
	storeTimeout = 5 * time.Second
)

// An execution is one run of one program. A goroutine of its own (live) owns the
// sandbox and moves the record, except for the claim, which a request makes.
type execution struct {
	id        string
	principal string
	e         *Engine
	sandbox   *sandbox.Conn
	cancelled chan struct{}
	cancel    func()
	// counted is its part of what its principal may have.
	counted *share
	// stored is how many bytes of the latest pause are counted. It is live's.
	stored int64
	// parted is closed when a paused execution is left to a later server.
	parted chan struct{}
	// resumed hands over what a claim has brought.
	resumed chan delivery
	// requestID is what the client calls the latest request.
	requestID atomic.Pointer[string]
	// state is that of the record, for those who cannot wait for mu: it is held while
	// the store writes.
	state atomic.Pointer[State]

	mu      sync.Mutex
	record  continuation.Record
	segment *segment // the latest
	// undelivered says that the round was claimed by a server that died before it
	// handed over the results: only the identical request can do that now.
	undelivered bool
	// lost says that another server has taken the execution over.
	lost bool
	// unsaved says that the store has not taken the record yet: it was away.
	unsaved bool

	// rested is when the program last came to rest. It is live's own.
	rested time.Time
}

// A segment is one stretch of running, from a request to the pause or the end that
// answers it.
type segment struct {
	// round is the round whose token began it, 0 for the start.
	round int
	// request is the hash of the request that began it.
	request string
	// done is closed when outcome and err are set.
	done    chan struct{}
	outcome Outcome
	err     error
}

func newExecution(e *Engine, record continuation.Record, sb *sandbox.Conn, counted *share) *execution {
	cancelled := make(chan struct{})
	x := &execution{
		id:        record.ID,
		principal: record.Principal,
		e:         e,
		sandbox:   sb,
		cancelled: cancelled,
		cancel:    sync.OnceFunc(func() { close(cancelled) }),
		counted:   counted,
		parted:    make(chan struct{}),
		resumed:   make(chan delivery, 1),
	}
	x.become(record)
	return x
}

// become makes next the record. mu is held, or nobody else has x yet.
func (x *execution) become(next continuation.Record) {
	x.record = next
	state := State(next.State)
	x.state.Store(&state)
}

// begin starts the segment of a request. mu is held, or nobody else has x yet.
func (x *execution) begin(round int, request, requestID string) *segment {
	x.requestID.Store(&requestID)
	x.segment = &segment{round: round, request: request, done: make(chan struct{})}
	x.record.Request = request
	return x.segment
}

// fail ends a segment that nothing came of.
func (s *segment) fail(err error) {
	s.err = err
	close(s.done)
}

// await waits for the answer to a request. If the request is cancelled, not only
// given up, the execution is.
func (x *execution) await(ctx context.Context, s *segment) (Outcome, error) {
	select {
	case <-s.done:
		return s.outcome, s.err
	case <-ctx.Done():
	}
	if err := context.Cause(ctx); !errors.Is(err, errCancelled) {
		return Outcome{}, err
	}
	x.cancel()
	<-s.done
	return s.outcome, s.err
}

// answered is a segment that is over.
func answered(round int, request string) *segment {
	s := &segment{round: round, request: request, done: make(chan struct{})}
	close(s.done)
	return s
}

// resume claims the round for a request and returns the segment that answers it:
// a new one, or that of the identical request which was first. expired is the
// verdict on the token's age, which only matters if there is something to claim.
func (x *execution) resume(ctx context.Context, claims continuation.Claims, r Resume, expired error) (*segment, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	record := x.record
	switch {
	case record.Session != claims.Session:
		return nil, continuation.ErrToken
	case x.lost:
		return nil, ErrOwnerAway
	}
	if x.repeats(claims, r) {
		x.requestID.Store(&r.RequestID)
		err := x.save(ctx)
		return x.segment, err
	}
	switch state := State(record.State); {
	case state.terminal():
		return nil, ErrExpired
	case claims.Round != record.Round:
		return nil, continuation.ErrToken
	case state == Running && (!x.undelivered || r.Request != record.Request):
		return nil, ErrInFlight
	case expired != nil:
		return nil, expired
	}
	results, err := matchResults(record.Pending, r.Results)
	if err != nil {
		return nil, err
	}
	if !x.undelivered {
		if err := x.claim(ctx, r); err != nil {
			return nil, err
		}
	}
	x.undelivered = false
	s := x.begin(claims.Round, r.Request, r.RequestID)
	x.resumed <- delivery{results: results}
	return s, nil
}

// repeats reports whether a request is the one that began the latest segment. mu is held.
func (x *execution) repeats(claims continuation.Claims, r Resume) bool {
	s := x.segment
	return s != nil && s.round == claims.Round && claims.Round > 0 && s.request == r.Request
}

// claim takes the round for a request: of racing servers the store lets one pass. mu is held. All calls stay in the record, in case the results do not reach the program
// before this server dies; those without a result are issued again under their ids.
func (x *execution) claim(ctx context.Context, r Resume) error {
	next, err := move(x.record, Running)
	if err != nil {
		return err
	}
	answered := make(map[string]bool, len(r.Results))
	for _, result := range r.Results {
		next.Received += int64(len(result.Value) + len(result.Message))
		answered[result.CallID] = true
	}
	next.Pending = slices.Clone(next.Pending)
	for i, c := range next.Pending {
		next.Pending[i].Answered = answered[c.ID]
	}
	if limit := x.e.o.MaxResults; limit > 0 && next.Received > limit {
		return &ResultsError{Size: next.Received, Limit: limit}
	}
	next.Request, next.Answer = r.Request, nil
	next.Deadline = time.Now().Add(next.Budget - next.Spent)
	return x.put(ctx, next)
}

// put writes the next version of the record. What it records has happened, so it
// does not end with a request. mu is held.
func (x *execution) put(ctx context.Context, next continuation.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	ttl := max(0, time.Until(next.Deadline)) + recordSlack
	err := x.e.o.Store.Put(ctx, next, ttl)
	if errors.Is(err, continuation.ErrConflict) {
		// A write that was reported as failed may have been done all the same. Then
		// the stored record is ours, and what we know is newer.
		var stored continuation.Record
		stored, err = x.e.o.Store.Get(ctx, x.id)
		switch {
		case err == nil && stored.Owner == x.e.members.instance:
			next.Version = stored.Version + 1
			err = x.e.o.Store.Put(ctx, next, ttl)
		case errors.Is(err, continuation.ErrNotFound):
			// The store has lost its data. Nobody can have taken the execution over:
			// for that it takes a record.
			next.Version = 1
			err = x.e.o.Store.Put(ctx, next, ttl)
		case err == nil:
			x.lost = true
			x.cancel()
			return ErrOwnerAway
		}
	}
	if err != nil {
		return fmt.Errorf("write record of execution %s: %w", x.id, err)
	}
	x.become(next)
	return nil
}

// save writes a record that the store did not take when it was to. mu is held.
func (x *execution) save(ctx context.Context) error {
	if !x.unsaved {
		return nil
	}
	if err := x.put(ctx, x.record); err != nil {
		return err
	}
	x.unsaved = false
	s := answered(x.segment.round, x.segment.request)
	s.outcome = x.segment.outcome
	x.segment = s
	return nil
}

// saveLate saves the record of an end as soon as the store is back. Until then the
// execution answers retries from memory.
func (x *execution) saveLate() {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		x.mu.Lock()
		err := x.save(context.Background())
		late := err != nil && time.Now().Before(x.record.Deadline)
		x.mu.Unlock()
		if !late {
			return
		}
		select {
		case <-retry.C:
		case <-x.cancelled:
			return
		}
	}
}

// recordSlack is how long a record outlives the deadline in it: the engine that
// owns the execution acts at the deadline, the store only clears up after it.
const recordSlack = 30 * time.Second
