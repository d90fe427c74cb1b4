package api

import (
	"net/http"
	"regexp"
)

// parentHeader has the id of the call on whose behalf a request is made.
const parentHeader = "X-Ptc-Call-Id"

var parentPattern = regexp.MustCompile(`^[!-~]{1,255}$`)

var errParent = BadRequest("x-ptc-call-id must be 1 to 255 printable ASCII characters without spaces")

// ValidParent reports whether a text can be the id of a call on whose behalf a request is made.
func ValidParent(id string) bool { return parentPattern.MatchString(id) }

// ParentOf returns the id of the call on whose behalf a request is made, from its header, or
// the empty string if it has none. The error is for the client.
func ParentOf(header http.Header) (string, error) {
	switch given := header.Values(parentHeader); {
	case len(given) == 0:
		return "", nil
	case len(given) > 1 || !ValidParent(given[0]):
		return "", errParent
	default:
		return given[0], nil
	}
}
