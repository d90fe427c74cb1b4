package boltstore

import (
	"bytes"
	"context"
	"time"

	bolt "go.etcd.io/bbolt"
)

// sweepUntil removes expired records every sweepEvery until ctx ends.
func (s *Store) sweepUntil(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		if err := s.sweep(ctx); err != nil {
			s.log.Warn("cannot remove expired records", "file", s.db.Path(), "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// sweep removes all expired records, up to sweepBatch in a transaction.
func (s *Store) sweep(ctx context.Context) error {
	at, err := now()
	if err != nil {
		return err
	}
	for from := []byte(nil); ctx.Err() == nil; {
		ids, next, err := s.findExpired(at, from)
		if err != nil || len(ids) == 0 {
			return err
		}
		err = s.db.Update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket([]byte(records))
			for _, id := range ids {
				// The record may have been written again since it was found.
				if value := bucket.Get(id); value == nil || !expired(value, at) {
					continue
				}
				if err := bucket.Delete(id); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || next == nil {
			return err
		}
		from = next
	}
	return nil
}

// findExpired returns the ids of up to sweepBatch expired records, beginning at from. If
// there are more, next is the id to continue from. It only reads, so no Put waits for the
// search.
func (s *Store) findExpired(at int64, from []byte) (ids [][]byte, next []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		cursor := tx.Bucket([]byte(records)).Cursor()
		for id, value := cursor.Seek(from); id != nil; id, value = cursor.Next() {
			if !expired(value, at) {
				continue
			}
			if len(ids) == sweepBatch {
				next = bytes.Clone(id)
				return nil
			}
			ids = append(ids, bytes.Clone(id))
		}
		return nil
	})
	return ids, next, err
}
