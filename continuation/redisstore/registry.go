package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

var _ continuation.Registry = (*Store)(nil)

// serverPrefix begins the key of a server's announcement. It may not change, and
// no record's key begins with it.
const serverPrefix = "fermata-server:"

// Announce implements continuation.Registry.
func (s *Store) Announce(ctx context.Context, server, address string, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if err := s.client.Set(ctx, serverPrefix+server, address, ttl).Err(); err != nil {
		return stored.Unavailable("announce server", err)
	}
	return nil
}

// Locate implements continuation.Registry.
func (s *Store) Locate(ctx context.Context, server string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	address, err := s.client.Get(ctx, serverPrefix+server).Result()
	if errors.Is(err, redis.Nil) {
		return "", fmt.Errorf("locate server %s: %w", server, continuation.ErrNotFound)
	}
	if err != nil {
		return "", stored.Unavailable("locate server", err)
	}
	return address, nil
}

// Withdraw implements continuation.Registry.
func (s *Store) Withdraw(ctx context.Context, server string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if err := s.client.Del(ctx, serverPrefix+server).Err(); err != nil {
		return stored.Unavailable("withdraw server", err)
	}
	return nil
}
