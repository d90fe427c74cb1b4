package tools

import (
	"errors"
	"strconv"
	"strings"

	"fermata/engine/tools/source"
)

// The errors of calls that this package refuses, or whose results it cannot use. The sources have texts of
// their own.
const (
	textNoToolset   = "there is no toolset %s"
	textNoTool      = "the toolset %s has no tool %s"
	textUnavailable = "the toolset %s is unavailable: %s"
	textNoObject    = "the input must be an object with the names and values of the parameters"
	textBusy        = "the toolset %s was busy until the time for this call was over: it runs at most %d calls at the same time"
	textCrowded     = "too many calls wait for the toolset %s: at most %d may"
	textManyWait    = "too many calls of this principal wait: at most %d may"
	textFull        = "the server was busy until the time for this call was over: it runs at most %d calls of one principal and %d of all at the same time"
	textCancelled   = "the call was cancelled"
	textFailed      = "the call has failed"
	textLarge       = "the result has %d bytes; at most %d are allowed"
	textNoEnvelope  = "the answer is not the object {ok, error, ret} that the toolset promises: %s"
	textNoPart      = "the answer has no part %s that could be the result"
	textUnsureAfter = "; whether the call took effect is unknown"
)

// The reasons why a toolset cannot be used.
const (
	textNoTools   = "its tools cannot be listed"
	textLateTools = "its tools were not listed in time"
	textMissing   = "its source has no tool %s, which the toolsets file names"
	textTwice     = "its source has two tools with the name %s"
	textBadName   = "the tool %s is left out: a name has at most 128 bytes that can be printed, and contains no secret"
	textOwnMethod = "its tools %s and %s would both be the method %s in programs; hide one of them"
	textOneMethod = "the tool %s is left out: in programs it would be the method %s, as the tool %s is; hide one of them"
	textTooMany   = "its source has %d tools; a toolset has at most %d: name those that you want, or hide others"
	textEmpty     = "no tool is left of it"
	textUnchecked = "the input cannot be checked: %w"
	textNoHost    = "the OpenAPI document names the server %s without a host; write base_url with the host and this path"
	textNoServer  = "the OpenAPI document names no server; write base_url"
	textBadURL    = "its URL, or that of its proxy, is not one"
)

// ErrUnknown is the cause of a failure when there is no such toolset or tool.
var ErrUnknown = errors.New("no such toolset or tool")

// maxShown is how many bytes of a name from a request or a source a text shows.
const maxShown = 80

// quoted returns a name in quotes, truncated and in ASCII, so that names that look alike can be told apart.
func quoted(name string) string { return strconv.QuoteToASCII(shorten(name, maxShown)) }

// unknownToolset returns the failure of a call of a toolset that does not exist.
func unknownToolset(key string) error {
	return failure(ErrUnknown, textNoToolset, quoted(key))
}

// causes returns the text of an error and, if it is a failure, of its cause.
func causes(err error) string {
	if f, ok := errors.AsType[*source.CallError](err); ok && f.Err != nil {
		if cause := f.Err.Error(); strings.HasPrefix(cause, f.Message) {
			return cause
		}
		return f.Message + ": " + f.Err.Error()
	}
	return err.Error()
}
