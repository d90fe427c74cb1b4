package storetest

import (
	"context"
	"testing"
	"time"

	"fermata/continuation"
)

// MustWatch watches the journal of an execution.
func MustWatch(ctx context.Context, tb testing.TB, s continuation.Store, id string) <-chan struct{} {
	tb.Helper()
	signals, err := s.Watch(ctx, id)
	if err != nil {
		tb.Fatalf("Watch = %v, want success", err)
	}
	return signals
}

// Follow reads a journal like a reader of a live stream, until it has read the event with number last.
func Follow(tb testing.TB, s continuation.Store, id string, signals <-chan struct{}, last int64) {
	tb.Helper()
	timeout := time.After(10 * time.Second)
	for after := int64(0); after < last; {
		events, err := s.Events(tb.Context(), id, after, 100)
		if err != nil {
			tb.Errorf("Events after %d = %v, want success", after, err)
			return
		}
		for _, e := range events {
			if after++; e.Seq != after {
				tb.Errorf("event %d, want %d", e.Seq, after)
				return
			}
		}
		if len(events) > 0 {
			continue
		}
		select {
		case <-signals:
		case <-timeout:
			tb.Errorf("no signal after event %d for a long time, want one", after)
			return
		}
	}
}

func testWatch(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	ctx, cancel := context.WithCancel(t.Context())
	signals := MustWatch(ctx, t, s, a.Record.ID)
	a.Write(t, 1)
	for range 5 {
		began := time.Now()
		a.Write(t, 1)
		Follow(t, s, a.Record.ID, signals, a.Record.Events)
		if took := time.Since(began); took > time.Second {
			t.Errorf("a reader saw an event after %v, want at once", took)
		}
	}
	cancel()
	deadline := time.After(5 * time.Second)
	for open := true; open; {
		select {
		case _, open = <-signals:
		case <-deadline:
			t.Fatal("the channel is open 5 s after the watch has ended, want it closed")
		}
	}
	a.Write(t, 1)
}

func testWatchMany(t *testing.T, s continuation.Store) {
	const executions, readers, events = 8, 8, 40
	race(executions, func(int) {
		a := NewAuthor(s, "ada")
		a.Write(t, 1)
		id := a.Record.ID
		done := make(chan struct{})
		go func() {
			defer close(done)
			race(readers, func(int) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				Follow(t, s, id, MustWatch(ctx, t, s, id), events)
			})
		}()
		for a.Record.Events < events {
			a.Write(t, 1)
		}
		<-done
	})
}

func testJournalsCancelled(t *testing.T, s continuation.Store) {
	a := NewAuthor(s, "ada")
	a.Write(t, 1)
	a.End(t, time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, eventsErr := s.Events(ctx, a.Record.ID, 0, 1)
	_, summaryErr := s.Summary(ctx, a.Record.ID)
	_, listErr := s.Summaries(ctx, "ada", false, continuation.Place{}, 1)
	_, watchErr := s.Watch(ctx, a.Record.ID)
	for what, err := range map[string]error{
		"Events":    eventsErr,
		"Summary":   summaryErr,
		"Summaries": listErr,
		"Watch":     watchErr,
		"Forget":    s.Forget(ctx, a.Record.ID),
	} {
		wantError(t, what+" with a cancelled context", err, continuation.ErrUnavailable)
		wantError(t, what+" with a cancelled context", err, context.Canceled)
	}
	WantEvents(t, s, a.Record.ID, 1, 2)
}
