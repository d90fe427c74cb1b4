// Package stubs turns tool definitions into the names and the code that a
// program in the sandbox calls them by. It holds pure functions.
package stubs

import "encoding/json"

// A Tool is a tool definition as the client sent it.
type Tool struct {
	// Name is the original name, any Unicode text but the empty one.
	Name string
	// Description is for people and may hold anything.
	Description string
	// Parameters is a JSON Schema or any other JSON value, or empty.
	Parameters json.RawMessage
}
