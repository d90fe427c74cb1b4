package continuation

import (
	"context"
	"time"
)

// A Store keeps records. It is safe for concurrent use, and by several servers at
// once if it is shared. Every error that does not wrap ErrNotFound or ErrConflict
// wraps ErrUnavailable.
type Store interface {
	// Put writes r, to be kept for ttl (> 0, whole milliseconds). It succeeds only
	// if r.Version is 1 and there is no live record of this id, or if the stored
	// version is r.Version-1; otherwise it returns ErrConflict and writes nothing.
	// Of any number of racing Puts of one version exactly one succeeds.
	Put(ctx context.Context, r Record, ttl time.Duration) error

	// Get returns the live record with this id or ErrNotFound.
	Get(ctx context.Context, id string) (Record, error)

	// List returns every live record, in no order. Records that are written
	// meanwhile may be missing.
	List(ctx context.Context) ([]Record, error)

	// Delete removes the record. Removing what is not there is success.
	Delete(ctx context.Context, id string) error

	// Ping reports whether the store can answer now.
	Ping(ctx context.Context) error

	// Close releases the store. No other method may be called after it.
	Close() error
}
