package files

import (
	"context"
	"fmt"
	"io"
	"time"

	"gocloud.dev/blob"
)

// stallTimeout is how long each step of a transfer from or to the bucket may take. The
// transfer as a whole may take as long as its client needs.
const stallTimeout = 30 * time.Second

// A stallTimer cancels a transfer when one of its steps exceeds the stallTimeout. Between
// steps, when the transfer waits for somebody else, no time is counted.
type stallTimer struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newStallTimer returns the timer of a transfer and the context that the transfer must use.
// Whoever calls it calls stop in the end.
func newStallTimer(ctx context.Context) (context.Context, stallTimer) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("%w within %s", ErrNoAnswer, stallTimeout)) })
	timer.Stop()
	return ctx, stallTimer{cancel, timer}
}

// limit takes one step of the transfer.
func (t stallTimer) limit(step func() error) error {
	t.timer.Reset(stallTimeout)
	defer t.timer.Stop()
	return step()
}

// stop ends the transfer.
func (t stallTimer) stop() {
	t.timer.Stop()
	t.cancel(nil)
}

// A stallReader reads an object. Each Read is a step.
type stallReader struct {
	*blob.Reader
	stall stallTimer
}

func (r stallReader) Read(p []byte) (n int, err error) {
	err = r.stall.limit(func() error {
		n, err = r.Reader.Read(p)
		return err
	})
	return n, err
}

// WriteTo hides the method of blob.Reader, which would bypass Read and so the timer.
func (r stallReader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

func (r stallReader) Close() error {
	defer r.stall.stop()
	return r.Reader.Close()
}

// A stallWriter writes an object. Each Write is a step, and so is Close.
type stallWriter struct {
	*blob.Writer
	stall stallTimer
}

func (w stallWriter) Write(p []byte) (n int, err error) {
	err = w.stall.limit(func() error {
		n, err = w.Writer.Write(p)
		return err
	})
	return n, err
}

// ReadFrom hides the method of blob.Writer, which would bypass Write and so the timer.
func (w stallWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

func (w stallWriter) Close() error { return w.stall.limit(w.Writer.Close) }
