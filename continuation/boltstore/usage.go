package boltstore

import (
	"bytes"
	"context"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// usages is the bucket of sums in the archive, which outlives a restart of the machine. It maps a day
// and the scope of a principal to what that principal has used on that day, as JSON.
const usages = "usages"

// dayLen is the length of a day in a key.
const dayLen = len(time.DateOnly)

// usageBatch is how many old sums one write removes.
const usageBatch = 1024

func usageKey(day continuation.Day, of scope) []byte { return append([]byte(day), of[:]...) }

// AddUsage implements continuation.Usages.
func (s *Store) AddUsage(ctx context.Context, add []continuation.Usage, life time.Duration) error {
	err := ctx.Err()
	if err == nil {
		oldest := continuation.DayOf(time.Now().Add(-life))
		err = s.archive.db.Update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket([]byte(usages))
			return errors.Join(addUsages(bucket, add), dropUsages(bucket, oldest))
		})
	}
	if err != nil {
		return stored.Unavailable("add usage", err)
	}
	return nil
}

func addUsages(bucket *bolt.Bucket, add []continuation.Usage) error {
	for _, group := range stored.GroupUsages(add) {
		key := usageKey(group[0].Day, scopeOf(group[0].Principal))
		tally, err := stored.DecodeTally(bucket.Get(key))
		if err != nil {
			return err
		}
		tally.Add(group)
		form, err := tally.Encode()
		if err != nil {
			return err
		}
		if err := bucket.Put(key, form); err != nil {
			return err
		}
	}
	return nil
}

// dropUsages removes the sums of days before oldest.
func dropUsages(bucket *bolt.Bucket, oldest continuation.Day) error {
	var old [][]byte
	c := bucket.Cursor()
	for key, _ := c.First(); key != nil && len(old) < usageBatch && string(key[:dayLen]) < string(oldest); key, _ = c.Next() {
		old = append(old, bytes.Clone(key))
	}
	for _, key := range old {
		if err := bucket.Delete(key); err != nil {
			return err
		}
	}
	return nil
}

// Usage implements continuation.Usages.
func (s *Store) Usage(ctx context.Context, q continuation.UsageQuery) ([]continuation.Usage, error) {
	var list []continuation.Usage
	err := s.archive.db.View(func(tx *bolt.Tx) (err error) {
		c := tx.Bucket([]byte(usages)).Cursor()
		until := q.Until
		if q.After.Day != "" {
			until = min(until, q.After.Day)
		}
		for day, found := dayBefore(c, until.Add(1)); found && day >= q.Since && len(list) < q.Limit; day, found = dayBefore(c, day) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if list, err = appendDay(list, c, day, q); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, stored.Unavailable("read usage", err)
	}
	return list[:min(len(list), q.Limit)], nil
}

// dayBefore returns the last day before one that has sums.
func dayBefore(c *bolt.Cursor, day continuation.Day) (continuation.Day, bool) {
	key, _ := before(c, []byte(day))
	if key == nil {
		return "", false
	}
	return continuation.Day(key[:dayLen]), true
}

// appendDay appends sums of a day until q.Limit is reached.
func appendDay(list []continuation.Usage, c *bolt.Cursor, day continuation.Day, q continuation.UsageQuery) ([]continuation.Usage, error) {
	from, prefix := []byte(day), []byte(day)
	after := usageKey(q.After.Day, scopeOf(q.After.Principal))
	if q.After.Day == day {
		from = after
	}
	if !q.Everyone {
		prefix = usageKey(day, scopeOf(q.Principal))
		from = prefix
	}
	for key, form := c.Seek(from); bytes.HasPrefix(key, prefix) && len(list) < q.Limit; key, form = c.Next() {
		tally, err := stored.DecodeTally(form)
		if err != nil {
			return nil, err
		}
		toolset := ""
		if bytes.Equal(key, after) {
			toolset = q.After.Toolset
		}
		list = append(list, tally.Usages(day, toolset)...)
	}
	return list, nil
}
