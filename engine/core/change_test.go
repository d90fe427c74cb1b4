package core

import (
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// A call of the server whose result the program has not got stays in the record, so that a server that takes the
// execution over does not take it for a new one, and does not make it again.
func TestEndedCallIsNotMadeAgain(t *testing.T) {
	d := Dispatcher{
		Granted: Granted{Tools: []GrantedTool{{Toolset: "shop", Tool: "buy", Idempotent: true}}},
		Places:  1, MaxCalls: 9, Work: idle{},
		Approve: func(GrantedTool) (string, error) { return "", nil },
	}
	plan := func(r continuation.Record) (p Plan, begun Change) {
		t.Helper()
		p, e, err := d.Plan(sandbox.CallsOf([]byte(`[{"n":1,"toolset":"shop","tool":"buy","input":{}}]`)), r, time.Now())
		if err != nil || e.State != "" || len(p.Begin) != 1 {
			t.Fatalf("the plan is %+v, %+v, %v", p, e, err)
		}
		begun, _, err = p.Starts(r, GiveIDs(p.Begin, r.Issued))
		if err != nil {
			t.Fatal(err)
		}
		return p, begun
	}
	r := continuation.Record{State: string(Running)}
	_, begun := plan(r)
	begun(&r)
	ended, err := Settle(r, 1, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	ended(&r)
	for range 2 { // Servers may die again and again.
		p, kept := plan(r)
		if call := p.Begin[0]; call.Refusal != TextRestarted || !call.Known() || call.Unbegun {
			t.Fatalf("the call begins as %+v", call)
		}
		kept(&r)
		if len(r.Pending) != 1 || StateOf(r.Pending[0]) != CallEnded || r.Issued != 1 {
			t.Fatalf("the record has %+v, and %d calls were issued", r.Pending, r.Issued)
		}
	}
	Forget(func(c continuation.Call) bool { return Got(c, map[int]bool{2: true}) })(&r)
	if len(r.Pending) != 0 {
		t.Errorf("the record keeps %+v", r.Pending)
	}
}
