package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // for file: URLs
	_ "gocloud.dev/blob/s3blob"   // for s3: URLs
	"gocloud.dev/gcerrors"
)

const (
	// checkTimeout is how long a bucket that is being opened has to answer. After that,
	// retryInterval is the time between two attempts to reach it.
	checkTimeout  = 5 * time.Second
	retryInterval = 5 * time.Second
	// requestTimeout is how long a short request may take: a small object, a page of a
	// listing, a removal.
	requestTimeout = 10 * time.Second
	// maxSmall is the largest object that is read into memory. Descriptions are the largest
	// of these; their names and types are bounded when they are stored.
	maxSmall = 64 << 10
	// partSize and partsAtOnce bound how much of a file the upload to an object store holds
	// in memory. Object stores accept no smaller parts.
	partSize    = 5 << 20
	partsAtOnce = 2
)

// ErrNoAnswer means that the bucket did not answer in time.
var ErrNoAnswer = errors.New("files: the bucket does not answer")

// A bucket is a local directory or an object store. Each request to it has a deadline.
type bucket struct {
	blobs    *blob.Bucket
	pageSize int
	log      *slog.Logger
	// answered says that the bucket has answered at least once.
	answered atomic.Bool
}

// openBucket opens the bucket with the address. It succeeds if the bucket does not answer
// (see await), and fails if there is none.
func openBucket(ctx context.Context, address string, log *slog.Logger) (*bucket, error) {
	address, pageSize, err := withParameters(address)
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	blobs, err := blob.OpenBucket(opening, address)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	b := &bucket{blobs: blobs, pageSize: pageSize, log: log}
	err = b.check(ctx)
	switch {
	case errors.Is(err, ErrNoAnswer):
		log.LogAttrs(ctx, slog.LevelError, "there are no files until the bucket answers", slog.Any("err", err))
	case err != nil:
		return nil, errors.Join(err, blobs.Close())
	}
	return b, nil
}

// withParameters adds our parameters to the URL of a bucket. It also returns how many keys to
// ask for at once.
func withParameters(address string) (complete string, pageSize int, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", 0, fmt.Errorf("URL of the bucket: %w", err)
	}
	q := u.Query()
	if u.Scheme == "s3" && !q.Has("response_checksum_validation") {
		// Without this, the client prints a warning for each large file that has no checksum.
		q.Set("response_checksum_validation", "when_required")
		u.RawQuery = q.Encode()
	}
	if u.Scheme != "file" {
		// Object stores return at most 1000 keys at once.
		return u.String(), 1000, nil
	}
	q.Set("create_dir", "true")
	q.Set("dir_file_mode", "0700")
	// Put temporary files next to the final ones: on another disk they could not be renamed.
	q.Set("no_tmp_dir", "true")
	// We use no metadata, which would take a second file for each object.
	q.Set("metadata", "skip")
	u.RawQuery = q.Encode()
	// Each page walks the whole directory, so ask for few pages.
	return u.String(), 100_000, nil
}

// check asks the bucket whether it is there. It returns ErrNoAnswer, or an error that asking
// again would not change.
func (b *bucket) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, fmt.Errorf("%w within %s", ErrNoAnswer, checkTimeout))
	defer cancel()
	ok, err := b.blobs.IsAccessible(ctx)
	switch {
	case ok:
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
		if b.check(ctx) == nil {
			b.log.LogAttrs(ctx, slog.LevelInfo, "the bucket of files answers")
		}
	}
}

// readSmall returns the contents of a small object and when it was written, or ErrNotFound.
func (b *bucket) readSmall(ctx context.Context, key string) (content []byte, written time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r, err := b.blobs.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, time.Time{}, ErrNotFound
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", key, err)
	}
	content, err = io.ReadAll(io.LimitReader(r, maxSmall+1))
	if err == nil && len(content) > maxSmall {
		err = fmt.Errorf("more than %d bytes", maxSmall)
	}
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, time.Time{}, fmt.Errorf("read %s: %w", key, err)
	}
	return content, r.ModTime(), nil
}

// writeSmall writes a small object. With onlyNew it fails if there is such an object already.
func (b *bucket) writeSmall(ctx context.Context, key string, content []byte, onlyNew bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return b.blobs.Upload(ctx, key, bytes.NewReader(content), &blob.WriterOptions{
		ContentType: "application/octet-stream", IfNotExist: onlyNew,
	})
}

// open opens a large object for reading until ctx ends, or returns ErrNotFound.
func (b *bucket) open(ctx context.Context, key string) (io.ReadCloser, error) {
	ctx, stall := newStallTimer(ctx)
	var r *blob.Reader
	err := stall.limit(func() (err error) {
		r, err = b.blobs.NewReader(ctx, key, nil)
		return err
	})
	if err == nil {
		return stallReader{r, stall}, nil
	}
	stall.stop()
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, ErrNotFound
	}
	return nil, fmt.Errorf("read %s: %w", key, err)
}

// write copies from into a large object. When all of it is copied, write calls commit. The
// object exists only if both have succeeded.
func (b *bucket) write(ctx context.Context, key string, from io.Reader, commit func() error) error {
	writing, stall := newStallTimer(ctx)
	defer stall.stop()
	blobWriter, err := b.blobs.NewWriter(writing, key, &blob.WriterOptions{
		BufferSize: partSize, MaxConcurrency: partsAtOnce, ContentType: "application/octet-stream",
	})
	if err != nil {
		return err
	}
	w := stallWriter{blobWriter, stall}
	_, err = io.Copy(w, from)
	if err == nil {
		err = commit()
	}
	if err != nil {
		// Close would keep what was written so far, unless the context has ended.
		stall.stop()
		_ = w.Close()
		return err
	}
	return w.Close()
}

// walk calls visit with each object whose key begins with prefix.
func (b *bucket) walk(ctx context.Context, prefix string, visit func(*blob.ListObject)) error {
	for token := blob.FirstPageToken; token != nil; {
		asking, cancel := context.WithTimeout(ctx, requestTimeout)
		page, next, err := b.blobs.ListPage(asking, token, b.pageSize, &blob.ListOptions{Prefix: prefix})
		cancel()
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, err)
		}
		for _, o := range page {
			visit(o)
		}
		token = next
	}
	return nil
}

// remove removes an object, or returns ErrNotFound.
func (b *bucket) remove(ctx context.Context, key string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := b.blobs.Delete(ctx, key)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("remove %s: %w", key, err)
	}
	return nil
}

// discard removes an object that nothing refers to. A failure is only logged: the object is
// removed later, when it has expired.
func (b *bucket) discard(ctx context.Context, key string) {
	if err := b.remove(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
		b.log.LogAttrs(ctx, slog.LevelWarn, "cannot remove an object from the bucket of files", slog.Any("err", err))
	}
}

func (b *bucket) close() error { return b.blobs.Close() }

// inParallel calls do with 0 to n-1, several at once because object stores take long to answer
// each request, and returns the errors in this order.
func inParallel(n int, do func(i int) error) []error {
	const atOnce = 16
	var (
		group sync.WaitGroup
		errs  = make([]error, n)
		free  = make(chan struct{}, atOnce)
	)
	for i := range n {
		free <- struct{}{}
		group.Go(func() {
			errs[i] = do(i)
			<-free
		})
	}
	group.Wait()
	return errs
}
