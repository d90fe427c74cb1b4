package engine

import (
	"encoding/json"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/outputs"
	"fermata/engine/sandbox"
)

// An ending tells how a segment came to rest: in a pause, or at the end of the execution.
type ending struct {
	state  State
	reason Reason
	detail string
	code   int
	// line is where the program stood when it was killed, as it claims, or 0.
	line int
	// value is what the program has returned, if it was asked for.
	value json.RawMessage
	// calls are the calls of a pause as the client sees them, and pending are the same calls as
	// the record keeps them. issued are those of which the journal has to be told, fresh is how many of
	// them no earlier pause had, and size is about how many bytes all of them take.
	calls   []Call
	pending []continuation.Call
	issued  []issuedCall
	fresh   int
	size    int64
	// partial is what the client is told in a pause of what the program has printed so far.
	partial partial
	// printed is all that the program has printed, if the sandbox has told of the end. Then the
	// sandbox can also be asked for files.
	printed *printed
	// leftFiles is true if the workspace is not empty at the end. The fields from files to
	// undelivered tell what became of its files.
	leftFiles   bool
	files       []OutputFile
	deleted     []string
	skipped     Skipped
	undelivered int
	// found tells what became of files that the program had to produce, by their names in the workspace,
	// and judged what became of each of them.
	found  map[string]outputs.Found
	judged []outputs.Judged
	// rested is when the program came to rest, and ran how much of the run budget it took. held is
	// how many bytes the quota of the principal has for the pause.
	rested time.Time
	ran    time.Duration
	held   int64
}

// An issuedCall is a call that begins, or waits for approval, with a pause. line is the line of the
// program that made it, as the program claims. server tells whether the server runs the tool.
type issuedCall struct {
	Call
	line   int
	server bool
}

// printed is what a program has printed.
type printed struct{ stdout, stderr []byte }

func (e ending) outcome(session string) Outcome {
	o := Outcome{
		State: e.state, Session: session, Reason: e.reason, Detail: e.detail, Code: e.code,
		Value: e.value, Files: e.files, Deleted: e.deleted, Skipped: e.skipped, Undelivered: e.undelivered,
		Outputs: e.judged,
	}
	if e.printed != nil {
		o.Stdout, o.Stderr = journal.Decode(e.printed.stdout), journal.Decode(e.printed.stderr)
	}
	return o
}

func failed(reason Reason, detail string, code int) ending {
	return ending{state: Failed, reason: reason, detail: detail, code: code}
}

// with returns e with the program's output, with where it stood, and with whether it has left files.
func (e ending) with(x sandbox.Exit) ending {
	e.printed, e.leftFiles, e.line = &printed{x.Stdout, x.Stderr}, x.Files, x.Line
	return e
}

// maxDetail bounds an error text that a program has chosen, in bytes.
const maxDetail = 16 << 10

// detail cuts an error text that a program has chosen to maxDetail bytes and makes it valid
// UTF-8.
func detail(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxDetail)], "\uFFFD")
}

// exited returns the ending of a program that was not killed by the server.
func exited(x sandbox.Exit) ending { return verdict(x).with(x) }

// verdict decides how a program has ended. A flood, which the supervisor has seen, overrides the
// worker's report, which the program may have forged. Without a report the supervisor decides.
func verdict(x sandbox.Exit) ending {
	switch done := x.Report; {
	case x.Over == "stdout":
		return failed(StdoutFlood, "", 0)
	case x.Over == "stderr":
		return failed(StderrFlood, "", 0)
	case done != nil && done.OutOfMemory, x.OutOfMemory && done == nil:
		return failed(OutOfMemory, "", 0)
	case done != nil && done.Error != "":
		return failed(RaisedError, detail(done.Error), 0)
	case done != nil && done.Exit != 0:
		return failed(ExitedCode, "", done.Exit)
	case done != nil:
		return ending{state: Completed, value: returned(done.Value)}
	case x.Broken:
		return failed(ProtocolBroken, "", 0)
	case x.Code == nil:
		return failed(SandboxLost, "", 0)
	case *x.Code != 0:
		return failed(ExitedCode, "", *x.Code)
	default:
		return ending{state: Completed}
	}
}
