package core

import (
	"testing"
	"time"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// A call of the server whose result the program has not got stays in the record, so that a server that takes the
// execution over does not take it for a new one: it makes the call again only if that does no harm, under the same id, and
// tells the journal nothing that the journal has.
func TestEndedCallIsKnown(t *testing.T) {
	for _, test := range []struct {
		name       string
		idempotent bool
		refusal    string
		away       bool
	}{
		{"made once", false, TextRestarted, false},
		{"made again", true, "", false},
		{"made again without a store", true, "", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Dispatcher{
				Granted: Granted{Tools: []GrantedTool{{Toolset: "shop", Tool: "buy", Cost: 2, Idempotent: test.idempotent}}},
				Places:  1, MaxCalls: 9, Work: idle{},
				Approve: func(GrantedTool) (string, error) { return "", nil },
			}
			r := continuation.Record{State: string(Running)}
			plan := func(away bool) *Proposal {
				t.Helper()
				p, e, err := d.Plan(sandbox.CallsOf([]byte(`[{"n":1,"toolset":"shop","tool":"buy","input":{}}]`)), r, time.Now())
				if err != nil || e.State != "" || len(p.Begin) != 1 {
					t.Fatalf("the plan is %+v, %+v, %v", p, e, err)
				}
				begun, failed, err := p.Starts(r, GiveIDs(p.Begin, r.Issued))
				if err != nil {
					t.Fatal(err)
				}
				if away {
					failed(&r)
				} else {
					begun(&r)
				}
				return p.Begin[0]
			}
			plan(false)
			for range 2 { // Servers may die again and again.
				if !test.away {
					ended, err := Settle(r, 1, 0, 0)
					if err != nil {
						t.Fatal(err)
					}
					ended(&r)
				}
				known := StateOf(r.Pending[0]) == CallEnded
				call := plan(test.away)
				if call.Refusal != test.refusal || call.Ended != known || call.Unbegun || call.Entry.ID != "call_001" {
					t.Fatalf("the call begins as %+v", call)
				}
				if len(r.Pending) != 1 || StateOf(r.Pending[0]) != CallEnded || r.Issued != 1 || r.Cost != 2 {
					t.Fatalf("the record has %+v, %d calls were issued, and %d are spent", r.Pending, r.Issued, r.Cost)
				}
			}
			Forget(func(c continuation.Call) bool { return Got(c, map[int]bool{2: true}) })(&r)
			if len(r.Pending) != 0 {
				t.Errorf("the record keeps %+v", r.Pending)
			}
		})
	}
}
