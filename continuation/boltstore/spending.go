package boltstore

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// spendings is the bucket in the archive that maps a day and the scope of a principal to what that
// principal has spent on that day, in 8 bytes.
const spendings = "spendings"

// Spend implements continuation.Spendings.
func (s *Store) Spend(ctx context.Context, sp continuation.Spending, most int64) (before int64, ok bool, err error) {
	err = s.changeSpent(ctx, sp, func(spent int64) int64 {
		if before, ok = spent, spent+sp.Cost <= most; !ok {
			return spent
		}
		return spent + sp.Cost
	})
	return before, ok && err == nil, err
}

// Refund implements continuation.Spendings.
func (s *Store) Refund(ctx context.Context, sp continuation.Spending) error {
	return s.changeSpent(ctx, sp, func(spent int64) int64 { return spent - sp.Cost })
}

// changeSpent changes what a principal has spent on a day, and removes the sums of days that ended long ago.
func (s *Store) changeSpent(ctx context.Context, sp continuation.Spending, change func(int64) int64) error {
	err := ctx.Err()
	if err == nil {
		oldest := continuation.DayOf(time.Now()).Add(-1)
		err = s.archive.db.Update(func(tx *bolt.Tx) error {
			bucket, key, spent := tx.Bucket([]byte(spendings)), usageKey(sp.Day, scopeOf(sp.Principal)), int64(0)
			if form := bucket.Get(key); len(form) == 8 {
				spent = int64(binary.BigEndian.Uint64(form))
			}
			next := binary.BigEndian.AppendUint64(nil, uint64(change(spent)))
			return errors.Join(bucket.Put(key, next), dropUsages(bucket, oldest))
		})
	}
	if err != nil {
		return stored.Unavailable("count costs", err)
	}
	return nil
}
