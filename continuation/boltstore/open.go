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
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
	"golang.org/x/sys/unix"
)

// lockWait is how long Open waits for another server to let go of the file: a
// server that is restarted may come up while the old one still closes.
const lockWait = time.Second

// errInUse tells the person who started a second server.
var errInUse = errors.New("another server is running on this file")

// errLocked tells the person who looks at the file with another program.
var errLocked = errors.New("another process has locked this file: end it, it may be a tool that reads the records")

// lockFile opens the file at path and locks it for as long as it is open. The
// kernel lets go of the lock when the process dies, however it dies.
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

// openDB opens the database at path, which belongs to the boot that boot, the
// locked file, names. The boot is not in the database: that of a crashed machine
// may not even open.
func openDB(path string, boot *os.File, log *slog.Logger) (*bolt.DB, error) {
	this, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("boot id: %w", err)
	}
	then, err := io.ReadAll(boot)
	if err != nil {
		return nil, fmt.Errorf("boot id: %w", err)
	}

	_, err = os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !bytes.Equal(this, then):
		log.Info("records of an earlier boot are dropped", "file", path)
		err = os.Remove(path)
	default:
		damage := check(path)
		if errors.Is(damage, berrors.ErrTimeout) {
			return nil, errLocked
		}
		if damage != nil {
			log.Error("records are damaged and are dropped", "file", path, "err", damage)
			err = os.Remove(path)
		} else {
			err = nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	// The old records are gone before the file says that they are of this boot. One that
	// says so already is left alone: who is killed between the two steps leaves it empty,
	// and good records would be taken for those of an earlier boot.
	if !bytes.Equal(this, then) {
		if err := errors.Join(boot.Truncate(0), writeAll(boot, this)); err != nil {
			return nil, fmt.Errorf("boot id: %w", err)
		}
	}
	if err := compact(path, log); err != nil {
		return nil, err
	}
	db, err := bolt.Open(path, 0o600, options())
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists([]byte(records))
		return err
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

func options() *bolt.Options {
	return &bolt.Options{
		Timeout: lockWait,
		// See the package comment. A killed process loses nothing by these; the
		// pages of a transaction are written before the page that makes it valid.
		NoSync:         true,
		NoFreelistSync: true,
		// Growing the file ahead would also sync it, and leave holes in it: a full
		// disk would then show when a page is read, as a fault, not when it is
		// written, as an error.
		NoGrowSync:   true,
		FreelistType: bolt.FreelistMapType,
	}
}

func writeAll(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

// check walks through the database at path and returns what is wrong with it.
// Opening a damaged one for writing may end the process: bbolt then looks for
// free pages in a goroutine of its own, where nobody can recover.
func check(path string) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // a page beyond the end of the file
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("walk: %v", p)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return db.View(func(tx *bolt.Tx) error {
		bucket := tx.Bucket([]byte(records))
		if bucket == nil {
			return nil // killed before its first transaction
		}
		return bucket.ForEach(func(id, value []byte) error {
			if len(value) < headerLen {
				return fmt.Errorf("record %q is cut off", id)
			}
			return nil
		})
	})
}
