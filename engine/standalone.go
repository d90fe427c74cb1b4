package engine

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// A ToolCall is one call of a tool that the server runs, without a program.
type ToolCall struct {
	// Principal sends the request.
	Principal string
	// Toolset is the key of the toolset, and Tool the name of the tool.
	Toolset, Tool string
	// Input is a JSON object.
	Input json.RawMessage
	// Parent is the id of the call on whose behalf this one is made, or empty.
	Parent string
}

// A ToolResult is what has come of a ToolCall that was made.
type ToolResult struct {
	// ID is the name of the record of the call.
	ID string
	// Output is the result, as JSON. Error tells why there is none; it is empty if there is one.
	Output json.RawMessage
	Error  string
	Took   time.Duration
	// Cost is what the call costs, in credits.
	Cost int64
}

// CallTool makes one call without a program. The call has a journal of its own. A call that was made
// and has failed is a ToolResult. The error is a *policy.UnknownError or a *policy.Refusal, or tells of
// trouble of the server.
func (e *Engine) CallTool(_ context.Context, _ ToolCall) (ToolResult, error) {
	return ToolResult{}, errors.New("engine: calls without a program are not built yet")
}
