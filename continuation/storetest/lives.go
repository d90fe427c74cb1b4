package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/continuation"
)

// A start with a key has the id of an earlier execution whose record has expired.
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

// The journal of a live execution outlives its record, so that a server can end it.
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
	// A record may still be written, and its writer sets again how long the journal is kept.
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
