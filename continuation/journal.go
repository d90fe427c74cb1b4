package continuation

import (
	"context"
	"encoding/json"
	"time"
)

// A Chapter is what one write of a record adds to the journal of its execution. A store writes
// both or neither. The zero value adds nothing.
type Chapter struct {
	// First is the number of the first of Events. The events of an execution are numbered from 1
	// without gaps; Record.Events counts them, including those of this chapter.
	First int64
	// Events are JSON objects without line breaks.
	Events []json.RawMessage
	// Summary, if it is set, replaces the summary of the execution.
	Summary *Summary
	// Life is how long the journal and the summary of an execution that ends with this chapter are
	// kept from now on. It is 0 if the execution does not end with this chapter. Then they are kept for as
	// long as the record, and for JournalSlack more.
	Life time.Duration
}

// JournalSlack is how long the journal of an execution that has not ended is kept after its record has expired.
// In this time a server notices it and ends the journal.
const JournalSlack = 10 * time.Minute

// Empty reports whether c adds nothing to the journal.
func (c Chapter) Empty() bool { return len(c.Events) == 0 && c.Summary == nil }

// A Summary is what lists of executions show of one execution. It is written at the start and at
// the end of the execution.
type Summary struct {
	// ID is the id of the execution. Principal is the principal who has started it.
	ID        string
	Principal string
	// Created is when the execution began. Stores keep it in milliseconds.
	Created time.Time
	// Ended is true if the execution has ended.
	Ended bool
	// Content is a JSON object. Stores do not interpret it.
	Content json.RawMessage
}

// An Event is one event of a journal.
type Event struct {
	// Seq is the event's number.
	Seq int64
	// Content is a JSON object without line breaks.
	Content json.RawMessage
}

// A Place is a place in the list of summaries, which begins with the newest: right after the
// execution with this Created and ID. The zero value is the beginning of the list.
type Place struct {
	Created time.Time
	ID      string
}

// Journals are the journals and the summaries that a Store keeps. They are safe for concurrent
// use, and return the errors of a Store. No method holds a transaction, a lock or a connection
// after it has returned.
type Journals interface {
	// Events returns the events of an execution after the one with number after, in their order:
	// those that together have at most size bytes, or the first one if that is larger. It returns
	// none if there are no more yet, and ErrNotFound if the execution has no journal.
	Events(ctx context.Context, id string, after int64, size int) ([]Event, error)

	// Summary returns the summary of an execution, or ErrNotFound.
	Summary(ctx context.Context, id string) (Summary, error)

	// Summaries returns up to limit summaries after a place in the list of one principal, or, if
	// everyone is true, in the list of all of them. Fewer than limit are the last ones.
	Summaries(ctx context.Context, principal string, everyone bool, after Place, limit int) ([]Summary, error)

	// Forget removes the journal and the summary of an execution that has ended. It succeeds if
	// there are none.
	Forget(ctx context.Context, id string) error

	// Watch returns a channel that receives a signal after the journal of the execution has grown on any
	// server, and when it may have grown unnoticed. It has room for one signal, so one signal may stand for
	// several changes. When ctx ends, the watch ends and the channel is closed.
	Watch(ctx context.Context, id string) (<-chan struct{}, error)
}

// JournalLimits limit the size of the journals of executions that have ended. A journal counts for its size, and
// for at least JournalLeast. When a limit is exceeded, the oldest journals of ended executions are removed with
// their summaries. Journals of live executions count, but are not removed. 0 is no limit.
type JournalLimits struct {
	// Principal is the limit for the journals of one principal, and All the limit for the journals of all
	// principals, in bytes.
	Principal, All int64
}

// JournalLeast is the minimum number of bytes for which a journal counts.
const JournalLeast = 4 << 10
