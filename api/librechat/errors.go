package librechat

import (
	"errors"
	"fmt"
	"net/http"

	"fermata/api"
	"fermata/engine/core"
)

// ourProfile is the execution profile of this server: nothing but files remains from one
// execution to the next. The contract has one more profile.
const (
	ourProfile      = "default"
	statefulProfile = "stateful"
)

// permanent refuses a request for something that this server never does.
func permanent(text string) *api.Error {
	return &api.Error{Status: http.StatusBadRequest, Code: api.Permanent, Text: text}
}

// Requests that are refused whatever they ask for.
var (
	errClientRequestID = api.BadRequest("Invalid programmatic request ID")
	errIdempotencyKey  = api.BadRequest("Idempotency-Key must be 1 to 255 printable ASCII characters without spaces")

	errWorkerRouting   = permanent("Code bridge worker routing requires the remote-bridge backend")
	errWorkspaceID     = permanent("Invalid code workspace ID")
	errWorkspacePython = permanent("Selected-workspace programmatic execution supports bash only")
	errWorkspace       = permanent("Workspace selection requires an authenticated bridge worker")

	errNotUTF8     = api.BadRequest("request body is not valid UTF-8")
	errTooDeep     = api.BadRequestf("request body is nested deeper than %d levels", core.MaxDepth)
	errNotAnObject = api.BadRequest("request body must be a JSON object")
)

func profileMismatch(expected string) *api.Error {
	return &api.Error{
		Status: http.StatusConflict, Code: api.Permanent, Text: "execution_profile_mismatch",
		Message:         fmt.Sprintf("Expected the %s execution profile, but reached %s", expected, ourProfile),
		ExpectedProfile: expected, ActualProfile: ourProfile,
	}
}

func invalidProfile(expected string) *api.Error {
	return &api.Error{
		Status: http.StatusBadRequest, Code: api.Permanent, Text: "invalid_execution_profile",
		Message:         "Invalid execution profile: " + expected,
		ExpectedProfile: expected, ActualProfile: ourProfile,
	}
}

// Requests to cancel that are refused.
var (
	errCancelRequestID   = api.BadRequest("Invalid or missing request_id")
	errCancelTarget      = &api.Error{Status: http.StatusNotFound, Text: "Execution not found"}
	errCancelSession     = &api.Error{Status: http.StatusNotFound, Text: "No execution of this session was found"}
	errCancelForbidden   = &api.Error{Status: http.StatusForbidden, Text: "Programmatic request belongs to another principal"}
	errCancelUnavailable = &api.Error{Status: http.StatusServiceUnavailable, Seconds: 1, Text: "Cancellation service unavailable"}
)

// Starts that are refused.
var (
	errCode          = api.BadRequest("Missing required field: code")
	errNoCode        = api.BadRequest("Code cannot be empty")
	errLanguage      = api.BadRequest("language must be a string")
	errLang          = api.BadRequest("lang must be a string, the name of a language")
	errNoLanguage    = api.BadRequest("Missing required field: lang")
	errArgs          = api.BadRequest("args must be an array of strings")
	errTooManyArgs   = api.BadRequestf("Too many args provided. Maximum is %d.", maxArgs)
	errLargeArgs     = api.BadRequestf("args have more than %d bytes together", maxArgBytes)
	errSession       = api.BadRequest("session_id must be a string")
	errTools         = api.BadRequest("tools must be an array")
	errExecTools     = api.BadRequest("tools are not available to programs on /exec: post programs that call tools to /exec/programmatic")
	errTimeout       = api.BadRequest("timeout must be a positive number of milliseconds")
	errTimeoutRange  = api.BadRequestf("timeout must be between %d and %d milliseconds", api.MinTimeout.Milliseconds(), api.MaxTimeout.Milliseconds())
	errTitle         = api.BadRequestf("title must be a string of at most %d characters", maxTitle)
	errLabels        = api.BadRequestf("labels must be an object of at most %d strings", maxLabels)
	errParent        = api.BadRequest("parent_call_id must be a string of 1 to 255 printable ASCII characters without spaces")
	errFiles         = api.BadRequest("files must be an array")
	errFilesNotTaken = api.BadRequest("files are not supported by this server")
	// errReference does not tell another owner's file from one that does not exist.
	errReference = &api.Error{Status: http.StatusForbidden, Text: "Unauthorized file reference"}
)

// inReference makes the refusal of a scope one of the reference that contains the scope.
func inReference(i int, err error) error {
	if f, ok := errors.AsType[*api.Error](err); ok {
		return api.BadRequestf("files[%d].%s", i, f.Text)
	}
	return err
}

// Continuations that are refused. The execution stays paused.
var (
	errResults        = api.BadRequest("tool_results must be an array when continuation_token is provided")
	errResultNoObject = api.BadRequest("tool_results entries must be objects")
)

// Requests for files that are refused.
var (
	errBadRequest     = api.BadRequest("Bad request")
	errPrincipal      = api.BadRequest("principal must name the principal whose files to read: an operator has no files")
	errScopeKind      = api.BadRequest("kind must be one of: skill, agent, user")
	errScopeVersion   = api.BadRequest("version is required for kind: 'skill'")
	errScopeNoVersion = api.BadRequest("version is only valid for kind: 'skill'")
	errNotMultipart   = api.BadRequest("Invalid content type. Must be multipart/form-data.")
	errUploadSession  = api.BadRequest("session_id must be 21 characters of A-Z, a-z, 0-9, _ and -")
	errNoFile         = api.BadRequest("No file provided")
	errNoFiles        = api.BadRequest("No files provided")
	errTooManyFiles   = api.BadRequestf("Too many files provided. Maximum is %d.", maxUploads)
	errTooManyFields  = api.BadRequestf("Too many form fields provided. Maximum is %d.", maxFields)
	errStrayField     = api.BadRequestf("a form field is larger than %d bytes", maxStray)
	errPartHeader     = api.BadRequestf("the header of a part of the form is larger than %d bytes", maxPartHeader)
	// errLongRest refuses a file that is so long that the files behind it cannot be reached.
	errLongRest      = &api.Error{Status: http.StatusRequestEntityTooLarge, Text: "File size limit exceeded"}
	errUploadTimeout = &api.Error{Status: http.StatusGatewayTimeout, Text: "Upload timeout"}
	errRange         = &api.Error{Status: http.StatusRequestedRangeNotSatisfiable, Text: "The range begins behind the end of the file"}
	errNoDownload    = &api.Error{Status: http.StatusNotFound, Text: "File not found", Details: "The file may have expired or does not exist"}
)
