package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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

// wantNoJournal checks that an execution has neither a journal nor a summary.
func wantNoJournal(t *testing.T, s continuation.Store, id string) {
	t.Helper()
	_, err := s.Events(t.Context(), id, 0, 1)
	wantError(t, "Events", err, continuation.ErrNotFound)
	_, err = s.Summary(t.Context(), id)
	wantError(t, "Summary", err, continuation.ErrNotFound)
}

// eventually waits until f returns "". Otherwise f returns what is wrong.
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

	// An execution whose journal keeps no events has only a summary.
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
