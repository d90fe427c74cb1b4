package api

import (
	"net/http"
	"strconv"

	"fermata/engine/tools/outgoing"
)

// maxDepth is the number of toolsets through which a request may come. It is limited because a toolset may
// lead back to this server.
const maxDepth = 4

var (
	errDepthForm = BadRequest("Fermata-Depth must be a whole number")
	errTooDeep   = &Error{
		Status: http.StatusLoopDetected,
		Text:   "The request has come through more than 4 toolsets: does one of them lead back to its own server?",
	}
)

// DepthOf returns the number of toolsets through which a request has come, according to its header, or an
// error that refuses the request. The header is not trusted for anything else, so a wrong number harms only
// the client that sends it.
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
