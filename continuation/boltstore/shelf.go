package boltstore

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// Live journals are in the file of records, and those of ended executions in the archive. Both files have
// these buckets, and a bucket with chapters.
const (
	// summaries maps an id to a summary in stored form.
	summaries = "summaries"
	// places is the list of summaries: a scope, when the execution began in milliseconds, in 8
	// bytes, and its id.
	places = "places"
	// ends maps the id of an ended execution to the time at which its journal expires, in 8 bytes and in
	// milliseconds of the wall clock. Each file adds something to it, which is described where it is used.
	ends = "ends"
)

// shelfBuckets are the buckets of journals.
var shelfBuckets = []string{summaries, places, ends}

// A scope is a set of journals: those of a principal or of everyone.
type scope [16]byte

// everyone is the scope of all principals.
var everyone scope

// scopeOf returns the scope of a principal.
func scopeOf(principal string) scope {
	sum := sha256.Sum256([]byte(principal))
	return scope(sum[:])
}

// A shelf reads and writes journals in a transaction of either file.
type shelf struct {
	tx *bolt.Tx
	// chapters is the name of the bucket that maps an execution's id, a zero byte and the
	// complement of the number of a chapter's first event, in 8 bytes, to the chapter in stored
	// form. So the latest chapter comes first. In the file of records that is the bucket of the
	// records: the record and the latest chapter, which are written together, are neighbours
	// there, and mostly on the same page.
	chapters string
}

func (s shelf) bucket(name string) *bolt.Bucket { return s.tx.Bucket([]byte(name)) }

// create creates the buckets.
func (s shelf) create() error {
	for _, name := range shelfBuckets {
		if _, err := s.tx.CreateBucketIfNotExists([]byte(name)); err != nil {
			return err
		}
	}
	return nil
}

// suffixLen is the length of what follows the id in the key of a chapter.
const suffixLen = 1 + 8

func chapterKey(id string, first int64) []byte {
	key := make([]byte, 0, len(id)+suffixLen)
	return binary.BigEndian.AppendUint64(append(append(key, id...), 0), ^uint64(first))
}

// latest returns a key at or before the latest chapter of an execution, which comes first in the bucket.
func latest(id string) []byte { return chapterKey(id, -1) }

// isChapter reports whether a key is that of a chapter. No id of an execution has a zero byte.
func isChapter(key []byte) bool { return len(key) > suffixLen && key[len(key)-suffixLen] == 0 }

// splitKey returns what the key of a chapter consists of.
func splitKey(key []byte) (id string, first int64) {
	n := len(key) - suffixLen
	return string(key[:n]), int64(^binary.BigEndian.Uint64(key[n+1:]))
}

// chapterOf returns the number of the first event of the chapter with this key, if it is one of
// this execution.
func chapterOf(id string, key []byte) (first int64, ok bool) {
	if len(key) != len(id)+suffixLen || string(key[:len(id)]) != id || key[len(id)] != 0 {
		return 0, false
	}
	_, first = splitKey(key)
	return first, true
}

// skipChapters returns a key after all chapters of the execution to which a chapter belongs, and before
// everything else that follows them.
func skipChapters(chapter []byte) []byte {
	return append(bytes.Clone(chapter[:len(chapter)-suffixLen]), 1)
}

// before moves a cursor to the last key before key. It must not be used in a transaction that has
// deleted keys of the bucket, since bbolt's Last may then loop forever.
func before(c *bolt.Cursor, key []byte) (k, v []byte) {
	if k, _ := c.Seek(key); k == nil {
		return c.Last()
	}
	return c.Prev()
}

// last returns the number of the last event of an execution, or 0 if it has none.
func (s shelf) last(id string) (int64, error) {
	key, form := s.bucket(s.chapters).Cursor().Seek(latest(id))
	first, ok := chapterOf(id, key)
	if !ok {
		return 0, nil
	}
	count, err := stored.Count(form)
	return first + count - 1, err
}

// has reports whether the file has any part of an execution's journal.
func (s shelf) has(id string) bool {
	if s.bucket(summaries).Get([]byte(id)) != nil {
		return true
	}
	key, _ := s.bucket(s.chapters).Cursor().Seek(latest(id))
	_, ok := chapterOf(id, key)
	return ok
}

// read adds events of an execution to a page. It reports whether the file has any chapter of it.
func (s shelf) read(id string, p *stored.Page) (found bool, err error) {
	c := s.bucket(s.chapters).Cursor()
	// The event after the page's place may be in the middle of a chapter.
	key, form := c.Seek(chapterKey(id, p.After+1))
	if _, ok := chapterOf(id, key); !ok {
		key, form = before(c, skipChapters(latest(id)))
	}
	for ; key != nil; key, form = c.Prev() {
		first, ok := chapterOf(id, key)
		if !ok {
			break
		}
		found = true
		if more, err := p.Add(first, form); err != nil || !more {
			return found, err
		}
	}
	return found, nil
}

// summary returns the summary of an execution in stored form, or nil.
func (s shelf) summary(id string) []byte { return s.bucket(summaries).Get([]byte(id)) }

func placeKey(of scope, created int64, id string) []byte {
	key := make([]byte, 0, len(of)+8+len(id))
	key = append(key, of[:]...)
	key = binary.BigEndian.AppendUint64(key, uint64(created))
	return append(key, id...)
}

// putSummary writes a summary and lists it.
func (s shelf) putSummary(summary continuation.Summary) error {
	form, err := stored.AppendSummary(nil, summary)
	if err != nil {
		return err
	}
	if err := s.unlist(summary.ID); err != nil {
		return err
	}
	if err := s.bucket(summaries).Put([]byte(summary.ID), form); err != nil {
		return err
	}
	for _, of := range []scope{everyone, scopeOf(summary.Principal)} {
		key := placeKey(of, stored.CreatedMillis(summary.Created), summary.ID)
		if err := s.bucket(places).Put(key, nil); err != nil {
			return err
		}
	}
	return nil
}

// unlist removes the summary of an execution.
func (s shelf) unlist(id string) error {
	form := s.summary(id)
	if form == nil {
		return nil
	}
	summary, err := stored.DecodeSummary(form)
	if err != nil {
		return err
	}
	for _, of := range []scope{everyone, scopeOf(summary.Principal)} {
		if err := s.bucket(places).Delete(placeKey(of, stored.CreatedMillis(summary.Created), id)); err != nil {
			return err
		}
	}
	return s.bucket(summaries).Delete([]byte(id))
}

// list calls visit with the ids of executions after a place, newest first, until it returns
// false.
func (s shelf) list(of scope, after continuation.Place, visit func(id string, created int64) (more bool)) {
	c := s.bucket(places).Cursor()
	from := placeKey(of, -1, "") // the greatest key
	if after != (continuation.Place{}) {
		from = placeKey(of, stored.CreatedMillis(after.Created), after.ID)
	}
	for key, _ := before(c, from); bytes.HasPrefix(key, of[:]); key, _ = c.Prev() {
		rest := key[len(of):]
		if !visit(string(rest[8:]), int64(binary.BigEndian.Uint64(rest))) {
			return
		}
	}
}

// cut removes up to most chapters of an execution that have an event after the one with number keep. It reports
// whether there may be more.
func (s shelf) cut(id string, keep int64, most int) (more bool, err error) {
	var keys [][]byte
	err = s.eachChapter(id, func(first int64, key, form []byte) (more bool, err error) {
		count, err := stored.Count(form)
		if err != nil || first+count-1 <= keep || len(keys) == most {
			return false, err
		}
		keys = append(keys, bytes.Clone(key))
		return true, nil
	})
	for _, key := range keys {
		err = errors.Join(err, s.bucket(s.chapters).Delete(key))
	}
	return len(keys) == most, err
}

// eachChapter calls do with the chapters of an execution, from the latest to the first, until do reports that
// it needs no more.
func (s shelf) eachChapter(id string, do func(first int64, key, form []byte) (more bool, err error)) error {
	c := s.bucket(s.chapters).Cursor()
	for key, form := c.Seek(latest(id)); key != nil; key, form = c.Next() {
		first, ok := chapterOf(id, key)
		if !ok {
			return nil
		}
		if more, err := do(first, key, form); err != nil || !more {
			return err
		}
	}
	return nil
}

// cutBatch is how many chapters one transaction of the file of records removes. It limits how long a Put waits
// for that transaction.
const cutBatch = 64

// clear removes the journal of an execution, but no more than most chapters of it. It reports whether chapters
// are left.
func (s shelf) clear(id string, most int) (more bool, err error) {
	if more, err := s.cut(id, 0, most); err != nil || more {
		return more, err
	}
	if err := s.unlist(id); err != nil {
		return false, err
	}
	return false, s.bucket(ends).Delete([]byte(id))
}
