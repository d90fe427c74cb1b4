// Package continuation holds what outlives a request: the signed token with which a
// client continues one round of one execution, and the record that says where that
// execution stands. It knows nothing about HTTP, sandboxes or Python.
package continuation

import (
	"encoding/json"
	"errors"
	"time"
)

// RecordFormat is the version of a record's stored form. Every record carries it, it
// may only grow, and a store refuses a format that it does not know.
const RecordFormat = 1

// Errors of a Store. They are compared with errors.Is.
var (
	// ErrNotFound means that no live record has this id.
	ErrNotFound = errors.New("continuation: no such record")
	// ErrConflict means that another writer came first: the new record does not follow
	// the stored version.
	ErrConflict = errors.New("continuation: record has changed")
	// ErrUnavailable means that the store cannot be reached, or that it failed to read
	// or write. After a Put it leaves open whether the record was written; see Store.
	ErrUnavailable = errors.New("continuation: store unavailable")
	// ErrFull means that the store has no room for another execution, or for what is written. It comes with
	// ErrUnavailable.
	ErrFull = errors.New("continuation: store full")
)

// A Call is a tool call that has not ended: one that the latest pause handed to the client, or one
// that the server runs.
type Call struct {
	// Number is the sandbox's own number for the call. The sandbox expects the result
	// under this number.
	Number int `json:"number"`
	// ID is the name that the server gives the call for the client: call_001, call_002, …
	ID string `json:"id"`
	// Answered says that the client has sent the result, in the request that is being
	// answered.
	Answered bool `json:"answered,omitempty"`
	// Started is when the program made the call.
	Started time.Time `json:"started,omitzero"`
	// Toolset and Tool name the tool, and Digest is the hash of the call's input. A program that makes the call
	// again must not change them.
	Toolset string `json:"toolset,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Digest  []byte `json:"digest,omitempty"`
	// Stage is the stage of a call that the server runs or that needs approval, in the engine's own words.
	Stage string `json:"stage,omitempty"`
	// Server is true if the server runs the tool. Reason is why the call was refused, if it was.
	Server bool   `json:"server,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Envelope is true if the client's result is an envelope. Then Path is the path in the input, for a file
	// that the result may hand over.
	Envelope bool   `json:"envelope,omitempty"`
	Path     string `json:"path,omitempty"`
	// Cost is the number of credits that are reserved for the call.
	Cost int64 `json:"cost,omitempty"`
}

// A Record is what the store knows about one execution. Servers of different versions
// share its JSON form: fields may be added but never renamed.
type Record struct {
	// Format is the RecordFormat of the server that wrote the record; Put sets it.
	Format int `json:"format"`
	// ID names the execution, a UUID.
	ID string `json:"id"`
	// Session is the id of the session whose files the execution sees.
	Session string `json:"session"`
	// Principal is the principal who has started the execution. Nobody else may continue it.
	Principal string `json:"principal"`
	// State is a state of the engine's state machine.
	State string `json:"state"`
	// Version counts the writes of the record. Each write raises it by one.
	Version int64 `json:"version"`
	// Round is the number of pauses so far. The token of the current pause carries it.
	Round int `json:"round"`
	// Created is when the execution began.
	Created time.Time `json:"created"`
	// Since is when the present state began.
	Since time.Time `json:"since,omitzero"`
	// Deadline is when the present state ends by itself: when a pause expires, when a
	// running program must have ended, or when the answer of an ended execution is
	// forgotten.
	Deadline time.Time `json:"deadline"`
	// Budget is how long the program may run, Spent how long it has run.
	Budget time.Duration `json:"budget_ns"`
	Spent  time.Duration `json:"spent_ns"`
	// Owner is the server instance that holds the stream to the sandbox.
	Owner string `json:"owner"`
	// Sandbox is the provider's reference to the sandbox.
	Sandbox string `json:"sandbox"`
	// Marker is the byte sequence that a server sends first when it attaches to the
	// sandbox. It tells the supervisor where to start reading, since the previous server
	// may have died in the middle of a frame.
	Marker []byte `json:"marker,omitempty"`
	// Tools are the original names of the tools that the program may call.
	Tools []string `json:"tools,omitempty"`
	// Granted says which tools the server runs for the program and under which rules, in the
	// engine's own form.
	Granted json.RawMessage `json:"granted,omitempty"`
	// Depth is the number of toolsets through which the request that has started the execution has come.
	Depth int `json:"depth,omitempty"`
	// Cost is what the server's calls have cost, and what is reserved for those that run, in credits.
	Cost int64 `json:"cost,omitempty"`
	// Rests is how often the program had come to rest at tool calls when the latest pause began. It
	// is no less than Round, and more if the server has run calls in between.
	Rests int `json:"rests,omitempty"`
	// Inputs are the files that the execution was given. Scope says whose files they
	// are. Both are in the engine's own form.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	Scope  json.RawMessage `json:"scope,omitempty"`
	// Outputs are the files that the program must produce, in the engine's own form.
	Outputs json.RawMessage `json:"outputs,omitempty"`
	// Include says that the terminal answer must include the timeline.
	Include bool `json:"include,omitempty"`
	// Handed are the files that results of tools have handed over, in the engine's own form.
	Handed json.RawMessage `json:"handed,omitempty"`
	// Issued is how many calls the execution has made so far. The number of the next
	// call's id is one more.
	Issued int `json:"issued"`
	// Received is how many bytes of results the execution has been given so far.
	Received int64 `json:"received,omitempty"`
	// Pending are the calls of the current pause.
	Pending []Call `json:"pending,omitempty"`
	// Request is the hash of the request that led to Answer or, while the execution
	// runs, of the request that is being answered.
	Request string `json:"request,omitempty"`
	// Start is the hash of the request that started the execution, if the client may
	// repeat that request.
	Start string `json:"start,omitempty"`
	// Kept says that the last answer is kept although the client cannot repeat any request: it asks
	// for the answer by the id.
	Kept bool `json:"kept,omitempty"`
	// Answer is the last answer to the client, kept for a retry of the same request.
	// It is empty while the execution runs.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Reason and Detail say more about the end of an execution than its State, in the engine's own words.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Journal says how the journal of the execution is kept, in the engine's own words. Events
	// counts the events in it. Printed tells how much of the program's output is in it, in the
	// engine's own form.
	Journal string          `json:"journal,omitempty"`
	Events  int64           `json:"events,omitempty"`
	Printed json.RawMessage `json:"printed,omitempty"`
}
