package files

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"time"

	"gocloud.dev/gcerrors"
)

// A claim says whose a session is. The zero claim is that of a session of nobody.
type claim struct {
	owner string
	made  time.Time
}

func (s *Store) readClaim(ctx context.Context, session string) (claim, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	r, err := s.bucket.NewReader(ctx, claims+session, nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		return claim{}, nil
	}
	if err != nil {
		return claim{}, fmt.Errorf("read claim: %w", err)
	}
	defer func() { _ = r.Close() }()
	owner := make([]byte, len(Owner{}.key()))
	if _, err := io.ReadFull(r, owner); err != nil {
		return claim{}, fmt.Errorf("read claim: %w", err)
	}
	return claim{string(owner), r.ModTime()}, nil
}

// makeClaim makes the session the owner's, or returns ErrForeign if it is another's.
// It lives on for at least one and a half lives of a file, and is swept after two.
func (s *Store) makeClaim(ctx context.Context, session, owner string) error {
	lock := &s.claiming[maphash.String(s.seed, session)%uint64(len(s.claiming))]
	lock.Lock()
	defer lock.Unlock()
	found, err := s.readClaim(ctx, session)
	if err != nil {
		return err
	}
	switch {
	case found.owner == "":
		err = s.writeSmall(ctx, claims+session, []byte(owner), true)
		if err == nil {
			return nil
		}
		// Another server may have been faster, for this owner or for another one.
		again, readErr := s.readClaim(ctx, session)
		if readErr != nil || again.owner == "" {
			return fmt.Errorf("write claim: %w", err)
		}
		found = again
	case found.owner == owner && time.Since(found.made) > s.options.Life/2:
		if err := s.writeSmall(ctx, claims+session, []byte(owner), false); err != nil {
			return fmt.Errorf("renew claim: %w", err)
		}
	}
	if found.owner != owner {
		return ErrForeign
	}
	return nil
}
