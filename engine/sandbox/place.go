package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrInterrupted means that a program has ended, or was to end, before a file was placed.
var ErrInterrupted = errors.New("sandbox: interrupted")

// A PlaceError says why a file could not be placed in a workspace.
type PlaceError struct {
	// Reason is the supervisor's, in words.
	Reason string
}

func (e *PlaceError) Error() string { return "sandbox: a file cannot be placed: " + e.Reason }

// maxReason bounds the reason of a PlaceError, in bytes.
const maxReason = 400

// Place writes a file into the workspace of a program that waits, as a new file that takes the place of
// what has its name. Nothing is written through links of the program. Each event that comes meanwhile goes
// to other, which returns false if there is no need to go on: then the error is ErrInterrupted, as it is
// if ctx ends. A *PlaceError tells that the workspace has no place for the file. After any other error the
// sandbox is of no more use.
func (c *Conn) Place(ctx context.Context, name string, content []byte, other func(Event) bool) error {
	if err := c.Give(File{Name: name, Size: int64(len(content))}, bytes.NewReader(content)); err != nil {
		return err
	}
	for {
		e, err := c.next(ctx)
		switch {
		case ctx.Err() != nil:
			return ErrInterrupted
		case err != nil:
			return err
		}
		if a, ok := e.(answer); ok {
			return readPlaced(a.frame)
		}
		if !other(e) {
			return ErrInterrupted
		}
	}
}

// readPlaced returns what an answer says of a file that was to be placed.
func readPlaced(f frame) error {
	var placed struct {
		Error string `json:"error"`
	}
	if f.kind != framePlaced {
		return fmt.Errorf("frame %q in place of what came of a file", f.kind)
	}
	if err := json.Unmarshal(f.payload, &placed); err != nil {
		return fmt.Errorf("read what came of a file: %w", err)
	}
	if placed.Error == "" {
		return nil
	}
	return &PlaceError{placed.Error[:min(len(placed.Error), maxReason)]}
}
