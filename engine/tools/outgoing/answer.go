package outgoing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// A Request is a request of a call.
type Request struct {
	Method string
	// URL must have the origin of the client.
	URL *url.URL
	// Header is sent as it is, except for Accept-Encoding, which the client sets.
	Header http.Header
	Body   []byte
	// Principal is the principal on whose behalf the call is made. A kept connection is used only for the
	// same principal.
	Principal string
	// Repeatable says that the endpoint may get the request twice. Otherwise the request is sent at most once,
	// on a connection of its own.
	Repeatable bool
	// MaxBytes is the maximum size of the unpacked body of the answer.
	MaxBytes int64
}

// reader returns a reader of the body, or nil.
func (r Request) reader() io.Reader {
	if r.Body == nil {
		return nil
	}
	return bytes.NewReader(r.Body)
}

// An Answer is what the endpoint has answered, whatever its status.
type Answer struct {
	Status int
	Header http.Header
	// Body is the unpacked body. If the status is 400 or more, a body
	// that is larger than MaxFailed or cannot be read is left out.
	Body []byte

	held *Holding
}

// Release gives the bytes of the answer back to the budget.
func (a *Answer) Release() { a.held.Release() }

// Do makes a call and reads the answer. A redirect of a GET or HEAD is followed within the origin;
// any other is an error. All errors are *Error.
func (c *Client) Do(ctx context.Context, r Request) (*Answer, error) {
	u := r.URL
	for hops := 0; ; hops++ {
		resp, err := c.send(ctx, r, u)
		if err != nil {
			return nil, asError(err)
		}
		location, redirects := redirect(resp)
		if !redirects {
			return c.read(ctx, r, resp)
		}
		_ = resp.Body.Close()
		if hops == MaxRedirects {
			return nil, &Error{Reason: Circling, Sent: true}
		}
		next, err := c.follow(r.Method, u, location)
		if err != nil {
			return nil, &Error{Reason: Redirected, Sent: true, Err: err}
		}
		u = next
	}
}

// asError makes sure that an error is one of this package.
func asError(err error) *Error {
	if known, ok := errors.AsType[*Error](err); ok {
		return known
	}
	return &Error{Reason: Broken, Sent: true, Err: err}
}

// redirect reports whether an answer sends the caller to another place.
func redirect(resp *http.Response) (location string, redirects bool) {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location"), true
	default:
		return "", false
	}
}

// follow returns the URL to which a redirect leads.
func (c *Client) follow(method string, from *url.URL, location string) (*url.URL, error) {
	if method != http.MethodGet && method != http.MethodHead {
		return nil, errors.New("redirects are followed for GET only")
	}
	if location == "" || strings.ContainsFunc(location, func(r rune) bool { return r == '\\' || r <= ' ' || r > '~' }) {
		return nil, errors.New("the location is missing or has characters that no URL has")
	}
	u, err := from.Parse(location)
	if err != nil {
		return nil, err
	}
	if o, err := originOf(u); err != nil || o != c.origin || u.User != nil {
		return nil, fmt.Errorf("the location is in another origin: %s", u.Redacted())
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// read reads the answer's body.
func (c *Client) read(ctx context.Context, r Request, resp *http.Response) (*Answer, error) {
	defer func() { _ = resp.Body.Close() }()
	a := &Answer{Status: resp.StatusCode, Header: resp.Header, held: c.budget.Hold(r.Principal)}
	if resp.Body == http.NoBody {
		return a, nil
	}
	limit, failed := r.MaxBytes, resp.StatusCode >= http.StatusBadRequest
	if failed {
		limit = min(limit, MaxFailed)
	}
	in, err := unpacked(resp, limit)
	if err == nil {
		a.Body, err = ReadAll(in, limit, resp.ContentLength, a.held.Grow)
	}
	switch {
	case err != nil && failed: // The body is left out, since the status is what matters.
		a.Release()
	case err != nil:
		a.Release()
		return nil, answerError(ctx, err, Unpackable)
	default:
	}
	return a, nil
}

// unpacked returns a reader of the unpacked body.
func unpacked(resp *http.Response, limit int64) (io.Reader, error) {
	encodings := resp.Header.Values("Content-Encoding")
	switch encoding := strings.ToLower(strings.Join(encodings, ",")); encoding {
	case "", "identity":
		return resp.Body, nil
	case "gzip", "x-gzip":
		// The packed body is limited, too, since it may unpack to nothing.
		return gzip.NewReader(&bounded{in: resp.Body, left: limit + MaxHeaders, limit: limit})
	default:
		return nil, &Error{Reason: Encoded}
	}
}

// bounded is a reader that fails when there is more than the limit.
type bounded struct {
	in          io.Reader
	left, limit int64
}

// Read implements io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.in.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, &Error{Reason: Large, Limit: b.limit}
	}
	return n, err
}

// ReadAll reads a body completely, which may have up to limit bytes and perhaps has hint bytes. Before it allocates
// memory, it calls grow with the number of bytes that the memory will have in all. If grow reports false, the error
// has the reason Busy.
func ReadAll(in io.Reader, limit, hint int64, grow func(bytes int64) bool) ([]byte, error) {
	if hint > limit {
		return nil, &Error{Reason: Large, Limit: limit}
	}
	size := min(max(hint+1, 4<<10), 64<<10, limit+1) // The hint comes from the endpoint and may be wrong.
	var body []byte
	for {
		if !grow(size) {
			return nil, &Error{Reason: Busy}
		}
		grown := make([]byte, len(body), size)
		copy(grown, body)
		body = grown
		for int64(len(body)) < size {
			n, err := in.Read(body[len(body):size])
			body = body[:len(body)+n]
			if int64(len(body)) > limit {
				return nil, &Error{Reason: Large, Limit: limit}
			}
			if errors.Is(err, io.EOF) {
				return body, nil
			}
			if err != nil {
				return nil, err
			}
		}
		size = min(2*size, limit+1)
	}
}
