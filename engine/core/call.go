package core

import (
	"fmt"
	"slices"

	"fermata/continuation"
)

// A CallState is where a pending call stands. A record has it in Stage and Answered, which servers of earlier versions
// read as well.
type CallState string

// The states of a call.
const (
	// CallNew: the program has just made the call, and no record has it.
	CallNew CallState = "new"
	// CallAsked and CallOperator: the call waits for approval, by whoever may give it or by an operator.
	CallAsked    CallState = "asked"
	CallOperator CallState = "operator"
	// CallApproved: the call is for the client, or begins, when the program makes it again.
	CallApproved CallState = "approved"
	// CallRefused: the program is told so when it goes on. CallTold: it is told now.
	CallRefused CallState = "refused"
	CallTold    CallState = "told"
	// CallIssued: the client runs the tool.
	CallIssued CallState = "issued"
	// CallBegun: the server runs the tool. CallEnded: the call has ended, and the program is given the result.
	CallBegun CallState = "begun"
	CallEnded CallState = "ended"
	// CallHanded: the result hands files over, which are being kept. CallAnswered: the program gets the result.
	CallHanded   CallState = "handed"
	CallAnswered CallState = "answered"
	// CallDecided: a call that waited for approval was refused, or approved and answered, by one continuation.
	CallDecided CallState = "decided"
)

// A recordedCall is what a record has of the state of a call. The texts are stored and must not change.
type recordedCall struct {
	stage    string
	answered bool
}

// callStates tells for each state of a call how a record has it, and which states may follow. From each state but
// CallNew a call may also end: then the record does not have it any more.
var callStates = map[CallState]struct {
	recordedCall
	next []CallState
}{
	CallNew: {recordedCall{"", false}, []CallState{CallAsked, CallOperator, CallIssued, CallBegun}},
	// The policy may have become less strict when the program makes a call again.
	CallAsked:    {recordedCall{"asked", false}, []CallState{CallApproved, CallRefused, CallDecided, CallHanded, CallIssued, CallBegun}},
	CallOperator: {recordedCall{"operator", false}, []CallState{CallApproved, CallRefused, CallIssued, CallBegun}},
	CallApproved: {recordedCall{"approved", false}, []CallState{CallIssued, CallBegun}},
	CallRefused:  {recordedCall{"refused", false}, []CallState{CallTold}},
	CallTold:     {recordedCall{"refused", true}, nil},
	CallIssued:   {recordedCall{"", false}, []CallState{CallAnswered, CallHanded}},
	CallBegun:    {recordedCall{"begun", false}, []CallState{CallEnded}},
	CallEnded:    {recordedCall{"begun", true}, nil},
	CallHanded:   {recordedCall{"handed", true}, []CallState{CallAnswered}},
	CallAnswered: {recordedCall{"", true}, nil},
	CallDecided:  {recordedCall{"asked", true}, nil},
}

// recordedStates has the state of each recordedCall, except for CallNew, which no record has.
var recordedStates = func() map[recordedCall]CallState {
	states := map[recordedCall]CallState{}
	for state, row := range callStates {
		if state != CallNew {
			states[row.recordedCall] = state
		}
	}
	return states
}()

// StateOf returns the state of a call. The zero Call is new.
func StateOf(c continuation.Call) CallState {
	if c.ID == "" && c.Stage == "" {
		return CallNew
	}
	if state, known := recordedStates[recordedCall{c.Stage, c.Answered}]; known {
		return state
	}
	// A server of a later version has written the record. The call counts as one that the client runs.
	return recordedStates[recordedCall{"", c.Answered}]
}

// MoveCall puts a call into a state, which may be the one that it is in. It is the only function that changes the
// Stage of a call, and whether it is Answered.
func MoveCall(c *continuation.Call, to CallState) error {
	from := StateOf(*c)
	if from != to && !slices.Contains(callStates[from].next, to) {
		return fmt.Errorf("engine: no move of call %d from %q to %q", c.Number, from, to)
	}
	c.Stage, c.Answered = callStates[to].stage, callStates[to].answered
	return nil
}

// WaitsForApproval reports whether nobody has decided yet about a call that needs approval.
func (s CallState) WaitsForApproval() bool { return s == CallAsked || s == CallOperator }

// Open reports whether a call has neither a result nor a refusal that the program is given.
func (s CallState) Open() bool { return !callStates[s].answered }

// Refused reports whether an approval that came by itself has refused the call. CallDecided may be a refusal, too, but
// by the continuation that the program waits for.
func (s CallState) Refused() bool { return s == CallRefused || s == CallTold }

// ForClient reports whether a call of a pause is left for the client.
func ForClient(pending []continuation.Call) bool {
	return slices.ContainsFunc(pending, func(p continuation.Call) bool {
		state := StateOf(p)
		return state.Open() && state != CallApproved && state != CallRefused
	})
}

// Asked returns how many of the calls wait for approval.
func Asked(pending []continuation.Call) (n int) {
	for _, p := range pending {
		if StateOf(p).WaitsForApproval() {
			n++
		}
	}
	return n
}
