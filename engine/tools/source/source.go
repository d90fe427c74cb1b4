// Package source is the contract between a toolset and the source of its tools: HTTP endpoints, an OpenAPI
// document, or an MCP server.
package source

import (
	"context"
	"encoding/json"

	"fermata/engine/tools/envelope"
)

// A Tool is a tool that a source offers.
type Tool struct {
	// Name is the tool's name at its source.
	Name string
	// Description is the source's text about the tool. It is not trusted.
	Description string
	// Input is the JSON Schema of the tool's input, which is an object. It is never nil.
	Input json.RawMessage
	// Output is the JSON Schema of the tool's result, or nil if the source does not have it.
	Output json.RawMessage
	// Idempotent is true if a call may be repeated according to the source, such as by the method of an HTTP
	// request.
	Idempotent bool
}

// A Source offers tools and runs them. It is safe for concurrent use.
type Source interface {
	// Tools returns the tools in an order that does not change. Only the source of an MCP server opens a
	// connection for this.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs a tool and returns its result, which is JSON. An error that is a *CallError has the text for the
	// program.
	Call(ctx context.Context, c Call) (json.RawMessage, error)
	// Close ends all connections and processes of the source.
	Close(ctx context.Context) error
}

// A Call is one call of a tool.
type Call struct {
	// Tool is the name of the tool at its source.
	Tool string
	// Input is the input, which has been checked against the schema of the tool, as canonical JSON.
	Input json.RawMessage
	// Principal is the principal on whose behalf the call is made. Calls of different principals share no
	// state that one of them could exhaust.
	Principal string
	// Idempotent is true if the call may be repeated. Otherwise it is sent at most once.
	Idempotent bool
	// Key is the idempotency key of the call. If the call is idempotent, the endpoint gets it in the header
	// Idempotency-Key.
	Key string
	// MaxResult is how many bytes the unpacked answer may have.
	MaxResult int64
}

// A CallError is the error of a call that has failed.
type CallError struct {
	// Message tells the program why. It contains no address, no URL and no secret of the server.
	Message string
	// Unknown is true if the call may have taken effect nevertheless.
	Unknown bool
	// Details are what the tool's envelope says about the failure beyond the message, or nil if it came without
	// an envelope.
	Details *envelope.Details
	// Err is the cause, for the log of the server. It may be nil.
	Err error
}

// Error returns the message for the program.
func (e *CallError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }
