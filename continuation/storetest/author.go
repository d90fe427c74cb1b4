package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/continuation"
)

// An Author writes the record and the journal of one execution.
type Author struct {
	Store  continuation.Store
	Record continuation.Record
}

// NewAuthor returns the author of a new execution.
func NewAuthor(s continuation.Store, principal string) *Author {
	r := NewRecord()
	r.Version, r.Principal, r.Created = 0, principal, time.Now().Truncate(time.Millisecond)
	return &Author{Store: s, Record: r}
}

// Event returns the content of an event.
func Event(seq int64) json.RawMessage {
	return fmt.Appendf(nil, `{"seq":%d,"text":"%s"}`, seq, strings.Repeat("x", int(seq%40)))
}

// Summary returns the summary of the execution.
func (a *Author) Summary(ended bool) *continuation.Summary {
	return &continuation.Summary{
		ID: a.Record.ID, Principal: a.Record.Principal, Created: a.Record.Created.UTC(), Ended: ended,
		Content: fmt.Appendf(nil, `{"title":"<of %s>","ended":%t}`, a.Record.ID, ended),
	}
}

// Next returns the next version of the record, and a chapter with the given number of events.
func (a *Author) Next(events int) (continuation.Record, continuation.Chapter) {
	r, c := a.Record, continuation.Chapter{First: a.Record.Events + 1}
	r.Version++
	for range events {
		r.Events++
		c.Events = append(c.Events, Event(r.Events))
	}
	return r, c
}

// Put writes a version of the record, and remembers it if that succeeds.
func (a *Author) Put(tb testing.TB, r continuation.Record, c continuation.Chapter) {
	tb.Helper()
	if err := a.Store.Put(tb.Context(), r, ttl, c); err != nil {
		tb.Fatalf("Put of version %d with %d events = %v, want success", r.Version, len(c.Events), err)
	}
	a.Record = r
}

// Write writes the next version of the record with the given number of events.
func (a *Author) Write(tb testing.TB, events int) {
	tb.Helper()
	r, c := a.Next(events)
	if r.Version == 1 {
		c.Summary = a.Summary(false)
	}
	a.Put(tb, r, c)
}

// End writes the last event.
func (a *Author) End(tb testing.TB, life time.Duration) {
	tb.Helper()
	r, c := a.Next(1)
	c.Summary, c.Life = a.Summary(true), life
	a.Put(tb, r, c)
}

// WantEvents checks that the journal has exactly the events from one on, up to the last one.
func WantEvents(tb testing.TB, s continuation.Store, id string, from, last int64) {
	tb.Helper()
	events, err := s.Events(tb.Context(), id, 0, 1<<30)
	if err != nil {
		tb.Fatalf("Events = %v, want %d to %d", err, from, last)
	}
	var want []continuation.Event
	for seq := from; seq <= last; seq++ {
		want = append(want, continuation.Event{Seq: seq, Content: Event(seq)})
	}
	if diff := cmp.Diff(want, events); diff != "" {
		tb.Fatalf("Events differ (-want +got):\n%s", diff)
	}
}
