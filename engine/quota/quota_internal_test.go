package quota

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestQuotaForgets(t *testing.T) {
	q := New(Limits{})
	a, b := q.Adopt("ada", 0), q.Adopt("ada", 0)
	a.Pause()
	b.Drop()
	b.Drop()
	b.Run()
	if got := *q.held["ada"]; got != (holding{paused: 1}) {
		t.Errorf("ada has %+v, want one paused", got)
	}
	a.Drop()
	if len(q.held) != 0 {
		t.Errorf("%d principals are remembered, want none", len(q.held))
	}
}

func TestStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Limits{Stored: 100})
		a, b, other := q.Adopt("ada", 0), q.Adopt("ada", 50), q.Adopt("bob", 0)
		full := func(err error) bool {
			_, ok := errors.AsType[*StoredError](err)
			return ok
		}
		if err := a.Hold(50); err != nil {
			t.Errorf("hold up to the limit = %v", err)
		}
		if err := b.Hold(1); !full(err) {
			t.Errorf("hold beyond the limit = %v, want a StoredError", err)
		}
		if err := other.Hold(100); err != nil {
			t.Errorf("hold of another = %v", err)
		}
		b.Release(20)
		a.Drop()
		if q.Keep("ada", 71, time.Minute) || !q.Keep("ada", 70, time.Minute) {
			t.Error("30 bytes are held: an answer of 70 is to be kept, one of 71 is not")
		}
		if err := b.Hold(1); !full(err) {
			t.Errorf("hold beside a kept answer = %v, want a StoredError", err)
		}
		time.Sleep(time.Minute + 1)
		if err := b.Hold(70); err != nil {
			t.Errorf("hold after the answer has expired = %v", err)
		}
		b.Drop()
		other.Drop()
		if len(q.held) != 0 || len(q.kept) != 0 {
			t.Errorf("%d principals and %d answers are remembered, want none", len(q.held), len(q.kept))
		}
	})
}

func TestMaxExecutionsCountsAll(t *testing.T) {
	q := New(Limits{Executions: 2})
	paused, err := q.Admit("ada")
	if err != nil {
		t.Fatal(err)
	}
	paused.Pause()
	if _, err := q.Admit("ada"); err != nil {
		t.Errorf("beside a paused one: %v", err)
	}
	_, err = q.Admit("ada")
	if many, ok := errors.AsType[*TooManyError](err); !ok || many.Max != 2 || !errors.Is(err, ErrTooMany) {
		t.Errorf("beside two: %v, want a TooManyError of 2", err)
	}
	if _, err := q.Admit("bob"); err != nil {
		t.Errorf("another: %v", err)
	}
	paused.Drop()
	if _, err := q.Admit("ada"); err != nil {
		t.Errorf("beside one: %v", err)
	}
}
