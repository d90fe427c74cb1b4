// Package redisstore keeps continuation records in Redis, or in a server that speaks its
// protocol, for servers that share them. Redis may run alone, under Sentinel or as a
// Cluster. It confirms a write before its replicas have it, so a failover may lose the
// last writes. An execution may then be lost, or its last round may be claimed once more.
// Where that matters, configure Redis with min-replicas-to-write.
package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"fermata/continuation"
	"fermata/continuation/internal/stored"
)

// Servers of other versions use the same names of keys, so the names may not change. The
// braces make a Cluster choose the slot by the id alone.
const (
	keyPrefix = "fermata:{"
	keySuffix = "}"
)

// listPage is how many records List asks for at once.
const listPage = 128

// A Store keeps records in Redis. It implements continuation.Store, with a method for each operation.
type Store struct {
	client redis.UniversalClient
	codec  codec
	limits continuation.JournalLimits
	log    *slog.Logger
	index  *index
	wakes  *wakes
	loaded atomic.Bool    // whether Redis has the script put
	asking sync.WaitGroup // the commands of askRoom
}

var _ continuation.Store = (*Store)(nil)

// An Option changes how a Store works.
type Option func(*Store) error

// WithKey makes the Store encrypt and authenticate records before they go to Redis. A
// reader of Redis then learns only ids, versions and sizes. A writer to Redis can remove
// records or bring back old ones, but cannot make or change any. The first secret
// encrypts, and each of them decrypts. Secrets must have 32 bytes or more and must not be
// used for anything else. A Store with a key refuses records that are not encrypted.
func WithKey(secrets ...[]byte) Option {
	return func(s *Store) error {
		sealed, err := newSealed(secrets)
		s.codec = sealed
		return err
	}
}

// WithLimits limits the size of the journals of executions that have ended.
func WithLimits(limits continuation.JournalLimits) Option {
	return func(s *Store) error {
		s.limits = limits
		return nil
	}
}

// WithLog gives the Store a log for failures in the background.
func WithLog(log *slog.Logger) Option {
	return func(s *Store) error {
		s.log = log
		return nil
	}
}

// New returns a Store in the Redis at url. The README of go-redis lists all parameters
// that the query may have.
//
//	redis://user:password@host:6379/0        one server
//	rediss://…                               the same over TLS
//	unix://user:password@/path/socket?db=0   one server on a Unix socket
//	redis://host:6379?cluster=true&addr=host2:6379
//	                                         a Cluster; addr names more nodes
//	redis://host:26379/0?master_name=name&addr=host2:26379&password=…
//	                                         Sentinels; username and password are
//	                                         for the servers that they name
//
// New does not connect, so that a server may start before its Redis does. Ping tells
// whether Redis answers.
func New(url string, options ...Option) (*Store, error) {
	s := &Store{codec: plain{}, log: slog.New(slog.DiscardHandler)}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("redisstore: %w", err)
		}
	}
	client, err := newClient(url)
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	s.client = client
	s.index, s.wakes = newIndex(client, s.limits, s.log), newWakes(client)
	return s, nil
}

func key(id string) string { return keyPrefix + id + keySuffix }

// Get implements continuation.Store.
func (s *Store) Get(ctx context.Context, id string) (continuation.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	value, err := s.client.Get(ctx, key(id)).Bytes()
	if errors.Is(err, redis.Nil) {
		return continuation.Record{}, fmt.Errorf("get record %s: %w", id, continuation.ErrNotFound)
	}
	if err != nil {
		return continuation.Record{}, stored.Unavailable("get record "+id, err)
	}
	r, err := decode(s.codec, id, value)
	if err != nil {
		return continuation.Record{}, stored.Unavailable("get record "+id, err)
	}
	return r, nil
}

// List implements continuation.Store.
func (s *Store) List(ctx context.Context) ([]continuation.Record, error) {
	keys, err := s.keys(ctx)
	if err != nil {
		return nil, stored.Unavailable("list records", err)
	}
	list := make([]continuation.Record, 0, len(keys))
	for len(keys) > 0 {
		page := keys[:min(listPage, len(keys))]
		keys = keys[len(page):]
		if list, err = s.appendPage(ctx, list, page); err != nil {
			return nil, stored.Unavailable("list records", err)
		}
	}
	return list, nil
}

// keys returns the key of every record. It removes duplicates, since SCAN may return a
// key twice.
func (s *Store) keys(ctx context.Context) ([]string, error) {
	var (
		mu   sync.Mutex // the masters of a Cluster are asked at the same time
		seen = make(map[string]struct{})
		keys []string
	)
	scan := func(ctx context.Context, node redis.UniversalClient) error {
		for cursor := uint64(0); ; {
			page, next, err := scanPage(ctx, node, cursor)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, k := range page {
				if _, again := seen[k]; !again {
					seen[k] = struct{}{}
					keys = append(keys, k)
				}
			}
			mu.Unlock()
			if next == 0 {
				return nil
			}
			cursor = next
		}
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return scan(ctx, node)
		})
		return keys, err
	}
	return keys, scan(ctx, s.client)
}

func scanPage(ctx context.Context, node redis.UniversalClient, cursor uint64) ([]string, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	return node.Scan(ctx, cursor, keyPrefix+"*"+keySuffix, 8*listPage).Result()
}

// appendPage appends to list the records of those keys that still exist.
func (s *Store) appendPage(ctx context.Context, list []continuation.Record, keys []string) ([]continuation.Record, error) {
	err := s.getAll(ctx, keys, func(i int, value []byte, found bool) error {
		if !found {
			return nil
		}
		id := keys[i][len(keyPrefix) : len(keys[i])-len(keySuffix)]
		r, err := decode(s.codec, id, value)
		if err != nil {
			return fmt.Errorf("record %s: %w", id, err)
		}
		list = append(list, r)
		return nil
	})
	return list, err
}

// getAll calls each with the values of keys, in their order, as far as they are found.
func (s *Store) getAll(ctx context.Context, keys []string, each func(i int, value []byte, found bool) error) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	// This is not an MGET, because a Cluster accepts that only for keys of one slot.
	replies, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range keys {
			p.Get(ctx, k)
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for i, reply := range replies {
		value, err := reply.(*redis.StringCmd).Bytes()
		if err != nil && !errors.Is(err, redis.Nil) {
			return fmt.Errorf("%s: %w", keys[i], err)
		}
		if err := each(i, value, err == nil); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements continuation.Store.
func (s *Store) Delete(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	// Unlike DEL, UNLINK frees the memory of a large record outside Redis' main thread.
	if err := s.client.Unlink(ctx, key(id)).Err(); err != nil {
		return stored.Unavailable("delete record "+id, err)
	}
	return nil
}

// Ping implements continuation.Store. Every master of a Cluster must answer, because each
// of them holds records that no other master has.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	var err error
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error {
			return node.Ping(ctx).Err()
		})
	} else {
		err = s.client.Ping(ctx).Err()
	}
	if err != nil {
		return stored.Unavailable("ping", err)
	}
	if !s.loaded.Load() {
		// The first write needs one round trip less then. If Redis loses the script, a write brings it along.
		s.loaded.Store(put.Load(ctx, s.client).Err() == nil)
	}
	return nil
}

// Close implements continuation.Store.
func (s *Store) Close() error {
	s.index.close()
	s.wakes.close()
	err := s.client.Close()
	s.asking.Wait()
	if err != nil {
		return fmt.Errorf("redisstore: close: %w", err)
	}
	return nil
}
