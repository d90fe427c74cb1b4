package boltstore

import (
	"encoding/binary"
	"errors"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// In the file of records, the end of a journal is followed by a byte that says whether the archive has the
// journal. If it has, readers do not read the journal from the file of records any more, and it is removed
// from there step by step.
const (
	toArchive = 0
	archived  = 1
	endLen    = 9
)

// A desk reads and writes live journals in a transaction of the file of records.
type desk struct{ shelf }

// A presence says whether the file of records has a journal.
type presence int

const (
	// absent: it does not have the journal, or what it has is not valid any more.
	absent presence = iota
	// live: it has the journal, and the execution has not ended.
	live
	// ended: it has the journal, the execution has ended, and the archive does not have the journal yet.
	ended
)

// presence returns what the file of records has of a journal. at is the time since the machine's
// boot.
func (d desk) presence(id string, at int64) presence {
	if end := d.bucket(ends).Get([]byte(id)); end != nil {
		if end[8] == archived || over(end, time.Now()) {
			return absent
		}
		return ended
	}
	record := d.bucket(records).Get([]byte(id))
	if record == nil || expired(record, at-continuation.JournalSlack.Milliseconds()) || !d.has(id) {
		return absent
	}
	return live
}

// over reports whether a journal with this end has expired.
func over(end []byte, now time.Time) bool { return endOf(end) <= now.UnixMilli() }

func endOf(end []byte) int64 { return int64(binary.BigEndian.Uint64(end)) }

// errNotNext means that a chapter does not follow what is stored.
var errNotNext = errors.New("the chapter does not follow the stored journal")

// A growth describes how a chapter has changed a journal and its size.
type growth struct {
	// fresh is true if the journal has begun anew.
	fresh bool
	bytes int64
	// grown is true if there are new events, ended if the execution has ended.
	grown, ended bool
}

// add adds a chapter to the journal of r. It writes nothing and returns errNotNext if the chapter
// does not follow. inArchive reports whether the archive has the journal of an execution.
func (d desk) add(r continuation.Record, c continuation.Chapter, form []byte, at int64, inArchive func(id string) (bool, error)) (growth, error) {
	keep, here, err := d.follows(r, c, at, inArchive)
	if err != nil || here == ended && len(c.Events) == 0 {
		return growth{}, err // A summary that arrives after the end is the same as the stored one.
	}
	g := growth{fresh: here == absent, grown: len(c.Events) > 0}
	switch {
	case g.fresh:
		_, err = d.clear(r.ID, maxChapters)
	case r.Version == 1:
		_, err = d.cut(r.ID, keep, maxChapters)
	}
	if err == nil && g.grown {
		g.bytes = int64(len(form))
		err = d.bucket(records).Put(chapterKey(r.ID, c.First), form)
	}
	if err == nil && c.Summary != nil {
		err = d.putSummary(*c.Summary)
	}
	if err == nil && c.Life > 0 && d.has(r.ID) {
		g.ended = true
		end := binary.BigEndian.AppendUint64(make([]byte, 0, endLen), uint64(stored.LifeEnd(time.Now(), c.Life)))
		err = d.bucket(ends).Put([]byte(r.ID), append(end, toArchive))
	}
	return g, err
}

// maxChapters is larger than the number of chapters of any journal.
const maxChapters = 1 << 30

// follows returns how many of the stored events stay before a chapter, and the presence of the journal that
// the chapter continues. If the chapter begins a new journal, the presence is absent.
func (d desk) follows(r continuation.Record, c continuation.Chapter, at int64, inArchive func(id string) (bool, error)) (keep int64, here presence, err error) {
	events := len(c.Events) > 0
	if r.Version == 1 && c.First <= 1 && (events || r.Events == 0) {
		return 0, absent, nil // A start with a key has the id of an earlier execution whose record has expired.
	}
	here = d.presence(r.ID, at)
	if here == absent && (!events || c.First != 1) {
		// The journal may have ended. Nothing follows an end.
		if there, err := inArchive(r.ID); err != nil || there {
			return 0, ended, errors.Join(err, notNext(c))
		}
	}
	keep, err = d.last(r.ID)
	switch {
	case err != nil || !events:
		return keep, here, err
	case here == ended:
		return 0, here, errNotNext
	case r.Version == 1:
		// There is no record, so the writer does not know which events are stored. Events that it repeats
		// are replaced, and events that it does not have are lost.
		return min(keep, c.First-1), here, nil
	case here == absent && c.First != 1 || here == live && c.First != keep+1:
		return 0, here, errNotNext
	}
	return keep, here, nil
}

// notNext returns errNotNext if the chapter has events.
func notNext(c continuation.Chapter) error {
	if len(c.Events) > 0 {
		return errNotNext
	}
	return nil
}

// deskOf returns the desk of a transaction of the file of records.
func deskOf(tx *bolt.Tx) desk { return desk{shelf{tx, records}} }
