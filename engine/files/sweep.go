package files

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

const (
	sweepInterval = time.Hour
	// contentGrace is how much longer the contents of a file are kept than its description,
	// which was written after them.
	contentGrace = 10 * time.Minute
	// partialLife is how long the temporary file of an object in a directory can remain
	// unchanged before it is taken to be left by a server that was killed.
	partialLife = 10 * time.Minute
)

// A sweeper removes what has expired from the bucket, including what servers that were killed
// have left incomplete.
type sweeper struct {
	bucket *bucket
	life   time.Duration // of a file
}

// run sweeps at once and then every hour, until ctx ends.
func (s sweeper) run(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
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

// sweep removes what has expired. It goes on after a failure, which is only logged.
func (s sweeper) sweep(ctx context.Context) {
	for _, kind := range []struct {
		prefix string
		life   time.Duration
	}{
		{descriptionsPrefix, s.life},
		{contentsPrefix, s.life + contentGrace},
		// A deletion is always younger than the description of its file.
		{deletionsPrefix, s.life},
		// When a file is stored, the owner of its session was written at most half a life
		// before (see sessionOwners.take), and so is kept longer than the file.
		{ownersPrefix, 2 * s.life},
	} {
		err := s.bucket.walk(ctx, kind.prefix, func(o object) {
			life := kind.life
			if strings.HasSuffix(o.key, ".tmp") { // Ids contain no dot.
				life = partialLife
			}
			if ctx.Err() == nil && time.Since(o.written) >= life {
				s.bucket.discard(ctx, o.key)
			}
		})
		if err != nil && ctx.Err() == nil {
			s.bucket.log.LogAttrs(ctx, slog.LevelWarn, "cannot look for expired files in the bucket",
				slog.String("prefix", kind.prefix), slog.Any("err", err))
		}
	}
}
