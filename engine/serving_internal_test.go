package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"fermata/continuation"
	"fermata/continuation/boltstore"
	"fermata/engine/cluster"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
)

// runningWith returns a conversation that runs, with these calls of a former server, and what its store keeps.
func runningWith(t *testing.T, store func(continuation.Store) continuation.Store, pending ...continuation.Call) *conversation {
	t.Helper()
	kept, err := boltstore.Open(filepath.Join(t.TempDir(), "store"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	m := &common{o: Options{Store: store(kept), Log: slog.New(slog.DiscardHandler)}, members: &cluster.Member{}, quota: newQuota(Options{})}
	r := continuation.Record{ID: "x", State: string(core.Running), Pending: pending, Issued: len(pending)}
	for _, call := range pending {
		r.Cost += call.Cost
	}
	c := newConversation(m.newLedger(r, m.newChronicle(Start{}, r, &mandate{})))
	if err := open(c.ledger, Start{}); err != nil {
		t.Fatal(err)
	}
	return c
}

// begun is a call that a former server has begun, or that was approved.
func begun(number int, stage string, cost int64) continuation.Call {
	return continuation.Call{Number: number, ID: core.CallID(number), Stage: stage, Cost: cost, Server: true, Started: time.Now()}
}

// proposed is a decision about a call. It fails if there is a refusal.
func proposed(call continuation.Call, refusal string) *core.Proposal {
	return &core.Proposal{Call: sandbox.Call{Number: call.Number, Tool: "buy", Input: []byte(`{}`)}, Entry: call, ByServer: true, Refusal: refusal}
}

// A call whose server has died may have taken effect, so that it costs what it costs.
func TestCostOfCallsThatMayHaveBeenMade(t *testing.T) {
	once, again := begun(1, "begun", 5), begun(2, "begun", 3)
	c := runningWith(t, func(s continuation.Store) continuation.Store { return s }, once, again)
	if err := beginCalls(c.ledger, core.Plan{Begin: []*core.Proposal{proposed(once, core.TextRestarted), proposed(again, "")}}); err != nil {
		t.Fatal(err)
	}
	r := c.record
	states := map[int]core.CallState{}
	for _, p := range r.Pending {
		states[p.Number] = core.StateOf(p)
	}
	if want := map[int]core.CallState{1: core.CallEnded, 2: core.CallBegun}; r.Cost != 8 || !maps.Equal(states, want) {
		t.Errorf("the record has the cost %d and the calls %v, want 8 and %v", r.Cost, states, want)
	}
}

// The journal has one end of a call that fails because it cannot be recorded.
func TestCallsWithoutAStore(t *testing.T) {
	approved := begun(1, "approved", 0)
	away := true
	c := runningWith(t, func(s continuation.Store) continuation.Store {
		return &hooked{Store: s, put: func(ctx context.Context, r continuation.Record, ttl time.Duration, chapter continuation.Chapter) error {
			if away {
				return continuation.ErrUnavailable
			}
			return s.Put(ctx, r, ttl, chapter)
		}}
	}, approved)
	p := core.Plan{Begin: []*core.Proposal{proposed(approved, "")}}
	if err := beginCalls(c.ledger, p); err != nil || p.Begin[0].Refusal != core.TextStoreAway {
		t.Fatalf("the call begins: %q, %v", p.Begin[0].Refusal, err)
	}
	away = false
	outcome := core.Outcome{State: core.Completed}
	err := end(c.ledger, &outcome, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	events, err := c.o.Store.Events(t.Context(), "x", 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ends := slices.DeleteFunc(events, func(e continuation.Event) bool {
		var head struct{ Type string }
		return json.Unmarshal(e.Content, &head) != nil || head.Type != journal.TypeCallFailed
	})
	if len(ends) != 1 {
		t.Errorf("the journal has the ends %v of one call", ends)
	}
}
