package boltstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// lockWait is how long Open waits for another server to unlock the file: a server that
// is restarted may start while the old one is still closing.
const lockWait = time.Second

// errInUse is for the person who started a second server.
var errInUse = errors.New("another server is running on this file")

// errLocked is for the person who looks at the file with another program.
var errLocked = errors.New("another process has locked this file: end it, it may be a tool that reads the records")

// lockFile opens the file at path and locks it for as long as it is open. The kernel
// releases the lock when the process ends, however it ends.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	deadline := time.Now().Add(lockWait)
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		case time.Now().After(deadline):
			return nil, errors.Join(errInUse, f.Close())
		default:
			<-time.After(lockWait / 50)
		}
	}
}

// openRecords opens the database at path. The locked file boot names the boot of the machine
// that its records belong to. The database itself cannot say so: after a crash of the
// machine it may not even open.
func (s *Store) openRecords(path string) (*bolt.DB, error) {
	this, err := bootID()
	if err != nil {
		return nil, fmt.Errorf("read the boot id of the machine: %w", err)
	}
	then, err := io.ReadAll(s.lock)
	if err != nil {
		return nil, fmt.Errorf("read the boot id of the records: %w", err)
	}

	if err := setAsideDamaged(path, s.log); err != nil {
		return nil, err
	}
	// Old records are removed before the file names this boot. A file that names it already
	// is not written again: a server that is killed between the two steps leaves it empty,
	// and the next server would take good records for those of an earlier boot.
	if !bytes.Equal(this, then) {
		if err := s.dropOld(path); err != nil {
			return nil, err
		}
		if err := errors.Join(s.lock.Truncate(0), writeAll(s.lock, this)); err != nil {
			return nil, fmt.Errorf("write the boot id of the records: %w", err)
		}
	}
	at, err := now()
	if err != nil {
		return nil, err
	}
	needed := func(tx *bolt.Tx, bucket string, key, value []byte) bool {
		return bucket != records || isChapter(key) || !deskOf(tx).removable(string(key), value, at)
	}
	if err := compact(path, needed, s.log); err != nil {
		return nil, err
	}
	return openFile(path, options(), func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(records))
		return errors.Join(err, deskOf(tx).create())
	})
}

// openFile opens the database at path and creates its buckets.
func openFile(path string, o *bolt.Options, create func(*bolt.Tx) error) (*bolt.DB, error) {
	db, err := bolt.Open(path, 0o600, o)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	if err := db.Update(create); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// dropOld removes the database at path, which is of an earlier boot. Its journals are archived
// first.
func (s *Store) dropOld(path string) error {
	switch err := guarded(func() error { return s.rescue(path) }); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, berrors.ErrTimeout):
		return errLocked
	case err != nil:
		return setAside(path, "setting journals aside: they cannot be archived", err, s.log)
	}
	s.log.Info("dropping the records: they are of an earlier boot of this machine", "file", path)
	return removeFile(path)
}

// setAsideDamaged renames the database at path if it is damaged.
func setAsideDamaged(path string, log *slog.Logger) error {
	switch damage := check(path); {
	case damage == nil, errors.Is(damage, fs.ErrNotExist):
		return nil
	case errors.Is(damage, berrors.ErrTimeout):
		return errLocked
	default:
		return setAside(path, "setting a file aside: it is damaged", damage, log)
	}
}

// setAside renames a database that cannot be used, so that somebody may look at what it has. It never replaces one
// that was set aside before.
func setAside(path, why string, cause error, log *slog.Logger) error {
	to := path + damagedSuffix
	for n := 2; ; n++ {
		if _, err := os.Lstat(to); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
		to = path + damagedSuffix + "." + strconv.Itoa(n)
	}
	log.Error(why, "file", path, "as", to, "err", cause) //nolint:sloglint // the callers have the texts
	return os.Rename(path, to)
}

// damagedSuffix ends the name of a database that was set aside.
const damagedSuffix = ".damaged"

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func options() *bolt.Options {
	return &bolt.Options{
		Timeout: lockWait,
		// The package comment says why nothing is synced. A process that is killed loses
		// nothing by that: the pages of a transaction are written before the page that
		// makes them valid.
		NoSync:         true,
		NoFreelistSync: true,
		// To grow the file ahead of need would also sync it, and would leave holes in it.
		// A full disk would then show as a fault when a page is read instead of as an
		// error when it is written.
		NoGrowSync:   true,
		FreelistType: bolt.FreelistMapType,
	}
}

func writeAll(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// check walks through the database at path and returns what is wrong with it. To open a
// damaged database for writing may end the process: bbolt then looks for free pages in a
// goroutine of its own, whose panic nobody can recover.
func check(path string) error {
	return guarded(func() (err error) {
		db, err := openToRead(path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, db.Close()) }()
		return db.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
				return bucket.ForEach(func(key, value []byte) error {
					if len(value) < minLen(string(name), key) {
						return fmt.Errorf("%s %q is cut off", name, key)
					}
					return nil
				})
			})
		})
	})
}

// minLen returns the length of the shortest value that a key of a bucket may have.
func minLen(bucket string, key []byte) int {
	switch {
	case bucket == places:
		return 0
	case bucket == records && !isChapter(key):
		return headerLen
	case bucket == ends:
		return endLen
	case bucket == ages:
		return 8
	default: // a chapter or a summary
		return 4
	}
}

// openToRead opens a database that exists.
func openToRead(path string) (*bolt.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
}

// guarded calls f, which reads a database that may be damaged.
func guarded(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a page beyond the end of the file
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading it panics: %v", p)
		}
	}()
	return f()
}
