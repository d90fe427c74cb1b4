package core

import (
	"testing"

	"fermata/continuation"
)

// Every state of a call is what a record tells, and only the legal moves are made.
func TestCallMoves(t *testing.T) {
	type pair struct{ from, to CallState }
	legal := map[pair]bool{
		{CallNew, CallAsked}:         true,
		{CallNew, CallOperator}:      true,
		{CallNew, CallIssued}:        true,
		{CallNew, CallBegun}:         true,
		{CallAsked, CallApproved}:    true,
		{CallAsked, CallRefused}:     true,
		{CallAsked, CallDecided}:     true,
		{CallAsked, CallHanded}:      true,
		{CallAsked, CallIssued}:      true,
		{CallAsked, CallBegun}:       true,
		{CallOperator, CallApproved}: true,
		{CallOperator, CallRefused}:  true,
		{CallOperator, CallIssued}:   true,
		{CallOperator, CallBegun}:    true,
		{CallApproved, CallIssued}:   true,
		{CallApproved, CallBegun}:    true,
		{CallRefused, CallTold}:      true,
		{CallIssued, CallAnswered}:   true,
		{CallBegun, CallEnded}:       true,
		{CallIssued, CallHanded}:     true,
		{CallHanded, CallAnswered}:   true,
	}
	for from, row := range callStates {
		for to := range callStates {
			call := continuation.Call{Number: 7, ID: "call_001", Stage: row.stage, Answered: row.answered}
			if from == CallNew {
				call.ID = ""
			}
			if got := StateOf(call); got != from {
				t.Fatalf("a call that is %q reads as %q", from, got)
			}
			err := MoveCall(&call, to)
			if want := from == to || legal[pair{from, to}]; (err == nil) != want {
				t.Errorf("move from %q to %q = %v, want legal: %v", from, to, err, want)
			}
			call.ID = "call_001" // A call has its id when it is recorded.
			if err == nil && to != CallNew && StateOf(call) != to {
				t.Errorf("a call that moved from %q to %q is %q", from, to, StateOf(call))
			}
		}
	}
}

// A call with a stage that this server does not know counts as one of the client, with or without its result.
func TestUnknownStage(t *testing.T) {
	call := continuation.Call{Number: 1, ID: "call_001", Stage: "of a later version"}
	if got := StateOf(call); got != CallIssued {
		t.Errorf("the call is %q", got)
	}
	call.Answered = true
	if got := StateOf(call); got != CallAnswered {
		t.Errorf("the answered call is %q", got)
	}
}

// BenchmarkStateOf measures what the dispatcher does for all calls of a program, each time that it comes to rest.
func BenchmarkStateOf(b *testing.B) {
	call := continuation.Call{Number: 1, ID: "call_001", Stage: "asked"}
	for b.Loop() {
		if !StateOf(call).WaitsForApproval() {
			b.Fatal("the call does not wait")
		}
	}
}
