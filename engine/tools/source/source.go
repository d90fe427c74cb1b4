// Package source is the contract between a toolset and where its tools come from: HTTP endpoints,
// an OpenAPI document, or an MCP server.
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
	// Description is the source's text about the tool. Nobody has checked what it says.
	Description string
	// Input is the JSON Schema of the tool's input, which is an object. It is never nil.
	Input json.RawMessage
	// Output is the JSON Schema of the tool's result, or nil if the source tells none.
	Output json.RawMessage
	// Idempotent tells whether a call may be repeated by the rules of the source, such as the method
	// of an HTTP request.
	Idempotent bool
}

// A Source offers tools and runs them. It is safe for concurrent use.
type Source interface {
	// Tools returns the tools in an order that does not change. Only the source of an MCP server
	// connects to something for it, for no longer than ctx.
	Tools(ctx context.Context) ([]Tool, error)
	// Call runs a tool and returns its result, which is JSON. An error that is a *CallError tells the
	// program why the call has failed.
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
	// Principal is on whose behalf the call is made. Calls of different principals share no state
	// that one of them could use up.
	Principal string
	// Idempotent tells whether the call may be repeated. If not, it is sent once at the most.
	Idempotent bool
	// Key names the call. It is sent to the endpoint of an idempotent call as its Idempotency-Key.
	Key string
	// MaxResult is how many bytes the unpacked answer may have.
	MaxResult int64
}

// A CallError is the error of a call that has failed.
type CallError struct {
	// Message tells the program why. It contains no address, no URL and no secret of the server.
	Message string
	// Unknown is true if the call may have taken effect all the same.
	Unknown bool
	// Details are what the tool's envelope says of the failure beyond the message; nil if no envelope
	// tells of it.
	Details *envelope.Details
	// Err is the cause, for the log of the server. It may be nil.
	Err error
}

// Error returns the message for the program.
func (e *CallError) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }
