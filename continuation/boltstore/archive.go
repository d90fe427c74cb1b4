package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"log/slog"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// chapters is the bucket of chapters in the archive.
const chapters = "chapters"

// archiveShelf returns the shelf of a transaction of the archive.
func archiveShelf(tx *bolt.Tx) shelf { return shelf{tx, chapters} }

// ages is the bucket that orders the journals of the archive by the time at which they expire. A key is a
// scope, that time in 8 bytes, and the id. The value is the journal's size in 8 bytes.
const ages = "ages"

// An archive keeps the journals of executions that have ended, in a file of its own. Unlike the
// file of records, it outlives a restart of the machine, so what is written to it is synced.
type archive struct{ db *bolt.DB }

// A volume is the journal of an ended execution on its way to the archive.
type volume struct {
	id       string
	chapters []chapter
	summary  continuation.Summary
	// end is when the journal expires, in milliseconds of the wall clock.
	end int64
}

type chapter struct {
	first int64
	form  []byte
}

func (v volume) size() (n int64) {
	for _, c := range v.chapters {
		n += int64(len(c.form))
	}
	return n
}

// openArchive opens the archive at path. A damaged one is set aside.
func openArchive(path string, log *slog.Logger) (*archive, error) {
	if err := setAsideDamaged(path, log); err != nil {
		return nil, err
	}
	all := func(*bolt.Tx, string, []byte, []byte) bool { return true }
	if err := compact(path, all, log); err != nil {
		return nil, err
	}
	o := options()
	o.NoSync, o.NoGrowSync = false, false
	db, err := openFile(path, o, func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(ages))
		_, chaptersErr := tx.CreateBucketIfNotExists([]byte(chapters))
		_, usagesErr := tx.CreateBucketIfNotExists([]byte(usages))
		_, spendingsErr := tx.CreateBucketIfNotExists([]byte(spendings))
		return errors.Join(err, chaptersErr, usagesErr, spendingsErr, archiveShelf(tx).create())
	})
	if err != nil {
		return nil, err
	}
	return &archive{db}, nil
}

func ageKey(of scope, end int64, id string) []byte { return placeKey(of, end, id) }

// an age is an entry of the bucket ages.
type age struct {
	of   scope
	end  int64
	id   string
	size int64
}

func ageOf(key, value []byte) age {
	rest := key[len(everyone):]
	return age{
		of: scope(key), end: int64(binary.BigEndian.Uint64(rest)), id: string(rest[8:]),
		size: int64(binary.BigEndian.Uint64(value)),
	}
}

// each calls visit with the age of every journal, once.
func (a *archive) each(visit func(age)) error {
	return a.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(ages)).Cursor()
		// Every journal is also in the scope of everyone, which comes first in the bucket.
		after := append(bytes.Clone(everyone[:]), bytes.Repeat([]byte{0xff}, 64)...)
		for key, value := c.Seek(after); key != nil; key, value = c.Next() {
			visit(ageOf(key, value))
		}
		return nil
	})
}

// pickMost and pickBytes limit how many journals, and how many bytes, one transaction removes from the archive.
const (
	pickMost  = 256
	pickBytes = 16 << 20
)

// pick returns the journals of a scope in the order in which they expire, as long as want returns true.
func (a *archive) pick(of scope, want func(age) bool) (picked []age, err error) {
	err = a.db.View(func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(ages)).Cursor()
		var size int64
		for key, value := c.Seek(of[:]); bytes.HasPrefix(key, of[:]); key, value = c.Next() {
			next := ageOf(key, value)
			if len(picked) == pickMost || size > pickBytes || !want(next) {
				break
			}
			picked, size = append(picked, next), size+next.size
		}
		return nil
	})
	return picked, err
}

// has reports whether the archive has a journal that has not expired.
func (a *archive) has(id string) (there bool, err error) {
	err = a.db.View(func(tx *bolt.Tx) error {
		there = kept(tx, id)
		return nil
	})
	return there, err
}

// kept reports whether a transaction of the archive sees a journal that has not expired.
func kept(tx *bolt.Tx, id string) bool {
	end := tx.Bucket([]byte(ends)).Get([]byte(id))
	return end != nil && !over(end, time.Now())
}

// add writes journals in one transaction. It returns the journals that it has replaced, which had the same id.
func (a *archive) add(volumes []volume) (gone []age, err error) {
	err = a.db.Update(func(tx *bolt.Tx) error {
		for _, v := range volumes {
			old, found, err := remove(tx, v.id)
			if err != nil {
				return err
			}
			if found {
				gone = append(gone, old)
			}
			if err := write(tx, v); err != nil {
				return err
			}
		}
		return nil
	})
	return gone, err
}

func write(tx *bolt.Tx, v volume) error {
	s := archiveShelf(tx)
	for _, c := range v.chapters {
		if err := s.bucket(chapters).Put(chapterKey(v.id, c.first), c.form); err != nil {
			return err
		}
	}
	if err := s.putSummary(v.summary); err != nil {
		return err
	}
	size := binary.BigEndian.AppendUint64(nil, uint64(v.size()))
	for _, of := range []scope{everyone, scopeOf(v.summary.Principal)} {
		if err := s.bucket(ages).Put(ageKey(of, v.end, v.id), size); err != nil {
			return err
		}
	}
	// In this bucket the size follows the end.
	end := binary.BigEndian.AppendUint64(nil, uint64(v.end))
	return s.bucket(ends).Put([]byte(v.id), append(end, size...))
}

// remove removes journals in one transaction, and returns those that existed.
func (a *archive) remove(all ...age) (gone []age, err error) {
	found := false
	err = a.db.View(func(tx *bolt.Tx) error {
		found = slices.ContainsFunc(all, func(one age) bool { return tx.Bucket([]byte(ends)).Get([]byte(one.id)) != nil })
		return nil
	})
	if err != nil || !found {
		return nil, err
	}
	err = a.db.Update(func(tx *bolt.Tx) error {
		for _, one := range all {
			old, found, err := remove(tx, one.id)
			if err != nil {
				return err
			}
			if found {
				gone = append(gone, old)
			}
		}
		return nil
	})
	return gone, err
}

func remove(tx *bolt.Tx, id string) (gone age, found bool, err error) {
	s := archiveShelf(tx)
	end := s.bucket(ends).Get([]byte(id))
	if end == nil {
		return age{}, false, nil
	}
	gone = age{id: id, end: endOf(end), size: int64(binary.BigEndian.Uint64(end[8:]))}
	summary, err := stored.DecodeSummary(s.summary(id))
	if err != nil {
		return age{}, false, err
	}
	gone.of = scopeOf(summary.Principal)
	for _, of := range []scope{everyone, gone.of} {
		if err := s.bucket(ages).Delete(ageKey(of, gone.end, id)); err != nil {
			return age{}, false, err
		}
	}
	_, err = s.clear(id, maxChapters)
	return gone, true, err
}
