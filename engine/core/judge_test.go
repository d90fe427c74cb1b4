package core

import (
	"encoding/json"
	"testing"

	"fermata/engine/outputs"
)

// promising returns a contract of files, which are required unless their names begin with a question mark.
func promising(names ...string) *outputs.Contract {
	c := &outputs.Contract{}
	for _, name := range names {
		c.Outputs = append(c.Outputs, outputs.Output{Path: name, File: name, Name: name, Required: name[0] != '?', MinBytes: 1})
	}
	return c
}

// Missing outputs make only those executions fail whose program has completed.
func TestMissingOutputsDecide(t *testing.T) {
	required := promising("a", "?b", "c")
	lenient := promising("a")
	lenient.Lenient = true
	value := json.RawMessage(`5`)
	for _, c := range []struct {
		name     string
		e        Ending
		contract *outputs.Contract
		want     Ending
	}{
		{"without a contract", Ending{State: Completed, Value: value}, promising(), Ending{State: Completed, Value: value}},
		{"missing", Ending{State: Completed, Value: value}, required, Ending{State: Failed, Reason: OutputsMissing, Detail: "a, c"}},
		{"missing, and not minded", Ending{State: Completed, Value: value}, lenient, Ending{State: Completed, Value: value}},
		{"only an optional one", Ending{State: Completed}, promising("?b"), Ending{State: Completed}},
		{"an error goes first", Fail(RaisedError, "E", 0), required, Fail(RaisedError, "E", 0)},
		{"so does a timeout", Ending{State: TimedOut, Detail: "slow"}, required, Ending{State: TimedOut, Detail: "slow"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.e
			Judge(&got, *c.contract)
			if len(got.Judged) != len(c.contract.Outputs) {
				t.Errorf("%d outputs are judged, want %d", len(got.Judged), len(c.contract.Outputs))
			}
			if got.State != c.want.State || got.Reason != c.want.Reason || got.Detail != c.want.Detail || string(got.Value) != string(c.want.Value) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
