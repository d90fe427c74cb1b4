package continuation

import (
	"context"
	"time"
)

// A Store keeps records. It is safe for concurrent use; a shared store may be used by
// several servers at once. Every error wraps ErrNotFound, ErrConflict or
// ErrUnavailable. An ErrUnavailable that the context caused wraps the context's error
// as well.
//
// A record is live until its time to live is over or it is deleted. From then on every
// method treats it as if it had never existed.
type Store interface {
	// Put writes r, to be kept for ttl, which is rounded up to whole milliseconds
	// and to at least one. It succeeds only if r.Version is 1 and there is no live
	// record with this id, or if the stored version is r.Version-1; otherwise it
	// returns ErrConflict and writes nothing. Of any number of racing Puts of one
	// version exactly one succeeds, even if all write the same record.
	//
	// If a shared store returns ErrUnavailable, r may have been written, or may still
	// be written a little later, when a network or a server wakes up. To find out, call
	// Get and look at the version, or put the next version.
	//
	// Put sets Format. In text that is not UTF-8 the invalid bytes come back as U+FFFD;
	// Answer comes back byte for byte.
	//
	// The same write adds c to the journal of the execution.
	Put(ctx context.Context, r Record, ttl time.Duration, c Chapter) error

	// Room returns ErrFull if the store has no room for another execution, which will have this id. Executions that
	// have begun go on all the same. If Room cannot find out in a moment, it returns nil.
	Room(ctx context.Context, id string) error

	// Get returns the live record with this id or ErrNotFound.
	Get(ctx context.Context, id string) (Record, error)

	// List returns every live record, in no particular order. Records that are written
	// meanwhile may be missing. If one record cannot be read, for example because a newer
	// server wrote it in another format, List fails as a whole: a caller that removes
	// what is not in the list would otherwise take that execution for dead.
	List(ctx context.Context) ([]Record, error)

	// Delete removes the record, whatever its version. It succeeds if there is none.
	Delete(ctx context.Context, id string) error

	// Ping returns an error if the store cannot answer now.
	Ping(ctx context.Context) error

	// Close releases the store. No other method may be called after it.
	Close() error

	Journals
	Usages
	Spendings
}

// A Registry holds the leases of the servers that share a store: which servers are
// alive, and where they can be reached. It is safe for concurrent use. Its errors are
// those of a Store.
type Registry interface {
	// Announce records that a server is alive, for ttl from now, and the address at which
	// other servers reach it.
	Announce(ctx context.Context, server, address string, ttl time.Duration) error

	// Locate returns the address of a server, or ErrNotFound if it is not alive.
	Locate(ctx context.Context, server string) (address string, err error)

	// Servers returns the address of every server that is alive.
	Servers(ctx context.Context) (map[string]string, error)

	// Withdraw takes a server's announcement back.
	Withdraw(ctx context.Context, server string) error
}
