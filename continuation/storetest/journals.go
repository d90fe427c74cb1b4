package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"fermata/continuation"
)

var journalTests = []storeTest{
	{"JournalPages", testPages},
	{"JournalOddText", testOddEvents},
	{"JournalIsWrittenWithItsRecord", testSameWrite},
	{"JournalRace", testJournalRace},
	{"JournalBeginsAnew", testAnew},
	{"JournalGoesOnWithoutItsRecord", testGoesOn},
	{"JournalEnds", testEnd},
	{"JournalLife", testLife},
	{"JournalIsForgotten", testForget},
	{"Watch", testWatch},
	{"WatchMany", testWatchMany},
	{"Summaries", testSummaries},
	{"SummaryChanges", testSummaryChanges},
	{"SummariesBeganTogether", testSameMoment},
	{"JournalsCancelledContext", testJournalsCancelled},
}

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

// Next returns the next version of the record, and a chapter with so many events.
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

// Write writes the next version of the record with so many events.
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

// wantNoJournal checks that an execution has neither a journal nor a summary.
func wantNoJournal(t *testing.T, s continuation.Store, id string) {
	t.Helper()
	_, err := s.Events(t.Context(), id, 0, 1)
	wantError(t, "Events", err, continuation.ErrNotFound)
	_, err = s.Summary(t.Context(), id)
	wantError(t, "Summary", err, continuation.ErrNotFound)
}

// eventually waits until f returns "", which otherwise says what is wrong.
func eventually(t *testing.T, f func() string) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		wrong := f()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 5 s: %s", wrong)
		}
	}
}

func testPages(t *testing.T, s continuation.Store) {
	a, other := NewAuthor(s, "ada"), NewAuthor(s, "ada")
	wantNoJournal(t, s, a.Record.ID)
	for i := range 60 {
		a.Write(t, i%5)
		other.Write(t, 1)
	}
	last := a.Record.Events
	WantEvents(t, s, a.Record.ID, 1, last)
	WantEvents(t, s, other.Record.ID, 1, 60)

	for _, size := range []int{-1, 0, 1, 30, 31, 100, 1000, 1 << 20} {
		after := int64(0)
		for after < last {
			page, err := s.Events(t.Context(), a.Record.ID, after, size)
			if err != nil || len(page) == 0 {
				t.Fatalf("Events after %d of at most %d bytes = %d events, %v, want some", after, size, len(page), err)
			}
			bytes := 0
			for _, e := range page {
				after++
				if e.Seq != after || string(e.Content) != string(Event(after)) {
					t.Fatalf("event = %d %s, want %d", e.Seq, e.Content, after)
				}
				bytes += len(e.Content)
			}
			if len(page) > 1 && bytes > size {
				t.Errorf("a page has %d bytes, want at most %d", bytes, size)
			}
			if after < last && bytes+len(Event(after+1)) <= size {
				t.Errorf("a page of %d bytes ends before event %d, which has room in %d", bytes, after+1, size)
			}
		}
	}
	for _, after := range []int64{last, last + 1, 1 << 62} {
		if page, err := s.Events(t.Context(), a.Record.ID, after, 100); err != nil || len(page) != 0 {
			t.Errorf("Events after %d = %d events, %v, want none", after, len(page), err)
		}
	}

	// An execution whose journal keeps no events has a summary alone.
	silent := NewAuthor(s, "ada")
	silent.Write(t, 0)
	_, err := s.Events(t.Context(), silent.Record.ID, 0, 1)
	wantError(t, "Events of a journal without events", err, continuation.ErrNotFound)
	if got, err := s.Summary(t.Context(), silent.Record.ID); err != nil || got.ID != silent.Record.ID {
		t.Errorf("Summary = %q, %v, want %q", got.ID, err, silent.Record.ID)
	}
}

func testOddEvents(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "long "+strings.Repeat("name ", 10_000))
	r, c := a.Next(0)
	for _, text := range []string{`"\r\n\r\ndata: x"`, "\"\u2028\u0085\x00\"", `"<b>&"`, `"` + strings.Repeat("x", 1<<20) + `"`, "1"} {
		c.Events = append(c.Events, json.RawMessage(text))
	}
	r.Events = int64(len(c.Events))
	c.Summary = a.Summary(false)
	a.Put(t, r, c)
	got, err := s.Events(t.Context(), r.ID, 0, 1<<30)
	if err != nil || len(got) != len(c.Events) {
		t.Fatalf("Events = %d events, %v, want %d", len(got), err, len(c.Events))
	}
	for i, e := range got {
		if !bytes.Equal(e.Content, c.Events[i]) {
			t.Errorf("event %d = %.40q, want %.40q", i+1, e.Content, c.Events[i])
		}
	}
	if summary, err := s.Summary(t.Context(), r.ID); err != nil || summary.Principal != r.Principal {
		t.Errorf("Summary = principal of %d bytes, %v, want %d", len(summary.Principal), err, len(r.Principal))
	}
	for _, bad := range []string{"", "{\n}"} {
		r, c := a.Next(1)
		c.Events[0] = json.RawMessage(bad)
		if err := s.Put(t.Context(), r, ttl, c); err == nil {
			t.Errorf("Put of the event %q = nil, want an error", bad)
		}
	}
}

func testSameWrite(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 3)
	r, c := a.Next(2)
	for name, change := range map[string]func(*continuation.Record, *continuation.Chapter){
		"of the same version":   func(r *continuation.Record, _ *continuation.Chapter) { r.Version-- },
		"of a version too high": func(r *continuation.Record, _ *continuation.Chapter) { r.Version++ },
		"of a first version":    func(r *continuation.Record, _ *continuation.Chapter) { r.Version = 1 },
		"with old events":       func(_ *continuation.Record, c *continuation.Chapter) { c.First = 3 },
		"with the first event":  func(_ *continuation.Record, c *continuation.Chapter) { c.First = 1 },
	} {
		r, c := r, c
		c.Summary = a.Summary(true)
		change(&r, &c)
		wantError(t, "Put "+name, s.Put(t.Context(), r, ttl, c), continuation.ErrConflict)
		WantEvents(t, s, r.ID, 1, 3)
		if got, err := s.Get(t.Context(), r.ID); err != nil || got.Version != 1 {
			t.Errorf("Get = version %d, %v, want 1", got.Version, err)
		}
		if got, err := s.Summary(t.Context(), r.ID); err != nil || got.Ended {
			t.Errorf("Summary = ended %t, %v, want the one of the start", got.Ended, err)
		}
	}
	a.Put(t, r, c)
	wantError(t, "the same Put again", s.Put(t.Context(), r, ttl, c), continuation.ErrConflict)
	WantEvents(t, s, r.ID, 1, 5)
	a.Write(t, 0)
	a.Write(t, 1)
	WantEvents(t, s, r.ID, 1, 6)
}

func testJournalRace(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 1)
	for range 20 {
		var winner atomic.Int64
		r, c := a.Next(0)
		race(8, func(i int) {
			r, c := r, c
			for n := range i + 1 {
				c.Events = append(c.Events, fmt.Appendf(nil, `"event %d of writer %d"`, n, i))
			}
			r.Events += int64(i + 1)
			switch err := s.Put(t.Context(), r, ttl, c); {
			case err == nil && winner.CompareAndSwap(0, int64(i+1)):
			case err == nil:
				t.Error("two writers of one version passed, want one")
			case !errors.Is(err, continuation.ErrConflict):
				t.Errorf("Put = %v, want success or ErrConflict", err)
			}
		})
		n := winner.Load()
		got, err := s.Events(t.Context(), r.ID, a.Record.Events, 1<<20)
		if err != nil || int64(len(got)) != n {
			t.Fatalf("the journal has %d new events, %v, want the %d of the winner", len(got), err, n)
		}
		for i, e := range got {
			want := fmt.Sprintf(`"event %d of writer %d"`, i, n-1)
			if e.Seq != a.Record.Events+int64(i)+1 || string(e.Content) != want {
				t.Fatalf("event %d = %s, want %s", e.Seq, e.Content, want)
			}
		}
		a.Record.Version, a.Record.Events = r.Version, r.Events+n
	}
}

// A start with a key has the id of an earlier one whose record has run out.
func testAnew(t *testing.T, s continuation.Store) {
	for name, ended := range map[string]bool{"after a crash": false, "after an end": true} {
		for _, wait := range []time.Duration{0, 500 * time.Millisecond} {
			a := NewAuthor(s, "ada "+name+wait.String())
			for range 5 {
				a.Write(t, 3)
			}
			if ended {
				a.End(t, time.Hour)
			}
			time.Sleep(wait) // The journal may have been moved by then.
			if err := s.Delete(t.Context(), a.Record.ID); err != nil {
				t.Fatal(err)
			}
			WantEvents(t, s, a.Record.ID, 1, a.Record.Events)

			b := NewAuthor(s, a.Record.Principal)
			b.Record.ID, b.Record.Created = a.Record.ID, a.Record.Created.Add(time.Minute)
			b.Write(t, 2)
			WantEvents(t, s, b.Record.ID, 1, 2)
			b.Write(t, 2)
			WantEvents(t, s, b.Record.ID, 1, 4)
			wantList(t, s, b.Record.Principal, b.Summary(false))
			b.End(t, time.Hour)
			time.Sleep(wait)
			WantEvents(t, s, b.Record.ID, 1, 5)
			wantList(t, s, b.Record.Principal, b.Summary(true))
		}
	}
}

// The journal of a live execution outlives its record, for whoever ends it.
func testGoesOn(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 3)
	a.Write(t, 4)
	if err := s.Delete(t.Context(), a.Record.ID); err != nil {
		t.Fatal(err)
	}
	WantEvents(t, s, a.Record.ID, 1, 7)
	a.Record.Version = 0
	r, c := a.Next(2)
	a.Put(t, r, c)
	WantEvents(t, s, a.Record.ID, 1, 9)

	// A writer that does not know whether its last write arrived repeats it.
	if err := s.Delete(t.Context(), a.Record.ID); err != nil {
		t.Fatal(err)
	}
	r.Version = 1
	r.Events++
	c.Events = append(c.Events, Event(r.Events))
	a.Put(t, r, c)
	a.Write(t, 1)
	WantEvents(t, s, a.Record.ID, 1, 11)
	a.End(t, time.Hour)
	WantEvents(t, s, a.Record.ID, 1, 12)
}

func testEnd(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	for range 30 {
		a.Write(t, 2)
	}
	a.End(t, time.Hour)
	last := a.Record.Events
	for began := time.Now(); time.Since(began) < time.Second; {
		WantEvents(t, s, a.Record.ID, 1, last)
		if got, err := s.Summary(t.Context(), a.Record.ID); err != nil || !got.Ended {
			t.Fatalf("Summary = ended %t, %v, want the one of the end", got.Ended, err)
		}
		page, err := s.Events(t.Context(), a.Record.ID, last-2, 1<<20)
		if err != nil || len(page) != 2 {
			t.Fatalf("Events = %d events, %v, want the last 2", len(page), err)
		}
		r, c := a.Next(1)
		wantError(t, "Put of an event after the end", s.Put(t.Context(), r, ttl, c), continuation.ErrConflict)
		if list := summaries(t, s, "ada", continuation.Place{}, 10); len(list) > 1 {
			t.Fatalf("the list has %d summaries, want 1", len(list))
		}
	}
	// A record may still be written, and the writer says again how long the journal is kept.
	r, c := a.Next(0)
	c.Life = time.Hour
	a.Put(t, r, c)
	a.Write(t, 0)
	if err := s.Delete(t.Context(), r.ID); err != nil {
		t.Fatal(err)
	}
	WantEvents(t, s, a.Record.ID, 1, last)
	wantList(t, s, "ada", a.Summary(true))
}

func testLife(t *testing.T, s continuation.Store) {
	const life = 700 * time.Millisecond
	short, long := NewAuthor(s, "ada"), NewAuthor(s, "ada")
	short.Write(t, 2)
	long.Write(t, 2)
	long.End(t, time.Hour)
	began := time.Now()
	short.End(t, life)
	WantEvents(t, s, short.Record.ID, 1, 3)
	eventually(t, func() string {
		if _, err := s.Events(t.Context(), short.Record.ID, 0, 1); !errors.Is(err, continuation.ErrNotFound) {
			return fmt.Sprintf("Events = %v, want ErrNotFound", err)
		}
		return ""
	})
	if lived := time.Since(began); lived < life-2*time.Millisecond {
		t.Errorf("the journal lived for %v, want %v", lived, life)
	}
	wantNoJournal(t, s, short.Record.ID)
	wantList(t, s, "ada", long.Summary(true))
	if _, err := s.Get(t.Context(), short.Record.ID); err != nil {
		t.Errorf("Get = %v, want the record, which lives on", err)
	}
}

func testForget(t *testing.T, s continuation.Store) {
	for _, wait := range []time.Duration{0, 500 * time.Millisecond} {
		a, other := NewAuthor(s, "ada"+wait.String()), NewAuthor(s, "ada"+wait.String())
		other.Write(t, 1)
		a.Write(t, 4)
		wantError(t, "Forget of a live execution", s.Forget(t.Context(), a.Record.ID), continuation.ErrConflict)
		WantEvents(t, s, a.Record.ID, 1, 4)
		a.End(t, time.Hour)
		time.Sleep(wait)
		for range 2 {
			if err := s.Forget(t.Context(), a.Record.ID); err != nil {
				t.Fatalf("Forget = %v, want success", err)
			}
			wantNoJournal(t, s, a.Record.ID)
		}
		time.Sleep(wait)
		wantNoJournal(t, s, a.Record.ID)
		wantList(t, s, a.Record.Principal, other.Summary(false))
	}
	if err := s.Forget(t.Context(), uuid.NewString()); err != nil {
		t.Errorf("Forget of an unknown execution = %v, want success", err)
	}
}

// summaries returns a page of the list of a principal; "*" is everyone.
func summaries(t *testing.T, s continuation.Store, principal string, after continuation.Place, limit int) []continuation.Summary {
	t.Helper()
	list, err := s.Summaries(t.Context(), principal, principal == "*", after, limit)
	if err != nil {
		t.Fatalf("Summaries = %v, want success", err)
	}
	return list
}

// wantList waits until the list of a principal has these summaries, newest first.
func wantList(t *testing.T, s continuation.Store, principal string, want ...*continuation.Summary) {
	t.Helper()
	eventually(t, func() string {
		list := summaries(t, s, principal, continuation.Place{}, len(want)+1)
		wanted := make([]continuation.Summary, len(want))
		for i, w := range want {
			wanted[i] = *w
		}
		return cmp.Diff(wanted, list)
	})
}

func testSummaries(t *testing.T, s continuation.Store) {
	const n = 23
	all := map[string][]continuation.Summary{}
	for i := range n {
		a := NewAuthor(s, []string{"ada", "bob", "eve"}[i%3])
		a.Record.Created = time.Now().Add(time.Duration(i*i%n) * time.Second).Truncate(time.Millisecond) // not in their order
		a.Write(t, 1)
		if i%2 == 0 {
			a.End(t, time.Hour)
		}
		summary := *a.Summary(i%2 == 0)
		all[a.Record.Principal] = append(all[a.Record.Principal], summary)
		all["*"] = append(all["*"], summary)
		if i == n/2 {
			time.Sleep(500 * time.Millisecond) // Those that have ended may have been moved.
		}
	}
	for principal, want := range all {
		slices.SortFunc(want, func(a, b continuation.Summary) int {
			if c := b.Created.Compare(a.Created); c != 0 {
				return c
			}
			return strings.Compare(b.ID, a.ID)
		})
		// Other tests may have left journals: everyone's are looked for among them.
		ours := func(got []continuation.Summary) []continuation.Summary {
			return slices.DeleteFunc(got, func(s continuation.Summary) bool {
				return !slices.ContainsFunc(want, func(w continuation.Summary) bool { return w.ID == s.ID })
			})
		}
		eventually(t, func() string { return cmp.Diff(want, ours(summaries(t, s, principal, continuation.Place{}, 1000))) })
		for _, limit := range []int{1, 2, 7, n + 1} {
			var got []continuation.Summary
			for place := (continuation.Place{}); ; {
				page := summaries(t, s, principal, place, limit)
				got = append(got, page...)
				if len(page) < limit {
					break
				}
				last := page[len(page)-1]
				place = continuation.Place{Created: last.Created, ID: last.ID}
			}
			if diff := cmp.Diff(want, ours(got)); diff != "" {
				t.Errorf("the list of %s in pages of %d differs (-want +got):\n%s", principal, limit, diff)
			}
		}
	}
	if list := summaries(t, s, "nobody", continuation.Place{}, 10); len(list) != 0 {
		t.Errorf("the list of a principal without executions has %d, want none", len(list))
	}
}

// A summary that is written again takes the place of the one before.
func testSummaryChanges(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 1)
	for i := range 3 {
		r, c := a.Next(1)
		c.Summary = a.Summary(false)
		c.Summary.Content = fmt.Appendf(nil, `{"change":%d}`, i)
		a.Put(t, r, c)
		got, err := s.Summary(t.Context(), r.ID)
		if diff := cmp.Diff(*c.Summary, got); err != nil || diff != "" {
			t.Errorf("Summary = %v, differs (-want +got):\n%s", err, diff)
		}
		wantList(t, s, "ada", c.Summary)
	}
}

// Executions that began in the same millisecond are told apart by their ids.
func testSameMoment(t *testing.T, s continuation.Store) {
	began := time.Now().Truncate(time.Millisecond)
	want := map[string]int{}
	for range 40 {
		a := NewAuthor(s, "ada")
		a.Record.Created = began.Add(time.Duration(len(want)) * time.Nanosecond)
		a.Write(t, 1)
		want[a.Record.ID] = 1
	}
	eventually(t, func() string {
		got := map[string]int{}
		for place := (continuation.Place{}); ; {
			page := summaries(t, s, "ada", place, 3)
			for _, s := range page {
				got[s.ID]++
				place = continuation.Place{Created: s.Created, ID: s.ID}
			}
			if len(page) < 3 {
				return cmp.Diff(want, got)
			}
		}
	})
}
