package continuation

import (
	"context"
	"time"
)

// A Store keeps records. It is safe for concurrent use, and by several servers at
// once if it is shared. Every error that does not wrap ErrNotFound or ErrConflict
// wraps ErrUnavailable, and the context's error too if that was the cause.
//
// A record is live until its time to live is over or it is deleted; from then on
// every method treats it as if it had never been.
type Store interface {
	// Put writes r, to be kept for ttl, which is rounded up to whole milliseconds
	// and to at least one. It succeeds only if r.Version is 1 and there is no live
	// record of this id, or if the stored version is r.Version-1; otherwise it
	// returns ErrConflict and writes nothing. Of any number of racing Puts of one
	// version exactly one succeeds, even if all write the same record.
	//
	// After ErrUnavailable from a shared store r may have been written, or be
	// written a little later, when a network or a server wakes up. The version
	// tells: whoever must know calls Get, or puts the next version.
	//
	// Put sets Format. Text that is not UTF-8 comes back with U+FFFD in place of
	// the wrong bytes; Answer comes back byte for byte.
	Put(ctx context.Context, r Record, ttl time.Duration) error

	// Get returns the live record with this id or ErrNotFound.
	Get(ctx context.Context, id string) (Record, error)

	// List returns every live record, in no order. Records that are written
	// meanwhile may be missing. One record that cannot be read, such as one of a
	// newer server's format, fails the whole List: a caller that removes what is
	// not in the list must not take it for dead.
	List(ctx context.Context) ([]Record, error)

	// Delete removes the record, whatever its version. Removing what is not there
	// is success.
	Delete(ctx context.Context, id string) error

	// Ping reports whether the store can answer now.
	Ping(ctx context.Context) error

	// Close releases the store. No other method may be called after it.
	Close() error
}

// A Registry knows which servers live. It is safe for concurrent use. Its errors
// are those of a Store.
type Registry interface {
	// Announce says that a server lives, for ttl from now, and where the others
	// reach it.
	Announce(ctx context.Context, server, address string, ttl time.Duration) error

	// Locate returns the address of a server that lives, or ErrNotFound.
	Locate(ctx context.Context, server string) (address string, err error)

	// Servers returns the addresses of all servers that live, by server.
	Servers(ctx context.Context) (map[string]string, error)

	// Withdraw takes the announcement back.
	Withdraw(ctx context.Context, server string) error
}
