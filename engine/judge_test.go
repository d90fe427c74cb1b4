package engine

import (
	"encoding/json"
	"testing"

	"fermata/engine/outputs"
)

// Missing outputs make only those executions fail whose program has completed.
func TestMissingOutputsDecide(t *testing.T) {
	required := promising("a", "?b", "c")
	lenient := promising("a")
	lenient.Lenient = true
	value := json.RawMessage(`5`)
	for _, c := range []struct {
		name     string
		e        ending
		contract *outputs.Contract
		want     ending
	}{
		{"without a contract", ending{state: Completed, value: value}, promising(), ending{state: Completed, value: value}},
		{"missing", ending{state: Completed, value: value}, required, ending{state: Failed, reason: OutputsMissing, detail: "a, c"}},
		{"missing, and not minded", ending{state: Completed, value: value}, lenient, ending{state: Completed, value: value}},
		{"only an optional one", ending{state: Completed}, promising("?b"), ending{state: Completed}},
		{"an error goes first", failed(RaisedError, "E", 0), required, failed(RaisedError, "E", 0)},
		{"so does a timeout", ending{state: TimedOut, detail: "slow"}, required, ending{state: TimedOut, detail: "slow"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.e
			judge(&got, *c.contract)
			if len(got.judged) != len(c.contract.Outputs) {
				t.Errorf("%d outputs are judged, want %d", len(got.judged), len(c.contract.Outputs))
			}
			if got.state != c.want.state || got.reason != c.want.reason || got.detail != c.want.detail || string(got.value) != string(c.want.value) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
