package redisstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogClient has the client for Redis write to log, at level debug: what goes wrong with single
// connections. Without it the client writes lines of its own form to stderr. It is for the whole
// process, since the client has one log for all.
func LogClient(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

// maxSaid bounds a line of the client, in bytes.
const maxSaid = 1000

// A clientLog is the log of the client for Redis.
type clientLog struct{ log *slog.Logger }

// Printf implements the interface of the client.
func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if !l.log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	said := fmt.Sprintf(format, args...)
	l.log.LogAttrs(ctx, slog.LevelDebug, "the client for Redis said", slog.String("line", said[:min(len(said), maxSaid)]))
}
