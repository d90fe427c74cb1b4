package boltstore

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

const (
	// archiveAfter is how long the keeper waits for more ended journals, since each of its writes
	// waits for the disk.
	archiveAfter = 200 * time.Millisecond
	// archiveMost and archiveBytes limit how many journals, and how many bytes, one transaction moves to the
	// archive. A larger journal is moved alone.
	archiveMost  = 64
	archiveBytes = 4 << 20
	// clearPause is the time between two transactions that remove a part of a journal, in which other writes
	// can be made.
	clearPause = time.Millisecond
)

// A keeper moves the journals of ended executions to the archive, and removes journals from there that have
// expired or exceed the limits.
type keeper struct {
	db      *bolt.DB // the file of records
	archive *archive
	space   *space
	log     *slog.Logger
	// moving is held while journals are on their way to the archive.
	moving sync.Mutex
	// calls has room for one signal that there is something to do.
	calls chan struct{}
}

func newKeeper(db *bolt.DB, a *archive, limits continuation.JournalLimits, log *slog.Logger) (*keeper, error) {
	k := &keeper{db: db, archive: a, space: newSpace(limits), log: log, calls: make(chan struct{}, 1)}
	if err := k.count(); err != nil {
		return nil, fmt.Errorf("count the journals: %w", err)
	}
	k.call() // An earlier server may have left ended journals.
	return k, nil
}

// count counts the sizes of the journals in both files.
func (k *keeper) count() error {
	err := k.archive.each(func(a age) { k.space.archived(a.of, a.size) })
	if err != nil {
		return err
	}
	return k.db.View(func(tx *bolt.Tx) error {
		d := deskOf(tx)
		return d.bucket(records).ForEach(func(key, form []byte) error {
			if !isChapter(key) {
				return nil
			}
			id, _ := splitKey(key)
			if end := d.bucket(ends).Get([]byte(id)); end != nil && end[8] == archived {
				return nil
			}
			k.space.grow(id, d.summaryOf(id).Principal, growth{bytes: int64(len(form))})
			return nil
		})
	})
}

// summaryOf returns the summary of an execution. If there is none, it makes one from the record, which is
// enough to count and order journals.
func (d desk) summaryOf(id string) continuation.Summary {
	if form := d.summary(id); form != nil {
		if s, err := stored.DecodeSummary(form); err == nil {
			return s
		}
	}
	s := continuation.Summary{ID: id, Content: []byte("{}")}
	if value := d.bucket(records).Get([]byte(id)); value != nil {
		if r, err := stored.Decode(value[headerLen:]); err == nil {
			s.Principal, s.Created = r.Principal, r.Created
		}
	}
	return s
}

// call tells the keeper that there is something to do.
func (k *keeper) call() {
	select {
	case k.calls <- struct{}{}:
	default: // There is a signal that was not received yet.
	}
}

// work does what there is to do until ctx ends.
func (k *keeper) work(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-k.calls:
			select {
			case <-ctx.Done():
				return
			case <-time.After(archiveAfter):
			}
		}
		if err := k.tidy(ctx); err != nil {
			// It is tried again when the next execution ends, or at the next tick.
			k.log.Warn("cannot archive journals", "file", k.archive.db.Path(), "err", err)
		}
	}
}

func (k *keeper) tidy(ctx context.Context) error {
	for ctx.Err() == nil {
		if more, err := k.move(ctx); err != nil {
			return err
		} else if !more {
			break
		}
	}
	if err := k.discard(ctx, everyone, func(a age) bool { return a.end <= time.Now().UnixMilli() }); err != nil {
		return err
	}
	for ctx.Err() == nil {
		of, excess := k.space.full()
		if excess <= 0 {
			return nil
		}
		err := k.discard(ctx, of, func(a age) bool {
			if excess <= 0 {
				return false
			}
			excess -= stored.Counts(a.size)
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// discard removes journals of a scope from the archive, in the order in which they expire, as long as want
// returns true.
func (k *keeper) discard(ctx context.Context, of scope, want func(age) bool) error {
	for ctx.Err() == nil {
		picked, err := k.archive.pick(of, want)
		if err != nil || len(picked) == 0 {
			return err
		}
		gone, err := k.archive.remove(picked...)
		if err != nil {
			return err
		}
		k.space.gone(gone)
	}
	return nil
}

// move moves ended journals to the archive, and reports whether there are more. A reader finds a
// journal in the file of records until the archive has it for good.
func (k *keeper) move(ctx context.Context) (more bool, err error) {
	k.moving.Lock()
	defer k.moving.Unlock()
	volumes, rest, more, err := k.collect()
	if err != nil {
		return false, err
	}
	if len(volumes) > 0 {
		gone, err := k.archive.add(volumes)
		if err != nil {
			return false, err
		}
		k.space.gone(gone)
		moved, err := k.handOver(volumes)
		if err != nil {
			return false, err
		}
		for _, v := range volumes {
			k.space.archived(scopeOf(v.summary.Principal), v.size())
		}
		rest = append(rest, moved...)
	}
	for _, id := range rest {
		if err := k.clear(ctx, id); err != nil {
			return false, err
		}
	}
	return more, nil
}

// collect copies journals that must be moved to the archive, as many as one transaction moves. rest are
// journals of which the file of records still has parts although they were moved or have expired.
func (k *keeper) collect() (volumes []volume, rest []string, more bool, err error) {
	err = k.db.View(func(tx *bolt.Tx) error {
		d := deskOf(tx)
		size, now := int64(0), time.Now()
		c := d.bucket(ends).Cursor()
		for key, end := c.First(); key != nil; key, end = c.Next() {
			id := string(key)
			if end[8] == archived || over(end, now) {
				rest = append(rest, id)
				continue
			}
			if len(volumes) == archiveMost || size > archiveBytes {
				more = true
				return nil
			}
			v := d.volume(id)
			v.end = endOf(end)
			volumes, size = append(volumes, v), size+v.size()
		}
		return nil
	})
	return volumes, rest, more, err
}

// volume copies the journal of an execution.
func (d desk) volume(id string) volume {
	v := volume{id: id, summary: d.summaryOf(id)}
	_ = d.eachChapter(id, func(first int64, _, form []byte) (bool, error) {
		v.chapters = append(v.chapters, chapter{first, bytes.Clone(form)})
		return true, nil
	})
	return v
}

// handOver notes in the file of records that the archive has these journals, and returns their ids. It leaves
// out a journal that a start with a key has begun anew meanwhile.
func (k *keeper) handOver(volumes []volume) (moved []string, err error) {
	err = k.db.Update(func(tx *bolt.Tx) error {
		moved = moved[:0]
		d := deskOf(tx)
		for _, v := range volumes {
			end := d.bucket(ends).Get([]byte(v.id))
			if end == nil || endOf(end) != v.end {
				continue
			}
			if err := d.unlist(v.id); err != nil {
				return err
			}
			if err := d.bucket(ends).Put([]byte(v.id), append(bytes.Clone(end[:8]), archived)); err != nil {
				return err
			}
			moved = append(moved, v.id)
		}
		return nil
	})
	return moved, err
}

// clear removes what the file of records still has of a journal, in small transactions.
func (k *keeper) clear(ctx context.Context, id string) error {
	for more := true; more; {
		err := k.db.Update(func(tx *bolt.Tx) (err error) {
			d := deskOf(tx)
			end := d.bucket(ends).Get([]byte(id))
			if end == nil || end[8] != archived && !over(end, time.Now()) {
				more = false // The journal was begun anew.
				return nil
			}
			k.space.leave(id)
			more, err = d.clear(id, cutBatch)
			return err
		})
		if err != nil {
			return err
		}
		if more {
			select {
			case <-ctx.Done():
				return nil // The next server will continue.
			case <-time.After(clearPause):
			}
		}
	}
	return nil
}
