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
)

const (
	// killTimeout is how long a sandbox may take to report after it was told to end
	// its program; then it is destroyed and what was printed is lost.
	killTimeout = time.Second
	// storeTimeout bounds one write of what has already happened.
	storeTimeout = 5 * time.Second
)

// An execution is one run of one program. A goroutine of its own (live) owns the
// sandbox and moves the record, except for the claim, which a request makes.
type execution struct {
	id        string
	e         *Engine
	sandbox   *sandbox
	cancelled chan struct{}
	cancel    func()
	// counted is its part of what its principal may have.
	counted *share
	// parted is closed when a paused execution is left to a later server.
	parted chan struct{}
	// resumed hands over the results after a claim.
	resumed chan [][]byte
	// requestID is what the client calls the latest request.
	requestID atomic.Pointer[string]

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

func newExecution(e *Engine, record continuation.Record, sb *sandbox, counted *share) *execution {
	cancelled := make(chan struct{})
	return &execution{
		id:        record.ID,
		e:         e,
		sandbox:   sb,
		cancelled: cancelled,
		cancel:    sync.OnceFunc(func() { close(cancelled) }),
		counted:   counted,
		parted:    make(chan struct{}),
		resumed:   make(chan [][]byte, 1),
		record:    record,
	}
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
	if s := x.segment; s != nil && s.round == claims.Round && s.request == r.Request && claims.Round > 0 {
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
	payload, err := encodeResults(record.Pending, r.Results)
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
	x.resumed <- payload
	return s, nil
}

// claim takes the round for a request: of racing ones the store lets one pass. mu
// is held. All calls stay in the record, in case the results do not reach the program
// before this server dies; those without a result are issued again under their ids.
func (x *execution) claim(ctx context.Context, r Resume) error {
	next, err := move(x.record, Running)
	if err != nil {
		return err
	}
	answered := make(map[string]bool, len(r.Results))
	for _, result := range r.Results {
		next.Received += int64(len(result.Value))
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
	x.record = next
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

// live runs the program to its end, answering segment by segment. The first begins
// with a frame, or none if the program runs already.
func (x *execution) live(kind frameKind, payload [][]byte) {
	defer x.end()
	for {
		e := x.run(kind, payload)
		if !x.settle(e) {
			return
		}
		var ok bool
		if payload, ok = x.pause(); !ok {
			return
		}
		kind = frameResults
	}
}

// stands reports whether the sandbox is paused in the round that the record names,
// or waits for the program.
func (x *execution) stands() bool {
	switch x.sandbox.hello.State {
	case "ready":
		return x.record.Round == 0
	case "paused":
		return x.sandbox.hello.Round == x.record.Round
	}
	return false
}

// recall brings an execution that was taken over to where its former server left it.
func (x *execution) recall() error {
	switch {
	case State(x.record.State) == Paused:
		x.segment = answered(x.record.Round-1, x.record.Request)
		var err error
		x.segment.outcome, err = lastAnswer(x.record)
		return err
	case x.stands():
		// The round was claimed, but its results never arrived; or the execution was
		// recorded, but its program never arrived.
		x.undelivered = true
	default:
		// It runs, or came to rest when nobody listened, which it repeats.
		x.begin(x.record.Round, x.record.Request, "")
	}
	return nil
}

// relive goes on from there.
func (x *execution) relive() {
	x.mu.Lock()
	paused, stands, kind := State(x.record.State) == Paused, x.stands(), frameResults
	if x.record.Round == 0 {
		kind = frameProgram
	}
	x.mu.Unlock()
	switch {
	case stands:
		x.skipRepeated()
		if payload, ok := x.pause(); ok {
			x.live(kind, payload)
			return
		}
	case paused:
		// It died while it was paused.
		x.leave(Expired)
	default:
		x.live(0, nil)
		return
	}
	x.end()
}

// skipRepeated takes what a paused sandbox that was taken over repeats: the calls
// that it waits for, which must not be taken for those of the next pause.
func (x *execution) skipRepeated() {
	if x.sandbox.hello.State != "paused" {
		return
	}
	timer := time.NewTimer(attachTimeout)
	defer timer.Stop()
	select {
	case <-x.sandbox.frames:
	case <-timer.C:
	case <-x.cancelled:
	}
}

// end gives back what the execution holds.
func (x *execution) end() {
	defer x.e.forget(x)
	x.counted.drop()
	defer x.saveLate()
	if x.owned() {
		x.e.pool.release(x.sandbox)
	} else {
		x.e.pool.abandon(x.sandbox)
	}
}

// owned reports whether the sandbox is still this server's to act on. A server that
// was away for longer than its lease asks the store, and where that does not answer
// keeps its hands off: a sandbox without a server ends by itself.
func (x *execution) owned() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lost || x.record.Version == 0 || x.e.members.holds() {
		return !x.lost
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	record, err := x.e.o.Store.Get(ctx, x.id)
	x.lost = err != nil || record.Owner != x.e.members.instance
	return !x.lost
}

// settle records how a stretch of running ended and answers its request. It
// reports whether the execution goes on, paused.
func (x *execution) settle(e ending) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := x.segment
	defer close(s.done)
	// Before the client has the answer, after which it may start another one.
	x.counted.move(e.state)
	next, err := move(x.record, e.state)
	if err != nil {
		s.err = err
		return false
	}
	next.Spent += e.ran
	if e.state != Paused {
		s.outcome = e.outcome(next.Session)
		x.finish(next, s.outcome)
		return false
	}
	next.Deadline = time.Now().Add(x.e.pauseLifetime(next))
	next.Issued += e.issued
	next.Pending = e.pending
	s.outcome, s.err = x.paused(next, e.calls)
	// A pause that the store did not take can be asked for again by whoever has a
	// token of the round before it, or the key of the start.
	return s.err == nil || x.unsaved && (s.round > 0 || next.Start != "")
}

// commit writes what has happened, or notes that the store does not take it now. mu
// is held.
func (x *execution) commit(next continuation.Record) error {
	err := x.put(context.Background(), next)
	if errors.Is(err, continuation.ErrUnavailable) {
		x.record, x.unsaved = next, true
	}
	return err
}

// paused writes the record of a pause and returns the answer that announces it. mu
// is held.
func (x *execution) paused(next continuation.Record, calls []Call) (Outcome, error) {
	token, err := x.e.o.Signer.Sign(continuation.Claims{
		Execution: next.ID, Session: next.Session, Principal: next.Principal,
		Round: next.Round, Expires: next.Deadline,
	})
	if err != nil {
		return Outcome{}, fmt.Errorf("sign token: %w", err)
	}
	outcome := Outcome{State: Paused, Session: next.Session, Token: token, Calls: calls}
	if next.Answer, err = outcome.encode(); err != nil {
		return Outcome{}, err
	}
	return outcome, x.commit(next)
}

// finish writes the record of an end, if anybody could ask for it. mu is held.
func (x *execution) finish(next continuation.Record, outcome Outcome) {
	next.Deadline = time.Now().Add(x.e.o.KeepAnswers)
	next.Pending, next.Tools = nil, nil
	if next.Version == 1 {
		// It never paused: there is no token, so nobody can.
		x.record = next
		return
	}
	answer, err := outcome.encode()
	if err == nil {
		next.Answer = answer
		err = x.commit(next)
	}
	if err != nil {
		x.e.o.Log.Error("cannot record the end of an execution", "execution", x.id, "err", err)
	}
	x.record.State = next.State
}

// pauseLifetime is how long the coming pause may last.
func (e *Engine) pauseLifetime(r continuation.Record) time.Duration {
	if !e.o.WallClock {
		return e.o.PauseTTL
	}
	return min(e.o.PauseTTL, max(0, r.Budget-time.Since(r.Created)))
}

// pause waits for the claim of the round and returns the results. It reports false
// if the execution ended instead.
func (x *execution) pause() ([][]byte, bool) {
	x.counted.move(Paused)
	x.mu.Lock()
	timer := time.NewTimer(time.Until(x.record.Deadline))
	x.mu.Unlock()
	defer timer.Stop()
	to := Expired
	select {
	case results := <-x.resumed:
		return results, true
	case <-x.sandbox.frames:
		// It has died, or broken the rules: it cannot be gone on with.
	case <-timer.C:
	case <-x.parted:
		return nil, false
	case <-x.cancelled:
		to = Cancelled
	}
	return x.leave(to)
}

// part leaves the execution to a later server. It reports false if it is not paused.
func (x *execution) part() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if State(x.record.State) != Paused || x.lost || x.unsaved {
		return false
	}
	// From here on the execution is not this server's: no claim passes.
	x.lost = true
	close(x.parted)
	return true
}

// leave ends a pause without a continuation, unless a claim was first.
func (x *execution) leave(to State) ([][]byte, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case results := <-x.resumed:
		return results, true
	default:
	}
	if x.lost {
		return nil, false
	}
	if x.undelivered {
		to = Cancelled
	}
	next, err := move(x.record, to)
	if err != nil {
		return nil, false
	}
	x.finish(next, Outcome{State: to, Session: next.Session})
	return nil, false
}
