package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// view calls f with a transaction of each file. The transaction of the file of records begins first, so that
// a journal that has left this file by then is in the archive. Both transactions end before view returns,
// because an open one blocks a writer that has to grow the file.
func (s *Store) view(ctx context.Context, f func(d desk, archive *bolt.Tx, at int64) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := now()
	if err != nil {
		return err
	}
	// While a database has an open read transaction, a write that must map a grown file anew waits for it. So f only
	// reads, and soon ends: it may not write to either file, nor wait for anybody who does. All transactions of this
	// package are like that, and one in both files begins with the file of records.
	return s.db.View(func(tx *bolt.Tx) error {
		return s.archive.db.View(func(archive *bolt.Tx) error { return f(deskOf(tx), archive, at) })
	})
}

// finding returns the error of the operation op that failed with err.
func finding(op string, err error) error {
	if errors.Is(err, continuation.ErrNotFound) || errors.Is(err, continuation.ErrConflict) {
		return fmt.Errorf("%s: %w", op, err)
	}
	return stored.Unavailable(op, err)
}

// Events implements continuation.Journals.
func (s *Store) Events(ctx context.Context, id string, after int64, size int) ([]continuation.Event, error) {
	page := stored.Page{After: max(0, after), Size: size}
	err := s.view(ctx, func(d desk, archive *bolt.Tx, at int64) error {
		from := d.shelf
		switch {
		case d.presence(id, at) != absent:
		case kept(archive, id):
			from = archiveShelf(archive)
		default:
			return continuation.ErrNotFound
		}
		found, err := from.read(id, &page)
		if err == nil && !found {
			err = continuation.ErrNotFound
		}
		return err
	})
	if err != nil {
		return nil, finding("read the journal of "+id, err)
	}
	return page.Events, nil
}

// Summary implements continuation.Journals.
func (s *Store) Summary(ctx context.Context, id string) (continuation.Summary, error) {
	var form []byte
	err := s.view(ctx, func(d desk, archive *bolt.Tx, at int64) error {
		form = bytes.Clone(summaryIn(d, archive, id, at))
		return nil
	})
	if err == nil && form == nil {
		err = continuation.ErrNotFound
	}
	var summary continuation.Summary
	if err == nil {
		summary, err = stored.DecodeSummary(form)
	}
	if err != nil {
		return summary, finding("read the summary of "+id, err)
	}
	return summary, nil
}

// summaryIn returns the summary of an execution in stored form, from whichever file has it.
func summaryIn(d desk, archive *bolt.Tx, id string, at int64) []byte {
	switch {
	case d.presence(id, at) != absent:
		return d.summary(id)
	case kept(archive, id):
		return archiveShelf(archive).summary(id)
	default:
		return nil
	}
}

// Summaries implements continuation.Journals.
func (s *Store) Summaries(ctx context.Context, principal string, all bool, after continuation.Place, limit int) ([]continuation.Summary, error) {
	of := scopeOf(principal)
	if all {
		of = everyone
	}
	var forms [][]byte
	err := s.view(ctx, func(d desk, archive *bolt.Tx, at int64) error {
		forms = collectSummaries(d, archive, at, of, after, limit)
		return nil
	})
	list := make([]continuation.Summary, 0, len(forms))
	for _, form := range forms {
		summary, decodeErr := stored.DecodeSummary(form)
		list, err = append(list, summary), errors.Join(err, decodeErr)
	}
	if err != nil {
		return nil, finding("list summaries", err)
	}
	return list, nil
}

// collectSummaries merges the lists of both files.
func collectSummaries(d desk, archive *bolt.Tx, at int64, of scope, after continuation.Place, limit int) [][]byte {
	type entry struct {
		created int64
		id      string
		form    []byte
	}
	var entries []entry
	collect := func(from shelf, counts func(id string) bool) {
		most := len(entries) + limit
		from.list(of, after, func(id string, created int64) bool {
			if len(entries) == most {
				return false
			}
			if form := from.summary(id); form != nil && counts(id) {
				entries = append(entries, entry{created, id, form})
			}
			return true
		})
	}
	collect(d.shelf, func(id string) bool { return d.presence(id, at) != absent })
	collect(archiveShelf(archive), func(id string) bool { return d.presence(id, at) == absent && kept(archive, id) })
	slices.SortFunc(entries, func(a, b entry) int {
		return bytes.Compare(placeKey(of, b.created, b.id), placeKey(of, a.created, a.id))
	})
	forms := make([][]byte, min(limit, len(entries)))
	for i := range forms {
		forms[i] = bytes.Clone(entries[i].form)
	}
	return forms
}

// Forget implements continuation.Journals.
func (s *Store) Forget(ctx context.Context, id string) error {
	if err := s.forget(ctx, id); err != nil {
		return finding("forget execution "+id, err)
	}
	return nil
}

func (s *Store) forget(ctx context.Context, id string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := now()
	if err != nil {
		return err
	}
	// Without the lock, a journal that is being moved to the archive would appear there afterwards.
	s.keeper.moving.Lock()
	defer s.keeper.moving.Unlock()
	here := absent
	err = s.db.Update(func(tx *bolt.Tx) error {
		d := deskOf(tx)
		if here = d.presence(id, at); here != ended {
			return nil
		}
		// The journal expires now, for every reader. The keeper will remove it.
		return d.bucket(ends).Put([]byte(id), make([]byte, endLen))
	})
	if err != nil {
		return err
	}
	switch here {
	case live:
		return fmt.Errorf("the execution has not ended: %w", continuation.ErrConflict)
	case ended:
		s.keeper.call()
	case absent:
	}
	gone, err := s.archive.remove(age{id: id})
	if err != nil {
		return err
	}
	s.keeper.space.gone(gone)
	return nil
}

// Watch implements continuation.Journals.
func (s *Store) Watch(ctx context.Context, id string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, stored.Unavailable("watch the journal of "+id, err)
	}
	return s.readers.Watch(ctx, id), nil
}
