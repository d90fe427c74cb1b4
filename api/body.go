package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
)

// BodyTimeout is how long a body may take to arrive. The body and the answer have a bound each,
// since the program runs between the two, which may take minutes.
const BodyTimeout = 60 * time.Second

const (
	// When a request is answered before the end of its body, the server reads and drops the rest
	// of the body for a moment, since a client that still sends when its connection is closed may
	// lose the answer. The server stops when the client has been silent for lingerSilence, after
	// lingerTime, or after lingerBytes, which is more than the usual largest body.
	lingerSilence = 500 * time.Millisecond
	lingerTime    = 5 * time.Second
	lingerBytes   = 64 << 20
	// firstBuffer is how much memory a body gets before any byte of it has arrived.
	firstBuffer = 64 << 10
	// growth is the factor by which the memory of a body grows when it is full. A copy to a
	// larger buffer touches new pages of memory, which takes longer than the copy itself:
	// with a factor of 2 a result of 10 MiB came in 15 % later. The budget counts all of it.
	growth = 16
)

// A requestBody notes whether it was read to its end.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
		// From now on net/http reads, to see whether the client leaves. If a deadline passed
		// during that read, the request would be cancelled.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// linger sends the answer and then drops what still arrives of the body, for a moment.
func (b *requestBody) linger() {
	_ = b.control.Flush()
	dropped := make([]byte, 32<<10)
	end := time.Now().Add(lingerTime)
	for read := 0; read < lingerBytes && time.Now().Before(end); {
		_ = b.control.SetReadDeadline(time.Now().Add(lingerSilence))
		n, err := b.ReadCloser.Read(dropped)
		if err != nil {
			break
		}
		read += n
	}
	// net/http reads from the body when it closes it. This deadline makes it give up at once.
	_ = b.control.SetReadDeadline(time.Now())
}

// Bodies read the bodies of requests, and bound how long each may take and how much memory
// all of them hold.
type Bodies struct {
	budget  *budget
	timeout time.Duration
}

// bound wraps the handling of every request. It bounds how long the body may take, whether a
// handler reads it or not. An answer that begins before the end of the body closes the
// connection: otherwise net/http would first read what is left of the body, up to 256 KiB, for
// as long as the client likes.
func (b *Bodies) bound(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer func() {
			if held := factsOf(c).held; held != nil {
				held.release()
			}
		}()
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody {
			return next(c)
		}
		// This fails only for the recorder of a unit test, which has no deadlines, and for a
		// connection that is gone.
		control := http.NewResponseController(c.Response())
		_ = control.SetReadDeadline(time.Now().Add(b.timeout))
		body := &requestBody{ReadCloser: r.Body, control: control}
		r.Body = body
		c.Response().Before(func() {
			if !body.ended {
				c.Response().Header().Set(echo.HeaderConnection, "close")
			}
		})
		err := next(c)
		if !body.ended {
			body.linger()
		}
		return err
	}
}

// ReadJSON reads a body of JSON of at most limit bytes, and copies it to sink as it
// arrives.
func (b *Bodies) ReadJSON(c echo.Context, limit int64, sink io.Writer) ([]byte, error) {
	// The error is dropped: it may concern a parameter, and only the type counts.
	mediaType, _, _ := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if mediaType != echo.MIMEApplicationJSON {
		return nil, errContentType
	}
	return b.Read(c, limit, sink)
}

// Read reads a body of at most limit bytes, and copies it to sink as it arrives. After that,
// net/http watches the connection and cancels the request's context if the client leaves. The
// memory of the body counts for the principal until the request is over, since decoded values
// are slices of it.
func (b *Bodies) Read(c echo.Context, limit int64, sink io.Writer) ([]byte, error) {
	r := c.Request()
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	from := io.TeeReader(http.MaxBytesReader(c.Response(), r.Body, limit), sink)
	body, err := readAll(from, r.ContentLength, b.lease(c))
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, errBodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bodyTimeout(b.timeout)
	}
	if _, refused := errors.AsType[*Error](err); err != nil && !refused {
		return nil, ErrBodyIncomplete
	}
	return body, err
}

// Hold counts n more bytes of memory together with the request's body, until the request is over.
// An error says that there is no room for them.
func (b *Bodies) Hold(c echo.Context, n int64) error { return b.lease(c).take(n) }

// lease returns the lease of a request. A request without a principal is one of another
// server.
func (b *Bodies) lease(c echo.Context) *lease {
	f := factsOf(c)
	if f.held == nil {
		f.held = b.budget.lease(PrincipalOf(c).ID)
	}
	return f.held
}

// readAll reads r to its end, into memory that grows with the bytes that arrive: what a
// client merely declares costs no memory.
func readAll(r io.Reader, declared int64, held *lease) ([]byte, error) {
	// One byte more than declared, so that the end is seen without growth.
	size := int64(firstBuffer)
	if declared >= 0 {
		size = min(size, declared+1)
	}
	if err := held.take(size); err != nil {
		return nil, err
	}
	body := make([]byte, 0, size)
	for {
		if len(body) == cap(body) {
			size = growth * int64(cap(body))
			if declared >= int64(cap(body)) {
				size = min(size, declared+1)
			}
			// While the bytes are copied, both buffers are in memory.
			if err := held.take(size); err != nil {
				return nil, err
			}
			old := int64(cap(body))
			body = append(make([]byte, 0, size), body...)
			held.give(old)
		}
		n, err := r.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if errors.Is(err, io.EOF) {
			return body, nil
		}
		if err != nil {
			return nil, err
		}
	}
}
