package files

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"log/slog"
	"slices"
	"time"
)

// Options are the settings of a Store. All except Log are required.
type Options struct {
	// URL names the bucket: file:///directory, which is created if it does not exist, or
	// s3://bucket with the parameters that openS3 takes. The credentials of an object store
	// come from the environment.
	URL string
	// MaxFile is the largest size of a file in bytes.
	MaxFile int64
	// Quota is the largest size of all files of a user together, in bytes. The agents and
	// skills of a tenant share one quota of the same size. A file counts at least 4 KiB.
	Quota int64
	// MaxFiles is the largest number of files in a session.
	MaxFiles int
	// Life is how long a file is kept after it was stored.
	Life time.Duration
	// Log is told when the bucket does not answer or an object cannot be removed. It may be
	// nil.
	Log *slog.Logger
}

// A Store keeps files, with a method for each operation of clients and of the engine. It is safe for concurrent use, and
// several servers can use one bucket at the same time, each through a Store of its own. Its methods with a context give
// up when the bucket does not answer in time: after 10 seconds for a short request, after 30 seconds for each step of a
// transfer.
type Store struct {
	options      Options
	bucket       *bucket
	owners       *sessionOwners
	descriptions descriptions
	quotas       *quotas
	// stop ends the goroutine that sweeps the bucket, which then closes swept.
	stop  context.CancelFunc
	swept chan struct{}
}

// Open opens a bucket, and starts to remove expired files from it in the background. It waits
// at most 5 seconds for the bucket. If there is no answer by then, Open succeeds nevertheless,
// and Ready tells when the bucket has answered. Close closes the Store.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	b, err := openBucket(ctx, o.URL, o.Log)
	if err != nil {
		return nil, err
	}
	sweeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{
		options:      o,
		bucket:       b,
		owners:       &sessionOwners{bucket: b, life: o.Life, seed: maphash.MakeSeed()},
		descriptions: descriptions{b, o.Life},
		quotas:       &quotas{bucket: b, life: o.Life, maxBytes: o.Quota, maxFiles: o.MaxFiles, known: map[string]*usage{}},
		stop:         stop,
		swept:        make(chan struct{}),
	}
	go func() {
		defer close(s.swept)
		b.await(sweeping)
		sweeper{b, o.Life}.run(sweeping)
	}()
	return s, nil
}

// Ready returns nil if the bucket has answered since Open, and otherwise an error.
func (s *Store) Ready() error {
	if !s.bucket.answered.Load() {
		return ErrNoAnswer
	}
	return nil
}

// Close closes the Store. Transfers that are still in progress fail.
func (s *Store) Close() error {
	s.stop()
	<-s.swept
	return s.bucket.close()
}

// Stat returns the description of a file. The errors are ErrNotFound, also for malformed ids,
// and ErrForeign.
func (s *Store) Stat(ctx context.Context, owner Owner, session, id string) (File, error) {
	if !ValidID(session) || !ValidID(id) {
		return File{}, ErrNotFound
	}
	f, err := s.descriptions.get(ctx, owner, session, id)
	if errors.Is(err, ErrNotFound) {
		return File{}, s.owners.missing(ctx, owner, session)
	}
	return f, err
}

// List returns the files of a session, sorted by name, and from the oldest to the latest where
// names are equal. A session that does not exist has no files, which is no error. For a session
// that belongs to another owner List returns ErrForeign.
func (s *Store) List(ctx context.Context, owner Owner, session string) ([]File, error) {
	if !ValidID(session) {
		return nil, nil
	}
	found, err := s.descriptions.list(ctx, owner, session)
	if err == nil && len(found) == 0 {
		err = s.owners.missing(ctx, owner, session)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	slices.SortFunc(found, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Modified.Compare(b.Modified), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// Read opens a file. Its contents can be read until ctx ends; the caller closes them. The
// errors are those of Stat.
func (s *Store) Read(ctx context.Context, owner Owner, session, id string) (io.ReadCloser, File, error) {
	f, err := s.Stat(ctx, owner, session, id)
	if err != nil {
		return nil, File{}, err
	}
	content, _, err := s.bucket.open(ctx, contentKey(owner, session, id), whole)
	if err != nil {
		return nil, File{}, err
	}
	return content, f, nil
}

// Content opens the contents of a file that the Store has described, from the byte from up to the byte
// before to, and reads no others. They can be read until ctx ends; the caller closes them. It returns
// ErrNotFound if the file is gone.
func (s *Store) Content(ctx context.Context, f File, from, to int64) (io.ReadCloser, error) {
	part := section{from, to}
	if from == 0 && to == f.Size {
		part = whole
	}
	content, _, err := s.bucket.open(ctx, contentKey(f.Owner, f.Session, f.ID), part)
	return content, err
}

// Delete deletes a file. The errors are those of Stat.
func (s *Store) Delete(ctx context.Context, owner Owner, session, id string) error {
	f, err := s.Stat(ctx, owner, session, id)
	if err != nil {
		return err
	}
	if err := s.bucket.remove(ctx, descriptionKey(owner, session, id)); err != nil {
		return err
	}
	s.bucket.discard(context.WithoutCancel(ctx), contentKey(owner, session, id))
	s.quotas.deleted(f)
	return nil
}

// Foreign reports whether a session belongs to another owner. A session that does not exist
// belongs to nobody.
func (s *Store) Foreign(ctx context.Context, owner Owner, session string) (bool, error) {
	err := s.owners.missing(ctx, owner, session)
	switch {
	case errors.Is(err, ErrForeign):
		return true, nil
	case errors.Is(err, ErrNotFound):
		return false, nil
	}
	return false, err
}
