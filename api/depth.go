package api

import (
	"net/http"
	"strconv"

	"fermata/engine/tools/outgoing"
)

// maxDepth is through how many toolsets a request may come: each may belong to this server, and lead
// back to it.
const maxDepth = 4

var (
	errDepthForm = BadRequest("Fermata-Depth must be a whole number")
	errTooDeep   = &Error{
		Status: http.StatusLoopDetected,
		Text:   "The request has come through more than 4 toolsets: does one of them lead back to its own server?",
	}
)

// DepthOf returns through how many toolsets a request has come, as its header tells, or refuses it.
// Whoever sends a wrong number harms only himself.
func DepthOf(header http.Header) (int, error) {
	given := header.Values(outgoing.DepthHeader)
	if len(given) == 0 {
		return 0, nil
	}
	depth, err := strconv.ParseUint(given[0], 10, 31)
	switch {
	case err != nil || len(given) > 1:
		return 0, errDepthForm
	case depth > maxDepth:
		return 0, errTooDeep
	}
	return int(depth), nil
}
