package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"gocloud.dev/blob"
)

const (
	// openTimeout bounds the first look at a bucket when a server starts, and reachEvery
	// is how often a bucket that did not answer then is looked at again.
	openTimeout = 5 * time.Second
	reachEvery  = 5 * time.Second
	// askTimeout bounds what is short: a description, a claim, a page of a list, a removal.
	askTimeout = 10 * time.Second
	// stepTimeout bounds each piece of contents on its way to the bucket, or from it.
	stepTimeout = 30 * time.Second
)

// errSilent means that the bucket did not answer in time.
var errSilent = errors.New("files: the bucket does not answer")

// look finds out whether the bucket is there: nil, an error that will stay, or errSilent.
func (s *Store) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openTimeout, fmt.Errorf("%w within %s", errSilent, openTimeout))
	defer cancel()
	ok, err := s.bucket.IsAccessible(ctx)
	switch {
	case ok:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("bucket of files is not accessible: %w", err)
	}
}

// reach looks for a bucket that did not answer until it does, or ctx ends.
func (s *Store) reach(ctx context.Context) {
	for !s.reached.Load() {
		select {
		case <-time.After(reachEvery):
		case <-ctx.Done():
			return
		}
		if err := s.look(ctx); err == nil {
			s.reached.Store(true)
			s.options.Log.LogAttrs(ctx, slog.LevelInfo, "the bucket of files answers")
		}
	}
}

// Ready returns nil if the bucket has answered since the server started.
func (s *Store) Ready() error {
	if !s.reached.Load() {
		return errSilent
	}
	return nil
}

// A patience ends what is being done with the bucket when one step of it takes too long.
type patience struct {
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

func newPatience(ctx context.Context) (context.Context, patience) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(stepTimeout, func() { cancel(fmt.Errorf("%w within %s", errSilent, stepTimeout)) })
	timer.Stop()
	return ctx, patience{cancel, timer}
}

// with takes a step.
func (p patience) with(step func() error) error {
	p.timer.Reset(stepTimeout)
	defer p.timer.Stop()
	return step()
}

func (p patience) end() {
	p.timer.Stop()
	p.cancel(nil)
}

// A patientReader reads contents.
type patientReader struct {
	*blob.Reader
	patience
}

func (r patientReader) Read(p []byte) (n int, err error) {
	err = r.with(func() error {
		n, err = r.Reader.Read(p)
		return err
	})
	return n, err
}

// WriteTo is not the Reader's own, which would have no patience.
func (r patientReader) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

func (r patientReader) Close() error {
	defer r.end()
	return r.Reader.Close()
}

// A patientWriter writes contents.
type patientWriter struct {
	*blob.Writer
	patience
}

func (w patientWriter) Write(p []byte) (n int, err error) {
	err = w.with(func() error {
		n, err = w.Writer.Write(p)
		return err
	})
	return n, err
}

// ReadFrom is not the Writer's own, which would have no patience.
func (w patientWriter) ReadFrom(r io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{w}, r)
}

func (w patientWriter) Close() error { return w.with(w.Writer.Close) }
