package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
)

// A writer writes the records of one execution to the store, with what its journal has noted. Its methods are the work
// of errands.
type writer struct {
	id string
	// instance is this server.
	instance  string
	store     continuation.Store
	chronicle *chronicle
}

// write writes the next version of the record, and corrects its number where the store has
// another one. ErrOwnerAway means that the execution is another server's by now.
func (w writer) write(next *continuation.Record) error {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	err := w.put(ctx, next)
	if errors.Is(err, continuation.ErrConflict) {
		// A write of ours that was reported as failed may have reached the store. Then the
		// stored record is ours, and this one is newer.
		var stored continuation.Record
		stored, err = w.store.Get(ctx, w.id)
		switch {
		case err == nil && stored.Owner == w.instance:
			next.Version = stored.Version + 1
			if err = w.chronicle.found(stored); err == nil {
				err = w.put(ctx, next)
			}
		case errors.Is(err, continuation.ErrNotFound):
			// The store has no record: an earlier write never reached it, or it has lost its
			// data. No server can have taken the execution over, since that takes a record.
			next.Version = 1
			if _, gone := w.store.Summary(ctx, w.id); errors.Is(gone, continuation.ErrNotFound) {
				w.chronicle.Lost()
			}
			err = w.put(ctx, next)
		case err == nil:
			return ErrOwnerAway
		}
	}
	if err != nil {
		return fmt.Errorf("write record of execution %s: %w", w.id, err)
	}
	return nil
}

// put writes a record to the store, once, with what the journal has noted.
func (w writer) put(ctx context.Context, r *continuation.Record) error {
	chapter, err := w.chronicle.Chapter(r)
	if err != nil {
		return err
	}
	if err := w.store.Put(ctx, *r, max(0, time.Until(r.Deadline))+recordSlack, chapter); err != nil {
		return err
	}
	return w.chronicle.Stored(*r, chapter.Summary != nil)
}
