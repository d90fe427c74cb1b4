package api

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// A slow client is bounded in each direction by itself: between the two lies the
// run, which may take minutes.
const (
	BodyTimeout   = 60 * time.Second
	AnswerTimeout = 60 * time.Second
)

// readBody reads the whole body, and copies it to sink as it comes in. Only after
// that does net/http watch the connection and cancel the request's context when the
// client leaves.
func (s *server) readBody(c echo.Context, sink io.Writer) ([]byte, error) {
	r, limit := c.Request(), s.options.Limits.Body
	// The error may be about a parameter only; the type is what counts.
	mediaType, _, _ := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if mediaType != echo.MIMEApplicationJSON {
		return nil, errContentType
	}
	// What is declared is believed below, where memory is set aside for it.
	if r.ContentLength > limit {
		return nil, errBodyTooLarge
	}
	// Deadlines cannot be set on the recorder of a unit test, and that is the
	// only error there is before the connection is gone.
	control := http.NewResponseController(c.Response())
	_ = control.SetReadDeadline(time.Now().Add(BodyTimeout))
	// MaxBytesReader tells net/http's own writer to close the connection, and
	// would not know it inside of echo's.
	var body bytes.Buffer
	body.Grow(int(max(r.ContentLength, 0)) + bytes.MinRead)
	_, err := body.ReadFrom(io.TeeReader(http.MaxBytesReader(c.Response().Writer, r.Body, limit), sink))
	_ = control.SetReadDeadline(time.Time{})
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return nil, errBodyTooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errBodyTimeout
	}
	if err != nil {
		return nil, errBodyIncomplete
	}
	return body.Bytes(), nil
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
