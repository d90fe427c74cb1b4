package api

import (
	"net/http"
	"regexp"
	"strings"
)

// Headers of the contract.
const (
	profileHeader         = "X-CodeAPI-Execution-Profile"
	expectedProfileHeader = "X-CodeAPI-Expected-Profile"
	workerHeader          = "X-LibreChat-Code-Worker-ID"
	workspaceHeader       = "X-LibreChat-Code-Workspace-ID"
	clientRequestIDHeader = "X-LibreChat-Code-Request-ID"
	requestIDHeader       = "X-Request-Id"
	// idempotencyKeyHeader is not the contract's: it makes a start safe to repeat.
	idempotencyKeyHeader = "Idempotency-Key"
)

// ourProfile is the execution profile of this server: nothing but files stays
// from one execution to the next. The contract knows one more.
const (
	ourProfile      = "default"
	statefulProfile = "stateful"
)

var (
	requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
	// idempotencyKeyPattern is what proxies leave alone.
	idempotencyKeyPattern = regexp.MustCompile(`^[!-~]{1,255}$`)

	workspacePattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`)
)

// checkRouting refuses requests that were meant for another kind of server.
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

// checkWorkspace refuses a well-formed workspace. The contract has a text of its
// own for Python programs, so the request must be known.
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

// idsOf returns the id and the key that the client gave to a request; either may be
// empty.
func idsOf(header http.Header) (id, key string, err error) {
	id = header.Get(clientRequestIDHeader)
	if id != "" && !requestIDPattern.MatchString(id) {
		return "", "", errClientRequestID
	}
	key = header.Get(idempotencyKeyHeader)
	if key != "" && !idempotencyKeyPattern.MatchString(key) {
		return "", "", errIdempotencyKey
	}
	return id, key, nil
}
