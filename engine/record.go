package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/quota"
)

const (
	// recordSlack is how long the store keeps a record beyond the deadline in it. The owner of
	// the execution acts at the deadline; the store only clears up.
	recordSlack = 30 * time.Second
	// endPatience is how long the answer about an end waits until the store has recorded the end. What the program has
	// done is done, so the answer goes out then, and the write goes on.
	endPatience = time.Second
	// saveRetry is the time between two attempts to write what the store did not accept.
	saveRetry = time.Second
)

// errLate means that the store has neither accepted nor refused the record of an end in time.
var errLate = fmt.Errorf("%w: it does not answer", continuation.ErrUnavailable)

// A ledger keeps the record of one execution, and where the execution stands on this server. It belongs to one
// goroutine; other ones read state, and wait for left and over.
//
// The record changes in two ways. note changes what the next write brings along; own, commit, rewrite and amend
// write to the store. Nothing else changes it but endForgotten, which writes the record of an execution that has none.
type ledger struct {
	id      string
	o       *Options
	members *cluster.Member
	quota   *quota.Quota
	tally   *tally
	// chronicle collects events, which every write of the record stores.
	chronicle *chronicle
	// errands write to the store and read from it.
	*errands
	// state is the State of the record.
	state atomic.Pointer[core.State]
	// left is closed when this server loses the execution, and over when the execution has ended
	// here.
	left, over chan struct{}

	record   continuation.Record
	standing core.Standing
	// untold are the events of a move that the store did not accept, for its next write.
	untold []event
}

// own makes this server the owner of the execution in the stored record: the first write of a
// start that may be repeated, or of a take-over. ErrConflict means that another server was
// first.
func (l *ledger) own(change core.Change) error {
	next := l.record
	next.Owner = l.members.Instance()
	next.Version++
	change(&next)
	err := l.do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		return l.writer().put(ctx, &next)
	})
	if err == nil {
		l.record = next
	}
	return err
}

// note changes the record here, except for its state. The next write stores it.
func (l *ledger) note(change core.Change) {
	l.quiet()
	change(&l.record)
}

// amend writes a change of the record that leaves its state as it is.
func (l *ledger) amend(change core.Change) error {
	l.quiet()
	next := l.record
	next.Version++
	change(&next)
	err := l.do(func() error { return l.writer().write(&next) })
	l.settled(next, err)
	return err
}

// settled notes what has come of a write of the next version of the record.
func (l *ledger) settled(next continuation.Record, err error) {
	if errors.Is(err, ErrOwnerAway) {
		l.lose()
	}
	if err == nil {
		l.record = next
	}
}

// commit moves the execution to its next state, applies change to its record, writes the
// record, and notes the events that tell what happened. Nothing else changes the state of an
// execution. If the store is away, commit returns its error, but makes the move all the same,
// since what a program has done cannot be undone. It does not make a claim then: the program
// has done nothing yet.
func (l *ledger) commit(to core.State, change core.Change, events ...event) error {
	l.quiet()
	next, err := core.Move(l.record, to, time.Now())
	if err != nil {
		return err
	}
	if err := l.standing.Allows(core.StandingIn(to, true)); err != nil {
		return err
	}
	change(&next)
	next, err = l.move(next, to)
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

// move writes the record of a move, and returns it as it was written. If that is an end, it does not wait long: with
// errLate, the write goes on.
func (l *ledger) move(next continuation.Record, to core.State) (_ continuation.Record, err error) {
	written := next
	write := func() error { return l.writer().write(&written) }
	if !to.Terminal() {
		err = l.do(write)
	} else {
		e := &errand{patience: endPatience, then: func(e error) { err = e }}
		l.send(e, write)
		if !l.finish() {
			e.then = func(err error) { l.saved(written, err) }
			return next, errLate
		}
	}
	l.settled(written, err)
	return written, err
}

// rewrite writes the record of a move that the store did not accept, if there is one.
func (l *ledger) rewrite() error {
	l.quiet()
	if !l.standing.Unsaved() {
		return nil
	}
	next := l.record
	err := l.do(func() error { return l.writer().write(&next) })
	l.saved(next, err)
	return err
}

// saved notes what has come of a write of a move that was made already.
func (l *ledger) saved(next continuation.Record, err error) {
	l.settled(next, err)
	if err == nil && l.stand(core.StandingIn(core.State(next.State), true)) == nil {
		l.tally.note(l.untold)
		l.untold = nil
	}
}

// stand changes where the execution stands, if the table of standings allows it.
func (l *ledger) stand(to core.Standing) error {
	if err := l.standing.Allows(to); err != nil {
		return err
	}
	l.standing = to
	return nil
}

// lose notes that this server does not own the execution any more, so that it accepts no claim
// and leaves the sandbox alone.
func (l *ledger) lose() {
	if l.standing != core.StandsLost {
		l.standing = core.StandsLost
		close(l.left)
	}
}

// catchUp begins to write what the journal has noted since the latest write, with no change of the state. then is
// called when that is done. A pause or an end that is not recorded yet brings it along, and an execution that is another
// server's is left alone.
func (l *ledger) catchUp(then func(error)) {
	switch l.standing {
	case core.StandsRunning, core.StandsPaused, core.StandsUndelivered:
	default:
		return
	}
	if l.under != nil || !l.chronicle.Waits() {
		return
	}
	next := l.record
	next.Version++
	l.send(&errand{then: func(err error) {
		l.settled(next, err)
		then(err)
	}}, func() error { return l.writer().write(&next) })
}

func (l *ledger) writer() writer {
	return writer{id: l.id, instance: l.members.Instance(), store: l.o.Store, chronicle: l.chronicle}
}

// asItIs changes nothing in a record that is written for the sake of the journal.
func asItIs(*continuation.Record) {}

// owned reports whether this server may act on the sandbox. A server whose lease has ended asks
// the store who the owner is. If the store does not answer, this server leaves the sandbox alone:
// a sandbox without a server ends by itself.
func (l *ledger) owned() bool {
	switch {
	case l.standing == core.StandsLost:
		return false
	case l.members.Holds(), l.record.Version == 0: // Without a record nobody else can own it.
		return true
	}
	var stored continuation.Record
	err := l.do(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
		defer cancel()
		stored, err = l.o.Store.Get(ctx, l.id)
		return err
	})
	if err == nil && stored.Owner != l.members.Instance() {
		l.lose()
	}
	return err == nil && l.standing != core.StandsLost
}

// spend counts time against the run budget. The next write of the record stores it.
func (l *ledger) spend(d time.Duration) {
	l.note(func(r *continuation.Record) { r.Spent += d })
}
