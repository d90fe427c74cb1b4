// Package timeline makes the blocks that an agent runtime appends to its history, and what a model sees
// of them, from the journal of an execution and the files that it has left. A timeline is a pure
// function of both: made again it has the same bytes.
package timeline
