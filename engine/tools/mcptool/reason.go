package mcptool

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"fermata/engine/tools/outgoing"
	"fermata/engine/tools/source"
)

// A reason says in our own words what is wrong with an MCP server or a call. Reasons contain no
// address, no URL, and no text of the server but names of tools and, quoted, its error for the list of tools.
type reason string

// Error returns the reason.
func (r reason) Error() string { return string(r) }

// What is wrong with a server.
const (
	errLargeMessage  reason = "it sent a message of more than 8 MiB"
	errBrokenMessage reason = "it sent something that is no JSON-RPC message"
	errUnasked       reason = "it answered a request that was not made"
	errFlood         reason = "it sent more than 100 notifications or requests within a second"
	errManyWaiting   reason = "it left more than 1000 requests unanswered"
	errNotReading    reason = "it stopped reading its input"
	errLargeList     reason = "its list of tools has more than 4 MiB"
	errManyTools     reason = "it offers more than 1000 tools"
	errManyPages     reason = "its list of tools has more than 100 pages"
	errSamePage      reason = "its list of tools comes to the same page again"
	errBrokenList    reason = "its list of tools is not as the protocol says"
	errNoCommand     reason = "its command cannot be started"
	errEnded         reason = "its process has ended, or it has closed the connection"
	errNotYet        reason = "it is not ready yet, and still has time for its start"
	errUnreachable   reason = "it cannot be reached, or does not speak the protocol"
	errNoRoom        reason = "it sent a large message while this server was reading too many answers; try again later"
	errClosed        reason = "this server is stopping"
	errManySessions  reason = "too many MCP sessions of this principal are open; try again later"
	errManyProcesses reason = "too many processes of MCP servers are running; try again later"
	errManyUsers     reason = "too many principals use it; try again later"
)

// lateReason returns the reason for a server that did not answer within the time that it has for its start.
func lateReason(start time.Duration) reason {
	return reason(fmt.Sprintf("it was not ready within %v seconds", start.Seconds()))
}

// statusReason returns the reason for an HTTP status that does not report success.
func statusReason(status int32) reason {
	return reason(fmt.Sprintf("it answered with the HTTP status %d", status))
}

// refusedList returns the reason of a server that answers with an error when it is asked for its tools. Its
// words are quoted, since they often say what it lacks, such as a key or a network.
func refusedList(err error) reason {
	answer, ok := errors.AsType[*jsonrpc.Error](err)
	if !ok {
		return errBrokenList
	}
	said := answer.Message
	if len(said) > maxSaid {
		said = strings.ToValidUTF8(said[:maxSaid], "") + " …"
	}
	return reason(fmt.Sprintf("it answered with the error %+q when it was asked for its tools", said))
}

// maxSaid is how much of a server's text a reason quotes, in bytes.
const maxSaid = 200

// reasonOf returns the reason for an error of a session.
func reasonOf(err error) reason {
	var known reason
	var exchange *outgoing.Error
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &exchange): // Its texts are safe, too.
		return reason(exchange.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return "it did not answer in time"
	default:
		return errUnreachable
	}
}

// cause returns an error for the log, without the URL that net/http writes into its errors.
func cause(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// unavailable is the failure of a call that has found no session.
func unavailable(err error) *source.CallError {
	return &source.CallError{Message: "the MCP server of this toolset is unavailable: " + string(reasonOf(err)), Err: cause(err)}
}

// words returns a text of an MCP server in a form that is safe in an error message.
func words(s string) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= maxText {
		return s
	}
	cut := maxText
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + " …"
}
