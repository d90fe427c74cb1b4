package core

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/outputs"
)

// A State is a state of an execution.
type State string

// The states. Their texts are stored and must not change.
const (
	Running   State = "running"
	Paused    State = "paused"
	Completed State = "completed"
	Failed    State = "failed"
	TimedOut  State = "timed_out"
	Cancelled State = "cancelled"
	Expired   State = "expired"
)

// A Reason tells why an execution failed.
type Reason string

// The reasons. Their texts are stored and must not change.
const (
	// RaisedError: the program raised an exception; Detail is the last line of the traceback.
	RaisedError Reason = "raised"
	// ExitedCode: the program ended with exit code Code, which is negative for a signal.
	ExitedCode Reason = "exited"
	// OutOfMemory: the program exceeded the memory limit.
	OutOfMemory Reason = "out_of_memory"
	// StdoutFlood and StderrFlood: the program exceeded the output limit.
	StdoutFlood Reason = "stdout_flood"
	StderrFlood Reason = "stderr_flood"
	// UngrantedTool: the program called the tool named Detail, which it was not granted.
	UngrantedTool Reason = "ungranted_tool"
	// TooManyRounds: the program paused more often than the limit, which is Code.
	TooManyRounds Reason = "too_many_rounds"
	// TooManyCalls: the program made more tool calls than the limit, which is Code.
	TooManyCalls Reason = "too_many_calls"
	// TooMuchStored: the pause would have exceeded the limit on what is stored for the
	// principal, which is Code, in bytes.
	TooMuchStored Reason = "too_much_stored"
	// ProtocolBroken: the worker sent what the runner never sends; Detail says what, if that
	// helps the program's author.
	ProtocolBroken Reason = "protocol_broken"
	// SandboxLost: the sandbox ended, and the program was not the cause.
	SandboxLost Reason = "sandbox_lost"
	// OutputsMissing: the program ended well and has not produced what its contract of outputs
	// requires; Detail names the files.
	OutputsMissing Reason = "outputs_missing"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		RaisedError, ExitedCode, OutOfMemory, StdoutFlood, StderrFlood, UngrantedTool, TooManyRounds, TooManyCalls,
		TooMuchStored, ProtocolBroken, SandboxLost, OutputsMissing,
	}
}

// A Call is a tool call as the client sees it.
type Call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// Toolset is the toolset of a tool that has one.
	Toolset string `json:"toolset,omitempty"`
	// Approval is ApprovalRequired if the call waits for approval.
	Approval string `json:"approval,omitempty"`
}

// ApprovalRequired marks a call that waits for approval.
const ApprovalRequired = "required"

// An Outcome is how an execution stands after a request: paused or ended. The record keeps its
// JSON form for an identical retry.
type Outcome struct {
	// State is Paused or a terminal state, never Running.
	State State `json:"state"`
	// Execution is the id of the execution, if the request has found or made one. Start and
	// Resume also set it beside an error.
	Execution string `json:"-"`
	// Session is the execution's session. Resume also sets it beside an error.
	Session string `json:"session"`
	// Token and Calls are set when State is Paused.
	Token string `json:"token,omitempty"`
	Calls []Call `json:"calls,omitempty"`
	// RoundsLeft is how often the program may still pause after this pause. Servers that do not
	// set it are older.
	RoundsLeft *int `json:"rounds_left,omitempty"`
	// Stdout and Stderr are everything that the program has printed, in terminal states. When State
	// is Paused they are the last 64 KiB of what it has printed so far, with the mark … before them
	// if there was more.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Reason, Detail and Code are set when State is Failed. In other terminal states Detail may say
	// more, and Reason is SandboxLost if that was the cause.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	Code   int    `json:"code,omitempty"`
	// Value is what a program with tools has returned or left on its last line, when State is
	// Completed: JSON, empty if there is nothing.
	Value json.RawMessage `json:"value,omitempty"`
	// Ran is how long the program has run, in terminal states.
	Ran time.Duration `json:"ran,omitempty"`
	// Files are the files in the workspace at the end, and Deleted the names of the input files
	// that are not there any more. Skipped tells of files that are not kept because of what they
	// are. Undelivered counts the files that could not be kept because of trouble of the server.
	Files       []OutputFile `json:"files,omitempty"`
	Deleted     []string     `json:"deleted,omitempty"`
	Skipped     Skipped      `json:"skipped,omitzero"`
	Undelivered int          `json:"undelivered,omitempty"`
	// Outputs tells what has become of each file of the contract of outputs, and Report the same for an
	// agent runtime. Both are empty without a contract.
	Outputs []outputs.Judged `json:"outputs,omitempty"`
	Report  string           `json:"report,omitempty"`
	// Include says, in terminal states, that the answer is to carry the timeline.
	Include bool `json:"include,omitempty"`
	// Step is for the log. Start and Resume set what they know of it beside an error, too.
	Step Step `json:"-"`
}

// Skipped tells which of the files that a program has left are not kept.
type Skipped struct {
	// Reasons counts these files by reason, one of SkipReasons.
	Reasons map[string]int `json:"reasons"`
	// Names are the names of some of them.
	Names []string `json:"names"`
}

// Count returns how many files were skipped.
func (s Skipped) Count() (n int) {
	for _, c := range s.Reasons {
		n += c
	}
	return n
}

// Why says more of an end than State and Reason do, in words for the client; it may be empty. What the
// program has said of its end is no part of it.
func (o Outcome) Why() string {
	if o.State == Failed && o.Reason != SandboxLost {
		return ""
	}
	return o.Detail
}

// Encode returns the JSON form of o. The inputs of calls keep their bytes.
func (o Outcome) Encode() (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// RaisedOf returns what the program has raised, unless the text that says why it has not completed is the
// same.
func RaisedOf(o Outcome, text string) string {
	if o.Reason != RaisedError || o.Detail == text {
		return ""
	}
	return o.Detail
}

// ReasonOf returns the reason why an execution has ended, as one word.
func ReasonOf(o Outcome) string {
	return strings.ReplaceAll(cmp.Or(string(o.Reason), string(o.State)), "_", " ")
}

// StatusOf returns the status of an execution in a state. It is the same in all views.
func StatusOf(s State) string {
	if s == Failed {
		return journal.StatusError
	}
	return string(s)
}

// ExitCodeOf returns the exit code of a program that has ended by itself. It is negative if a signal has
// ended the program.
func ExitCodeOf(o Outcome) *int {
	code := 0
	switch {
	case o.State == Completed, o.Reason == OutputsMissing:
	case o.Reason == RaisedError:
		code = 1
	case o.Reason == ExitedCode:
		code = o.Code
	default:
		return nil
	}
	return &code
}

// A Step tells the log how a request has left its execution. Beside an error it tells how the
// execution stood before.
type Step struct {
	// Round is how often the program has paused, and Calls how many tool calls it has made, in all.
	Round, Calls int
	// Ran is how long the program has run, in all.
	Ran time.Duration
	// Waited is how long a start waited for its sandbox, or how long the pause was that a
	// continuation has ended.
	Waited time.Duration
	// Repeated is true if the request got the answer of an earlier one.
	Repeated bool
	// Server is the name of the server that ran the step, as journals have it; empty if it was this
	// one.
	Server string
}

// StepOf returns where an execution stands, as its record tells.
func StepOf(r continuation.Record) Step {
	return Step{Round: r.Round, Calls: r.Issued, Ran: r.Spent}
}

// Ending returns one word for how o has left its execution: its state, or the reason of a failure.
func (o Outcome) Ending() string {
	if o.State == Failed {
		return string(o.Reason)
	}
	return string(o.State)
}
