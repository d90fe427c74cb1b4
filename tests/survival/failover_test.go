package survival

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

	"fermata/tests/harness"
)

// sentinelAlone starts a Redis Sentinel that watches a primary. It returns the Sentinel and the URL
// by which a server finds the primary.
func sentinelAlone(t *testing.T, primary string) (*harness.Redis, string) {
	t.Helper()
	const name = "fermata"
	dir := t.TempDir()
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	addr := harness.FreeAddr(t)
	_, own, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %[3]s %s %s 1\n"+
		"sentinel down-after-milliseconds %[3]s 3000\nsentinel failover-timeout %[3]s 5000\n", own, dir, name, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &harness.Redis{
		Dir: dir, Args: []string{config, "--sentinel"},
		Client: redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, MaxRetries: -1}),
	}
	t.Cleanup(s.Kill)
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	return s, "redis://" + addr + "?master_name=" + name
}

// TestRedisFailsOver kills the primary Redis that Sentinel watches: programs go on with the former
// replica.
func TestRedisFailsOver(t *testing.T) {
	t.Parallel()
	for _, e := range harness.Sandboxes() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			addr, other := harness.FreeAddr(t), harness.FreeAddr(t)
			_, port, _ := net.SplitHostPort(addr) // The address has a port.
			_, otherPort, _ := net.SplitHostPort(other)
			primary := harness.RedisAlone(t, "--bind", "127.0.0.1", "--port", port)
			replica := harness.RedisAlone(t, "--bind", "127.0.0.1", "--port", otherPort, "--replicaof", "127.0.0.1 "+port)
			for _, r := range []*harness.Redis{primary, replica} {
				if err := r.Start(); err != nil {
					t.Fatal(err)
				}
			}
			sentinel, url := sentinelAlone(t, addr)
			err := harness.Within(30*time.Second, func() error {
				state := replica.Client.Info(t.Context(), "replication").Val()
				found, err := sentinel.Client.Do(t.Context(), "SENTINEL", "REPLICAS", "fermata").Slice()
				if err != nil || len(found) == 0 || !strings.Contains(state, "master_link_status:up") {
					return errors.Join(err, fmt.Errorf("the replica is not ready: %v, %s", found, state))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			server := harness.LaunchAlone(t, harness.Setup{Name: e.Name, Settings: harness.With(harness.Common, e.Settings, harness.Quick(t), harness.Settings{"REDIS_URL": url})})
			c := server.Alice()
			reportsReady(t, c)
			pause := c.Pause(t, harness.AskOnce)
			behind := c.Pause(t, harness.Program{Code: "print(await ask(n=1))\nprint(await ask(n=2))\n", Tools: harness.Tools("ask")})
			if n, err := primary.Client.Wait(t.Context(), 1, harness.StartTimeout).Result(); n != 1 {
				t.Fatalf("%d replicas have everything: %v", n, err)
			}
			// The replica does not hear of this round.
			if err := replica.Suspend(); err != nil {
				t.Fatal(err)
			}
			if err := primary.Client.ClientKillByFilter(t.Context(), "TYPE", "replica").Err(); err != nil {
				t.Fatal(err)
			}
			behind = c.Pause(t, behind.Continue(harness.Echo))
			seen := tells(t, c, nil, behind)
			stop := forgetfulWalkers(t, c)
			time.Sleep(500 * time.Millisecond) // Programs run meanwhile.
			if err := errors.Join(primary.Crash(), replica.GoOn()); err != nil {
				t.Fatal(err)
			}
			reportsReady(t, c, "store")
			reportsReady(t, c)
			time.Sleep(time.Second) // Programs run again.
			stop()
			c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
			end := c.Post(t, behind.Continue(harness.Echo))
			end.Completes(t, "{'n': 1}\n{'n': 2}\n")
			tells(t, c, seen, end)
		})
	}
}
