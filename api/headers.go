package api

import (
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Headers of the contract.
const (
	profileHeader         = "X-CodeAPI-Execution-Profile"
	expectedProfileHeader = "X-CodeAPI-Expected-Profile"
	workerHeader          = "X-LibreChat-Code-Worker-ID"
	workspaceHeader       = "X-LibreChat-Code-Workspace-ID"
	clientRequestIDHeader = "X-LibreChat-Code-Request-ID"
	requestIDHeader       = "X-Request-Id"
)

// ourProfile is the execution profile of this server: nothing but files stays
// from one execution to the next. The contract knows one more.
const (
	ourProfile      = "default"
	statefulProfile = "stateful"
)

var (
	requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)
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

// inFlight holds the ids that clients gave to the requests being answered now.
type inFlight struct{ ids sync.Map }

// claim takes an id for one request and returns the way to give it back. A
// request without an id has nothing to take.
func (f *inFlight) claim(id string) (release func(), err error) {
	if id == "" {
		return func() {}, nil
	}
	if !requestIDPattern.MatchString(id) {
		return nil, errClientRequestID
	}
	if _, taken := f.ids.LoadOrStore(id, struct{}{}); taken {
		return nil, errClientRequestIDInUse
	}
	return func() { f.ids.Delete(id) }, nil
}
