package engine

import (
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
)

// A client that has the answer of an ended execution can start the next one at once.
func TestEndIsCountedBeforeItIsTold(t *testing.T) {
	store, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	m := &common{
		o: Options{Store: store, Log: slog.New(slog.DiscardHandler)}, members: &membership{}, quota: newQuota(Options{MaxRunning: 1}),
	}
	counted, err := m.quota.admit("ada")
	if err != nil {
		t.Fatal(err)
	}
	record := continuation.Record{ID: "x", State: string(Running)}
	c := newConversation(m.newLedger(record, m.newChronicle(Start{}, record, &mandate{})))
	c.segment = newSegment(0, "", 0)
	if err := c.open(t.Context(), Start{}); err != nil {
		t.Fatal(err)
	}
	x := m.newExecution(c, nil, counted, &mandate{})
	x.settle(ending{state: Completed})
	if _, err := m.quota.admit("ada"); err != nil {
		t.Errorf("admit = %v, want nil: the program has ended", err)
	}
}

func TestQuotaForgets(t *testing.T) {
	q := newQuota(Options{})
	a, b := q.adopt("ada", 0), q.adopt("ada", 0)
	a.move(Paused)
	b.move(Cancelled)
	b.drop()
	b.move(Running)
	if got := *q.held["ada"]; got != (holding{paused: 1}) {
		t.Errorf("ada has %+v, want one paused", got)
	}
	a.drop()
	if len(q.held) != 0 {
		t.Errorf("%d principals are remembered, want none", len(q.held))
	}
}

func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newQuota(Options{MaxStored: 100})
		a, b, other := q.adopt("ada", 0), q.adopt("ada", 50), q.adopt("bob", 0)
		full := func(err error) bool {
			_, ok := errors.AsType[*storedError](err)
			return ok
		}
		if err := a.Hold(50); err != nil {
			t.Errorf("hold up to the limit = %v", err)
		}
		if err := b.Hold(1); !full(err) {
			t.Errorf("hold beyond the limit = %v, want a storedError", err)
		}
		if err := other.Hold(100); err != nil {
			t.Errorf("hold of another = %v", err)
		}
		b.Release(20)
		a.drop()
		if q.keep("ada", 71, time.Minute) || !q.keep("ada", 70, time.Minute) {
			t.Error("30 bytes are held: an answer of 70 is to be kept, one of 71 is not")
		}
		if err := b.Hold(1); !full(err) {
			t.Errorf("hold beside a kept answer = %v, want a storedError", err)
		}
		time.Sleep(time.Minute + 1)
		if err := b.Hold(70); err != nil {
			t.Errorf("hold after the answer has expired = %v", err)
		}
		b.drop()
		other.drop()
		if len(q.held) != 0 || len(q.kept) != 0 {
			t.Errorf("%d principals and %d answers are remembered, want none", len(q.held), len(q.kept))
		}
	})
}

func TestMaxExecutionsCountsAll(t *testing.T) {
	q := newQuota(Options{MaxExecutions: 2})
	paused, err := q.admit("ada")
	if err != nil {
		t.Fatal(err)
	}
	paused.move(Paused)
	if _, err := q.admit("ada"); err != nil {
		t.Errorf("beside a paused one: %v", err)
	}
	_, err = q.admit("ada")
	if many, ok := errors.AsType[*TooManyError](err); !ok || many.Max != 2 || !errors.Is(err, ErrTooMany) {
		t.Errorf("beside two: %v, want a TooManyError of 2", err)
	}
	if _, err := q.admit("bob"); err != nil {
		t.Errorf("another: %v", err)
	}
	paused.drop()
	if _, err := q.admit("ada"); err != nil {
		t.Errorf("beside one: %v", err)
	}
}
