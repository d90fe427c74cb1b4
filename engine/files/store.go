package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/fileblob" // for file: URLs
	_ "gocloud.dev/blob/s3blob"   // for s3: URLs
	"gocloud.dev/gcerrors"
)

// What is in the bucket. Names and contents may not change while there are files.
//
// A description is written after its contents, so what has a description is whole. It
// is no metadata of the contents, since its hash is known only when they are there.
// Every key but a claim's has the owner in it: what belongs to another owner is not
// found, whatever the claim says.
const (
	// claims/<session> has the key of the session's owner.
	claims = "claims/"
	// files/<owner>/<session>.<file> is the description of a file.
	files = "files/"
	// contents/<account>/<owner>/<session>.<file> is what is in it.
	contents = "contents/"
	// drops/<owner>/<session>.<file> says that the file does not come back with its
	// session. It is empty.
	drops = "drops/"
)

// Options are the settings of a Store. All but Log must be set.
type Options struct {
	// URL names the bucket: file:///directory, which is made if there is none, or
	// s3://bucket with the parameters of the Go CDK. Keys for it come from the
	// environment.
	URL string
	// MaxFile is the size of a file, Quota that of all files of a user, or of the agents
	// and skills of a tenant together, in bytes.
	MaxFile, Quota int64
	// MaxFiles is the number of files in a session.
	MaxFiles int
	// Life is how long a file is kept.
	Life time.Duration
	// Log is told of what could not be removed; nil if nobody is.
	Log *slog.Logger
}

// A Store keeps files. It is safe for concurrent use, also by several servers on one
// bucket.
type Store struct {
	options  Options
	bucket   *blob.Bucket
	pageSize int
	accounts accounts
	// claiming has a lock for the sessions of each hash: in a directory, writing what
	// is not there yet is not atomic. Servers that share one may both believe that a
	// session is theirs if both make it at the same moment; keys keep the files apart.
	claiming [64]sync.Mutex
	seed     maphash.Seed

	// reached says that the bucket has answered.
	reached atomic.Bool

	stop  context.CancelFunc
	swept chan struct{}
}

// Open opens the store of a bucket and starts to remove what is too old. Close ends it. A
// bucket that does not answer is waited for in the background: see Ready.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	address, pageSize, err := bucketURL(o.URL)
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	bucket, err := blob.OpenBucket(opening, address)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	sweeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	s := &Store{
		options: o, bucket: bucket, pageSize: pageSize,
		accounts: accounts{known: map[string]*account{}},
		seed:     maphash.MakeSeed(),
		stop:     stop, swept: make(chan struct{}),
	}
	err = s.look(ctx)
	switch {
	case errors.Is(err, errSilent):
		o.Log.LogAttrs(ctx, slog.LevelError, "there are no files until the bucket answers", slog.Any("err", err))
	case err != nil:
		stop()
		return nil, errors.Join(err, bucket.Close())
	}
	s.reached.Store(err == nil)
	go func() {
		defer close(s.swept)
		s.reach(sweeping)
		s.sweepHourly(sweeping)
	}()
	return s, nil
}

// bucketURL returns the URL as it is opened, and how many keys to list at once.
func bucketURL(address string) (opened string, pageSize int, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", 0, fmt.Errorf("URL of the bucket: %w", err)
	}
	q := u.Query()
	if u.Scheme == "s3" && !q.Has("response_checksum_validation") {
		// Otherwise it says on stderr of every large file that there is nothing to check.
		q.Set("response_checksum_validation", "when_required")
		u.RawQuery = q.Encode()
	}
	if u.Scheme != "file" {
		// More than this no object store gives.
		return u.String(), 1000, nil
	}
	q.Set("create_dir", "true")
	q.Set("dir_file_mode", "0700")
	// Next to their files temporary files are on their disk, and renaming works.
	q.Set("no_tmp_dir", "true")
	// We use no metadata, and every file would have a second one for it.
	q.Set("metadata", "skip")
	u.RawQuery = q.Encode()
	// Each page walks over the whole directory.
	return u.String(), 100_000, nil
}

// Close ends the store. Files that are being read or written fail.
func (s *Store) Close() error {
	s.stop()
	<-s.swept
	return s.bucket.Close()
}

// Put stores a file, under an id of its own: it replaces none, not even one of its
// name. The session is made if there is none. If n.Content fails, or ctx ends, nothing
// is kept. Errors of n.Content are returned as they are, wrapped.
func (s *Store) Put(ctx context.Context, n New) (File, error) {
	if !ValidID(n.Session) {
		return File{}, fmt.Errorf("files: malformed session id %q", n.Session)
	}
	if err := CheckName(n.Name); err != nil {
		return File{}, err
	}
	// A foreign session is refused before the transfer, a new one made after it.
	if err := s.missing(ctx, n.Owner, n.Session); !errors.Is(err, ErrNotFound) {
		return File{}, err
	}
	t, err := s.begin(ctx, n.Owner, n.Session)
	if err != nil {
		return File{}, err
	}
	kept := false
	defer func() { t.end(kept) }()
	f, err := s.receive(ctx, n, t)
	kept = err == nil
	return f, err
}

// Stat returns the description of a file.
func (s *Store) Stat(ctx context.Context, owner Owner, session, id string) (File, error) {
	if !ValidID(session) || !ValidID(id) {
		return File{}, ErrNotFound
	}
	f, err := s.describe(ctx, fileKey(owner.key(), session, id))
	if errors.Is(err, ErrNotFound) {
		return File{}, s.missing(ctx, owner, session)
	}
	if err != nil {
		return File{}, err
	}
	f.Owner = owner
	return f, nil
}

// List returns the files of a session by name, those of one name by age, the oldest
// first. A session that nobody has made has none.
func (s *Store) List(ctx context.Context, owner Owner, session string) ([]File, error) {
	if !ValidID(session) {
		return nil, nil
	}
	var keys []string
	prefix := fileKey(owner.key(), session, "")
	err := s.walk(ctx, prefix, func(o *blob.ListObject) {
		// What is being written to a directory has a longer name.
		if ValidID(strings.TrimPrefix(o.Key, prefix)) && s.alive(o.ModTime) {
			keys = append(keys, o.Key)
		}
	})
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		if err := s.missing(ctx, owner, session); !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		return nil, nil
	}
	found, err := s.describeAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i].Owner = owner
	}
	slices.SortFunc(found, func(a, b File) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), a.Modified.Compare(b.Modified), cmp.Compare(a.ID, b.ID))
	})
	return found, nil
}

// Read opens a file. The caller closes it; it can be read until ctx ends.
func (s *Store) Read(ctx context.Context, owner Owner, session, id string) (io.ReadCloser, File, error) {
	f, err := s.Stat(ctx, owner, session, id)
	if err != nil {
		return nil, File{}, err
	}
	ctx, patience := newPatience(ctx)
	var r *blob.Reader
	err = patience.with(func() (err error) {
		r, err = s.bucket.NewReader(ctx, contentKey(owner, session, id), nil)
		return err
	})
	if err == nil {
		return patientReader{r, patience}, f, nil
	}
	patience.end()
	if gcerrors.Code(err) == gcerrors.NotFound {
		return nil, File{}, ErrNotFound
	}
	return nil, File{}, fmt.Errorf("read file %s: %w", id, err)
}

// Delete removes a file.
func (s *Store) Delete(ctx context.Context, owner Owner, session, id string) error {
	f, err := s.Stat(ctx, owner, session, id)
	if err != nil {
		return err
	}
	deleting, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	err = s.bucket.Delete(deleting, fileKey(owner.key(), session, id))
	if gcerrors.Code(err) == gcerrors.NotFound {
		return ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("delete file %s: %w", id, err)
	}
	s.discard(ctx, contentKey(owner, session, id))
	s.accounts.forget(owner.account(), session, f.Size)
	return nil
}

// Foreign reports whether a session belongs to another owner.
func (s *Store) Foreign(ctx context.Context, owner Owner, session string) (bool, error) {
	err := s.missing(ctx, owner, session)
	switch {
	case errors.Is(err, ErrForeign):
		return true, nil
	case errors.Is(err, ErrNotFound):
		return false, nil
	}
	return false, err
}

// missing returns ErrForeign if another owner has the session, otherwise ErrNotFound.
func (s *Store) missing(ctx context.Context, owner Owner, session string) error {
	claim, err := s.readClaim(ctx, session)
	switch {
	case err != nil:
		return err
	case claim.owner != "" && claim.owner != owner.key():
		return ErrForeign
	default:
		return ErrNotFound
	}
}

// describe reads a description.
func (s *Store) describe(ctx context.Context, key string) (File, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := s.bucket.NewReader(ctx, key, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return File{}, ErrNotFound
	}
	if err != nil {
		return File{}, fmt.Errorf("read description %s: %w", key, err)
	}
	var d description
	err = errors.Join(json.NewDecoder(r).Decode(&d), r.Close())
	if err != nil {
		return File{}, fmt.Errorf("read description %s: %w", key, err)
	}
	if !s.alive(r.ModTime()) {
		return File{}, ErrNotFound
	}
	return d.file(), nil
}

// describeAll reads descriptions, several at once: an object store takes its time for
// each. What has gone in the meantime is left out.
func (s *Store) describeAll(ctx context.Context, keys []string) ([]File, error) {
	const atOnce = 16
	var (
		group sync.WaitGroup
		mu    sync.Mutex
		found = make([]File, 0, len(keys))
		errs  []error
	)
	next := make(chan string)
	for range min(atOnce, len(keys)) {
		group.Go(func() {
			for key := range next {
				f, err := s.describe(ctx, key)
				mu.Lock()
				switch {
				case err == nil:
					found = append(found, f)
				case !errors.Is(err, ErrNotFound):
					errs = append(errs, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, key := range keys {
		next <- key
	}
	close(next)
	group.Wait()
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return found, nil
}

// walk calls visit with every object whose key begins with prefix.
func (s *Store) walk(ctx context.Context, prefix string, visit func(*blob.ListObject)) error {
	for token := blob.FirstPageToken; token != nil; {
		asking, cancel := context.WithTimeout(ctx, askTimeout)
		page, next, err := s.bucket.ListPage(asking, token, s.pageSize, &blob.ListOptions{Prefix: prefix})
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

func (s *Store) alive(modified time.Time) bool { return time.Since(modified) < s.options.Life }

// discard removes an object that nothing refers to. If that fails sweeping removes it.
func (s *Store) discard(ctx context.Context, key string) {
	s.remove(context.WithoutCancel(ctx), key)
}

func (s *Store) remove(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	if err := s.bucket.Delete(ctx, key); err != nil && gcerrors.Code(err) != gcerrors.NotFound {
		s.options.Log.LogAttrs(ctx, slog.LevelWarn, "cannot remove from the bucket of files", slog.String("key", key), slog.Any("err", err))
	}
}

func fileKey(owner, session, id string) string { return files + owner + "/" + session + "." + id }

func contentKey(owner Owner, session, id string) string {
	return contents + owner.account() + "/" + owner.key() + "/" + session + "." + id
}
