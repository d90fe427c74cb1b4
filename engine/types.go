package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/engine/sandbox"
	"fermata/stubs"
)

// Errors of an Engine. A program that crashes, loops or floods is not among
// them: that is an Outcome.
var (
	// ErrExpired means that the execution has ended or is not known any more.
	ErrExpired = errors.New("engine: execution is over")
	// ErrForbidden means that the execution belongs to another principal.
	ErrForbidden = errors.New("engine: another principal's execution")
	// ErrInFlight means that another continuation of the execution is running.
	ErrInFlight = errors.New("engine: another continuation is in flight")
	// ErrTooMany means that the principal has as many executions as it may have.
	ErrTooMany = errors.New("engine: too many executions of the principal")
	// ErrClosing means that the server is shutting down.
	ErrClosing = sandbox.ErrClosing
	// ErrNoCapacity means that no sandbox was free in time.
	ErrNoCapacity = sandbox.ErrNoCapacity
)

// A Start is a request to run a program.
type Start struct {
	// Principal is who asks.
	Principal string
	// Session is the id of the session, 21 characters.
	Session string
	// Code is the program: a JSON string, as it was sent.
	Code json.RawMessage
	// Tools are the tools the program may call.
	Tools []stubs.Tool
	// Timeout is the run budget.
	Timeout time.Duration
	// Request is the hash of the request's payload, which tells a retry from another
	// request.
	Request string
	// RequestID is the id that the client has given to the request, if any.
	RequestID string
	// Key makes identical starts of one principal one; empty does not.
	Key string
	// Mode is how the program is run.
	Mode Mode
	// Args are the program's arguments.
	Args []string
	// Inputs are the files that are in the program's workspace before it starts. Scope tells
	// Files whose files the execution may use. The implementation of Files makes both, and the
	// engine stores them in the record and hands them back to Files; it never reads Scope.
	Inputs []InputFile
	Scope  json.RawMessage
}

// A Mode is how a program is run. Its texts go to the runner.
type Mode string

// The modes.
const (
	// Python runs Python, the zero value.
	Python Mode = ""
	// Bash runs a shell script.
	Bash Mode = "bash"
)

// A Result is the client's answer to one tool call.
type Result struct {
	// CallID is the id of a pending call.
	CallID string
	// Value is the result as it was sent; empty stands for null.
	Value json.RawMessage
	// Failed says that the tool failed; Message is then the text of the exception
	// the program sees, a JSON string or empty.
	Failed  bool
	Message json.RawMessage
}

// A Resume is a request to go on with a paused execution.
type Resume struct {
	// Principal is who asks.
	Principal string
	// Token is the continuation token.
	Token string
	// Results are the results; their ids are not checked yet.
	Results []Result
	// Request is the hash of the request's payload, which tells a retry from
	// another request.
	Request string
	// RequestID is the id that the client has given to the request, if any.
	RequestID string
	// HandedOver says that another server has handed the request over to this one.
	HandedOver bool
}

// A ResultError is a result for a call that is not pending. The execution stays
// paused and its token good.
type ResultError struct {
	// CallID is the id in question.
	CallID string
}

func (e *ResultError) Error() string {
	return fmt.Sprintf("engine: %s is not pending", e.CallID)
}

// A ResultsError is a set of results that would bring all results of the execution
// to Size bytes, beyond the limit. The execution stays paused and its token good.
type ResultsError struct {
	Size, Limit int64
}

func (e *ResultsError) Error() string {
	return fmt.Sprintf("engine: results of %d bytes in all, at most %d allowed", e.Size, e.Limit)
}

// An InputsError is a set of input files that take Size bytes of the workspace, beyond
// the limit. Nothing was started.
type InputsError struct {
	Size, Limit int64
}

func (e *InputsError) Error() string {
	return fmt.Sprintf("engine: input files take %d bytes, at most %d allowed", e.Size, e.Limit)
}

// A TooManyError is a start by a principal that has as many executions as it may have,
// which is Max. It is an ErrTooMany.
type TooManyError struct {
	Max int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("engine: at most %d executions of the principal are allowed", e.Max)
}

// Unwrap returns ErrTooMany.
func (e *TooManyError) Unwrap() error { return ErrTooMany }

// A storedError means that what is stored for a principal would exceed the limit, in bytes.
type storedError struct{ limit int64 }

func (e *storedError) Error() string {
	return fmt.Sprintf("engine: more than %d bytes would be stored for the principal", e.limit)
}

// A State is a state of an execution.
type State string

// The states. Their texts are stored and may not change.
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

// The reasons. Their texts are stored and may not change.
const (
	// RaisedError: the program raised; Detail is the last line of the traceback.
	RaisedError Reason = "raised"
	// ExitedCode: the program ended with exit code Code, negative for a signal.
	ExitedCode Reason = "exited"
	// OutOfMemory: the memory limit.
	OutOfMemory Reason = "out_of_memory"
	// StdoutFlood and StderrFlood: the output limit.
	StdoutFlood Reason = "stdout_flood"
	StderrFlood Reason = "stderr_flood"
	// UngrantedTool: the program asked for the tool named Detail, which was not granted.
	UngrantedTool Reason = "ungranted_tool"
	// TooManyRounds: a pause beyond the round limit, which is Code.
	TooManyRounds Reason = "too_many_rounds"
	// TooManyCalls: more tool calls than the limit, which is Code.
	TooManyCalls Reason = "too_many_calls"
	// TooMuchStored: what is kept for the principal's pauses would exceed the limit, which
	// is Code, in bytes.
	TooMuchStored Reason = "too_much_stored"
	// ProtocolBroken: the program sent what the runner would not send; Detail says what, if
	// that helps its author.
	ProtocolBroken Reason = "protocol_broken"
	// SandboxLost: the sandbox ended, not by its program's doing.
	SandboxLost Reason = "sandbox_lost"
)

// reasons are all of them.
var reasons = []Reason{
	RaisedError, ExitedCode, OutOfMemory, StdoutFlood, StderrFlood, UngrantedTool, TooManyRounds, TooManyCalls,
	TooMuchStored, ProtocolBroken, SandboxLost,
}

// A Call is a tool call as the client sees it.
type Call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// An Outcome is how a request left the execution: paused, or ended. Its JSON
// form is kept in the record for an identical retry.
type Outcome struct {
	// State is Paused or a terminal state, never Running.
	State State `json:"state"`
	// Session is the execution's session.
	Session string `json:"session"`
	// Token and Calls are set when State is Paused.
	Token string `json:"token,omitempty"`
	Calls []Call `json:"calls,omitempty"`
	// Stdout and Stderr are everything the program has printed, in terminal states.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// Reason, Detail and Code are set when State is Failed.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	Code   int    `json:"code,omitempty"`
	// Ran is how long the program has run, in terminal states.
	Ran time.Duration `json:"ran,omitempty"`
	// Files are what is in the workspace in the end, Deleted the inputs that are not,
	// Skipped what was not kept for its sake, and Undelivered how many files could not
	// be kept for ours.
	Files       []OutputFile `json:"files,omitempty"`
	Deleted     []string     `json:"deleted,omitempty"`
	Skipped     Skipped      `json:"skipped,omitzero"`
	Undelivered int          `json:"undelivered,omitempty"`
}

// encode returns the JSON form of o. The inputs of calls keep their bytes.
func (o Outcome) encode() (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
