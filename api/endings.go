package api

import (
	"cmp"
	"fmt"
	"net/http"
	"syscall"

	"fermata/engine/core"

	"golang.org/x/sys/unix"
)

// An ErrorStyle is the way in which clients are told that an execution has failed.
type ErrorStyle string

// The error styles.
const (
	// HTTPErrors answers a spent budget with 408 and too many rounds with 400.
	HTTPErrors ErrorStyle = "http"
	// InlineErrors answers both with 200 and a body of status "error": some clients
	// discard the body of any other status. Refusals of a request keep their status.
	InlineErrors ErrorStyle = "inline"
)

// A Reply is the answer about an execution that has ended without completing.
type Reply struct {
	Status int
	Text   string
}

// An Exit is how a program has ended, seen as a process.
type Exit struct {
	// Code is the exit code, or Signal is the name of the signal that killed the process.
	Code   int
	Signal string
	// Status is a code of two letters that clients know, and Message says the same to
	// people. A process that has ended well has neither.
	Status, Message string
	// Unsaid is true if the program's own output cannot tell how it ended.
	Unsaid bool
}

// A way is a way in which an execution ends: its state, and the reason if it has failed.
type way struct {
	state  core.State
	reason core.Reason
}

// An ending is the answer about one way in which executions end.
type ending struct {
	// reply is the answer, and inline its replacement in the inline style, if that differs.
	reply, inline func(core.Outcome) Reply
	// exit is the end of a program without tools. It is nil if such a program cannot end in
	// this way.
	exit func(core.Outcome) (Exit, error)
	// detail tells more than the reply. It is nil if there is no more to tell.
	detail func(core.Outcome) string
}

// endings are all ways in which executions end. Where clients recognise a text, it is that text.
var endings = map[way]ending{
	{core.Completed, ""}: {exit: func(core.Outcome) (Exit, error) { return Exit{}, nil }},
	{core.TimedOut, ""}: {
		reply:  says(http.StatusRequestTimeout, "Execution timeout"),
		inline: says(http.StatusOK, "Time limit exceeded"),
		exit:   killed("TO", says(0, "Time limit exceeded")),
		detail: core.Outcome.Why,
	},
	{core.Cancelled, ""}: {
		reply:  says(http.StatusOK, "Programmatic execution request cancelled"),
		exit:   killed("XX", says(0, "Execution request cancelled")),
		detail: core.Outcome.Why,
	},
	{core.Expired, ""}: {reply: says(http.StatusBadRequest, "Execution expired"), detail: core.Outcome.Why},

	{core.Failed, core.RaisedError}: {
		reply: func(o core.Outcome) Reply {
			// The contract wants a text whatever the program has raised.
			return Reply{http.StatusOK, cmp.Or(o.Detail, "Execution failed or timed out")}
		},
		exit: func(core.Outcome) (Exit, error) { return exited(1), nil },
	},
	{core.Failed, core.ExitedCode}: {
		reply: counts(http.StatusOK, "Sandbox exited with code %d"),
		exit:  func(o core.Outcome) (Exit, error) { return exited(o.Code), nil },
		detail: func(o core.Outcome) string {
			if o.Code >= 0 {
				return ""
			}
			return exited(o.Code).Message
		},
	},
	{core.Failed, core.OutOfMemory}: same("RE", says(http.StatusOK, "Out of memory")).because("The program needed more memory than FERMATA_MEMORY allows"),
	{core.Failed, core.StdoutFlood}: same("OL", says(http.StatusOK, "stdout length exceeded")).because("The program printed more than FERMATA_OUTPUT allows"),
	{core.Failed, core.StderrFlood}: same("EL", says(http.StatusOK, "stderr length exceeded")).because("The program printed more than FERMATA_OUTPUT allows"),
	{core.Failed, core.UngrantedTool}: same("XX", func(o core.Outcome) Reply {
		return Reply{http.StatusOK, "Sandbox requested an unregistered tool: " + o.Detail}
	}).because("The request that started the program did not define this tool"),
	{core.Failed, core.ProtocolBroken}: same("XX", func(o core.Outcome) Reply {
		text := "The program broke the connection to its sandbox's runner"
		if o.Detail != "" {
			text += ": " + o.Detail
		}
		return Reply{http.StatusOK, text}
	}),
	{core.Failed, core.TooMuchStored}: same("XX", counts(http.StatusOK,
		"Tool calls of this client that wait and its kept answers would take more than %d bytes (FERMATA_MAX_STORED)")),
	{core.Failed, core.OutputsMissing}: {
		reply: outputsMissing,
		exit: func(o core.Outcome) (Exit, error) {
			return Exit{Status: "RE", Message: outputsMissing(o).Text, Unsaid: true}, nil
		},
	},
	{core.Failed, core.SandboxLost}: {
		reply: says(http.StatusOK, "Sandbox execution failed"),
		exit: func(core.Outcome) (Exit, error) {
			return Exit{}, &Error{Status: http.StatusBadGateway, Text: "sandbox_execution_failed", Reason: string(core.SandboxLost), Message: "Sandbox execution failed"}
		},
		detail: func(o core.Outcome) string {
			return cmp.Or(o.Why(), "The sandbox ended, and the program was not the cause")
		},
	},
	{core.Failed, core.TooManyRounds}: ending{
		reply:  counts(http.StatusBadRequest, "Exceeded maximum round trips (%d)"),
		inline: counts(http.StatusOK, "Exceeded maximum round trips (%d)"),
	}.because("FERMATA_MAX_ROUNDS bounds how often a program may pause; calls that wait together are one round"),
	{core.Failed, core.TooManyCalls}: ending{
		reply:  counts(http.StatusBadRequest, "Execution exceeded maximum tool calls (%d)"),
		inline: counts(http.StatusOK, "Execution exceeded maximum tool calls (%d)"),
	}.because("FERMATA_MAX_CALLS bounds the tool calls of one execution"),
}

// ReplyTo returns the answer about an execution that has ended without completing.
func ReplyTo(o core.Outcome, style ErrorStyle) (Reply, error) {
	e := endings[wayOf(o)]
	switch {
	case e.reply == nil:
		return Reply{}, fmt.Errorf("api: no reply to state %q, reason %q", o.State, o.Reason)
	case style == InlineErrors && e.inline != nil:
		return e.inline(o), nil
	}
	return e.reply(o), nil
}

// WhyOf returns the reason of an end, a word that stays the same, and in words what there is to tell
// beyond the reply to it. Both are empty if the execution has completed.
func WhyOf(o core.Outcome) (reason, detail string) {
	if o.State == core.Completed {
		return "", ""
	}
	if e := endings[wayOf(o)]; e.detail != nil {
		detail = e.detail(o)
	}
	return cmp.Or(string(o.Reason), string(o.State)), detail
}

// ExitOf returns how a program without tools has ended, seen as a process.
func ExitOf(o core.Outcome) (Exit, error) {
	e := endings[wayOf(o)]
	if e.exit == nil {
		return Exit{}, fmt.Errorf("api: a program without tools in state %q, reason %q", o.State, o.Reason)
	}
	return e.exit(o)
}

func wayOf(o core.Outcome) way {
	if o.State != core.Failed {
		return way{state: o.State}
	}
	return way{o.State, o.Reason}
}

// says returns a reply with a fixed text.
func says(status int, text string) func(core.Outcome) Reply {
	return func(core.Outcome) Reply { return Reply{status, text} }
}

// outputsMissing is the reply about a program that has ended well without what it had to produce.
func outputsMissing(o core.Outcome) Reply {
	return Reply{http.StatusOK, "Missing output files: " + o.Detail}
}

// counts returns a reply whose text has the outcome's Code in it.
func counts(status int, format string) func(core.Outcome) Reply {
	return func(o core.Outcome) Reply { return Reply{status, fmt.Sprintf(format, o.Code)} }
}

// because adds a detail to an ending.
func (e ending) because(detail string) ending {
	e.detail = func(core.Outcome) string { return detail }
	return e
}

// same is the ending of a program that was killed, which all clients are told with the same
// text.
func same(status string, reply func(core.Outcome) Reply) ending {
	return ending{reply: reply, exit: killed(status, reply)}
}

// killed returns the exit of a program that was killed, with the text of a reply.
func killed(status string, reply func(core.Outcome) Reply) func(core.Outcome) (Exit, error) {
	return func(o core.Outcome) (Exit, error) {
		return Exit{Signal: "SIGKILL", Status: status, Message: reply(o).Text, Unsaid: true}, nil
	}
}

// exited is the exit of a program that ended with a code, which is negative for a signal.
func exited(code int) Exit {
	if code >= 0 {
		return Exit{Code: code, Status: "RE", Message: fmt.Sprintf("Exited with error status %d", code)}
	}
	name := cmp.Or(unix.SignalName(syscall.Signal(-code)), fmt.Sprintf("signal %d", -code))
	return Exit{Signal: name, Status: "SG", Message: "Killed by " + name, Unsaid: true}
}
