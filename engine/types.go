package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"fermata/engine/core"
	"fermata/engine/outputs"
	"fermata/engine/quota"
	"fermata/engine/requests"
	"fermata/engine/sandbox"
	"fermata/stubs"
)

// Errors of an Engine. A program that crashes, loops or floods causes none of them: that is an
// Outcome.
var (
	// ErrRequestInUse means that another request in flight has this id, or that the id belongs to a request of another
	// principal.
	ErrRequestInUse = requests.ErrInUse
	// ErrForbidden means that the execution belongs to another principal.
	ErrForbidden = errors.New("engine: another principal's execution")
	// ErrInFlight means that another continuation of the execution is running.
	ErrInFlight = errors.New("engine: another continuation is in flight")
	// ErrTooMany means that the principal already has as many executions as it may have.
	ErrTooMany = quota.ErrTooMany
	// ErrKeyReused means that a start with another payload has the same key.
	ErrKeyReused = errors.New("engine: key of another start")
	// ErrKeySpent means that the execution of this key has been continued, so that the answer
	// to its start is not kept any more.
	ErrKeySpent = errors.New("engine: the execution of this key has gone on")
	// ErrNoResults means that a continuation has no results, and that no Approval has decided on its
	// round.
	ErrNoResults = errors.New("engine: no results")
	// ErrNoApproval means that there is no call with this id, or an open one that needs no approval.
	ErrNoApproval = errors.New("engine: no such call waits for approval")
	// ErrDecided means that the call does not wait any more: somebody has decided on it, or it needed no
	// approval.
	ErrDecided = errors.New("engine: the call is decided already")
	// ErrOwnerAway means that the owner of an execution does not answer, and that this server
	// cannot take the execution over, or not yet. The owner may come back.
	ErrOwnerAway = errors.New("engine: the execution's server is away")
	// ErrUnreachable means that no connection to another server could be made. That server
	// has not seen the request.
	ErrUnreachable = errors.New("engine: server is unreachable")
	// ErrClosing means that the server is shutting down.
	ErrClosing = sandbox.ErrClosing
	// ErrNoCapacity means that no sandbox was free in time.
	ErrNoCapacity = sandbox.ErrNoCapacity
)

// A Start is a request to run a program.
type Start struct {
	// Principal sends the request.
	Principal string
	// Session is the id of the session, 21 characters.
	Session string
	// Code is the program: a JSON string, as it was sent.
	Code json.RawMessage
	// Tools are the client's tools that the program may call. Traits says more of some of them, by
	// name.
	Tools  []stubs.Tool
	Traits map[string]core.Traits
	// Toolsets are the names of toolsets, or of single tools as toolset.tool, that the program may
	// call and the server runs.
	Toolsets []string
	// Sequential makes the server issue one call at a time, in the order made.
	Sequential bool
	// MaxCost bounds the costs of the server's calls, in credits; nil is no bound.
	MaxCost *int64
	// Approvals is true if the client can answer calls that need approval.
	Approvals bool
	// Timeout is the run budget.
	Timeout time.Duration
	// Request is the hash of the request's payload. A request with the same hash is a retry.
	Request string
	// RequestID is the id that the client has given to the request, if any.
	RequestID string
	// Depth is through how many toolsets the request has come.
	Depth int
	// Key, if it is not empty, makes the start repeatable: starts of one principal with the same
	// key and the same Request are answered by one execution.
	Key string
	// Keep is true if Latest is to know the execution from its start on and to have its answer, although
	// the start cannot be repeated.
	Keep bool
	// Mode is how the program is run.
	Mode Mode
	// Args are the program's arguments.
	Args []string
	// Inputs are the files that are in the program's workspace before it starts. Scope tells
	// Files which files the execution may use. The implementation of Files makes both; the engine
	// stores them in the record and passes them back to Files. It never reads Scope.
	Inputs []core.InputFile
	Scope  json.RawMessage
	// Staging, if it is set, stores files that the request contains. What it returns takes the place
	// of Inputs.
	Staging Staging
	// Outputs, if it is set, are the files that the program must produce. SentOutputs and SentTimeline
	// are the members outputs and timeline of the request, for the journal.
	Outputs                   *outputs.Contract
	SentOutputs, SentTimeline json.RawMessage
	// WantValue says that the value which a Python program returns, or leaves on its last line, comes back in the Outcome.
	WantValue bool
	// Include says that the answer about the end is to carry the timeline; it comes back in the Outcome.
	Include bool
	// Contract names the contract of the request. Title, Labels and Parent, the id of the call on
	// whose behalf the program runs, are the client's own words for the execution.
	Contract string
	Title    string
	Labels   map[string]string
	Parent   string
	// Began, if it is set, is called with the id of the execution before its program runs. It is
	// not called for a start that gets the answer of an earlier one.
	Began func(execution string)
	// Joined, if it is set, is called in place of Began with the id of the execution if the start waits for
	// the answer of an earlier one.
	Joined func(execution string)
}

// A Mode is how a program is run. The runner knows its texts.
type Mode string

// The modes.
const (
	// Python runs Python, the zero value.
	Python Mode = ""
	// Bash runs a shell script.
	Bash Mode = "bash"
)

// A Resume is a request to continue a paused execution.
type Resume struct {
	// Principal sends the request.
	Principal string
	// Token is the continuation token.
	Token string
	// Results are the results of the pending calls. Nobody has checked their ids yet.
	Results []core.Result
	// Request is the hash of the request's payload. A request with the same hash is a retry.
	Request string
	// RequestID is the id that the client has given to the request, if any.
	RequestID string
	// HandedOver is true if another server has handed the request over to this one.
	HandedOver bool
	// Began, if it is set, is called with the id of the execution and the number of its latest event
	// before the program goes on. If another server owns the execution, it is called before that
	// server decides on the request, which it may refuse. It is not called for a request that gets
	// the answer of an earlier one.
	Began func(execution string, events int64)
	// Joined, if it is set, is called in place of Began with the id of the execution if the request waits for
	// the answer of an earlier one.
	Joined func(execution string)
}

// A Cancel is a request to cancel an execution. It has one of RequestID, Execution and Token.
type Cancel struct {
	// Principal sends the request. If it is empty, the execution may be anybody's; RequestID needs a
	// principal.
	Principal string
	// RequestID is the id that the client gave to the request that has started or continued the
	// execution.
	RequestID string
	// Execution is the id of the execution.
	Execution string
	// Token is a continuation token of the execution, of whichever round. It may have expired.
	Token string
	// HandedOver is true if another server has passed the request on to this one.
	HandedOver bool
}

// may reports whether whoever sends the request may cancel executions of a principal.
func (c Cancel) may(principal string) bool { return c.Principal == "" || c.Principal == principal }

// A Cancelling is the outcome of a Cancel.
type Cancelling string

// The outcomes of a Cancel. Servers send each other these texts, so they must not change.
const (
	// CancelUnknown: no request with this id has come yet, and if one comes later, it is refused; or
	// nobody knows of an execution with this id that the principal may cancel.
	CancelUnknown Cancelling = "unknown"
	// CancelCompleted: the request already had its answer, and its execution has gone on or ended;
	// or the execution has ended.
	CancelCompleted Cancelling = "completed"
	// CancelDone: the execution was paused, and has ended.
	CancelDone Cancelling = "cancelled"
	// CancelRequested: the request, or the execution, is being cancelled.
	CancelRequested Cancelling = "requested"
)

// An Approval decides on a call that waits for approval, apart from a continuation.
type Approval struct {
	// Principal sends the request. If Operator is true the execution may be anybody's.
	Principal string
	Operator  bool
	// Execution is the id of the execution, and Call that of the call.
	Execution, Call string
	Approve         bool
	// Reason is why, in the words of whoever decides.
	Reason string
	// HandedOver is true if another server has passed the request on to this one.
	HandedOver bool
}

// cancellings are all outcomes of a Cancel. Of several, the last one in this order counts.
var cancellings = []Cancelling{CancelUnknown, CancelCompleted, CancelDone, CancelRequested}

// or returns what a client is told whose Cancel had two outcomes, in two places.
func (c Cancelling) or(other Cancelling) Cancelling {
	if slices.Index(cancellings, other) > slices.Index(cancellings, c) {
		return other
	}
	return c
}

type (
	// A TooManyError refuses a start of a principal that has as many executions as it may have.
	TooManyError = quota.TooManyError
	// A TooManyCallsError does so for a call without a program.
	TooManyCallsError = quota.TooManyCallsError
)

// A FullError refuses a start that has waited in vain, since every sandbox is in use. It is an
// ErrNoCapacity.
type FullError struct {
	// Room is the time until the next pause expires, which gives a sandbox back at the latest, or 0
	// if a program runs, since it may end at any moment.
	Room  time.Duration
	cause error
}

func (e *FullError) Error() string {
	return fmt.Sprintf("engine: every sandbox is in use: %v", e.cause)
}

// Unwrap returns the cause, which wraps ErrNoCapacity.
func (e *FullError) Unwrap() error { return e.cause }

// A CancelSession is a request to cancel the executions of a session.
type CancelSession struct {
	// Principal sends the request. If it is empty, the executions may be anybody's.
	Principal string
	// Session is the id of the session.
	Session string
}
