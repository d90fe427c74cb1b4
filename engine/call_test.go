package engine

import (
	"testing"

	"fermata/continuation"
)

// Every state of a call is what a record tells, and only the legal moves are made.
func TestCallMoves(t *testing.T) {
	type pair struct{ from, to callState }
	legal := map[pair]bool{
		{callNew, callAsked}:         true,
		{callNew, callOperator}:      true,
		{callNew, callIssued}:        true,
		{callNew, callBegun}:         true,
		{callAsked, callApproved}:    true,
		{callAsked, callRefused}:     true,
		{callAsked, callDecided}:     true,
		{callAsked, callHanded}:      true,
		{callAsked, callIssued}:      true,
		{callAsked, callBegun}:       true,
		{callOperator, callApproved}: true,
		{callOperator, callRefused}:  true,
		{callOperator, callIssued}:   true,
		{callOperator, callBegun}:    true,
		{callApproved, callIssued}:   true,
		{callApproved, callBegun}:    true,
		{callRefused, callTold}:      true,
		{callIssued, callAnswered}:   true,
		{callIssued, callHanded}:     true,
		{callHanded, callAnswered}:   true,
	}
	for from, row := range callStates {
		for to := range callStates {
			call := continuation.Call{Number: 7, ID: "call_001", Stage: row.stage, Answered: row.answered}
			if from == callNew {
				call.ID = ""
			}
			if got := stateOf(call); got != from {
				t.Fatalf("a call that is %q reads as %q", from, got)
			}
			err := moveCall(&call, to)
			if want := from == to || legal[pair{from, to}]; (err == nil) != want {
				t.Errorf("move from %q to %q = %v, want legal: %v", from, to, err, want)
			}
			call.ID = "call_001" // A call has its id when it is recorded.
			if err == nil && to != callNew && stateOf(call) != to {
				t.Errorf("a call that moved from %q to %q is %q", from, to, stateOf(call))
			}
		}
	}
}

// A call with a stage that this server does not know counts as one of the client, with or without its result.
func TestUnknownStage(t *testing.T) {
	call := continuation.Call{Number: 1, ID: "call_001", Stage: "of a later version"}
	if got := stateOf(call); got != callIssued {
		t.Errorf("the call is %q", got)
	}
	call.Answered = true
	if got := stateOf(call); got != callAnswered {
		t.Errorf("the answered call is %q", got)
	}
}

// BenchmarkStateOf measures what the dispatcher does for all calls of a program, each time that it comes to rest.
func BenchmarkStateOf(b *testing.B) {
	call := continuation.Call{Number: 1, ID: "call_001", Stage: "asked"}
	for b.Loop() {
		if !stateOf(call).waitsForApproval() {
			b.Fatal("the call does not wait")
		}
	}
}
