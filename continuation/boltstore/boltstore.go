// Package boltstore keeps continuation records and journals in files, for a server that
// runs alone.
//
// Records are of no use after the machine has been rebooted, because no sandbox
// survives that. So no write of a record waits for the disk: if the server is killed, the
// kernel still has what it wrote; if the machine crashes, the records are worthless anyway.
// The journal of a live execution is in the file of records. When the execution has ended,
// its journal is moved to the archive, a synced file that outlives a reboot. The sums of what was
// used are there as well.
package boltstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

const (
	// sweepEvery is how often expired records are removed.
	sweepEvery = time.Minute
	// sweepBatch is how many records one transaction of the sweep removes. It limits how
	// long a Put waits for that transaction.
	sweepBatch = 256
)

// A Store keeps records and journals in files. It implements continuation.Store, with a method for each operation.
type Store struct {
	db      *bolt.DB
	lock    *os.File
	log     *slog.Logger
	archive *archive
	keeper  *keeper
	readers stored.Watchers

	limits continuation.JournalLimits
	expire func(continuation.Record, continuation.Summary) (continuation.Chapter, error)

	stopWork context.CancelFunc
	working  sync.WaitGroup
}

var (
	_ continuation.Store    = (*Store)(nil)
	_ continuation.Journals = (*Store)(nil)
)

// An Option changes how a Store works.
type Option func(*Store)

// WithLimits limits the size of the journals of executions that have ended.
func WithLimits(limits continuation.JournalLimits) Option {
	return func(s *Store) { s.limits = limits }
}

// WithExpiry makes Open end the journals of executions that were alive when the machine was
// rebooted. chapter returns their last chapter, given their last record and summary. Without
// WithExpiry these journals are dropped.
func WithExpiry(chapter func(continuation.Record, continuation.Summary) (continuation.Chapter, error)) Option {
	return func(s *Store) { s.expire = chapter }
}

// Open opens the store in the file at path and creates the file if there is none. A
// file that is damaged, or was written before the machine's last boot, is replaced by
// an empty one and the loss is logged. The file path.boot beside it names the boot that
// the records belong to. Open locks it, so that only one server uses the store. The file
// path.journals is the archive.
func Open(path string, log *slog.Logger, options ...Option) (*Store, error) {
	lock, err := lockFile(path + ".boot")
	if err != nil {
		return nil, fmt.Errorf("boltstore: open %s: %w", path, err)
	}
	s := &Store{lock: lock, log: log}
	for _, option := range options {
		option(s)
	}
	if err := s.open(path); err != nil {
		return nil, errors.Join(fmt.Errorf("boltstore: open %s: %w", path, err), s.closeFiles())
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.stopWork = cancel
	s.working.Go(func() { s.sweepUntil(ctx) })
	s.working.Go(func() { s.keeper.work(ctx) })
	return s, nil
}

func (s *Store) open(path string) (err error) {
	if s.archive, err = openArchive(path+".journals", s.log); err != nil {
		return fmt.Errorf("%s.journals: %w", path, err)
	}
	if s.db, err = s.openRecords(path); err != nil {
		return err
	}
	s.keeper, err = newKeeper(s.db, s.archive, s.limits, s.log)
	return err
}

// now returns the time since the machine's boot, in milliseconds. Setting the wall clock
// neither revives nor expires a record, and unlike Go's monotonic clock this clock goes on
// for the next server.
func now() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(bootClock, &t); err != nil {
		return 0, fmt.Errorf("read the clock: %w", err)
	}
	return t.Nano() / int64(time.Millisecond), nil
}

// Get implements continuation.Store.
func (s *Store) Get(ctx context.Context, id string) (continuation.Record, error) {
	r, err := s.get(ctx, id)
	switch {
	case errors.Is(err, continuation.ErrNotFound):
		return r, fmt.Errorf("get record %s: %w", id, err)
	case err != nil:
		return r, stored.Unavailable("get record "+id, err)
	}
	return r, nil
}

func (s *Store) get(ctx context.Context, id string) (continuation.Record, error) {
	if err := ctx.Err(); err != nil {
		return continuation.Record{}, err
	}
	at, err := now()
	if err != nil {
		return continuation.Record{}, err
	}
	// The value is decoded after the transaction, because an open transaction holds up a
	// writer that has to grow the file.
	var value []byte
	err = s.db.View(func(tx *bolt.Tx) error {
		value = bytes.Clone(current(tx, id, at))
		return nil
	})
	switch {
	case err != nil:
		return continuation.Record{}, err
	case value == nil:
		return continuation.Record{}, continuation.ErrNotFound
	}
	return stored.Decode(value[headerLen:])
}

// List implements continuation.Store.
func (s *Store) List(ctx context.Context) ([]continuation.Record, error) {
	list, err := s.list(ctx)
	if err != nil {
		return nil, stored.Unavailable("list records", err)
	}
	return list, nil
}

func (s *Store) list(ctx context.Context) ([]continuation.Record, error) {
	at, err := now()
	if err != nil {
		return nil, err
	}
	var list []continuation.Record
	err = s.db.View(func(tx *bolt.Tx) error {
		return eachRecord(tx, nil, func(id, value []byte) (more bool, err error) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if expired(value, at) {
				return true, nil
			}
			r, err := stored.Decode(bytes.Clone(value[headerLen:]))
			if err != nil {
				return false, fmt.Errorf("record %s: %w", id, err)
			}
			list = append(list, r)
			return true, nil
		})
	})
	return list, err
}

// eachRecord calls do with the records from an id on, until do reports that it needs no more.
func eachRecord(tx *bolt.Tx, from []byte, do func(id, value []byte) (more bool, err error)) error {
	c := tx.Bucket([]byte(records)).Cursor()
	key, value := c.Seek(from)
	for key != nil {
		if isChapter(key) {
			key, value = c.Seek(skipChapters(key))
			continue
		}
		if more, err := do(key, value); err != nil || !more {
			return err
		}
		key, value = c.Next()
	}
	return nil
}

// Delete implements continuation.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	err := ctx.Err()
	if err == nil {
		err = s.delete(id)
	}
	if err != nil {
		return stored.Unavailable("delete record "+id, err)
	}
	return nil
}

func (s *Store) delete(id string) error {
	at, err := now()
	if err != nil {
		return err
	}
	return s.db.Update(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(records))
		old := current(tx, id, at)
		if old == nil || deskOf(tx).presence(id, at) != live {
			return bucket.Delete([]byte(id))
		}
		// The journal is kept for a while. The sweep will remove both.
		value := binary.BigEndian.AppendUint64(make([]byte, 0, len(old)), uint64(at))
		return bucket.Put([]byte(id), append(value, old[8:]...))
	})
}

// Ping implements continuation.Store.
func (s *Store) Ping(ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = s.db.View(func(*bolt.Tx) error { return nil })
	}
	if err != nil {
		return stored.Unavailable("ping", err)
	}
	return nil
}

// Close implements continuation.Store.
func (s *Store) Close() error {
	s.stopWork()
	s.working.Wait()
	if err := s.closeFiles(); err != nil {
		return fmt.Errorf("boltstore: close: %w", err)
	}
	return nil
}

// closeFiles closes the files that are open.
func (s *Store) closeFiles() error {
	var errs []error
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.archive != nil {
		errs = append(errs, s.archive.db.Close())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}
