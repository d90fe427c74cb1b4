package api

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
	"fermata/engine/core"
)

// ClientRequestIDHeader carries the id that a client has given to a request, by which it can cancel
// the request.
const ClientRequestIDHeader = "X-LibreChat-Code-Request-ID"

// maxReason bounds a text in the log that may have parts that a client chose, in bytes. The handlers
// of the log quote it, so that it cannot forge a line.
const maxReason = 300

// A line has the attributes in the log that only some requests have.
type line struct {
	// contract is that of the execution, and execution is its id, if the answer names it.
	contract, execution string
	// step tells how the request has left its execution, nil if the request did not come so far.
	step *step
	// requestID is the client's id of the request, if it is not in the header.
	requestID string
	// reason is the text of an error answer, and why is what its client is not told.
	reason, why string
}

// A step is what the log tells of an engine.Outcome.
type step struct {
	core.Step
	execution, session string
	// outcome is one word for how the execution was left, empty if the request was refused.
	outcome string
	// code is the exit code of a program that has ended itself with one other than 0.
	code int
}

// SetClientRequestID notes for the log the id that a client has given to a request, or that of the
// request that it cancels. It must be a ValidRequestID.
func SetClientRequestID(c echo.Context, id string) { factsOf(c).line.requestID = id }

// SetContract notes for the log by which contract a program runs.
func SetContract(c echo.Context, contract string) { factsOf(c).line.contract = contract }

// SetStep notes for the log how a request has left its execution, or how the execution stands if the
// request was refused.
func SetStep(c echo.Context, o core.Outcome) {
	l := &factsOf(c).line
	l.step = &step{Step: o.Step, execution: o.Execution, session: o.Session, outcome: o.Ending()}
	if o.Reason == core.ExitedCode {
		l.step.code = o.Code
	}
	if reply, err := ReplyTo(o, HTTPErrors); err == nil && reply.Status >= http.StatusBadRequest {
		l.reason = reply.Text
	}
}

// SetReason notes for the log why a request is refused, and returns what a client is told.
func SetReason(c echo.Context, err error) *Error {
	f := ErrorOf(c.Request().Context(), err)
	factsOf(c).line.refuse(f, err)
	return f
}

// refuse notes for the log why a request is not answered as it wanted to be.
func (l *line) refuse(answer *Error, err error) {
	l.reason = answer.Text
	for _, more := range []string{answer.Message, answer.Details, answer.Detail} {
		if more != "" {
			l.reason += ": " + more
		}
	}
	// Some texts tell the client what it has sent, which is its own.
	if text, _, quotes := strings.Cut(l.reason, ", got"); quotes {
		l.reason = text
	}
	if refused, ok := errors.AsType[*auth.RefusedError](err); ok {
		l.why = refused.Why
	}
}

// attrs returns the attributes of the line, after those that each request has.
func (l *line) attrs(attrs []slog.Attr, f *facts, request *http.Request, status int) []slog.Attr {
	add := func(key, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(key, Bounded(value)))
		}
	}
	id := cmp.Or(l.requestID, request.Header.Get(ClientRequestIDHeader))
	if ValidRequestID(id) {
		add("client_request_id", id)
	}
	add("trace_id", traceOf(request.Header.Get("Traceparent")))
	add("contract", l.contract)
	execution, session := l.execution, f.session
	if s := l.step; s != nil {
		execution, session = cmp.Or(s.execution, execution), cmp.Or(s.session, session)
	}
	add("execution", execution)
	add("session", session)
	if s := l.step; s != nil && execution != "" {
		attrs = append(attrs, slog.Int("round", s.Round))
		if s.outcome != "" {
			attrs = append(attrs,
				slog.String("outcome", s.outcome), slog.Int("calls", s.Calls),
				slog.Int64("ran_ms", s.Ran.Milliseconds()), slog.Int64("waited_ms", s.Waited.Milliseconds()))
		}
		if s.code != 0 {
			attrs = append(attrs, slog.Int("exit_code", s.code))
		}
		if s.Repeated {
			attrs = append(attrs, slog.Bool("repeated", true))
		}
		add("by", s.Server)
	}
	add("reason", l.reason)
	if status == http.StatusUnauthorized {
		add("why", l.why)
		add("peer", request.RemoteAddr)
	}
	return attrs
}

// levelOf returns the level of the line about a request that was answered with status. A 4xx is the
// client's to mend, but refused credentials are the operator's: a wrong setting, or an attack. What
// has no cause is no error, whatever its status: /ready of a server that is full.
func levelOf(status int, f *facts) slog.Level {
	switch {
	case f.cause != nil:
		return slog.LevelError
	case status == http.StatusUnauthorized, f.warning != "":
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}

// Bounded returns text for the log, cut to a length that no client can stretch.
func Bounded(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// traceOf returns the trace id in a header of W3C Trace Context, or "" if there is none that is well
// formed.
func traceOf(header string) string {
	// version "-" trace-id "-" parent-id "-" flags; later versions may add to it.
	const size = 2 + 1 + 32 + 1 + 16 + 1 + 2
	if len(header) < size || header[2] != '-' || header[35] != '-' || header[52] != '-' {
		return ""
	}
	version, trace, parent, flags := header[:2], header[3:35], header[36:52], header[53:size]
	switch {
	case !isHex(version) || !isHex(trace) || !isHex(parent) || !isHex(flags):
	case version == "ff", version == "00" && len(header) != size, len(header) > size && header[size] != '-':
	case strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "":
	default:
		return trace
	}
	return ""
}

// isHex reports whether s has only the digits that Trace Context allows.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
