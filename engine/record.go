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
	// storeTimeout bounds one write of what has already happened.
	storeTimeout = 5 * time.Second
	// saveRetry is how often a record that the store did not take is written again.
	saveRetry = time.Second
	// recordSlack is how long a record outlives the deadline in it: the engine that owns the
	// execution acts at the deadline, the store only clears up after it.
	recordSlack = 30 * time.Second
)

// A ledger keeps the record of one execution and where the execution stands on this server.
// Its methods own and commit are the one door through which the stored record changes.
type ledger struct {
	id      string
	o       *Options
	members *membership
	quota   *quota
	tally   *tally
	// state is that of the record, for those who cannot wait for mu: it is held while the
	// store writes.
	state atomic.Pointer[State]
	// left is closed when the execution is not this server's any more.
	left chan struct{}

	mu       sync.Mutex
	record   continuation.Record
	standing standing
}

// An event tells what has happened to an execution.
type event struct {
	kind eventKind
	// outcome is that of an endedEvent.
	outcome Outcome
}

type eventKind int

const (
	pausedEvent eventKind = iota + 1
	endedEvent
	takenOverEvent
)

// newLedger returns the ledger of an execution that this server does not own yet.
func (e *Engine) newLedger(r continuation.Record) *ledger {
	l := &ledger{
		id: r.ID, o: &e.o, members: e.members, quota: e.quota, tally: &e.tally,
		left: make(chan struct{}), record: r, standing: unowned,
	}
	state := State(r.State)
	l.state.Store(&state)
	return l
}

// copy returns the record as it is now.
func (l *ledger) copy() continuation.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// own makes the first write of this server: of a start that may be repeated, or of an
// execution whose server has died. ErrConflict means that another server was first.
func (l *ledger) own(ctx context.Context, change func(*continuation.Record), events ...event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.record
	next.Owner = l.members.instance
	next.Version++
	change(&next)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := l.put(ctx, next); err != nil {
		return err
	}
	l.record = next
	l.tally.note(events)
	return nil
}

// commit moves the execution to its next state, applies change to its record, and writes
// the record together with the events that tell what happened. It is the only place where an
// execution of this server changes its state. If the store is away the move is made all the
// same, unless it is a claim, and the error says so: what a program has done cannot be
// undone. mu is held.
func (l *ledger) commit(ctx context.Context, to State, change func(*continuation.Record), events ...event) error {
	next, err := move(l.record, to)
	if err != nil {
		return err
	}
	if change != nil {
		change(&next)
	}
	// What was never recorded, nobody can ask for: it has no token.
	if !to.terminal() || l.recorded() {
		err = l.write(ctx, &next)
	}
	if err != nil && (to == Running || !errors.Is(err, continuation.ErrUnavailable)) {
		return err
	}
	if standErr := l.stand(standingIn(to, err == nil)); standErr != nil {
		return standErr
	}
	l.record = next
	l.state.Store(&to)
	l.tally.note(events)
	return err
}

// recorded reports whether a record of the execution was ever written. mu is held.
func (l *ledger) recorded() bool { return l.record.Version > 0 }

// stand changes where the execution stands, if the table of standings allows it. mu is held.
func (l *ledger) stand(to standing) error {
	if !slices.Contains(standings[l.standing].next, to) {
		return fmt.Errorf("engine: execution %s cannot be %q after %q", l.id, to, l.standing)
	}
	l.standing = to
	return nil
}

// lose notes that the execution is not this server's any more: from here on no claim passes.
// mu is held.
func (l *ledger) lose() {
	if l.standing != lost {
		l.standing = lost
		close(l.left)
	}
}

// write writes the next version of the record, whose number it may have to correct. What
// the record tells has happened, so the write does not end with a request. mu is held.
func (l *ledger) write(ctx context.Context, next *continuation.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := l.put(ctx, *next)
	if errors.Is(err, continuation.ErrConflict) {
		// A write that was reported as failed may have been done all the same. Then the
		// stored record is ours, and what we know is newer.
		var stored continuation.Record
		stored, err = l.o.Store.Get(ctx, l.id)
		switch {
		case err == nil && stored.Owner == l.members.instance:
			next.Version = stored.Version + 1
			err = l.put(ctx, *next)
		case errors.Is(err, continuation.ErrNotFound):
			// The store has lost its data. Nobody can have taken the execution over: for
			// that it takes a record.
			next.Version = 1
			err = l.put(ctx, *next)
		case err == nil:
			l.lose()
			return ErrOwnerAway
		}
	}
	if err != nil {
		return fmt.Errorf("write record of execution %s: %w", l.id, err)
	}
	return nil
}

// put is one write, by the rules of the store.
func (l *ledger) put(ctx context.Context, r continuation.Record) error {
	return l.o.Store.Put(ctx, r, max(0, time.Until(r.Deadline))+recordSlack)
}

// owned reports whether the sandbox is still this server's to act on. A server that was away
// for longer than its lease asks the store, and where that does not answer keeps its hands
// off: a sandbox without a server ends by itself.
func (l *ledger) owned() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.standing == lost || !l.recorded() || l.members.holds() {
		return l.standing != lost
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	record, err := l.o.Store.Get(ctx, l.id)
	if err != nil || record.Owner != l.members.instance {
		l.lose()
	}
	return l.standing != lost
}

// part leaves a paused execution to a later server. It reports false if the execution is not
// paused, or the store does not know that it is.
func (l *ledger) part() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.standing != paused {
		return false
	}
	l.lose()
	return true
}

// budget is the time that the program may still run.
func (l *ledger) budget() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.WallClock {
		return max(0, l.record.Budget-time.Since(l.record.Created))
	}
	return max(0, l.record.Budget-l.record.Spent)
}

// spend counts time against the budget. It is stored with the next write.
func (l *ledger) spend(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record.Spent += d
}
