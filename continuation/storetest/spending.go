package storetest

import (
	"context"
	"sync"
	"testing"

	"github.com/google/uuid"

	"fermata/continuation"
)

var spendingTests = []storeTest{
	{"SpendingIsBounded", testSpending},
	{"SpendingIsRaced", testSpendingRace},
	{"SpendingCancelledContext", testSpendingCancelled},
}

// spending returns a new Spending of today.
func spending(principal string, cost int64) continuation.Spending {
	return continuation.Spending{ID: uuid.NewString(), Day: ago(0), Principal: principal, Cost: cost}
}

// wantSpent checks what a principal has spent on a day.
func wantSpent(t *testing.T, s continuation.Store, of continuation.Spending, want int64) {
	t.Helper()
	of.ID, of.Cost = uuid.NewString(), 1
	if before, ok, err := s.Spend(t.Context(), of, 0); err != nil || ok || before != want {
		t.Errorf("%s has spent %d (%t, %v), want %d", of.Principal, before, ok, err, want)
	}
}

func testSpending(t *testing.T, s continuation.Store) {
	spend := func(sp continuation.Spending, most, before int64, want bool) {
		t.Helper()
		got, ok, err := s.Spend(t.Context(), sp, most)
		if err != nil || ok != want || got != before {
			t.Errorf("Spend of %d credits of %d = %d, %t, %v; want %d, %t", sp.Cost, most, got, ok, err, before, want)
		}
	}
	first := spending("ada", 6)
	spend(first, 10, 0, true)
	spend(spending("ada", 5), 10, 6, false)
	spend(spending("ada", 4), 10, 6, true)
	spend(spending("ada", 1), 10, 10, false)
	spend(spending("ada", 1), 1_000_000_000, 10, true)
	spend(spending("bob", 1), 1, 0, true)
	yesterday := spending("ada", 7)
	yesterday.Day = ago(1)
	spend(yesterday, 7, 0, true)
	if err := s.Refund(t.Context(), first); err != nil {
		t.Errorf("Refund = %v, want success", err)
	}
	wantSpent(t, s, first, 5)
	wantSpent(t, s, yesterday, 7)
	spend(spending("ada", 5), 10, 5, true)
	mustAdd(t, s, continuation.Usage{Day: ago(0), Principal: "ada", Toolset: "weather", Calls: 1, Cost: 3})
	wantSpent(t, s, first, 10)
}

// testSpendingRace has many callers that spend at once. Every second one takes the cost back afterwards.
func testSpendingRace(t *testing.T, s continuation.Store) {
	const callers, most, cost = 50, 100, 3
	var mu sync.Mutex
	held, kept := int64(0), int64(0)
	var calling sync.WaitGroup
	for i := range callers {
		calling.Go(func() {
			sp, ctx := spending("ada", cost), context.WithoutCancel(t.Context())
			_, ok, err := s.Spend(ctx, sp, most)
			if err != nil {
				t.Errorf("Spend = %v, want success", err)
			}
			if !ok {
				return
			}
			mu.Lock()
			held += cost
			if held > most {
				t.Errorf("%d credits are spent, at most %d may be", held, most)
			}
			mu.Unlock()
			if i%2 == 0 {
				mu.Lock()
				kept += cost
				mu.Unlock()
				return
			}
			mu.Lock()
			held -= cost
			mu.Unlock()
			if err := s.Refund(ctx, sp); err != nil {
				t.Errorf("Refund = %v, want success", err)
			}
		})
	}
	calling.Wait()
	wantSpent(t, s, spending("ada", 1), kept)
}

func testSpendingCancelled(t *testing.T, s continuation.Store) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, ok, err := s.Spend(ctx, spending("ada", 1), 10)
	if ok {
		t.Error("Spend with a cancelled context reports that the cost is spent")
	}
	for what, err := range map[string]error{"Spend": err, "Refund": s.Refund(ctx, spending("ada", 1))} {
		wantError(t, what+" with a cancelled context", err, continuation.ErrUnavailable)
		wantError(t, what+" with a cancelled context", err, context.Canceled)
	}
	wantSpent(t, s, spending("ada", 1), 0)
}
