package librechat

import (
	"net/http"
	"regexp"
	"strings"

	"fermata/api"
)

// Headers of the contract.
const (
	profileHeader         = "X-CodeAPI-Execution-Profile"
	expectedProfileHeader = "X-CodeAPI-Expected-Profile"
	workerHeader          = "X-LibreChat-Code-Worker-ID"
	workspaceHeader       = "X-LibreChat-Code-Workspace-ID"
	// idempotencyKeyHeader is our own addition: it makes a start safe to repeat.
	idempotencyKeyHeader = "Idempotency-Key"
)

var (
	// idempotencyKeyPattern allows what proxies pass on unchanged.
	idempotencyKeyPattern = regexp.MustCompile(`^[!-~]{1,255}$`)

	workspacePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
)

// checkRouting refuses requests that are meant for another kind of server.
func checkRouting(header http.Header) error {
	expected := header.Values(expectedProfileHeader)
	switch value := strings.Join(expected, ", "); value {
	case "", ourProfile:
	case statefulProfile:
		return profileMismatch(value)
	default:
		return invalidProfile(value)
	}
	if header.Get(workerHeader) != "" {
		return errWorkerRouting
	}
	if workspace := header.Get(workspaceHeader); workspace != "" && !workspacePattern.MatchString(workspace) {
		return errWorkspaceID
	}
	return nil
}

// checkWorkspace refuses to select a workspace, even with a well-formed ID. The contract
// has a text of its own for Python programs, so this needs the request.
func checkWorkspace(header http.Header, r request) error {
	switch {
	case header.Get(workspaceHeader) == "":
		return nil
	case !r.continues() && languageOf(r) != "bash":
		return errWorkspacePython
	default:
		return errWorkspace
	}
}

// idsOf returns the id and the key that the client has given to a request. Either may be
// empty.
func idsOf(header http.Header) (id, key string, err error) {
	id = header.Get(api.ClientRequestIDHeader)
	if id != "" && !api.ValidRequestID(id) {
		return "", "", errClientRequestID
	}
	key = header.Get(idempotencyKeyHeader)
	if key != "" && !idempotencyKeyPattern.MatchString(key) {
		return "", "", errIdempotencyKey
	}
	return id, key, nil
}
