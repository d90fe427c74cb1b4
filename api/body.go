package api

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/engine"
)

// A slow client is bounded in each direction by itself: between the two lies the
// run, which may take minutes.
const (
	BodyTimeout   = 60 * time.Second
	AnswerTimeout = 60 * time.Second
)

const (
	// After an answer that came before the end of the body, the rest of the body is read and
	// dropped for a moment: a client that still sends when its connection is closed may lose
	// the answer. This ends when the client is silent for lingerSilence, after lingerTime, or
	// after lingerBytes, which is more than the usual largest body.
	lingerSilence = 500 * time.Millisecond
	lingerTime    = 5 * time.Second
	lingerBytes   = 64 << 20
	// firstBuffer is how much memory a body gets before anything of it has come.
	firstBuffer = 64 << 10
	// growth is how many times as much memory a body gets when its memory is full. A copy to
	// a larger buffer touches new pages of memory, which takes longer than the copy itself:
	// with a factor of 2 a result of 10 MiB came in 15 % later. The budget counts all of it.
	growth = 16
	// maxCancelBody is the size of a request to cancel, which holds an id.
	maxCancelBody = 64 << 10
)

// leaseKey is where the memory of a request's body is noted until the request is over.
const leaseKey = "lease"

// A requestBody knows whether it was read to its end.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
	ended   bool
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.ended = true
		// From now on net/http reads, to see whether the client leaves: a deadline that
		// passes would cancel the request.
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// bounded is around every request, before its route is looked for. It bounds how long
// the body may take, whoever sends it and whether the handler reads it or not. An answer
// that begins before the end of the body closes the connection: otherwise net/http would
// first read what is left of the body, up to 256 KiB, for as long as the client likes.
func (s *server) bounded(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		defer func() {
			if l, ok := c.Get(leaseKey).(*lease); ok {
				l.release()
			}
		}()
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody {
			return next(c)
		}
		// Deadlines cannot be set on the recorder of a unit test, and that is the only
		// error there is before the connection is gone.
		control := http.NewResponseController(c.Response())
		_ = control.SetReadDeadline(time.Now().Add(s.bodyTimeout))
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

// linger sends the answer off and reads on for a moment.
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
	// net/http reads, too, when it closes the body, and is to give up at once.
	_ = b.control.SetReadDeadline(time.Now())
}

// readBody reads the whole body of a request for JSON, and copies it to sink as it comes
// in. Only after that does net/http watch the connection and cancel the request's context
// when the client leaves.
func (s *server) readBody(c echo.Context, limit int64, sink io.Writer) ([]byte, error) {
	r := c.Request()
	// The error may be about a parameter only; the type is what counts.
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if mediaType != echo.MIMEApplicationJSON {
		return nil, errContentType
	}
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	return s.readHeld(c, principal(c).ID, io.TeeReader(http.MaxBytesReader(c.Response(), r.Body, limit), sink))
}

// readHeld reads the body of a request from r. Its memory counts as the principal's until
// the request is over: what is decoded of a body are slices of it, which the execution
// has as long as it works for the request.
func (s *server) readHeld(c echo.Context, principal string, r io.Reader) ([]byte, error) {
	held := s.bodies.lease(principal)
	c.Set(leaseKey, held)
	body, err := readAll(r, c.Request().ContentLength, held)
	switch _, tooLarge := errors.AsType[*http.MaxBytesError](err); {
	case tooLarge:
		return nil, errBodyTooLarge
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, bodyTimeout(s.bodyTimeout)
	}
	if _, refused := errors.AsType[*failure](err); err != nil && !refused {
		return nil, errBodyIncomplete
	}
	return body, err
}

// readAll reads r to its end, into memory that grows with what has come: what is declared
// costs a client nothing.
func readAll(r io.Reader, declared int64, held *lease) ([]byte, error) {
	// One byte more, so that the end is seen without growth.
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
			// While the bytes are copied both buffers are there.
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

// largeAnswer is the size from which on an answer counts among the bodies that the server
// holds, in bytes.
const largeAnswer = 1 << 20

// holdAnswer counts the memory of a large answer together with that of its request's body,
// so that a client that asks for the same answer over many connections cannot fill the
// server's memory with copies of it. An answer that is refused is kept: the same
// continuation gets it later.
func holdAnswer(c echo.Context, outcome engine.Outcome) error {
	held, ok := c.Get(leaseKey).(*lease)
	if !ok {
		return nil
	}
	size := len(outcome.Stdout) + len(outcome.Stderr)
	for _, call := range outcome.Calls {
		size += len(call.Input)
	}
	if size < largeAnswer {
		return nil
	}
	return held.take(int64(size))
}

// write answers with a JSON body.
func write(c echo.Context, status int, body []byte) error {
	response := http.NewResponseController(c.Response())
	_ = response.SetWriteDeadline(time.Now().Add(AnswerTimeout))
	c.Response().Header().Set(echo.HeaderContentLength, strconv.Itoa(len(body)))
	if err := c.Blob(status, echo.MIMEApplicationJSON, body); err != nil {
		return err
	}
	// The client need not wait until the request is logged. One that has gone does not
	// wait for anything.
	_ = response.Flush()
	return nil
}
