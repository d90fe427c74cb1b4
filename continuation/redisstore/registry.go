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

// The names of keys may not change. No key of a record begins like these.
const (
	// serverPrefix begins the key of a server's announcement.
	serverPrefix = "fermata-server:"
	// serversKey is the key of the set of servers. It holds every live server, and dead
	// ones until some server notices that their announcement has expired.
	serversKey = "fermata-servers"
	// memberPrefix begins the key of the description of a server.
	memberPrefix = "fermata-member:"
	// serversTTL is how long the set is kept after the last announcement.
	serversTTL = time.Hour
)

// keep sets a key, also if Redis is full: PERSIST needs no memory.
//
//	ARGV[1]  the value  ARGV[2]  its time to live in milliseconds
var keep = redis.NewScript(`
redis.call('PERSIST', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`)

// join adds a server to the set of servers, also if Redis is full.
//
//	ARGV[1]  the server  ARGV[2]  the time to live of the set in milliseconds
var join = redis.NewScript(`
redis.call('PERSIST', KEYS[1])
redis.call('SADD', KEYS[1], ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`)

// Announce implements continuation.Registry.
func (s *Store) Announce(ctx context.Context, server, address string, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error { // One round trip, also if Redis does not know the scripts.
		keep.Eval(ctx, p, []string{serverPrefix + server}, address, stored.Millis(ttl))
		join.Eval(ctx, p, []string{serversKey}, server, stored.Millis(serversTTL))
		return nil
	})
	if err != nil {
		return stored.Unavailable("announce server", err)
	}
	return nil
}

// Servers implements continuation.Registry.
func (s *Store) Servers(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	servers, err := s.client.SMembers(ctx, serversKey).Result()
	if err != nil {
		return nil, stored.Unavailable("list servers", err)
	}
	addresses := make(map[string]string, len(servers))
	var dead []any
	for _, server := range servers {
		address, err := s.client.Get(ctx, serverPrefix+server).Result()
		switch {
		case errors.Is(err, redis.Nil):
			dead = append(dead, server)
		case err != nil:
			return nil, stored.Unavailable("list servers", err)
		default:
			addresses[server] = address
		}
	}
	if len(dead) > 0 {
		// A server that was only slow adds itself again with its next announcement.
		if err := s.client.SRem(ctx, serversKey, dead...).Err(); err != nil {
			return nil, stored.Unavailable("list servers", err)
		}
	}
	return addresses, nil
}

// Describe stores the description that a server gives of itself, for ttl from now.
func (s *Store) Describe(ctx context.Context, server, text string, ttl time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	if err := keep.Run(ctx, s.client, []string{memberPrefix + server}, text, stored.Millis(ttl)).Err(); err != nil {
		return stored.Unavailable("describe server", err)
	}
	return nil
}

// Descriptions returns the descriptions of all live servers.
func (s *Store) Descriptions(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	servers, err := s.client.SMembers(ctx, serversKey).Result()
	if err != nil {
		return nil, stored.Unavailable("list descriptions", err)
	}
	texts := make(map[string]string, len(servers))
	for _, server := range servers {
		text, err := s.client.Get(ctx, memberPrefix+server).Result()
		switch {
		case errors.Is(err, redis.Nil): // The server is dead, or its version has no description.
		case err != nil:
			return nil, stored.Unavailable("list descriptions", err)
		default:
			texts[server] = text
		}
	}
	return texts, nil
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
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Del(ctx, serverPrefix+server)
		p.Del(ctx, memberPrefix+server)
		p.SRem(ctx, serversKey, server)
		return nil
	})
	if err != nil {
		return stored.Unavailable("withdraw server", err)
	}
	return nil
}
