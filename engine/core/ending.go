package core

import (
	"encoding/json"
	"strings"
	"time"

	"fermata/continuation"
	"fermata/engine/journal"
	"fermata/engine/outputs"
	"fermata/engine/sandbox"
)

// An Ending tells how a segment came to rest: in a pause, or at the end of the execution.
type Ending struct {
	State  State
	Reason Reason
	Detail string
	Code   int
	// Line is where the program stood when it was killed, as it claims, or 0.
	Line int
	// Value is what the program has returned, if it was asked for.
	Value json.RawMessage
	// Calls are the calls of a pause as the client sees them, and Pending are the same calls as
	// the record keeps them. Issued are those of which the journal has to be told, Fresh is how many of
	// them no earlier pause had, and Size is about how many bytes all of them take.
	Calls   []Call
	Pending []continuation.Call
	Issued  []IssuedCall
	Fresh   int
	Size    int64
	// Partial is what the client is told in a pause of what the program has printed so far.
	Partial Partial
	// Printed is all that the program has printed, if the sandbox has told of the end. Then the
	// sandbox can also be asked for files.
	Printed *Printed
	// LeftFiles is true if the workspace is not empty at the end. The fields from files to
	// Undelivered tell what became of its files.
	LeftFiles   bool
	Files       []OutputFile
	Deleted     []string
	Skipped     Skipped
	Undelivered int
	// Found tells what became of files that the program had to produce, by their names in the workspace,
	// and Judged what became of each of them.
	Found  map[string]outputs.Found
	Judged []outputs.Judged
	// Rested is when the program came to rest, and Ran how much of the run budget it took. Held is
	// how many bytes the quota of the principal has for the pause.
	Rested time.Time
	Ran    time.Duration
	Held   int64
}

// An IssuedCall is a call that begins, or waits for approval, with a pause. Line is the line of the
// program that made it, as the program claims. Server tells whether the server runs the tool.
type IssuedCall struct {
	Call
	Line   int
	Server bool
}

// Printed is what a program has printed.
type Printed struct{ Stdout, Stderr []byte }

// Outcome returns the outcome of an execution of a session that has ended so.
func (e Ending) Outcome(session string) Outcome {
	o := Outcome{
		State: e.State, Session: session, Reason: e.Reason, Detail: e.Detail, Code: e.Code,
		Value: e.Value, Files: e.Files, Deleted: e.Deleted, Skipped: e.Skipped, Undelivered: e.Undelivered,
		Outputs: e.Judged,
	}
	if e.Printed != nil {
		o.Stdout, o.Stderr = journal.Decode(e.Printed.Stdout), journal.Decode(e.Printed.Stderr)
	}
	return o
}

// Fail returns the ending of an execution that has failed.
func Fail(reason Reason, detail string, code int) Ending {
	return Ending{State: Failed, Reason: reason, Detail: detail, Code: code}
}

// With returns e with the program's output, with where it stood, and with whether it has left files.
func (e Ending) With(x sandbox.Exit) Ending {
	e.Printed, e.LeftFiles, e.Line = &Printed{x.Stdout, x.Stderr}, x.Files, x.Line
	return e
}

// maxDetail bounds an error text that a program has chosen, in bytes.
const maxDetail = 16 << 10

// detail cuts an error text that a program has chosen to maxDetail bytes and makes it valid
// UTF-8.
func detail(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxDetail)], "\uFFFD")
}

// Exited returns the ending of a program that was not killed by the server.
func Exited(x sandbox.Exit) Ending { return verdict(x).With(x) }

// verdict decides how a program has ended. A flood, which the supervisor has seen, overrides the
// worker's report, which the program may have forged. Without a report the supervisor decides.
func verdict(x sandbox.Exit) Ending {
	switch done := x.Report; {
	case x.Over == "stdout":
		return Fail(StdoutFlood, "", 0)
	case x.Over == "stderr":
		return Fail(StderrFlood, "", 0)
	case done != nil && done.OutOfMemory, x.OutOfMemory && done == nil:
		return Fail(OutOfMemory, "", 0)
	case done != nil && done.Error != "":
		return Fail(RaisedError, detail(done.Error), 0)
	case done != nil && done.Exit != 0:
		return Fail(ExitedCode, "", done.Exit)
	case done != nil:
		return Ending{State: Completed, Value: returned(done.Value)}
	case x.Broken:
		return Fail(ProtocolBroken, "", 0)
	case x.Code == nil:
		return Fail(SandboxLost, "", 0)
	case *x.Code != 0:
		return Fail(ExitedCode, "", *x.Code)
	default:
		return Ending{State: Completed}
	}
}
