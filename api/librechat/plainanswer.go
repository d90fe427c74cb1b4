package api

import (
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"fermata/engine"
)

// encodePlain returns the body for the end of a program without tools. Whatever the
// program did to itself has one form: clients show stdout and stderr to the model and
// nothing else, so what the program itself could not say is said there.
func encodePlain(outcome engine.Outcome) ([]byte, error) {
	end, err := plainEndOf(outcome)
	if err != nil {
		return nil, err
	}
	stderr := outcome.Stderr
	if end.note {
		if stderr != "" && !strings.HasSuffix(stderr, "\n") {
			stderr += "\n"
		}
		stderr += "[sandbox] " + end.message + "\n"
	}
	var o object
	o.text("session_id", outcome.Session)
	o.text("stdout", outcome.Stdout)
	o.text("stderr", stderr)
	o.raw("files", encodeList(outcome.Files, encodeOutput))
	o.leftovers(outcome)
	if end.signal == "" {
		o.number("code", int64(end.code))
		o.raw("signal", []byte("null"))
	} else {
		o.raw("code", []byte("null"))
		o.text("signal", end.signal)
	}
	o.textOrNull("message", end.message)
	o.textOrNull("status", end.status)
	o.number("wall_time", outcome.Ran.Milliseconds())
	return o.end(), nil
}

// A plainEnd is how a program without tools ended.
type plainEnd struct {
	// code is the exit code, or signal the name of what killed it.
	code   int
	signal string
	// status is a code of two letters that clients of this interface know, and message
	// the same for people. A program that ended well has neither.
	status, message string
	// note says that nothing in the program's own output tells.
	note bool
}

func plainEndOf(outcome engine.Outcome) (plainEnd, error) {
	killed := func(status, message string) (plainEnd, error) {
		return plainEnd{signal: "SIGKILL", status: status, message: message, note: true}, nil
	}
	switch outcome.State {
	case engine.Completed:
		return plainEnd{}, nil
	case engine.TimedOut:
		return killed("TO", "Time limit exceeded")
	case engine.Cancelled:
		return killed("XX", "Execution request cancelled")
	case engine.Failed:
	default:
		return plainEnd{}, fmt.Errorf("api: a plain program in state %q", outcome.State)
	}
	switch outcome.Reason {
	case engine.RaisedError:
		return exited(1), nil
	case engine.ExitedCode:
		return exited(outcome.Code), nil
	case engine.OutOfMemory:
		return killed("RE", "Out of memory")
	case engine.StdoutFlood:
		return killed("OL", "stdout length exceeded")
	case engine.StderrFlood:
		return killed("EL", "stderr length exceeded")
	case engine.UngrantedTool:
		return killed("XX", "Sandbox requested an unregistered tool: "+outcome.Detail)
	case engine.TooMuchStored:
		return killed("XX", tooMuchStored(outcome))
	case engine.ProtocolBroken:
		return killed("XX", protocolBroken(outcome))
	case engine.SandboxLost:
		return plainEnd{}, errSandbox
	default:
		return plainEnd{}, fmt.Errorf("api: a plain program failed for reason %q", outcome.Reason)
	}
}

// exited is the end of a program with a code, negative for a signal.
func exited(code int) plainEnd {
	if code >= 0 {
		return plainEnd{code: code, status: "RE", message: fmt.Sprintf("Exited with error status %d", code)}
	}
	name := cmp.Or(unix.SignalName(syscall.Signal(-code)), fmt.Sprintf("signal %d", -code))
	return plainEnd{signal: name, status: "SG", message: "Killed by " + name, note: true}
}

// textOrNull adds a string, or null for an empty one.
func (o *object) textOrNull(name, value string) {
	if value == "" {
		o.raw(name, []byte("null"))
		return
	}
	o.text(name, value)
}
