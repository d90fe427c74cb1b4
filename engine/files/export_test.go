package files

import "context"

// Sweep is what happens every hour.
func (s *Store) Sweep(ctx context.Context) { s.sweep(ctx) }
