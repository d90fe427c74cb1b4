// Package stubs turns tool definitions into the code through which a program calls the
// tools: a Python function or a shell function for each tool. A toolset becomes a Python module
// with a class, shell functions, and documentation for a model. The functions of the package have no
// side effects.
package stubs

import "encoding/json"

// A Tool is a tool definition as the client sent it, or as the source of a toolset offers it.
type Tool struct {
	// Name is the original name: any Unicode text that is not empty.
	Name string
	// Description is for readers of the program. It may be any text.
	Description string
	// Parameters is a JSON Schema. It may also be any other JSON value, or empty.
	Parameters json.RawMessage
	// Output is a JSON Schema of the results, or empty. Only the stubs of toolsets show it.
	Output json.RawMessage
}
