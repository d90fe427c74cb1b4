package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// checkTimeout is how long a bucket that is being opened has to answer. After that,
	// retryInterval is the time between two attempts to reach it.
	checkTimeout  = 5 * time.Second
	retryInterval = 5 * time.Second
	// maxSmall is the largest object that is read into memory. Descriptions are the largest
	// of these; their names and types are bounded when they are stored.
	maxSmall = 64 << 10
)

// ErrNoAnswer means that the bucket did not answer in time.
var ErrNoAnswer = errors.New("files: the bucket does not answer")

// objects keep contents by key. Each of their requests has a deadline where it can wait for another
// machine.
type objects interface {
	// check returns an error if what contains the objects is not there.
	check(ctx context.Context) error
	// open opens a section of an object for reading until ctx ends, and tells when the object was
	// written. It returns ErrNotFound if there is no such object.
	open(ctx context.Context, key string, s section) (content io.ReadCloser, written time.Time, err error)
	// put writes a small object. With onlyNew it fails if there is such an object already.
	put(ctx context.Context, key string, content []byte, onlyNew bool) error
	// write copies from into a large object. When all of it is copied, write calls commit. The
	// object exists only if both have succeeded.
	write(ctx context.Context, key string, from io.Reader, commit func() error) error
	// walk calls visit with each object whose key begins with prefix.
	walk(ctx context.Context, prefix string, visit func(object)) error
	// remove removes an object. It may return ErrNotFound if there is no such object.
	remove(ctx context.Context, key string) error
	close() error
}

// An object is one of the objects that a walk has found.
type object struct {
	key     string
	size    int64
	written time.Time
}

// A section is a part of the contents of an object. It ends before the byte to.
type section struct{ from, to int64 }

// whole is the section of all contents.
var whole = section{0, -1}

// A bucket is a local directory or an object store.
type bucket struct {
	objects

	log *slog.Logger
	// answered says that the bucket has answered at least once.
	answered atomic.Bool
}

// openBucket opens the bucket with the address. It succeeds if the bucket does not answer
// (see await), and fails if there is none.
func openBucket(ctx context.Context, address string, log *slog.Logger) (*bucket, error) {
	kept, err := openObjects(address)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b := &bucket{objects: kept, log: log}
	err = b.ask(ctx)
	switch {
	case errors.Is(err, ErrNoAnswer):
		log.LogAttrs(ctx, slog.LevelError, "there are no files until the bucket answers", slog.Any("err", err))
	case err != nil:
		return nil, errors.Join(err, kept.close())
	}
	return b, nil
}

// openObjects opens the directory or the object store with the address.
func openObjects(address string) (objects, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("URL of the bucket: %w", err)
	}
	switch u.Scheme {
	case "file":
		return openDirectory(u)
	case "s3":
		return openS3(u)
	}
	return nil, errors.New("the URL must be file:///directory or s3://bucket")
}

// ask asks the bucket whether it is there. It returns ErrNoAnswer, or an error that asking
// again would not change.
func (b *bucket) ask(ctx context.Context) error {
	ctx, cancel := withDeadline(ctx, checkTimeout)
	defer cancel()
	err := b.check(ctx)
	switch {
	case err == nil:
		b.answered.Store(true)
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("the bucket of files is not accessible: %w", err)
	}
}

// await returns when the bucket has answered, or when ctx ends.
func (b *bucket) await(ctx context.Context) {
	for !b.answered.Load() {
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
			return
		}
		if b.ask(ctx) == nil {
			b.log.LogAttrs(ctx, slog.LevelInfo, "the bucket of files answers")
		}
	}
}

// readSmall returns the contents of a small object and when it was written, or ErrNotFound.
func (b *bucket) readSmall(ctx context.Context, key string) (content []byte, written time.Time, err error) {
	ctx, cancel := withDeadline(ctx, requestTimeout)
	defer cancel()
	r, written, err := b.open(ctx, key, whole)
	if err != nil {
		return nil, time.Time{}, err
	}
	content, err = io.ReadAll(io.LimitReader(r, maxSmall+1))
	if err == nil && len(content) > maxSmall {
		err = fmt.Errorf("more than %d bytes", maxSmall)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", key, err)
	}
	return content, written, nil
}

// discard removes an object that nothing refers to. A failure is only logged: the object is
// removed later, when it has expired.
func (b *bucket) discard(ctx context.Context, key string) {
	if err := b.remove(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
		b.log.LogAttrs(ctx, slog.LevelWarn, "cannot remove an object from the bucket of files", slog.Any("err", err))
	}
}

// inParallel calls do with 0 to n-1, several at once because object stores take long to answer
// each request, and returns the errors in this order.
func inParallel(n int, do func(i int) error) []error {
	const atOnce = 16
	errs := make([]error, n)
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { errs[i] = do(i); return nil })
	}
	_ = group.Wait() // The errors are in the list.
	return errs
}
