package core

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/continuation"
	"fermata/engine/sandbox"
)

// The limits of the inputs of tool calls. The runner applies them as well, so that a program
// that exceeds them gets an exception where it makes the call.
const (
	// maxInput bounds the input of one call, in bytes of JSON.
	maxInput = 5_000_000
	// MaxDepth bounds how deeply inputs nest, and bodies of requests. Python's json module gives
	// up at about twice this depth.
	MaxDepth = 500
)

// mark notes in the record what a call is. A program that makes a call again, under the number of one that has not
// ended, must make the same one: the journal has told which it was, and a person may have approved it. Otherwise
// mark returns an ending with a state.
func mark(pending *continuation.Call, toolset string, c sandbox.Call) Ending {
	digest := sha256.Sum256(c.Input)
	// Records of earlier servers have no digest of some calls.
	if known := pending.Digest; len(known) > 0 && (!bytes.Equal(known, digest[:]) || pending.Toolset != toolset || pending.Tool != c.Tool) {
		return brokenBy("it sent another input for a call that it had made before")
	}
	pending.Digest, pending.Toolset, pending.Tool = digest[:], toolset, c.Tool
	return Ending{}
}

// CallID returns the id of the call with a number, as the client sees it.
func CallID(number int) string { return fmt.Sprintf("call_%03d", number) }

// CallNumber returns the number of the call with an id, or 0 if no call can have that id.
func CallNumber(id string) int {
	digits, _ := strings.CutPrefix(id, "call_")
	number, err := strconv.Atoi(digits)
	if err != nil || number < 1 || CallID(number) != id {
		return 0
	}
	return number
}

// An inspector checks the calls of one batch as far as they do not depend on the execution.
type inspector struct {
	seen map[int]bool
	// inputs is how many bytes the inputs have that were inspected.
	inputs int
}

// meet refuses a call that no worker of ours has sent.
func (i *inspector) meet(c sandbox.Call) error {
	if c.Input.Kind() != jsontext.KindBeginObject || i.seen[c.Number] {
		return errors.New("calls: malformed call")
	}
	if i.seen == nil {
		i.seen = map[int]bool{}
	}
	i.seen[c.Number] = true
	return nil
}

// inspect checks the input of a call and brings it into a strict form. A program that may not go on
// gets an ending with a state.
func (i *inspector) inspect(c *sandbox.Call) (refused Ending, err error) {
	i.inputs += len(c.Input)
	switch {
	case len(c.Input) > maxInput:
		return brokenBy(fmt.Sprintf("it sent a tool input of more than %d bytes", maxInput)), nil
	case i.inputs > sandbox.MaxInputs:
		return brokenBy(fmt.Sprintf("it sent tool inputs of more than %d bytes at once", sandbox.MaxInputs)), nil
	case TooDeep(c.Input):
		return brokenBy(fmt.Sprintf("it sent a tool input that is nested deeper than %d levels", MaxDepth)), nil
	}
	c.Input, err = strict(c.Input)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return brokenBy("it sent a tool input with an object that has a name twice"), nil
	case err != nil:
		return Ending{}, fmt.Errorf("calls: %w", err)
	}
	return Ending{}, nil
}

// CallOverhead is about how many bytes a call takes in the answer and in the record, beyond its
// name and its input.
const CallOverhead = 128

// Weight returns about how many bytes a record takes, without its calls and its answer.
func Weight(r continuation.Record) int64 {
	n := len(r.Inputs) + len(r.Handed) + len(r.Scope) + len(r.Granted) + len(r.Outputs)
	for _, name := range r.Tools {
		n += len(name)
	}
	return int64(n)
}

func brokenBy(what string) Ending { return Fail(ProtocolBroken, what, 0) }
