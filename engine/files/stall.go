package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// requestTimeout is how long a short request may take: a small object, a page of a
	// listing, a removal.
	requestTimeout = 10 * time.Second
	// stallTimeout is how long each step of a transfer from or to the bucket may take. The
	// transfer as a whole may take as long as its client needs.
	stallTimeout = 30 * time.Second
)

// withDeadline returns a context that ends after the limit, with ErrNoAnswer as its cause.
func withDeadline(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within %s", ErrNoAnswer, limit))
}

// A stallTimer cancels what consists of many steps when one of them exceeds the limit. Between
// steps, when somebody else is waited for, no time is counted.
type stallTimer struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// newStallTimer returns the timer of a transfer and the context that the transfer must use. It begins
// with a step. Whoever calls it calls stop in the end.
func newStallTimer(ctx context.Context, limit time.Duration) (context.Context, stallTimer) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() { cancel(fmt.Errorf("%w within %s", ErrNoAnswer, limit)) })
	return ctx, stallTimer{limit, cancel, timer}
}

// begin begins a step, and end ends it.
func (t stallTimer) begin() { t.timer.Reset(t.limit) }
func (t stallTimer) end()   { t.timer.Stop() }

// stop ends the transfer.
func (t stallTimer) stop() {
	t.timer.Stop()
	t.cancel(nil)
}

// A stallReader reads an object. Each Read is a step.
type stallReader struct {
	ctx context.Context
	io.ReadCloser
	stall stallTimer
}

func (r stallReader) Read(p []byte) (n int, err error) {
	r.stall.begin()
	n, err = r.ReadCloser.Read(p)
	r.stall.end()
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, causeOf(r.ctx, err)
}

func (r stallReader) Close() error {
	defer r.stall.stop()
	return r.ReadCloser.Close()
}

// causeOf returns why a request has failed: if its context has ended, because of that.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
