package engine

import (
	"fmt"
	"slices"

	"fermata/continuation"
)

// A callState is where a pending call stands. A record has it in Stage and Answered, which servers of earlier versions
// read as well.
type callState string

const (
	// callNew: the program has just made the call, and no record has it.
	callNew callState = "new"
	// callAsked and callOperator: the call waits for approval, by whoever may give it or by an operator.
	callAsked    callState = "asked"
	callOperator callState = "operator"
	// callApproved: the call is for the client, or begins, when the program makes it again.
	callApproved callState = "approved"
	// callRefused: the program is told so when it goes on. callTold: it is told now.
	callRefused callState = "refused"
	callTold    callState = "told"
	// callIssued: the client runs the tool.
	callIssued callState = "issued"
	// callBegun: the server runs the tool.
	callBegun callState = "begun"
	// callHanded: the result hands files over, which are being kept. callAnswered: the program gets the result.
	callHanded   callState = "handed"
	callAnswered callState = "answered"
	// callDecided: a call that waited for approval was refused, or approved and answered, by one continuation.
	callDecided callState = "decided"
)

// A recordedCall is what a record has of the state of a call. The texts are stored and must not change.
type recordedCall struct {
	stage    string
	answered bool
}

// callStates tells for each state of a call how a record has it, and which states may follow. From each state but
// callNew a call may also end: then the record does not have it any more.
var callStates = map[callState]struct {
	recordedCall
	next []callState
}{
	callNew: {recordedCall{"", false}, []callState{callAsked, callOperator, callIssued, callBegun}},
	// The policy may have become less strict when the program makes a call again.
	callAsked:    {recordedCall{"asked", false}, []callState{callApproved, callRefused, callDecided, callHanded, callIssued, callBegun}},
	callOperator: {recordedCall{"operator", false}, []callState{callApproved, callRefused, callIssued, callBegun}},
	callApproved: {recordedCall{"approved", false}, []callState{callIssued, callBegun}},
	callRefused:  {recordedCall{"refused", false}, []callState{callTold}},
	callTold:     {recordedCall{"refused", true}, nil},
	callIssued:   {recordedCall{"", false}, []callState{callAnswered, callHanded}},
	callBegun:    {recordedCall{"begun", false}, nil},
	callHanded:   {recordedCall{"handed", true}, []callState{callAnswered}},
	callAnswered: {recordedCall{"", true}, nil},
	callDecided:  {recordedCall{"asked", true}, nil},
}

// recordedStates has the state of each recordedCall, except for callNew, which no record has.
var recordedStates = func() map[recordedCall]callState {
	states := map[recordedCall]callState{}
	for state, row := range callStates {
		if state != callNew {
			states[row.recordedCall] = state
		}
	}
	return states
}()

// stateOf returns the state of a call. The zero Call is new.
func stateOf(c continuation.Call) callState {
	if c.ID == "" && c.Stage == "" {
		return callNew
	}
	if state, known := recordedStates[recordedCall{c.Stage, c.Answered}]; known {
		return state
	}
	// A server of a later version has written the record. The call counts as one that the client runs.
	return recordedStates[recordedCall{"", c.Answered}]
}

// moveCall puts a call into a state, which may be the one that it is in. It is the only function that changes the
// Stage of a call, and whether it is Answered.
func moveCall(c *continuation.Call, to callState) error {
	from := stateOf(*c)
	if from != to && !slices.Contains(callStates[from].next, to) {
		return fmt.Errorf("engine: no move of call %d from %q to %q", c.Number, from, to)
	}
	c.Stage, c.Answered = callStates[to].stage, callStates[to].answered
	return nil
}

// waitsForApproval reports whether nobody has decided yet about a call that needs approval.
func (s callState) waitsForApproval() bool { return s == callAsked || s == callOperator }

// open reports whether a call has neither a result nor a refusal that the program is given.
func (s callState) open() bool { return !callStates[s].answered }

// refused reports whether an approval that came by itself has refused the call. callDecided may be a refusal, too, but
// by the continuation that the program waits for.
func (s callState) refused() bool { return s == callRefused || s == callTold }
