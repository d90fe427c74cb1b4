package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
)

// The pace that a client must keep while it sends or receives a file.
const (
	// FileTimeout is how long the transfer of a file may stand still.
	FileTimeout = 120 * time.Second
	// filePace is how many bytes a client must take or send for each second that the server waits
	// for it, once FileTimeout is used up. Without it a client could hold a connection for ever
	// with a byte every minute.
	filePace = 16 << 10
	// writePiece is how much is written at once.
	writePiece = 32 << 10
)

// A patience is how long a transfer still waits for its client, at most FileTimeout. Time
// spent waiting for the client is taken from it, and bytes add to it. The time that the
// store of files takes is not the client's fault and does not count.
type patience struct {
	left time.Duration
	set  func(deadline time.Time) error
}

// wait gives one read or write the patience that is left.
func (p *patience) wait(move func() (int, error)) (int, error) {
	began := time.Now()
	_ = p.set(began.Add(p.left))
	n, err := move()
	p.left += time.Duration(n)*time.Second/filePace - time.Since(began)
	p.left = max(0, min(p.left, FileTimeout))
	return n, err
}

// A pacedWriter writes to a client that must keep the pace.
type pacedWriter struct {
	to io.Writer
	patience
}

// PacedWriter returns a writer for the body of a large answer. It fails if the client does
// not keep the pace.
func PacedWriter(c echo.Context) io.Writer {
	control := http.NewResponseController(c.Response())
	return &pacedWriter{c.Response(), patience{FileTimeout, control.SetWriteDeadline}}
}

// Write writes in pieces, since stores hand over up to a MiB at once, for which a slow
// client takes longer than a transfer may stand still.
func (w *pacedWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		piece := p[written:min(len(p), written+writePiece)]
		n := 0
		n, err = w.wait(func() (int, error) { return w.to.Write(piece) })
		written += n
	}
	return written, err
}

// A pacedReader reads from a client that must keep the pace.
type pacedReader struct {
	io.ReadCloser
	patience
}

// PacedBody returns a reader of the request's body, however large it is. It fails if the
// client does not keep the pace.
func PacedBody(c echo.Context) io.ReadCloser {
	control := http.NewResponseController(c.Response())
	return &pacedReader{c.Request().Body, patience{FileTimeout, control.SetReadDeadline}}
}

func (r *pacedReader) Read(p []byte) (int, error) {
	n, err := r.wait(func() (int, error) { return r.ReadCloser.Read(p) })
	switch {
	case errors.Is(err, io.EOF):
		// From now on net/http reads, to see whether the client leaves.
		_ = r.set(time.Time{})
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		// net/http reads after an error as well. This deadline makes it give up at once.
		_ = r.set(time.Now())
	}
	return n, err
}
