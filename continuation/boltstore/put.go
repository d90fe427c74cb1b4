package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// Put implements continuation.Store.
func (s *Store) Put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
	if err := s.put(ctx, r, ttl, c); err != nil {
		if errors.Is(err, continuation.ErrConflict) {
			return fmt.Errorf("put record %s, version %d: %w", r.ID, r.Version, err)
		}
		if isFull(err) {
			err = fmt.Errorf("%w: %w", continuation.ErrFull, err)
		}
		return stored.Unavailable("put record "+r.ID, err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, r continuation.Record, ttl time.Duration, c continuation.Chapter) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	at, err := now()
	if err != nil {
		return err
	}
	value := make([]byte, 0, headerLen+1024+len(r.Answer))
	value = binary.BigEndian.AppendUint64(value, uint64(at+stored.Millis(ttl)))
	value = binary.BigEndian.AppendUint64(value, uint64(r.Version))
	if value, err = stored.Append(value, r); err != nil {
		return err
	}

	var form []byte
	if len(c.Events) > 0 {
		form, err = stored.AppendChapter(make([]byte, 0, stored.ChapterLen(c.Events)), c.Events)
		if err != nil {
			return err
		}
	}

	var conflict error
	var g growth
	err = s.db.Update(func(tx *bolt.Tx) (err error) {
		var version int64
		if old := current(tx, r.ID, at); old != nil {
			version = int64(binary.BigEndian.Uint64(old[8:]))
		}
		// A conflict is not returned as an error: to roll the transaction back, bbolt would
		// look through the whole file for its free pages. An empty commit writes one page.
		if version != r.Version-1 {
			conflict = continuation.ErrConflict
			return nil
		}
		if r.Version == 1 || !c.Empty() || c.Life > 0 {
			if g, err = deskOf(tx).add(r, c, form, at, s.archive.has); errors.Is(err, errNotNext) {
				conflict = fmt.Errorf("%w: %w", continuation.ErrConflict, err)
				return nil
			}
		}
		if err != nil {
			return err
		}
		return tx.Bucket([]byte(records)).Put([]byte(r.ID), value)
	})
	if err != nil || conflict != nil {
		return errors.Join(err, conflict)
	}
	if g != (growth{}) {
		s.noteGrowth(r, c, g)
	}
	return nil
}

// noteGrowth tells the watchers and the keeper that a journal has changed.
func (s *Store) noteGrowth(r continuation.Record, c continuation.Chapter, g growth) {
	if c.Empty() && g.fresh {
		s.keeper.space.leave(r.ID)
	} else if s.keeper.space.grow(r.ID, r.Principal, g) || g.ended {
		s.keeper.call()
	}
	if g.grown {
		s.readers.Wake(r.ID)
	}
}
