package boltstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	// compactFrom is the size from which on a file is worth the work, in bytes.
	compactFrom = 64 << 20
	// compactUsed is how small a part of the file the live records must be: what is copied
	// is bounded by it, and so is the time that it takes.
	compactUsed = 4
)

// compact replaces the database at path by one with its live records only, if they are a
// small part of it: bbolt never gives back what a file has grown by. The server may be
// killed at any time: it is the old file until it is the new one. A file that cannot be
// replaced is good all the same.
func compact(path string, log *slog.Logger) error {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() < compactFrom {
		return nil
	}
	if err != nil {
		return err
	}
	began := time.Now()
	size, err := copyLive(path, fresh, info.Size()/compactUsed)
	if err == nil && size >= 0 {
		err = os.Rename(fresh, path)
	}
	switch {
	case err != nil:
		log.Warn("cannot shrink the file of records", "file", path, "err", errors.Join(err, os.Remove(fresh)))
	case size >= 0:
		log.Info("shrank the file of records", "file", path, "before", info.Size(), "records", size, "took", time.Since(began))
	}
	return nil
}

// copyLive makes a database of the live records of another one, unless they take more than
// most bytes. It returns how many they take, or -1.
func copyLive(path, fresh string, most int64) (size int64, err error) {
	at, err := now()
	if err != nil {
		return 0, err
	}
	src, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true, Timeout: lockWait})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	live := func(do func(id, value []byte) error) error {
		return src.View(func(tx *bolt.Tx) error {
			bucket := tx.Bucket([]byte(records))
			if bucket == nil {
				return nil
			}
			return bucket.ForEach(func(id, value []byte) error {
				if expired(value, at) {
					return nil
				}
				return do(id, value)
			})
		})
	}
	err = live(func(id, value []byte) error {
		size += int64(len(id) + len(value))
		return nil
	})
	if err != nil || size > most {
		return -1, err
	}
	dst, err := bolt.Open(fresh, 0o600, options())
	if err != nil {
		return 0, fmt.Errorf("make %s: %w", fresh, err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return size, live(func(id, value []byte) error {
		return dst.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte(records))
			if err != nil {
				return err
			}
			return bucket.Put(id, value)
		})
	})
}
