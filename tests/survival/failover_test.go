package tests

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// sentinelAlone starts a Sentinel that watches a primary, and returns a url for it.
func sentinelAlone(t *testing.T, primary string) (*redisServer, string) {
	t.Helper()
	const name = "fermata"
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	_, own, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s %s %s 1\n"+
		"sentinel down-after-milliseconds %[3]s 1000\nsentinel failover-timeout %[3]s 5000\n", own, dir, name, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &redisServer{
		dir: dir, args: []string{config, "--sentinel"},
		client: redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, MaxRetries: -1}),
	}
	t.Cleanup(s.kill)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return s, "redis://" + addr + "?master_name=" + name
}

// TestRedisFailsOver kills a primary that Sentinel watches: programs go on with what
// was its replica.
func TestRedisFailsOver(t *testing.T) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			addr, other := freeAddr(t), freeAddr(t)
			_, port, _ := net.SplitHostPort(addr) // It has one.
			_, otherPort, _ := net.SplitHostPort(other)
			primary := redisAlone(t, "--bind", "127.0.0.1", "--port", port)
			replica := redisAlone(t, "--bind", "127.0.0.1", "--port", otherPort, "--replicaof", "127.0.0.1 "+port)
			for _, r := range []*redisServer{primary, replica} {
				if err := r.start(); err != nil {
					t.Fatal(err)
				}
			}
			sentinel, url := sentinelAlone(t, addr)
			err := within(30*time.Second, func() error {
				state := replica.client.Info(t.Context(), "replication").Val()
				found, err := sentinel.client.Do(t.Context(), "SENTINEL", "REPLICAS", "fermata").Slice()
				if err != nil || len(found) == 0 || !strings.Contains(state, "master_link_status:up") {
					return errors.Join(err, fmt.Errorf("the replica is not ready: %v, %s", found, state))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			server := launchAlone(t, setup{e.name, with(with(with(common, e.settings), quick(t)), settings{"REDIS_URL": url})})
			c := server.alice()
			c.tells(t, 200, "healthy")
			pause := c.pause(t, paused)
			stop := walkers(t, c)
			time.Sleep(time.Second) // Programs run.
			if err := primary.crash(); err != nil {
				t.Fatal(err)
			}
			c.tells(t, 503, "unhealthy")
			c.tells(t, 200, "healthy")
			time.Sleep(time.Second) // They do so again.
			stop()
			c.post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
		})
	}
}
