package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// Files keeps the files that executions are given and leave. It is safe for
// concurrent use.
type Files interface {
	// Open opens an input file for reading.
	Open(ctx context.Context, scope json.RawMessage, f InputFile) (io.ReadCloser, error)
	// Save keeps what a program has left and returns where. If reading from content
	// fails nothing is kept.
	Save(ctx context.Context, scope json.RawMessage, session, name string, content io.Reader) (OutputFile, error)
	// Drop notes that a program has deleted a file of its session, which is not to come
	// back with the session.
	Drop(ctx context.Context, scope json.RawMessage, f InputFile) error
}

// An InputFile is a file that is in the workspace before the program starts. Its
// JSON form is stored.
type InputFile struct {
	// Session and ID name it for Files, Name is its path in the workspace.
	Session string `json:"session"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	Size    int64  `json:"size"`
	SHA256  string `json:"sha256"`
	// ReadOnly says that changes to it are thrown away.
	ReadOnly bool `json:"read_only,omitempty"`
	// Kind, Resource and Version are the client's and go back to it.
	Kind     string `json:"kind,omitempty"`
	Resource string `json:"resource,omitempty"`
	Version  int    `json:"version,omitempty"`
}

// An OutputFile is a file that is there after the program has ended. Its JSON form
// is stored.
type OutputFile struct {
	Session string `json:"session"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	// Input is the input file that it still is, or that was changed to it.
	Input *InputFile `json:"input,omitempty"`
	// Inherited says that it still is that.
	Inherited bool `json:"inherited,omitempty"`
}

// fileBlock is the unit in which a file takes room in a workspace.
const fileBlock = 4 << 10

// encodeInputs returns what the record keeps of input files, which must have room in a
// workspace.
func (e *Engine) encodeInputs(inputs []InputFile) (json.RawMessage, error) {
	if len(inputs) == 0 {
		return nil, nil
	}
	var size int64
	for _, f := range inputs {
		size += (f.Size + fileBlock - 1) / fileBlock * fileBlock
	}
	if size > e.o.MaxInputSize {
		return nil, &InputsError{Size: size, Limit: e.o.MaxInputSize}
	}
	encoded, err := json.Marshal(inputs)
	if err != nil {
		return nil, fmt.Errorf("encode inputs: %w", err)
	}
	return encoded, nil
}

// inputsOf returns the input files of an execution.
func inputsOf(r continuation.Record) (inputs []InputFile, err error) {
	if len(r.Inputs) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Inputs, &inputs); err != nil {
		return nil, fmt.Errorf("read inputs of execution %s: %w", r.ID, err)
	}
	return inputs, nil
}

// give writes the inputs into the sandbox's workspace. What is there of them already
// is replaced.
func (x *execution) give(ctx context.Context) error {
	inputs, err := inputsOf(x.record)
	if err != nil {
		return err
	}
	for _, f := range inputs {
		if err := x.giveOne(ctx, f); err != nil {
			return fmt.Errorf("give file %s to the sandbox: %w", f.ID, err)
		}
	}
	return nil
}

func (x *execution) giveOne(ctx context.Context, f InputFile) error {
	content, err := x.e.o.Files.Open(ctx, x.record.Scope, f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	return x.sandbox.Give(sandbox.File{Name: f.Name, Size: f.Size, ReadOnly: f.ReadOnly}, content)
}
