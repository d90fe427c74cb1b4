package outgoing

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
)

// A Reason tells a program why a call has failed. All reasons are listed below. None contains an address, a
// URL, or any other text of the operator or the endpoint.
type Reason string

// The reasons.
const (
	Unreachable  Reason = "the endpoint cannot be reached"
	Disallowed   Reason = "the address of the endpoint is not allowed; the operator can allow private networks with `private: true`"
	Insecure     Reason = "no secure connection to the endpoint can be made"
	Broken       Reason = "the connection to the endpoint broke before the whole answer was there"
	Stalled      Reason = "the endpoint stopped in the middle of its answer"
	Late         Reason = "the endpoint did not answer in time"
	Cancelled    Reason = "the call was cancelled"
	Malformed    Reason = "the endpoint's answer is not valid HTTP"
	Ambiguous    Reason = "the endpoint's answer says in two ways where it ends"
	LongHeaders  Reason = "the headers of the endpoint's answer are too long"
	Encoded      Reason = "the endpoint's answer has an encoding that was not asked for"
	Unpackable   Reason = "the endpoint's answer cannot be unpacked"
	Large        Reason = "the endpoint's answer is too large"
	Busy         Reason = "the server is reading too many answers at the moment; try again later"
	Redirected   Reason = "the endpoint redirects the call to another place, which is not followed"
	Circling     Reason = "the endpoint redirects the call too often"
	WrongOrigin  Reason = "the call would leave the origin of the toolset"
	WrongRequest Reason = "the call cannot be sent as an HTTP request"
)

// An Error says why a call got no answer.
type Error struct {
	Reason Reason
	// Limit is the number of bytes that the answer exceeds, or 0.
	Limit int64
	// Sent is true if the endpoint may have got the request.
	Sent bool
	// Err is the cause, for the log. It may contain addresses and URLs.
	Err error
}

// Error returns the text for the program.
func (e *Error) Error() string {
	if e.Limit > 0 {
		return fmt.Sprintf("%s: the limit is %d bytes", e.Reason, e.Limit)
	}
	return string(e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// connectError returns the error for a connection that could not be made.
func connectError(ctx context.Context, err error) *Error {
	var known *Error
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &known):
		return &Error{Reason: known.Reason, Err: err}
	case ctx.Err() != nil:
		return &Error{Reason: ended(ctx), Err: err}
	case errors.As(err, &certificate), errors.As(err, &authority), errors.As(err, &host), errors.As(err, &record), errors.As(err, &alert):
		return &Error{Reason: Insecure, Err: err}
	default:
		return &Error{Reason: Unreachable, Err: err}
	}
}

// answerError returns the error for an answer that was not read to its end. The reason is otherwise, unless
// the connection broke or the context has ended.
func answerError(ctx context.Context, err error, otherwise Reason) *Error {
	var known *Error
	var network net.Error
	switch {
	case errors.As(err, &known):
		return &Error{Reason: known.Reason, Limit: known.Limit, Sent: true, Err: err}
	case ctx.Err() != nil:
		return &Error{Reason: ended(ctx), Sent: true, Err: err}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Error{Reason: Stalled, Sent: true, Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF) && otherwise == Malformed, errors.As(err, &network), errors.Is(err, net.ErrClosed):
		return &Error{Reason: Broken, Sent: true, Err: err}
	default:
		return &Error{Reason: otherwise, Sent: true, Err: err}
	}
}

// ended returns the reason for a context that has ended.
func ended(ctx context.Context) Reason {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Late
	}
	return Cancelled
}
