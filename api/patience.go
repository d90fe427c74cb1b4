package api

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// The pace of a transfer of a file.
const (
	// FileTimeout is how long a transfer of a file may stand still.
	FileTimeout = 120 * time.Second
	// filePace is how many bytes a client must take or send for each second that is
	// waited for it, beyond FileTimeout: a byte every minute would hold a connection for
	// ever.
	filePace = 16 << 10
	// writePiece is how much is written at once.
	writePiece = 32 << 10
)

// A patience is how long a transfer still waits for its client. It never is more than
// FileTimeout. Waiting for a client takes from it, bytes give back to it; what the store
// of files takes is not the client's fault and does not count.
type patience struct {
	left time.Duration
	set  func(deadline time.Time) error
}

// wait gives one read or write what is left of the patience.
func (p *patience) wait(move func() (int, error)) (int, error) {
	began := time.Now()
	_ = p.set(began.Add(p.left))
	n, err := move()
	p.left += time.Duration(n)*time.Second/filePace - time.Since(began)
	p.left = max(0, min(p.left, FileTimeout))
	return n, err
}

// A movingWriter writes to a client that must keep the pace.
type movingWriter struct {
	to io.Writer
	patience
}

func newMovingWriter(to io.Writer, control *http.ResponseController) *movingWriter {
	return &movingWriter{to, patience{FileTimeout, control.SetWriteDeadline}}
}

// Write writes in pieces: stores hand over up to a MiB at once, which a slow client takes
// longer for than a transfer may stand still.
func (w *movingWriter) Write(p []byte) (written int, err error) {
	for written < len(p) && err == nil {
		piece := p[written:min(len(p), written+writePiece)]
		n := 0
		n, err = w.wait(func() (int, error) { return w.to.Write(piece) })
		written += n
	}
	return written, err
}

// A movingReader reads from a client that must keep the pace.
type movingReader struct {
	io.ReadCloser
	patience
	// head is how many bytes may come before the next file or field begins, -1 where
	// there is no such limit.
	head int
}

func newMovingReader(from io.ReadCloser, control *http.ResponseController) *movingReader {
	return &movingReader{from, patience{FileTimeout, control.SetReadDeadline}, -1}
}

func (r *movingReader) Read(p []byte) (int, error) {
	if r.head == 0 {
		return 0, errPartHeader
	}
	if r.head > 0 {
		p = p[:min(len(p), r.head)]
	}
	n, err := r.wait(func() (int, error) { return r.ReadCloser.Read(p) })
	if r.head > 0 {
		r.head -= n
	}
	switch {
	case errors.Is(err, io.EOF):
		// From now on net/http reads, to see whether the client leaves.
		_ = r.set(time.Time{})
	case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
		// It reads after an error, too, but is to give up at once.
		_ = r.set(time.Now())
	}
	return n, err
}
