package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
)

// Files keeps the files that executions are given and leave. It is safe for concurrent use.
//
// scope names the user of an execution: it decides which files the execution may read, and the
// files that the execution leaves belong to that user. The implementation of Files makes it for
// Start.Scope and reads it here. To the engine, which stores it in continuation.Record.Scope, it
// is opaque.
type Files interface {
	// Open opens an input file. It can be read until ctx ends, and the caller closes it.
	Open(ctx context.Context, scope json.RawMessage, f core.InputFile) (io.ReadCloser, error)
	// Save stores a file that a program has left, as a new file of the session. If reading
	// content fails, Save stores nothing and wraps the error of content.
	Save(ctx context.Context, scope json.RawMessage, session, name string, content io.Reader) (core.OutputFile, error)
	// Drop notes that a program has deleted a file of its session, which therefore does not
	// return with the session.
	Drop(ctx context.Context, scope json.RawMessage, f core.InputFile) error
	// Discard deletes a file that Save has stored and that nobody has heard of, so that it does not
	// count any more. It does so even if ctx has ended.
	Discard(ctx context.Context, scope json.RawMessage, f core.InputFile) error
}

// A Staging stores the input files that a start itself contains. The engine asks it when nothing but a
// failure keeps the program from beginning, so that a start that is refused, or gets the answer of an
// earlier one, stores nothing.
type Staging interface {
	// Stage stores the files, and returns all input files of the program.
	Stage(ctx context.Context) ([]core.InputFile, error)
	// Discard removes the files that Stage has stored, if there are any: the program has not begun.
	Discard(ctx context.Context)
}

// An InputsError refuses a start whose input files take Size bytes of the workspace, beyond the
// limit.
type InputsError struct {
	Size, Limit int64
}

func (e *InputsError) Error() string {
	return fmt.Sprintf("engine: input files take %d bytes, at most %d allowed", e.Size, e.Limit)
}

// fileBlock is the unit, in bytes, in which a file takes room in a workspace.
const fileBlock = 4 << 10

// encodeInputs returns input files in the form in which the record keeps them. An InputsError
// means that they take more than limit bytes of a workspace.
func encodeInputs(inputs []core.InputFile, limit int64) (json.RawMessage, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	var size int64
	for _, f := range inputs {
		size += (f.Size + fileBlock - 1) / fileBlock * fileBlock
	}
	if size > limit {
		return nil, &InputsError{Size: size, Limit: limit}
	}
	encoded, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("encode inputs: %w", err)
	}
	return encoded, nil
}

// give writes the input files into the workspace of the sandbox. It replaces those that are
// there already, whole or in part.
func give(ctx context.Context, files Files, sb *sandbox.Conn, record continuation.Record) error {
	inputs, err := core.InputsOf(record)
	if err != nil {
		return err
	}
	for _, f := range inputs {
		if err := giveOne(ctx, files, sb, record.Scope, f); err != nil {
			return fmt.Errorf("give file %s to the sandbox: %w", f.ID, err)
		}
	}
	return nil
}

func giveOne(ctx context.Context, files Files, sb *sandbox.Conn, scope json.RawMessage, f core.InputFile) error {
	content, err := files.Open(ctx, scope, f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return sb.Give(sandbox.File{Name: f.Name, Size: f.Size, ReadOnly: f.ReadOnly}, content)
}

// A handedFile is a file that the result of a call has handed over, in the form of the record.
type handedFile struct {
	Call string `json:"call"`
	core.InputFile
}

// output returns the entry of the answer for the file, which the program has not changed. input is the input
// file that it has replaced, or nil.
func (f handedFile) output(input *core.InputFile) core.OutputFile {
	return core.OutputFile{Session: f.Session, ID: f.ID, Name: f.Name, Size: f.Size, Type: f.Type, Input: input}
}

// handedOf returns the files that tools have handed over, from the record of an execution. If several files
// have the same name, the last one counts.
func handedOf(r continuation.Record) (list []handedFile, err error) {
	if len(r.Handed) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Handed, &list); err != nil {
		return nil, fmt.Errorf("read the files that execution %s was handed: %w", r.ID, err)
	}
	return list, nil
}
