package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/quota"
)

// recordSlack is how long the store keeps a record beyond the deadline in it. The owner of
// the execution acts at the deadline; the store only clears up.
const recordSlack = 30 * time.Second

// A ledger keeps the record of one execution, and where the execution stands on this server.
//
// The record changes in two ways. note changes what the next write brings along; own, commit, rewrite and amend
// write to the store. Nothing else changes it but endForgotten, which writes the record of an execution that has none.
type ledger struct {
	id      string
	o       *Options
	members *cluster.Member
	quota   *quota.Quota
	tally   *tally
	// chronicle collects events, which every write of the record stores. publisher writes the record when events wait
	// and no change of the state is due.
	chronicle *chronicle
	publisher *publisher
	// state is the State of the record, for readers that cannot wait for mu, which is held
	// during writes to the store.
	state atomic.Pointer[core.State]
	// left is closed when this server loses the execution, and over when the execution has ended
	// here.
	left, over chan struct{}

	mu       sync.Mutex
	record   continuation.Record
	standing core.Standing
	// untold are the events of a move that the store did not accept, for its next write.
	untold []event
}

// copy returns the record as it is now. Its slices are shared and must not be changed.
func (l *ledger) copy() continuation.Record {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.record
}

// own makes this server the owner of the execution in the stored record: the first write of a
// start that may be repeated, or of a take-over. ErrConflict means that another server was
// first.
func (l *ledger) own(ctx context.Context, change core.Change) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := l.record
	next.Owner = l.members.Instance()
	next.Version++
	change(&next)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := l.put(ctx, &next); err != nil {
		return err
	}
	l.record = next
	return nil
}

// note changes the record here, except for its state. The next write stores it. mu is held.
func (l *ledger) note(change core.Change) { change(&l.record) }

// amend writes a change of the record that leaves its state as it is. mu is held.
func (l *ledger) amend(ctx context.Context, change core.Change) error {
	next := l.record
	next.Version++
	change(&next)
	if err := l.write(ctx, &next); err != nil {
		return err
	}
	l.record = next
	return nil
}

// commit moves the execution to its next state, applies change to its record, writes the
// record, and notes the events that tell what happened. Nothing else changes the state of an
// execution. If the store is away, commit returns its error, but makes the move all the same,
// since what a program has done cannot be undone. It does not make a claim then: the program
// has done nothing yet. mu is held.
func (l *ledger) commit(ctx context.Context, to core.State, change core.Change, events ...event) error {
	next, err := core.Move(l.record, to, time.Now())
	if err != nil {
		return err
	}
	if err := l.standing.Allows(core.StandingIn(to, true)); err != nil {
		return err
	}
	change(&next)
	err = l.write(ctx, &next)
	if err != nil && (to == core.Running || !errors.Is(err, continuation.ErrUnavailable)) {
		return err
	}
	if standErr := l.stand(core.StandingIn(to, err == nil)); standErr != nil {
		return standErr
	}
	l.record = next
	l.state.Store(&to)
	if to.Terminal() {
		close(l.over)
	}
	if err != nil {
		l.untold = events
		return err
	}
	l.tally.note(events)
	return nil
}

// rewrite writes the record of a move that the store did not accept. mu is held.
func (l *ledger) rewrite(ctx context.Context) error {
	next := l.record
	if err := l.write(ctx, &next); err != nil {
		return err
	}
	l.record = next
	l.tally.note(l.untold)
	l.untold = nil
	return l.stand(core.StandingIn(core.State(next.State), true))
}

// recorded reports whether a record of the execution was written, or was to be written while the
// store was away. mu is held.
func (l *ledger) recorded() bool { return l.record.Version > 0 }

// stand changes where the execution stands, if the table of standings allows it. mu is held.
func (l *ledger) stand(to core.Standing) error {
	if err := l.standing.Allows(to); err != nil {
		return err
	}
	l.standing = to
	return nil
}

// lose notes that this server does not own the execution any more, so that it accepts no claim
// and leaves the sandbox alone. mu is held.
func (l *ledger) lose() {
	if l.standing != core.StandsLost {
		l.standing = core.StandsLost
		close(l.left)
	}
}

// write writes the next version of the record, and corrects its number where the store has
// another one. What the record tells has happened, so the write does not end with ctx. mu is
// held.
func (l *ledger) write(ctx context.Context, next *continuation.Record) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := l.put(ctx, next)
	if errors.Is(err, continuation.ErrConflict) {
		// A write of ours that was reported as failed may have reached the store. Then the
		// stored record is ours, and this one is newer.
		var stored continuation.Record
		stored, err = l.o.Store.Get(ctx, l.id)
		switch {
		case err == nil && stored.Owner == l.members.Instance():
			next.Version = stored.Version + 1
			if err = l.chronicle.found(stored); err == nil {
				err = l.put(ctx, next)
			}
		case errors.Is(err, continuation.ErrNotFound):
			// The store has no record: an earlier write never reached it, or it has lost its
			// data. No server can have taken the execution over, since that takes a record.
			next.Version = 1
			if _, gone := l.o.Store.Summary(ctx, l.id); errors.Is(gone, continuation.ErrNotFound) {
				l.chronicle.Lost()
			}
			err = l.put(ctx, next)
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

// put writes a record to the store, once, with what the journal has noted.
func (l *ledger) put(ctx context.Context, r *continuation.Record) error {
	chapter, err := l.chronicle.Chapter(r)
	if err != nil {
		return err
	}
	if err := l.o.Store.Put(ctx, *r, max(0, time.Until(r.Deadline))+recordSlack, chapter); err != nil {
		return err
	}
	return l.chronicle.Stored(*r, chapter.Summary != nil)
}

// catchUp writes what the journal has noted since the latest write, with no change of the state. A
// pause or an end that is not recorded yet brings it along, and an execution that is another
// server's is left alone.
func (l *ledger) catchUp() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.standing {
	case core.StandsRunning, core.StandsPaused, core.StandsUndelivered:
	default:
		return nil
	}
	if !l.chronicle.Waits() {
		return nil
	}
	return l.amend(context.Background(), asItIs)
}

// asItIs changes nothing in a record that is written for the sake of the journal.
func asItIs(*continuation.Record) {}

// owned reports whether this server may act on the sandbox. A server whose lease has ended asks
// the store who the owner is. If the store does not answer, this server leaves the sandbox alone:
// a sandbox without a server ends by itself.
func (l *ledger) owned() bool {
	select {
	case <-l.left:
		return false
	default:
	}
	if l.members.Holds() {
		return true // Without mu: a program is killed in time also while the store hangs.
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.standing == core.StandsLost || !l.recorded() {
		return l.standing != core.StandsLost
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	record, err := l.o.Store.Get(ctx, l.id)
	if err == nil && record.Owner != l.members.Instance() {
		l.lose()
	}
	return err == nil && l.standing != core.StandsLost
}

// part leaves a paused execution to a later server. It reports false if the execution is not
// paused, or the pause is not recorded.
func (l *ledger) part() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.standing != core.StandsPaused {
		return false
	}
	l.lose()
	l.o.logKept(l.record)
	return true
}

// budget returns how long the program may still run.
func (l *ledger) budget() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.WallClock {
		return max(0, l.record.Budget-time.Since(l.record.Created))
	}
	return max(0, l.record.Budget-l.record.Spent)
}

// spend counts time against the run budget. The next write of the record stores it.
func (l *ledger) spend(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note(func(r *continuation.Record) { r.Spent += d })
}
