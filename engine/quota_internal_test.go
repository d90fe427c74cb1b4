package engine

import (
	"testing"

	"fermata/continuation"
)

// Whoever has been told of the end of a program may start the next one.
func TestEndIsCountedBeforeItIsTold(t *testing.T) {
	e := &Engine{quota: newQuota(Options{MaxRunning: 1})}
	counted, err := e.quota.admit("ada")
	if err != nil {
		t.Fatal(err)
	}
	x := newExecution(e, continuation.Record{State: string(Running)}, nil, counted)
	x.begin(0, "", "")
	x.settle(ending{state: Completed})
	if _, err := e.quota.admit("ada"); err != nil {
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
