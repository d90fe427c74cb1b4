package files

import "context"

// Sweep removes what has expired, which otherwise happens every hour.
func (s *Store) Sweep(ctx context.Context) { sweeper{s.bucket, s.options.Life}.sweep(ctx) }
