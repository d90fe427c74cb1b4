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
	// compactUsed limits how much is copied, and so how long that takes: a file is compacted
	// only if its live records take at most 1/compactUsed of it.
	compactUsed = 4
)

// needs reports whether a key of a bucket is still needed.
type needs func(tx *bolt.Tx, bucket string, key, value []byte) bool

// compact replaces the database at path by one that holds only what is needed, if that
// is a small part of the file: bbolt never shrinks a file. The server may be killed at
// any time, since the new file takes the old one's place in one step. If the file cannot
// be replaced, the old one is used.
func compact(path string, needed needs, log *slog.Logger) error {
	fresh := path + ".new"
	if err := removeFile(fresh); err != nil {
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
	size, err := copyNeeded(path, fresh, needed, info.Size()/compactUsed)
	if err == nil && size >= 0 {
		err = os.Rename(fresh, path)
	}
	switch {
	case err != nil:
		log.Warn("cannot compact a file", "file", path, "err", errors.Join(err, os.Remove(fresh)))
	case size >= 0:
		log.Info("compacted a file", "file", path, "bytes_before", info.Size(), "bytes_needed", size, "took", time.Since(began))
	}
	return nil
}

// copyNeeded copies the needed parts of the database at path to a new database, unless they have more than
// most bytes. It returns how many bytes they have, or -1 if there are too many.
func copyNeeded(path, fresh string, needed needs, most int64) (size int64, err error) {
	src, err := openToRead(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	each := func(do func(bucket, key, value []byte) error) error {
		return src.View(func(tx *bolt.Tx) error {
			return tx.ForEach(func(name []byte, bucket *bolt.Bucket) error {
				return bucket.ForEach(func(key, value []byte) error {
					if !needed(tx, string(name), key, value) {
						return nil
					}
					return do(name, key, value)
				})
			})
		})
	}
	err = each(func(_, key, value []byte) error {
		size += int64(len(key) + len(value))
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
	if err := copyTo(dst, each); err != nil {
		return 0, err
	}
	return size, dst.Sync()
}

// copyBatch is the number of copied bytes after which a transaction is committed.
const copyBatch = 1 << 20

// copyTo writes everything that each yields to a database, in several transactions.
func copyTo(dst *bolt.DB, each func(do func(bucket, key, value []byte) error) error) error {
	type entry struct{ bucket, key, value []byte }
	var batch []entry
	write := func() error {
		return dst.Update(func(tx *bolt.Tx) error {
			for _, e := range batch {
				bucket, err := tx.CreateBucketIfNotExists(e.bucket)
				if err != nil {
					return err
				}
				if err := bucket.Put(e.key, e.value); err != nil {
					return err
				}
			}
			return nil
		})
	}
	bytes := 0
	err := each(func(bucket, key, value []byte) error {
		batch, bytes = append(batch, entry{bucket, key, value}), bytes+len(key)+len(value)
		if bytes < copyBatch {
			return nil
		}
		err := write()
		batch, bytes = batch[:0], 0
		return err
	})
	return errors.Join(err, write())
}
