package redisstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogClient makes the client for Redis log the failures of single connections to log, at level debug. Without
// it the client writes lines in its own format to stderr. It affects the whole process, since the client has
// only one log.
func LogClient(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

// maxSaid is the maximum length of a line of the client, in bytes.
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
