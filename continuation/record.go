// Package continuation is what outlives a request: the signed token that lets a
// client go on with one round of one execution, and the record that says where
// that execution stands. It knows nothing of HTTP, sandboxes or Python.
package continuation

import (
	"encoding/json"
	"errors"
	"time"
)

// RecordFormat is the version of the stored form of a Record. It is written
// into every record and may only grow; a store refuses a format it does not know.
const RecordFormat = 1

// Errors of a Store. They are compared with errors.Is.
var (
	// ErrNotFound means that no live record has this id.
	ErrNotFound = errors.New("continuation: no such record")
	// ErrConflict means that another writer was first: the stored version is not
	// the one the new record follows.
	ErrConflict = errors.New("continuation: record has changed")
	// ErrUnavailable means that the store cannot be reached, or cannot read or
	// write this now. Store says what it leaves open after a Put.
	ErrUnavailable = errors.New("continuation: store unavailable")
)

// A Call is one tool call that was handed to the client in the latest pause.
type Call struct {
	// Number is the sandbox's own key of the call; results go back under it.
	Number int `json:"number"`
	// ID is what the client sees: call_001, call_002, … made by the server.
	ID string `json:"id"`
	// Answered says that its result came with the request that is being answered.
	Answered bool `json:"answered,omitempty"`
}

// A Record is what the store knows of one execution. Its JSON form is stored and
// shared between servers of different versions: fields are added, never renamed.
type Record struct {
	// Format is the RecordFormat of the server that wrote the record; Put sets it.
	Format int `json:"format"`
	// ID names the execution, a UUID.
	ID string `json:"id"`
	// Session is the id of the session whose files the execution sees.
	Session string `json:"session"`
	// Principal is who started the execution; nobody else may go on with it.
	Principal string `json:"principal"`
	// State is a state of the engine's state machine.
	State string `json:"state"`
	// Version counts the writes of the record. A write must follow the stored one.
	Version int64 `json:"version"`
	// Round is the number of pauses so far; the token of the current pause names it.
	Round int `json:"round"`
	// Created is when the execution began.
	Created time.Time `json:"created"`
	// Deadline is when the present state ends by itself: the pause lifetime of a
	// paused execution, the latest end of a running one, the keep time of an ended one.
	Deadline time.Time `json:"deadline"`
	// Budget and Spent are the time in which the code may run and has run.
	Budget time.Duration `json:"budget_ns"`
	Spent  time.Duration `json:"spent_ns"`
	// Owner is the server instance that holds the sandbox's stream.
	Owner string `json:"owner"`
	// Sandbox is the provider's reference to the sandbox.
	Sandbox string `json:"sandbox"`
	// Marker is what a server begins with when it attaches to the sandbox: where
	// the one before it may have died in the middle of a word.
	Marker []byte `json:"marker,omitempty"`
	// Tools are the original names of the tools that were granted.
	Tools []string `json:"tools,omitempty"`
	// Inputs and Scope are the files that the execution was given and whose they
	// are, in the engine's form.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	Scope  json.RawMessage `json:"scope,omitempty"`
	// Issued is how many calls the execution has made; the next id follows it.
	Issued int `json:"issued"`
	// Received is how many bytes of results the execution has been given.
	Received int64 `json:"received,omitempty"`
	// Pending are the calls of the current pause.
	Pending []Call `json:"pending,omitempty"`
	// Request is the hash of the request that led to Answer, or, while the
	// execution runs, of the request that is being answered.
	Request string `json:"request,omitempty"`
	// Start is the hash of the request that started the execution, if that may be
	// repeated.
	Start string `json:"start,omitempty"`
	// Answer is what the engine last told the client, kept for an identical retry.
	// It is empty while the execution runs.
	Answer json.RawMessage `json:"answer,omitempty"`
}
