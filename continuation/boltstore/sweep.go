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

// sweep removes all expired records, up to sweepBatch in a transaction, and with them the journals
// of executions that nobody has ended.
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
		for more := true; more && ctx.Err() == nil; {
			err := s.db.Update(func(tx *bolt.Tx) (err error) {
				more, err = s.removeExpired(deskOf(tx), ids, at)
				return err
			})
			if err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		from = next
	}
	return nil
}

// removeExpired removes expired records, and up to cutBatch chapters of their journals. It reports
// whether there are more.
func (s *Store) removeExpired(d desk, ids [][]byte, at int64) (more bool, err error) {
	bucket := d.bucket(records)
	for _, id := range ids {
		// The record may have been written again since it was found.
		if !d.removable(string(id), bucket.Get(id), at) {
			continue
		}
		if d.bucket(ends).Get(id) == nil && d.has(string(id)) {
			s.keeper.space.leave(string(id))
			if more, err := d.clear(string(id), cutBatch); err != nil || more {
				return more, err
			}
		}
		if err := bucket.Delete(id); err != nil {
			return false, err
		}
	}
	return false, nil
}

// removable reports whether a record has expired, and the journal of its execution does not need
// it any more.
func (d desk) removable(id string, value []byte, at int64) bool {
	return value != nil && expired(value, at) && d.presence(id, at) != live
}

// findExpired returns the ids of up to sweepBatch expired records, beginning at from. If
// there are more, next is the id to continue from. It only reads, so no Put waits for the
// search.
func (s *Store) findExpired(at int64, from []byte) (ids [][]byte, next []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		d := deskOf(tx)
		return eachRecord(tx, from, func(id, value []byte) (more bool, err error) {
			if !d.removable(string(id), value, at) {
				return true, nil
			}
			if len(ids) == sweepBatch {
				next = bytes.Clone(id)
				return false, nil
			}
			ids = append(ids, bytes.Clone(id))
			return true, nil
		})
	})
	return ids, next, err
}
