package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"fermata/continuation"
	"fermata/engine"
)

// warnEvery is the shortest time between two log lines about wrong announcements: servers read
// announcements again and again.
const warnEvery = time.Minute

// A Registry is a continuation.Registry whose addresses are signed, so that write access to the
// store is not enough to redirect requests with tokens and results. An address is stored behind
// its MAC and a space. The MAC covers the name of the server, which is new at each start, so that
// the address of an earlier server is of no use.
type Registry struct {
	continuation.Registry
	directory Directory
	key       Key
	bucket    bool
	// compared is true once this server has been compared with the others.
	compared atomic.Bool
	log      *slog.Logger

	mu     sync.Mutex
	warned time.Time
}

// NewRegistry returns a Registry that keeps its announcements in a Directory. bucket says whether
// the session files of this server are in a bucket.
func NewRegistry(d Directory, key Key, bucket bool, log *slog.Logger) *Registry {
	return &Registry{Registry: d, directory: d, key: key, bucket: bucket, log: log}
}

// Announce implements continuation.Registry. The first time it fails, and takes the announcement
// back, if this server cannot be in one group with another one that is alive.
func (r *Registry) Announce(ctx context.Context, server, address string, ttl time.Duration) error {
	if err := r.Registry.Announce(ctx, server, r.key.announce(server, address), ttl); err != nil {
		return err
	}
	err := r.describe(ctx, server, address, ttl)
	if err == nil || errors.Is(err, continuation.ErrUnavailable) {
		return err
	}
	return errors.Join(err, r.Withdraw(ctx, server))
}

// Locate implements continuation.Registry. A server whose announcement is not signed may be alive,
// for example with another version, so its executions must not be taken over. The error then wraps
// engine.ErrOwnerAway.
func (r *Registry) Locate(ctx context.Context, server string) (string, error) {
	text, err := r.Registry.Locate(ctx, server)
	if err != nil {
		return "", err
	}
	address, ok := r.key.announced(server, text)
	if !ok {
		r.warn(server)
		return "", fmt.Errorf("%w: its address is not signed", engine.ErrOwnerAway)
	}
	return address, nil
}

// Servers implements continuation.Registry. It leaves out servers whose announcement is not
// signed.
func (r *Registry) Servers(ctx context.Context) (map[string]string, error) {
	servers, err := r.Registry.Servers(ctx)
	if err != nil {
		return nil, err
	}
	for server, text := range servers {
		address, ok := r.key.announced(server, text)
		if !ok {
			r.warn(server)
			delete(servers, server)
			continue
		}
		servers[server] = address
	}
	return servers, nil
}

func (r *Registry) warn(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.warned) >= warnEvery {
		r.warned = now
		r.log.Warn("the address of a server in Redis is not signed with a secret of this group, and is not used", "server", server)
	}
}
