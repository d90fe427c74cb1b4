package boltstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// leastRoom is how many bytes must be free, on the disk and in the file of records, for an execution to begin. That is
// more than most executions write.
const leastRoom = 1 << 20

// Room implements continuation.Store.
func (s *Store) Room(_ context.Context, id string) error {
	var disk unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(s.db.Path()), &disk); err != nil {
		return nil //nolint:nilerr // it cannot be found out
	}
	free := disk.Bavail * uint64(disk.Bsize)
	if free < leastRoom {
		free += uint64(s.db.Stats().FreePageN) * uint64(os.Getpagesize())
	}
	if free < leastRoom {
		return stored.Unavailable("begin execution "+id, fmt.Errorf("%w: the disk has %d free bytes", continuation.ErrFull, free))
	}
	return nil
}

// isFull reports whether a write has failed because the disk, or what the server may have of it, is full.
func isFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
