package core

import (
	"encoding/json"
	"fmt"

	"fermata/continuation"
)

// An InputFile is a file that is in the workspace before the program starts. The
// implementation of Files makes it for Start.Inputs. Its JSON form is stored in
// continuation.Record.Inputs, and in the Outcome as the origin of an OutputFile.
type InputFile struct {
	// Session and ID name the file for Files. If Session is that of the execution, the engine
	// tells Files when the program has deleted the file.
	Session string `json:"session"`
	ID      string `json:"id"`
	// Name is the path of the file in the workspace.
	Name string `json:"name"`
	// Size is in bytes. SHA256 is in hexadecimal; it tells whether the program has changed the
	// file.
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	// Type is the media type. It is empty in the records of older servers.
	Type string `json:"type,omitempty"`
	// ReadOnly is true if the program's changes to the file are not kept.
	ReadOnly bool `json:"read_only,omitempty"`
	// Kind, Resource and Version are opaque to the engine. Files finds the owner of the file by
	// them, and answers repeat them to the client.
	Kind     string `json:"kind,omitempty"`
	Resource string `json:"resource,omitempty"`
	Version  int    `json:"version,omitempty"`
}

// An OutputFile is a file that is in the workspace when the program has ended. Its JSON form
// is stored in the Outcome.
type OutputFile struct {
	// Session and ID name the file for Files. Name is its path in the workspace.
	Session string `json:"session"`
	ID      string `json:"id"`
	Name    string `json:"name"`
	// Size is in bytes, and Type is the media type. If Type is empty, neither is known: an older
	// server has stored the file.
	Size int64  `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
	// Input is the input file that was at this path before the program started; nil if there
	// was none.
	Input *InputFile `json:"input,omitempty"`
	// Inherited is true if the file is Input, unchanged.
	Inherited bool `json:"inherited,omitempty"`
}

// InputsOf returns the input files in the record of an execution.
func InputsOf(r continuation.Record) (inputs []InputFile, err error) {
	if len(r.Inputs) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Inputs, &inputs); err != nil {
		return nil, fmt.Errorf("read inputs of execution %s: %w", r.ID, err)
	}
	return inputs, nil
}
