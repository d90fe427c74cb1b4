package api

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fermata/continuation"
	"fermata/engine"
)

// warnEvery is how often a wrong announcement is logged: who looks for a server looks
// again and again.
const warnEvery = time.Minute

// A SignedRegistry is a registry whose addresses are signed: where requests with tokens
// and results go is not for whoever can write the store to say. In the registry an
// address stands behind its MAC and a space. The MAC covers the server's name, which is a
// new one at each start, so that the address of an earlier server is of no use.
type SignedRegistry struct {
	continuation.Registry
	key PeerKey
	log *slog.Logger

	mu     sync.Mutex
	warned time.Time
}

// NewSignedRegistry returns a SignedRegistry that keeps its texts in another one.
func NewSignedRegistry(r continuation.Registry, key PeerKey, log *slog.Logger) *SignedRegistry {
	return &SignedRegistry{Registry: r, key: key, log: log}
}

// Announce implements continuation.Registry.
func (r *SignedRegistry) Announce(ctx context.Context, server, address string, ttl time.Duration) error {
	return r.Registry.Announce(ctx, server, r.key.announce(server, address), ttl)
}

// Locate implements continuation.Registry. A server whose announcement is not signed may
// live, such as one of another version: nobody must take over what it has. Its error then
// wraps engine.ErrOwnerAway.
func (r *SignedRegistry) Locate(ctx context.Context, server string) (string, error) {
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

// Servers implements continuation.Registry. Servers whose announcement is not signed are
// not among them.
func (r *SignedRegistry) Servers(ctx context.Context) (map[string]string, error) {
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

func (r *SignedRegistry) warn(server string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.warned) >= warnEvery {
		r.warned = now
		r.log.Warn("the address of a server in Redis is not signed with a secret of this group, and is not used", "server", server)
	}
}

func (k PeerKey) announce(server, address string) string {
	return k.mac("announcement", server, address) + " " + address
}

// announced returns the address in a server's announcement, if it is the server's word.
func (k PeerKey) announced(server, text string) (address string, ok bool) {
	mac, address, _ := strings.Cut(text, " ")
	return address, k.authentic(mac, "announcement", server, address)
}
