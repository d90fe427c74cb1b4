// Package timeline makes the blocks that an agent runtime appends to its history, and what a model sees
// of them, from the journal of an execution and the files that it has left. A timeline is a pure
// function of both: made again it has the same bytes.
package timeline

// Names are what a request calls the blocks of its timeline, and how it wants them.
type Names struct {
	// Turn, Call and Tool are the ids of the turn, of the tool call that runs the program, and of the
	// tool that was called.
	Turn, Call, Tool string
	// Notes are what the model has said beside its call, or empty.
	Notes string
	// Include puts the blocks into the terminal answer. Log adds the end of what the program has printed
	// to the report. NoBase64 leaves the contents of PDF and images out.
	Include, Log, NoBase64 bool
}
