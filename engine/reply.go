package engine

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

// A reply is a client's result, out of its envelope if it came in one.
type reply struct {
	Result
	// details are what the envelope says of a failure beyond the message; nil if no envelope tells of it.
	details *envelope.Details
	// files are those that the result hands over. Value is the result without their contents.
	files []artifact.File
}

// replyTo takes the result of a call out of its envelope. What is no envelope is the result itself.
func replyTo(call continuation.Call, r Result) reply {
	a := reply{Result: r}
	if !call.Envelope || r.Failed {
		return a
	}
	ret, err := envelope.Open(r.Value)
	if failed, ok := errors.AsType[*envelope.FailedError](err); ok {
		a.Value, a.Failed, a.Message, a.details = nil, true, quoted(failed.Message), &failed.Details
	} else if err == nil {
		a.files, a.Value, err = artifact.Of(ret, call.Path)
		if err != nil {
			return a.failed(fmt.Sprintf(textBadArtifact, err))
		}
	}
	return a
}

// failed returns the reply as that of a call that has failed because its files cannot be kept.
func (a reply) failed(why string) reply {
	a.Value, a.Failed, a.Message, a.details, a.files = nil, true, quoted(why), artifactFailed(), nil
	return a
}

// forSandbox returns the result as the sandbox gets it.
func (a reply) forSandbox() sandbox.Result {
	if a.Failed {
		return sandbox.Result{Value: a.Message, Failed: true, About: aboutOf(a.details)}
	}
	return sandbox.Result{Value: a.Value}
}

// aboutOf returns the attributes of the exception that the program gets; nil if there are none.
func aboutOf(d *envelope.Details) json.RawMessage {
	if d == nil || *d == (envelope.Details{}) {
		return nil
	}
	about, err := json.Marshal(d)
	if err != nil {
		panic(err) // Texts and a boolean can be encoded.
	}
	return about
}

// messageOf returns the message of a failed call.
func messageOf(r Result) string {
	var text string
	// The message was found to be a JSON string, or empty, when it came.
	_ = json.Unmarshal(r.Message, &text)
	return cmp.Or(text, "tool execution failed")
}

// quoted returns a text as JSON.
func quoted(text string) json.RawMessage {
	value, err := json.Marshal(text)
	if err != nil {
		panic(err) // It does not happen: every string can be encoded.
	}
	return value
}

// A handing is a result of a client that hands files over.
type handing struct {
	reply
	// index is the index of the result among those for the sandbox.
	index   int
	started time.Time
	// noted is true if a server that has died since has recorded what became of the files.
	noted bool
}

// artifactFailed returns the error details of a call that fails because its files cannot be kept.
func artifactFailed() *envelope.Details { return &envelope.Details{Code: codeArtifact} }

// codeArtifact is the error code of a call that fails because its files cannot be kept.
const codeArtifact = "artifact_failed"

// textBadArtifact is the error of a call whose result hands a file over in a wrong way.
const textBadArtifact = "the result hands over a file and is wrong: %s"
