//go:build linux

package redisstore_test

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"fermata/continuation"
	"fermata/continuation/redisstore"
	"fermata/continuation/storetest"
)

func TestMain(m *testing.M) {
	logging.Disable() // Otherwise the client prints every failed connection.
	goleak.VerifyTestMain(m)
}

const ttl = time.Minute

func hasLine(text, line string) bool {
	return slices.Contains(strings.Split(text, "\r\n"), line)
}

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

func TestStore(t *testing.T) {
	redis := startServer(t)
	for name, options := range map[string][]redisstore.Option{
		"Plain":     nil,
		"Encrypted": {redisstore.WithKey(secret(1))},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) continuation.Store {
				if err := redis.client.FlushAll(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
				return open(t, redis.url(), options...)
			})
		})
	}
}

func TestStoreOnCluster(t *testing.T) {
	servers, addrs := startCluster(t)
	storetest.Run(t, func(t *testing.T) continuation.Store {
		for _, s := range servers {
			if err := s.client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		return open(t, clusterURL(addrs))
	})

	last := open(t, clusterURL(addrs))
	for range 100 {
		if err := last.Put(t.Context(), storetest.NewRecord(), ttl, continuation.Chapter{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		if n := s.client.DBSize(t.Context()).Val(); n == 0 {
			t.Errorf("server %d of the Cluster holds no record, want some on each", i)
		}
	}
}

// When a Cluster has lost a master, List must fail instead of returning too few records.
func TestClusterWithoutOneMaster(t *testing.T) {
	servers, addrs := startCluster(t)
	s := open(t, clusterURL(addrs))
	servers[1].kill()
	_, err := s.List(t.Context())
	wantUnavailable(t, "List", err)
	wantUnavailable(t, "Ping", s.Ping(t.Context()))

	servers[1].start(t)
}

// The store follows a slot that moves to another server, without an error.
func TestClusterMovesSlot(t *testing.T) {
	servers, addrs := startCluster(t)
	s := open(t, clusterURL(addrs))
	r := storetest.NewRecord()
	key := "fermata:{" + r.ID + "}"
	slot, err := servers[0].client.ClusterKeySlot(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	owner := int(slot) * len(servers) / 16384
	target := servers[(owner+1)%len(servers)]
	id, err := target.client.ClusterMyID(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range append([]*server{target}, servers...) {
		if err := server.client.Do(t.Context(), "CLUSTER", "SETSLOT", slot, "NODE", id).Err(); err != nil {
			t.Fatalf("CLUSTER SETSLOT: %v", err)
		}
	}

	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	if n := target.client.Exists(t.Context(), key).Val(); n != 1 {
		t.Errorf("the slot's new owner holds %d records, want 1", n)
	}
}

// Two servers with stores of their own see each other's records.
func TestShared(t *testing.T) {
	redis := startServer(t)
	one, two := open(t, redis.url()), open(t, redis.url())
	r := storetest.NewRecord()
	if err := one.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	if err := two.Put(t.Context(), r, ttl, continuation.Chapter{}); !errors.Is(err, continuation.ErrConflict) {
		t.Errorf("Put of the same version by another server = %v, want ErrConflict", err)
	}
	if _, err := two.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get by another server = %v, want the record", err)
	}
}

// The store asks a Sentinel where its server is.
func TestSentinel(t *testing.T) {
	port := freePort(t)
	server := startServer(t, "--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--requirepass", "hunter2")
	addr := startSentinel(t, "main", port, "hunter2")
	s := open(t, "redis://"+addr+"?master_name=main&password=hunter2")
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, ttl, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	if _, err := s.Get(t.Context(), r.ID); err != nil {
		t.Errorf("Get = %v, want the record", err)
	}

	server.kill()
	wantAllUnavailable(t, s)
}

func TestKeys(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	r := storetest.NewRecord()
	if err := s.Put(t.Context(), r, 90*time.Second, continuation.Chapter{}); err != nil {
		t.Fatalf("Put = %v, want success", err)
	}
	keys := server.client.Keys(t.Context(), "*").Val()
	if want := []string{"fermata:{" + r.ID + "}"}; !slices.Equal(keys, want) {
		t.Errorf("keys = %q, want %q", keys, want)
	}
	if left := server.client.PTTL(t.Context(), keys[0]).Val(); left <= 80*time.Second || left > 90*time.Second {
		t.Errorf("time to live = %v, want 90s", left)
	}
}

func TestForeignValueIsUnavailable(t *testing.T) {
	server := startServer(t)
	s := open(t, server.url())
	for name, write := range map[string]func(key string) error{
		"empty":   func(key string) error { return server.client.Set(t.Context(), key, "", 0).Err() },
		"cut off": func(key string) error { return server.client.Set(t.Context(), key, "\x01\x00", 0).Err() },
		"text":    func(key string) error { return server.client.Set(t.Context(), key, strings.Repeat("x", 99), 0).Err() },
		"bad frame": func(key string) error {
			return server.client.Set(t.Context(), key, "\x01"+strings.Repeat("\xff", 99), 0).Err()
		},
		"hash": func(key string) error { return server.client.HSet(t.Context(), key, "v", 1).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			if err := errors.Join(server.client.FlushAll(t.Context()).Err(), write("fermata:{x}")); err != nil {
				t.Fatal(err)
			}
			_, err := s.Get(t.Context(), "x")
			wantUnavailable(t, "Get", err)
			_, err = s.List(t.Context())
			wantUnavailable(t, "List", err)
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, url := range []string{
		"",
		"http://127.0.0.1",
		"redis://127.0.0.1/notadb",
		"redis://127.0.0.1?nonsense=1",
		"redis://127.0.0.1?cluster=yes",
		"redis://127.0.0.1?cluster=true&nonsense=1",
		"redis://127.0.0.1?cluster=true&read_only=true",
		"redis://127.0.0.1?master_name=m&replica_only=true",
		"redis://user:hunter2@127.0.0.1:\x7f",
		"redis://user:hunter2@127.0.0.1:port",
	} {
		s, err := connect(t.Context(), url)
		if err == nil {
			t.Errorf("Open(%q) = nil, want an error", url)
			_ = s.Close()
			continue
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open(%q) = %v, want no password in it", url, err)
		}
	}
}

func BenchmarkStore(b *testing.B) {
	redis := startServer(b)
	for name, options := range map[string][]redisstore.Option{
		"Plain":     nil,
		"Encrypted": {redisstore.WithKey(secret(1))},
	} {
		b.Run(name, func(b *testing.B) { storetest.Benchmark(b, open(b, redis.url(), options...)) })
	}
}

func wantUnavailable(t *testing.T, what string, err error) {
	t.Helper()
	if !errors.Is(err, continuation.ErrUnavailable) {
		t.Errorf("%s = %v, want ErrUnavailable", what, err)
	}
}

func TestLimits(t *testing.T) {
	redis := startServer(t)
	storetest.RunLimits(t, func(t *testing.T, limits continuation.JournalLimits) continuation.Store {
		if err := redis.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		return open(t, redis.url(), redisstore.WithLimits(limits))
	})
}
