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
	// compactFrom is the smallest file, in bytes, that is compacted.
	compactFrom = 64 << 20
	// compactUsed bounds what is copied, and so how long that takes: a file is compacted
	// only if its live records take at most 1/compactUsed of it.
	compactUsed = 4
)

// compact replaces the database at path by one that holds only the live records, if they
// are a small part of the file: bbolt never shrinks a file. The server may be killed at
// any time, since the new file takes the old one's place in one step. If the file cannot
// be replaced, the old one is used.
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
		log.Warn("cannot compact the file of records", "file", path, "err", errors.Join(err, os.Remove(fresh)))
	case size >= 0:
		log.Info("compacted the file of records", "file", path, "bytes_before", info.Size(), "bytes_of_records", size, "took", time.Since(began))
	}
	return nil
}

// copyLive copies the live records of the database at path to a new database, unless they
// take more than most bytes. It returns how many bytes they take, or -1 if too many.
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
	eachLive := func(do func(id, value []byte) error) error {
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
	err = eachLive(func(id, value []byte) error {
		size += int64(len(id) + len(value))
		return nil
	})
	if err != nil || size > most {
		return -1, err
	}
	dst, err := bolt.Open(fresh, 0o600, options())
	if err != nil {
		return 0, fmt.Errorf("create %s: %w", fresh, err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	return size, eachLive(func(id, value []byte) error {
		return dst.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte(records))
			if err != nil {
				return err
			}
			return bucket.Put(id, value)
		})
	})
}
