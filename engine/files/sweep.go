package files

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"gocloud.dev/blob"
)

const (
	sweepEvery = time.Hour
	// contentGrace is how much longer contents live than the description that was
	// written after them.
	contentGrace = 10 * time.Minute
	// partLife is how long what is being written to a directory stays unchanged at most.
	partLife = 10 * time.Minute
)

// sweepHourly removes what is too old until ctx ends.
func (s *Store) sweepHourly(ctx context.Context) {
	ticker := time.NewTicker(sweepEvery)
	defer ticker.Stop()
	for {
		s.sweep(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// sweep removes what is too old: also what servers that were killed have left half
// written. One failure does not stop the rest.
func (s *Store) sweep(ctx context.Context) {
	for _, kind := range []struct {
		prefix string
		life   time.Duration
	}{
		{files, s.options.Life},
		{contents, s.options.Life + contentGrace},
		// Made after the description.
		{drops, s.options.Life},
		// Each file in a session has found its claim young or made it so.
		{claims, 2 * s.options.Life},
	} {
		err := s.walk(ctx, kind.prefix, func(o *blob.ListObject) {
			life := kind.life
			if strings.HasSuffix(o.Key, ".tmp") { // Ids have no dots.
				life = partLife
			}
			if ctx.Err() == nil && time.Since(o.ModTime) >= life {
				s.remove(ctx, o.Key)
			}
		})
		if err != nil && ctx.Err() == nil {
			s.options.Log.LogAttrs(ctx, slog.LevelWarn, "cannot look for old files", slog.String("below", kind.prefix), slog.Any("err", err))
		}
	}
}
