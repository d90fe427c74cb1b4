package boltstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// rescue archives the journals in the file of records at path, which is of an earlier boot of the
// machine. Executions that were alive then have ended.
func (s *Store) rescue(path string) (err error) {
	db, err := openToRead(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var batch []volume
	var size int64
	archiveBatch := func() error {
		_, err := s.archive.add(batch)
		batch, size = nil, 0
		return err
	}
	err = db.View(func(tx *bolt.Tx) error {
		for _, name := range append([]string{records}, shelfBuckets...) {
			if tx.Bucket([]byte(name)) == nil {
				return nil // The server was killed before the first transaction, or its version had no journals.
			}
		}
		d := deskOf(tx)
		return d.eachJournal(func(id string) error {
			v, ok, err := s.salvage(d, id)
			if err != nil {
				s.log.Error("dropping a journal that was alive when the machine was rebooted", "execution", id, "err", err)
			}
			if !ok {
				return nil
			}
			batch, size = append(batch, v), size+v.size()
			if len(batch) < archiveMost && size < archiveBytes {
				return nil
			}
			return archiveBatch()
		})
	})
	if err != nil || len(batch) == 0 {
		return err
	}
	return archiveBatch()
}

// eachJournal calls do with the id of every execution that has a summary or chapters.
func (d desk) eachJournal(do func(id string) error) error {
	err := d.bucket(summaries).ForEach(func(id, _ []byte) error { return do(string(id)) })
	if err != nil {
		return err
	}
	before := ""
	return d.bucket(records).ForEach(func(key, _ []byte) error {
		if !isChapter(key) {
			return nil
		}
		id, _ := splitKey(key)
		if id == before || d.summary(id) != nil {
			return nil
		}
		before = id
		return do(id)
	})
}

// salvage returns the journal of an execution of an earlier boot in the form for the archive.
func (s *Store) salvage(d desk, id string) (v volume, ok bool, err error) {
	v = d.volume(id)
	end := d.bucket(ends).Get([]byte(id))
	if end != nil {
		v.end = endOf(end)
		return v, end[8] != archived && !over(end, time.Now()), nil
	}
	if s.expire == nil {
		return v, false, nil
	}
	last, err := d.last(id)
	if err != nil {
		return v, false, err
	}
	r := continuation.Record{ID: id, Events: last}
	if value := d.bucket(records).Get([]byte(id)); len(value) > headerLen {
		if r, err = stored.Decode(value[headerLen:]); err != nil {
			return v, false, err
		}
	}
	c, err := s.expire(r, v.summary)
	if err != nil || c.Life <= 0 {
		return v, false, err
	}
	if len(c.Events) > 0 {
		form, err := stored.AppendChapter(nil, c.Events)
		if err != nil {
			return v, false, err
		}
		if c.First != last+1 {
			return v, false, fmt.Errorf("its last chapter begins with event %d, want %d", c.First, last+1)
		}
		v.chapters = append(v.chapters, chapter{last + 1, form})
	}
	if c.Summary != nil {
		v.summary = *c.Summary
	}
	v.end = stored.LifeEnd(time.Now(), c.Life)
	s.log.LogAttrs(context.Background(), slog.LevelInfo, "an execution has ended with its machine, which was restarted",
		slog.String("execution", id), slog.String("session", r.Session), slog.String("principal", r.Principal), slog.Int("round", r.Round))
	return v, true, nil
}
