package core

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"fermata/continuation"
	"fermata/engine/artifact"
	"fermata/engine/sandbox"
	"fermata/engine/tools/envelope"
)

// A Reply is a client's result, out of its envelope if it came in one.
type Reply struct {
	Result
	// Details are what the envelope says of a failure beyond the message; nil if no envelope tells of it.
	Details *envelope.Details
	// Files are those that the result hands over. Value is the result without their contents.
	Files []artifact.File
}

// replyTo takes the result of a call out of its envelope. What is no envelope is the result itself.
func replyTo(call continuation.Call, r Result) Reply {
	a := Reply{Result: r}
	if !call.Envelope || r.Failed {
		return a
	}
	ret, err := envelope.Open(r.Value)
	if failed, ok := errors.AsType[*envelope.FailedError](err); ok {
		a.Value, a.Failed, a.Message, a.Details = nil, true, Quoted(failed.Message), &failed.Details
	} else if err == nil {
		a.Files, a.Value, err = artifact.Of(ret, call.Path)
		if err != nil {
			return a.WithoutFiles(fmt.Sprintf(TextBadArtifact, err))
		}
	}
	return a
}

// WithoutFiles returns the reply as that of a call that has failed because its files cannot be kept.
func (a Reply) WithoutFiles(why string) Reply {
	a.Value, a.Failed, a.Message, a.Details, a.Files = nil, true, Quoted(why), ArtifactFailed(), nil
	return a
}

// ForSandbox returns the result as the sandbox gets it.
func (a Reply) ForSandbox() sandbox.Result {
	if a.Failed {
		return sandbox.Result{Value: a.Message, Failed: true, About: AboutOf(a.Details)}
	}
	return sandbox.Result{Value: a.Value}
}

// AboutOf returns the attributes of the exception that the program gets; nil if there are none.
func AboutOf(d *envelope.Details) json.RawMessage {
	if d == nil || *d == (envelope.Details{}) {
		return nil
	}
	about, err := json.Marshal(d)
	if err != nil {
		panic(err) // Texts and a boolean can be encoded.
	}
	return about
}

// MessageOf returns the message of a failed call.
func MessageOf(r Result) string {
	var text string
	// The message was found to be a JSON string, or empty, when it came.
	_ = json.Unmarshal(r.Message, &text)
	return cmp.Or(text, "tool execution failed")
}

// Quoted returns a text as JSON.
func Quoted(text string) json.RawMessage {
	value, err := json.Marshal(text)
	if err != nil {
		panic(err) // It does not happen: every string can be encoded.
	}
	return value
}

// A Handing is a result of a client that hands files over.
type Handing struct {
	Reply
	// Index is the index of the result among those for the sandbox.
	Index   int
	Started time.Time
	// Noted is true if a server that has died since has recorded what became of the files.
	Noted bool
}

// ArtifactFailed returns the error details of a call that fails because its files cannot be kept.
func ArtifactFailed() *envelope.Details { return &envelope.Details{Code: codeArtifact} }

// codeArtifact is the error code of a call that fails because its files cannot be kept.
const codeArtifact = "artifact_failed"

// TextBadArtifact is the error of a call whose result hands a file over in a wrong way.
const TextBadArtifact = "the result hands over a file and is wrong: %s"
