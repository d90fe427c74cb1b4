package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-playground/validator/v10"
	"github.com/labstack/echo/v4"

	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/files"
	"fermata/stubs"
)

// A failure is an answer that is no result. As an error it turns a request away;
// its text is made for the client.
type failure struct {
	status int
	text   string
	// retry asks the client to come again shortly.
	retry bool
	// seconds is how long a client that asks too much is to wait.
	seconds int
	// details says more, where clients expect it.
	details string
	// permanent marks what this server will never do. Clients know the mark and
	// tell the model not to try again.
	permanent bool
	// message explains a text that is a code.
	message string
	// expected and actual are the profiles, where they differ.
	expected, actual string
}

func (f *failure) Error() string { return "api: " + f.text }

func badRequest(text string) *failure {
	return &failure{status: http.StatusBadRequest, text: text}
}

func badRequestf(format string, args ...any) *failure {
	return badRequest(fmt.Sprintf(format, args...))
}

// Requests that are refused whatever they ask for.
var (
	errUnauthorized = &failure{status: http.StatusUnauthorized, text: "Invalid or missing API key"}
	errBearer       = &failure{status: http.StatusUnauthorized, text: "Invalid bearer token"}

	errHost   = &failure{status: http.StatusForbidden, text: "This server lets everyone in (FERMATA_AUTH=off), so it answers only to addresses, localhost and the names in FERMATA_HOSTS"}
	errOrigin = &failure{status: http.StatusForbidden, text: "This server lets everyone in (FERMATA_AUTH=off), so it refuses requests that web pages of other origins make"}

	errClientRequestID = badRequest("Invalid programmatic request ID")
	errIdempotencyKey  = badRequest("Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")

	errWorkerRouting   = &failure{status: http.StatusBadRequest, permanent: true, text: "Code bridge worker routing requires the remote-bridge backend"}
	errWorkspaceID     = &failure{status: http.StatusBadRequest, permanent: true, text: "Invalid code workspace ID"}
	errWorkspacePython = &failure{status: http.StatusBadRequest, permanent: true, text: "Selected-workspace programmatic execution supports bash only"}
	errWorkspace       = &failure{status: http.StatusBadRequest, permanent: true, text: "Workspace selection requires an authenticated bridge worker"}

	errContentType    = &failure{status: http.StatusUnsupportedMediaType, text: "Content-Type must be application/json"}
	errBodyTooLarge   = &failure{status: http.StatusRequestEntityTooLarge, text: "request entity too large"}
	errBodyIncomplete = badRequest("request body is incomplete")
	errNotUTF8        = badRequest("request body is not valid UTF-8")
	errTooDeep        = badRequestf("request body is nested deeper than %d levels", engine.MaxDepth)
	errNotJSON        = badRequest("request body is not valid JSON")
	errNotAnObject    = badRequest("request body must be a JSON object")
)

// Bodies that there is no memory for now.
var (
	errBodies = &failure{
		status: http.StatusServiceUnavailable, retry: true,
		text: "The server holds as many bytes of requests and answers as it may (FERMATA_BODY_BUDGET); retry shortly",
	}
	errOwnBodies = tooMany("Your requests and their answers hold a quarter of the bytes that the server has for all (FERMATA_BODY_BUDGET). Please retry in %s.", tooManyDelay)
)

// bodyTimeout refuses a body that took longer than it may.
func bodyTimeout(after time.Duration) *failure {
	return &failure{status: http.StatusRequestTimeout, text: fmt.Sprintf("request body did not arrive within %g seconds", after.Seconds())}
}

// Requests to cancel that are refused.
var (
	errCancelRequestID   = badRequest("Invalid or missing request_id")
	errCancelForbidden   = &failure{status: http.StatusForbidden, text: "Programmatic request belongs to another principal"}
	errCancelUnavailable = &failure{status: http.StatusServiceUnavailable, retry: true, text: "Cancellation service unavailable"}
)

func syntaxError(offset int64) *failure {
	return badRequestf("request body is not valid JSON at byte %d", offset)
}

func profileMismatch(expected string) *failure {
	return &failure{
		status: http.StatusConflict, permanent: true, text: "execution_profile_mismatch",
		message:  fmt.Sprintf("Expected the %s execution profile, but reached %s", expected, ourProfile),
		expected: expected, actual: ourProfile,
	}
}

func invalidProfile(expected string) *failure {
	return &failure{
		status: http.StatusBadRequest, permanent: true, text: "invalid_execution_profile",
		message:  "Invalid execution profile: " + expected,
		expected: expected, actual: ourProfile,
	}
}

// Initial requests that are refused.
var (
	errCode          = badRequest("Missing required field: code")
	errNoCode        = badRequest("Code cannot be empty")
	errNoLanguage    = badRequest("Missing required field: lang")
	errArgs          = badRequest("args must be an array of strings")
	errTooManyArgs   = badRequestf("Too many args provided. Maximum is %d.", maxArgs)
	errLargeArgs     = badRequestf("args have more than %d bytes together", maxArgBytes)
	errSession       = badRequest("session_id must be a string")
	errTools         = badRequest("tools must be an array")
	errTimeout       = badRequest("timeout must be a positive number of milliseconds")
	errTimeoutRange  = badRequestf("timeout must be between %d and %d milliseconds", MinTimeout.Milliseconds(), MaxTimeout.Milliseconds())
	errFiles         = badRequest("files must be an array")
	errFilesNotTaken = badRequest("files are not supported by this server")
	// errReference does not tell what is another's from what is nobody's.
	errReference = &failure{status: http.StatusForbidden, text: "Unauthorized file reference"}
)

func argTooLarge(i, size int) *failure {
	return badRequestf("args[%d] is %d bytes, maximum is %d", i, size, maxArg)
}

func tooManyReferences(count int) *failure {
	return badRequestf("Too many files provided (%d). Maximum is %d.", count, MaxFiles)
}

func referenceNotObject(i int) *failure { return badRequestf("files[%d] must be an object", i) }

func referenceName(i int) *failure { return badRequestf("files[%d].name must be a string", i) }

func referenceInvalid(i int, member string) *failure {
	return badRequestf("files[%d].%s is invalid", i, member)
}

func referenceKind(i int) *failure {
	return badRequestf("files[%d].kind must be one of: skill, agent, user", i)
}

func referenceVersion(i int) *failure {
	return badRequestf("files[%d].version is required for kind: 'skill'", i)
}

func referenceNoVersion(i int) *failure {
	return badRequestf("files[%d].version is only valid for kind: 'skill'", i)
}

func referenceVersionNumber(i int) *failure {
	return badRequestf("files[%d].version must be an integer", i)
}

func referencePath(reason string) *failure { return badRequest("files[].name " + reason) }

func referenceReserved(name string) *failure {
	return badRequest(`files[].name "` + name + `" is reserved for PTC runtime and cannot be supplied by callers`)
}

func inputsTooLarge(size, limit int64) *failure {
	return &failure{
		status: http.StatusRequestEntityTooLarge, text: "session_input_too_large",
		message: fmt.Sprintf("The input files take %d bytes, of which the workspace has %d", size, limit),
	}
}

// refusedField returns the text for a rule of program that a value breaks.
func refusedField(field validator.FieldError) *failure {
	// The namespace begins with the name of the type: program.tools[0].name.
	_, path, _ := strings.Cut(field.Namespace(), ".")
	switch field.Field() + " " + field.Tag() {
	case "code notblank":
		return errCode
	case "timeout gt":
		return errTimeout
	case "timeout budget":
		return errTimeoutRange
	case "language oneof":
		return unsupportedLanguage(fmt.Sprint(field.Value()))
	case "code required":
		return errNoCode
	case "lang required":
		return errNoLanguage
	case "lang oneof":
		return badRequest("Unsupported language: " + fmt.Sprint(field.Value()))
	case "name max":
		return badRequestf("%s must have at most %s characters", path, field.Param())
	default:
		return badRequest(path + " must be a non-empty string")
	}
}

func tooManyTools(count, limit int) *failure {
	return badRequestf("Too many tools provided (%d). Maximum is %d.", count, limit)
}

func toolNotObject(i int) *failure {
	return badRequestf("tools[%d] must be an object", i)
}

func toolDescription(i int) *failure {
	return badRequestf("tools[%d].description must be a string", i)
}

func unsupportedLanguage(language string) *failure {
	return badRequest(`Unsupported language "` + language + `"; supported values are "python" and "bash"`)
}

// Continuations that are refused. The execution stays paused.
var (
	errToken          = badRequest("Invalid continuation token")
	errResults        = badRequest("tool_results must be an array when continuation_token is provided")
	errNoResults      = badRequest("tool_results must be a non-empty array; resubmit with at least one result per pending tool call")
	errResultNoObject = badRequest("tool_results entries must be objects")
)

func tooManyResults(count, limit int) *failure {
	return badRequestf("Too many tool_results provided (%d). Maximum is %d.", count, limit)
}

func resultCallID(got string) *failure {
	return badRequestf(`tool_results[].call_id must match /^call_\d{3,6}$/, got: %s`, got)
}

func resultIsError(id string) *failure {
	return badRequestf("tool_results[%s].is_error must be a boolean if present", id)
}

func resultErrorMessage(id string) *failure {
	return badRequestf("tool_results[%s].error_message must be a string if present", id)
}

func resultTooLarge(id string, size, limit int) *failure {
	return badRequestf("tool_results[%s].result is %d bytes, exceeds per-result cap %d", id, size, limit)
}

func resultsTooLarge(size, limit int64) *failure {
	return badRequestf("Aggregate tool_history for this execution would be %d bytes, exceeds cap %d", size, limit)
}

func resultTwice(id string) *failure {
	return badRequest("Duplicate call_id in tool_results: " + id)
}

func resultNotIssued(id string) *failure {
	return badRequestf("tool_results[%s] was not issued by the sandbox for this execution", id)
}

// Requests for files that are refused.
var (
	errBadRequest     = badRequest("Bad request")
	errScopeKind      = badRequest("kind must be one of: skill, agent, user")
	errScopeVersion   = badRequest("version is required for kind: 'skill'")
	errScopeNoVersion = badRequest("version is only valid for kind: 'skill'")
	errNotMultipart   = badRequest("Invalid content type. Must be multipart/form-data.")
	errNoFile         = badRequest("No file provided")
	errNoFiles        = badRequest("No files provided")
	errTooManyFiles   = badRequestf("Too many files provided. Maximum is %d.", maxUploads)
	errTooManyFields  = badRequestf("Too many form fields provided. Maximum is %d.", maxFields)
	errStrayField     = badRequestf("a form field is larger than %d bytes", maxStray)
	errPartHeader     = badRequestf("the header of a part of the form is larger than %d bytes", maxPartHeader)
	errFileTooLarge   = &failure{status: http.StatusRequestEntityTooLarge, text: "File size limit exceeded"}
	// errLongRest is for a file that goes on for so long that those after it cannot be had.
	errLongRest      = &failure{status: http.StatusRequestEntityTooLarge, text: errFileTooLarge.text}
	errUploadTimeout = &failure{status: http.StatusGatewayTimeout, text: "Upload timeout"}
	errFileNotFound  = &failure{status: http.StatusNotFound, text: "File not found"}
	errNoDownload    = &failure{status: http.StatusNotFound, text: errFileNotFound.text, details: "The file may have expired or does not exist"}
)

func scopeID(kind string) *failure {
	return badRequestf("id is required for kind: '%s'", kind)
}

// fieldTooLong names one of the fields that are ours.
func fieldTooLong(field string) *failure {
	return badRequestf("%s must have at most %d bytes", field, maxField)
}

func fieldAfterFile(field string) *failure {
	return badRequest(field + " must come before the file")
}

// downloadError is the answer to a download that err prevents.
func downloadError(err error) error {
	if errors.Is(err, files.ErrNotFound) {
		return errNoDownload
	}
	return err
}

// rateLimited is a code that clients know: they tell the model when to try again.
const rateLimited = "rate_limited"

// tooManyDelay is when a client that has too many executions may try again: nobody
// knows when one of them will end.
const tooManyDelay = 5

// tooMany refuses a request for an execution.
func tooMany(message string, seconds int) *failure {
	return &failure{
		status: http.StatusTooManyRequests, seconds: seconds,
		text: rateLimited, message: fmt.Sprintf(message, inSeconds(seconds)),
	}
}

// tooManyExecutions refuses a start by a client that has all that are its share.
func tooManyExecutions(limit int) *failure {
	return tooMany(fmt.Sprintf("Too many CodeAPI executions at once: a client may have %d that run, wait for a sandbox or are paused "+
		"(FERMATA_MAX_EXECUTIONS). Answer or cancel one of them.", limit)+" Please retry in %s.", tooManyDelay)
}

func tooManyFiles(what string, seconds int) *failure {
	return &failure{
		status: http.StatusTooManyRequests, seconds: seconds,
		text: fmt.Sprintf("Too many file %s. Please retry in %s.", what, inSeconds(seconds)),
	}
}

func inSeconds(n int) string {
	if n == 1 {
		return "1 second"
	}
	return fmt.Sprintf("%d seconds", n)
}

// errSandbox is the answer for a program without tools whose sandbox has ended.
var errSandbox = &failure{
	status: http.StatusBadGateway,
	text:   "sandbox_execution_failed", message: "Sandbox execution failed",
}

// errInternal says nothing; the cause goes to the log.
var errInternal = &failure{status: http.StatusInternalServerError, text: "Internal server error"}

// errClientGone is the answer that nobody reads.
var errClientGone = &failure{status: 499, text: "Client closed the request"}

// failures are the answers to the errors of the packages below.
var failures = []struct {
	err    error
	answer *failure
}{
	{continuation.ErrTokenExpired, badRequest("Execution expired")},
	{continuation.ErrToken, errToken},
	{continuation.ErrUnavailable, &failure{status: http.StatusServiceUnavailable, retry: true, text: "The execution store is not available; retry shortly"}},
	{engine.ErrExpired, badRequest("Execution expired")},
	{engine.ErrForbidden, &failure{status: http.StatusForbidden, text: "Forbidden"}},
	{engine.ErrInFlight, &failure{status: http.StatusConflict, text: "Another continuation is already in flight for this execution; retry shortly"}},
	{engine.ErrRequestInUse, &failure{status: http.StatusConflict, text: "Programmatic request ID is already in use"}},
	{engine.ErrKeyReused, &failure{status: http.StatusConflict, text: "Idempotency-Key was used for another request"}},
	{engine.ErrKeySpent, &failure{status: http.StatusConflict, text: "The execution that this Idempotency-Key started has gone on"}},
	{engine.ErrTooMany, tooMany("Too many CodeAPI executions at once. Please retry in %s.", tooManyDelay)},
	{engine.ErrNoCapacity, &failure{status: http.StatusServiceUnavailable, retry: true, text: "No sandbox is free; retry shortly"}},
	{engine.ErrOwnerAway, &failure{status: http.StatusServiceUnavailable, retry: true, text: "The server that holds this execution is away; retry shortly"}},
	{files.ErrNotFound, errFileNotFound},
	{files.ErrForeign, &failure{status: http.StatusForbidden, text: "Unauthorized"}},
	{files.ErrTooLarge, errFileTooLarge},
	{files.ErrQuota, &failure{status: http.StatusRequestEntityTooLarge, text: "Storage quota exceeded"}},
	{files.ErrFull, badRequest("Too many files in this session")},
	{engine.ErrClosing, &failure{status: http.StatusServiceUnavailable, retry: true, text: "Service is shutting down"}},
}

// answerTo returns what the client is told of an error.
func answerTo(ctx context.Context, err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if many, ok := errors.AsType[*engine.TooManyError](err); ok {
		return tooManyExecutions(many.Max)
	}
	if wrong, ok := errors.AsType[*engine.ResultError](err); ok {
		return resultNotIssued(wrong.CallID)
	}
	if large, ok := errors.AsType[*engine.ResultsError](err); ok {
		return resultsTooLarge(large.Size, large.Limit)
	}
	if large, ok := errors.AsType[*engine.InputsError](err); ok {
		return inputsTooLarge(large.Size, large.Limit)
	}
	if collision, ok := errors.AsType[*stubs.CollisionError](err); ok {
		return badRequest(collision.Error())
	}
	if collision, ok := errors.AsType[*stubs.BashCollisionError](err); ok {
		return badRequest(collision.Error())
	}
	if name, ok := errors.AsType[*files.NameError](err); ok {
		return badRequest("file name " + name.Reason)
	}
	if route, ok := errors.AsType[*echo.HTTPError](err); ok {
		switch route.Code {
		case http.StatusNotFound:
			return &failure{status: route.Code, text: "Not found"}
		case http.StatusMethodNotAllowed:
			return &failure{status: route.Code, text: "Method not allowed"}
		}
	}
	for _, f := range failures {
		if errors.Is(err, f.err) {
			return f.answer
		}
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errClientGone
	}
	return errInternal
}

// endingOf returns status and text for an execution that ended without being
// completed. The texts are those that clients recognise, where there are any.
func endingOf(outcome engine.Outcome, style ErrorStyle) (status int, text string, err error) {
	switch outcome.State {
	case engine.TimedOut:
		if style == InlineErrors {
			return http.StatusOK, "Time limit exceeded", nil
		}
		return http.StatusRequestTimeout, "Execution timeout", nil
	case engine.Cancelled:
		return http.StatusOK, "Programmatic execution request cancelled", nil
	case engine.Expired:
		return http.StatusBadRequest, "Execution expired", nil
	case engine.Failed:
	default:
		return 0, "", fmt.Errorf("api: an answer in state %q", outcome.State)
	}

	switch outcome.Reason {
	case engine.RaisedError:
		// The contract wants a text whatever the program raised.
		return http.StatusOK, cmp.Or(outcome.Detail, "Execution failed or timed out"), nil
	case engine.ExitedCode:
		return http.StatusOK, fmt.Sprintf("Sandbox exited with code %d", outcome.Code), nil
	case engine.OutOfMemory:
		return http.StatusOK, "Out of memory", nil
	case engine.StdoutFlood:
		return http.StatusOK, "stdout length exceeded", nil
	case engine.StderrFlood:
		return http.StatusOK, "stderr length exceeded", nil
	case engine.UngrantedTool:
		return http.StatusOK, "Sandbox requested an unregistered tool: " + outcome.Detail, nil
	case engine.TooMuchStored:
		return http.StatusOK, tooMuchStored(outcome), nil
	case engine.ProtocolBroken:
		return http.StatusOK, protocolBroken(outcome), nil
	case engine.SandboxLost:
		return http.StatusOK, "Sandbox execution failed", nil
	case engine.TooManyRounds:
		return limitStatus(style), fmt.Sprintf("Exceeded maximum round trips (%d)", outcome.Code), nil
	case engine.TooManyCalls:
		return limitStatus(style), fmt.Sprintf("Execution exceeded maximum tool calls (%d)", outcome.Code), nil
	}
	return 0, "", fmt.Errorf("api: an execution failed for reason %q", outcome.Reason)
}

// tooMuchStored tells a program's author that its calls cannot wait.
func tooMuchStored(outcome engine.Outcome) string {
	return fmt.Sprintf("Tool calls of this client that wait and its kept answers would take more than %d bytes (FERMATA_MAX_STORED)", outcome.Code)
}

// protocolBroken tells what a program did to the channel of its runner.
func protocolBroken(outcome engine.Outcome) string {
	text := "The program broke the connection to its sandbox's runner"
	if outcome.Detail != "" {
		text += ": " + outcome.Detail
	}
	return text
}

// limitStatus is the status of an execution that went past a limit of the contract.
func limitStatus(style ErrorStyle) int {
	if style == InlineErrors {
		return http.StatusOK
	}
	return http.StatusBadRequest
}
