package files

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"
)

// sessionOwners stores to whom each session belongs: to the owner of the first file that is
// stored in it. The object of a session contains the key of its owner.
type sessionOwners struct {
	bucket *bucket
	life   time.Duration
	// locks has a lock for all sessions of one hash. They are needed because a directory, in
	// contrast to an object store, cannot create an object atomically. Two servers that share
	// a directory and give the same session to two owners at the same moment may both
	// succeed; the owners still cannot see each other's files, which have different keys.
	locks [64]sync.Mutex
	seed  maphash.Seed
}

// find returns the key of a session's owner, and when it was written; the key is empty if the
// session has none.
func (s *sessionOwners) find(ctx context.Context, session string) (key string, written time.Time, err error) {
	content, written, err := s.bucket.readSmall(ctx, ownersPrefix+session)
	if errors.Is(err, ErrNotFound) {
		return "", time.Time{}, nil
	}
	if err == nil && len(content) != len(Owner{}.key()) {
		err = fmt.Errorf("%d bytes", len(content))
	}
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read the owner of session %s: %w", session, err)
	}
	return string(content), written, nil
}

// take makes owner the owner of the session, if the session has none, or returns ErrForeign if
// it has another one. The object is written again when it is older than half a file's life, and
// expires after two lives, so that it outlives every file that is stored now.
func (s *sessionOwners) take(ctx context.Context, session string, owner Owner) error {
	lock := &s.locks[maphash.String(s.seed, session)%uint64(len(s.locks))]
	lock.Lock()
	defer lock.Unlock()
	found, written, err := s.find(ctx, session)
	if err != nil {
		return err
	}
	key := owner.key()
	switch {
	case found == "":
		err = s.bucket.put(ctx, ownersPrefix+session, []byte(key), true)
		if err == nil {
			return nil
		}
		// Another server may have written it first, for this owner or for another one.
		again, _, findErr := s.find(ctx, session)
		if findErr != nil || again == "" {
			return fmt.Errorf("write the owner of session %s: %w", session, err)
		}
		found = again
	case found == key && time.Since(written) > s.life/2:
		if err := s.bucket.put(ctx, ownersPrefix+session, []byte(key), false); err != nil {
			return fmt.Errorf("renew the owner of session %s: %w", session, err)
		}
	}
	if found != key {
		return ErrForeign
	}
	return nil
}

// missing returns the error for a file that the owner does not have in the session:
// ErrForeign if the session belongs to another owner, otherwise ErrNotFound.
func (s *sessionOwners) missing(ctx context.Context, owner Owner, session string) error {
	found, _, err := s.find(ctx, session)
	switch {
	case err != nil:
		return err
	case found != "" && found != owner.key():
		return ErrForeign
	default:
		return ErrNotFound
	}
}
