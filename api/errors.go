package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/filename"
	"fermata/engine/files"
	"fermata/engine/outputs"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
	"fermata/stubs"
)

// An Error is the answer to a request that is refused or has failed. Handlers return it. Its text
// is written for the client, and its JSON form is the answer, unless a contract has set an
// Envelope.
type Error struct {
	// Status is the status of the answer.
	Status int `json:"-"`
	// Seconds is how long the client should wait before it tries again, 0 if that is of
	// no use. It is sent as a header.
	Seconds int `json:"-"`

	// Text says what is wrong. Some texts are codes that clients know.
	Text string `json:"error"`
	// Reason and Detail tell how an execution has ended which is over.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Details says more, where clients expect it.
	Details string `json:"details,omitempty"`
	// Code is Permanent, or empty.
	Code string `json:"code,omitempty"`
	// Message explains a text that is a code.
	Message string `json:"message,omitempty"`
	// ExpectedProfile and ActualProfile are the execution profiles that differ.
	ExpectedProfile string `json:"expected_profile,omitempty"`
	ActualProfile   string `json:"actual_profile,omitempty"`
	// RetryAfterSeconds is Seconds, where clients look for it in the body.
	RetryAfterSeconds int `json:"retry_after_seconds,omitzero"`
}

// Permanent is the Code of an Error that a retry cannot change. Clients know it and tell the model
// not to try again.
const Permanent = "unsupported_capability"

func (e *Error) Error() string { return "api: " + e.Text }

// Unauthorized refuses credentials. The log tells why, and the client is not told.
func Unauthorized(why string) error { return &auth.RefusedError{Err: auth.ErrKey, Why: why} }

// BadRequest refuses a request with status 400.
func BadRequest(text string) *Error {
	return &Error{Status: http.StatusBadRequest, Text: text}
}

// BadRequestf is BadRequest with a format.
func BadRequestf(format string, args ...any) *Error {
	return BadRequest(fmt.Sprintf(format, args...))
}

// unavailable refuses a request that may be sent again shortly.
func unavailable(text string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Seconds: 1, Text: text}
}

// The errors of requests that are refused whatever they ask for.
var (
	ErrUnauthorized   = &Error{Status: http.StatusUnauthorized, Text: "Invalid or missing API key"}
	ErrBodyIncomplete = BadRequest("request body is incomplete")
	ErrNotJSON        = BadRequest("request body is not valid JSON")

	errHost   = &Error{Status: http.StatusForbidden, Text: "This server lets everyone in (FERMATA_AUTH=off), so it answers only to addresses, localhost and the names in FERMATA_HOSTS"}
	errOrigin = &Error{Status: http.StatusForbidden, Text: "Whatever FERMATA_AUTH is, this server refuses requests that web pages of other origins make, except for those in FERMATA_CORS_ORIGINS"}

	// ErrOperator refuses what operators may not do.
	ErrOperator = &Error{Status: http.StatusForbidden, Text: "This key is an operator's (FERMATA_OPERATOR_KEYS): " +
		"it may look at executions and files and cancel executions, but not start, continue, upload or delete anything"}

	errContentType  = &Error{Status: http.StatusUnsupportedMediaType, Text: "Content-Type must be application/json"}
	errBodyTooLarge = &Error{Status: http.StatusRequestEntityTooLarge, Text: "request entity too large"}
)

// encodedBody refuses a body with a Content-Encoding.
func encodedBody(coding string) *Error {
	const shown = 60
	return &Error{
		Status: http.StatusUnsupportedMediaType,
		Text:   fmt.Sprintf("Content-Encoding %.*q is not understood: send the body as it is, without a Content-Encoding", shown, coding),
	}
}

// bodyTimeout refuses a body that took longer than it may.
func bodyTimeout(after time.Duration) *Error {
	return &Error{Status: http.StatusRequestTimeout, Text: fmt.Sprintf("request body did not arrive within %g seconds", after.Seconds())}
}

// Bodies for which there is no memory now.
var (
	errBodies    = unavailable("The server holds as many bytes of requests and answers as it may (FERMATA_BODY_BUDGET); retry shortly")
	errOwnBodies = tooMany("Your requests and their answers hold a quarter of the bytes that the server has for all (FERMATA_BODY_BUDGET). Please retry in %s.", tooManyDelay)
)

// tooManyDelay is after how many seconds a client that has too many executions may try
// again: nobody knows when one of them will end.
const tooManyDelay = 5

// callDelay is after how many seconds a client that has too many calls of tools may try again: most
// calls are short.
const callDelay = 1

// tooMany refuses a request for an execution, with a code that clients know: they tell the
// model when to try again.
func tooMany(message string, seconds int) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Seconds: seconds, RetryAfterSeconds: seconds,
		Text: "rate_limited", Message: fmt.Sprintf(message, inSeconds(seconds)),
	}
}

// tooManyExecutions refuses a start by a client that has its whole share of executions.
func tooManyExecutions(limit int) *Error {
	return tooMany(fmt.Sprintf("Too many CodeAPI executions at once: a client may have %d that run, wait for a sandbox or are paused "+
		"(FERMATA_MAX_EXECUTIONS). Answer or cancel one of them.", limit)+" Please retry in %s.", tooManyDelay)
}

// spentToday refuses a call of a client that has spent what it may spend on a day.
func spentToday(e *engine.SpentError, now time.Time) *Error {
	seconds := max(1, int((e.Until.Sub(now)+time.Second-1)/time.Second))
	return &Error{
		Status: http.StatusTooManyRequests, Seconds: seconds, RetryAfterSeconds: seconds,
		Text: "rate_limited", Message: fmt.Sprintf("toolsets: %v. Please retry in %s.", e, inSeconds(seconds)),
	}
}

// The bounds of the estimate of when a full server may have room again. A pause may be set to last
// longer than the upper one, but clients need not wait that long to ask again.
const (
	minRoomDelay = 2 * time.Second
	maxRoomDelay = 300 * time.Second
)

// noSandbox refuses a start for which there is no sandbox. room is how long it may take until one
// is free.
func noSandbox(room time.Duration) *Error {
	delay := min(max(room, minRoomDelay), maxRoomDelay)
	return &Error{
		Status: http.StatusServiceUnavailable, Seconds: int((delay + time.Second - 1) / time.Second),
		Text: "No sandbox is free; retry shortly",
	}
}

func tooManyFiles(what string, seconds int) *Error {
	return &Error{
		Status: http.StatusTooManyRequests, Seconds: seconds,
		Text: fmt.Sprintf("Too many file %s. Please retry in %s.", what, inSeconds(seconds)),
	}
}

func inSeconds(n int) string {
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

// errInternal tells the client nothing; the cause goes to the log.
var errInternal = &Error{Status: http.StatusInternalServerError, Text: "Internal server error"}

// errClientGone is the answer to a client that has left. Only the log has it.
var errClientGone = &Error{Status: 499, Text: "Client closed the request"}

// answers are the answers to the errors of other packages. The first entry that fits counts.
var answers = []struct {
	err    error
	answer *Error
}{
	{auth.ErrKey, ErrUnauthorized},
	{auth.ErrToken, &Error{Status: http.StatusUnauthorized, Text: "Invalid bearer token"}},
	{continuation.ErrTokenExpired, BadRequest("Execution expired")},
	{continuation.ErrToken, BadRequest("Invalid continuation token")},
	{continuation.ErrUnavailable, unavailable("The execution store is not available; retry shortly")},
	{core.ErrExpired, BadRequest("Execution expired")},
	{engine.ErrForbidden, &Error{Status: http.StatusForbidden, Text: "Forbidden"}},
	{engine.ErrNoResults, BadRequest("tool_results must be a non-empty array; resubmit with at least one result per pending tool call")},
	{engine.ErrNoApproval, &Error{Status: http.StatusNotFound, Text: "No such call waits for approval"}},
	{engine.ErrDecided, &Error{Status: http.StatusConflict, Text: "The call is decided already"}},
	{engine.ErrInFlight, &Error{Status: http.StatusConflict, Text: "Another continuation is already in flight for this execution; retry shortly"}},
	{engine.ErrRequestInUse, &Error{Status: http.StatusConflict, Text: "Programmatic request ID is already in use"}},
	{engine.ErrKeyReused, &Error{Status: http.StatusConflict, Text: "Idempotency-Key was used for another request"}},
	{engine.ErrKeySpent, &Error{Status: http.StatusConflict, Text: "The execution that this Idempotency-Key started has gone on"}},
	{engine.ErrTooMany, tooMany("Too many CodeAPI executions at once. Please retry in %s.", tooManyDelay)},
	{engine.ErrNoCapacity, noSandbox(0)},
	{continuation.ErrNotFound, &Error{Status: http.StatusNotFound, Text: "Execution not found"}},
	{engine.ErrOwnerAway, unavailable("The server that holds this execution is away; retry shortly")},
	{files.ErrNotFound, &Error{Status: http.StatusNotFound, Text: "File not found"}},
	{files.ErrForeign, &Error{Status: http.StatusForbidden, Text: "Unauthorized"}},
	{files.ErrTooLarge, &Error{Status: http.StatusRequestEntityTooLarge, Text: "File size limit exceeded"}},
	{files.ErrQuota, &Error{Status: http.StatusRequestEntityTooLarge, Text: "Storage quota exceeded"}},
	{files.ErrFull, BadRequest("Too many files in this session")},
	{engine.ErrClosing, unavailable("Service is shutting down")},
}

// ErrorOf returns what the client is told of an error.
func ErrorOf(ctx context.Context, err error) *Error {
	if f, ok := errors.AsType[*Error](err); ok {
		return f
	}
	if over, ok := errors.AsType[*core.ExpiredError](err); ok {
		return &Error{Status: http.StatusBadRequest, Text: "Execution expired", Reason: over.Reason, Detail: over.Detail}
	}
	if many, ok := errors.AsType[*engine.TooManyError](err); ok {
		return tooManyExecutions(many.Max)
	}
	if many, ok := errors.AsType[*engine.TooManyCallsError](err); ok {
		return tooMany(fmt.Sprintf("Too many calls of tools at once: a client may have %d without a program.", many.Max)+" Please retry in %s.", callDelay)
	}
	if spent, ok := errors.AsType[*engine.SpentError](err); ok {
		return spentToday(spent, time.Now())
	}
	if full, ok := errors.AsType[*engine.FullError](err); ok {
		return noSandbox(full.Room)
	}
	if wrong, ok := errors.AsType[*core.ResultError](err); ok {
		return BadRequestf("tool_results[%s] was not issued by the sandbox for this execution", wrong.CallID)
	}
	if wrong, ok := errors.AsType[*core.ApprovalError](err); ok {
		return BadRequestf("tool_results[%s] %s", wrong.CallID, wrong.Problem)
	}
	if refused := toolsetError(err); refused != nil {
		return refused
	}
	if large, ok := errors.AsType[*core.ResultsError](err); ok {
		return BadRequestf("Aggregate tool_history for this execution would be %d bytes, exceeds cap %d", large.Size, large.Limit)
	}
	if large, ok := errors.AsType[*engine.InputsError](err); ok {
		return &Error{
			Status: http.StatusRequestEntityTooLarge, Text: "session_input_too_large",
			Message: fmt.Sprintf("The input files take %d bytes, of which the workspace has %d", large.Size, large.Limit),
		}
	}
	if collision, ok := errors.AsType[*stubs.CollisionError](err); ok {
		return BadRequest(collision.Error())
	}
	if collision, ok := errors.AsType[*stubs.BashCollisionError](err); ok {
		return BadRequest(collision.Error())
	}
	if wrong, ok := errors.AsType[*outputs.MistakeError](err); ok {
		return BadRequest(wrong.Text)
	}
	if name, ok := errors.AsType[*filename.NameError](err); ok {
		return BadRequest("file name " + name.Reason)
	}
	if route, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch route.Code {
		case http.StatusNotFound:
			return &Error{Status: route.Code, Text: "Not found"}
		case http.StatusMethodNotAllowed:
			return &Error{Status: route.Code, Text: "Method not allowed"}
		}
	}
	for _, a := range answers {
		if errors.Is(err, a.err) {
			return a.answer
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errClientGone
	}
	return errInternal
}

// toolsetError returns what the client is told of an error about toolsets, or nil if it is none.
func toolsetError(err error) *Error {
	if unknown, ok := errors.AsType[*policy.UnknownError](err); ok {
		return BadRequest("toolsets: " + unknown.Error())
	}
	if many, ok := errors.AsType[*policy.TooManyError](err); ok {
		return BadRequest("toolsets: " + many.Error())
	}
	if refusal, ok := errors.AsType[*policy.Refusal](err); ok {
		return &Error{Status: http.StatusForbidden, Text: "toolsets: " + refusal.Error()}
	}
	if away, ok := errors.AsType[*host.UnavailableError](err); ok {
		return unavailable("toolsets: " + away.Error())
	}
	if module, ok := errors.AsType[*engine.ModuleError](err); ok {
		return BadRequest("tools: " + module.Error())
	}
	return nil
}
