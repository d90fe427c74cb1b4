//go:build linux

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"fermata/continuation/redisstore"
)

// A server is a Redis that the test has started for itself.
type server struct {
	args   []string
	client *redis.Client // for commands that a Store does not have
	socket string
	cmd    *exec.Cmd
}

// lookServer returns the path of redis-server. It skips the test if there is none, except
// in CI.
func lookServer(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		tb.Fatalf("redis-server is needed: %v", err)
	default:
		tb.Skip("redis-server is not installed")
	}
	return ""
}

// startServer starts a Redis on a Unix socket.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path of a socket has at most 107 bytes
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{socket: filepath.Join(dir, "s")}
	s.args = append([]string{
		"--dir", dir, "--unixsocket", s.socket, "--unixsocketperm", "700",
		"--port", "0", "--save", "", "--appendonly", "no", "--loglevel", "warning",
	}, args...)
	s.client = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, DialerRetries: 1, MaxRetries: -1})
	tb.Cleanup(func() { _ = s.client.Close() })
	tb.Cleanup(s.kill)
	s.start(tb)
	return s
}

func (s *server) start(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.Command(lookServer(tb), s.args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		tb.Fatalf("start redis-server: %v", err)
	}
	// A server with a password is ready when it answers NOAUTH.
	await(tb, "redis-server", func(ctx context.Context) error {
		err := s.client.Ping(ctx).Err()
		if redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		return err
	})
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed
}

func (s *server) url() string { return "unix://" + s.socket }

// await waits until f succeeds.
func await(tb testing.TB, what string, f func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			tb.Fatalf("%s is not ready after 20 s: %v", what, err)
		}
	}
}

// connect returns a Store whose Redis has answered a Ping.
func connect(ctx context.Context, url string, options ...redisstore.Option) (*redisstore.Store, error) {
	s, err := redisstore.New(url, options...)
	if err != nil {
		return nil, err
	}
	if err := s.Ping(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func open(tb testing.TB, url string, options ...redisstore.Option) *redisstore.Store {
	tb.Helper()
	s, err := connect(context.Background(), url, options...)
	if err != nil {
		tb.Fatalf("Open = %v, want success", err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Errorf("Close = %v, want success", err)
		}
	})
	return s
}

// freePort returns a free TCP port below 55,000: the port of the cluster bus is 10,000
// higher, and must exist too.
func freePort(tb testing.TB) int {
	tb.Helper()
	for {
		l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp4", "127.0.0.1:0")
		if err != nil {
			tb.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			tb.Fatal(err)
		}
		if port < 55_000 {
			return port
		}
	}
}

// startCluster starts a Cluster of three masters and returns them and their addresses.
func startCluster(tb testing.TB) (servers []*server, addrs []string) {
	tb.Helper()
	const slots, nodes = 16384, 3
	for range nodes {
		port := freePort(tb)
		addrs = append(addrs, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		servers = append(servers, startServer(
			tb,
			"--port", strconv.Itoa(port), "--bind", "127.0.0.1",
			"--cluster-enabled", "yes", "--cluster-node-timeout", "2000",
		))
	}
	ctx := tb.Context()
	for i, s := range servers {
		if err := s.client.ClusterAddSlotsRange(ctx, i*slots/nodes, (i+1)*slots/nodes-1).Err(); err != nil {
			tb.Fatalf("CLUSTER ADDSLOTSRANGE: %v", err)
		}
		if err := s.client.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			tb.Fatalf("CLUSTER SET-CONFIG-EPOCH: %v", err)
		}
	}
	for _, s := range servers[1:] {
		host, port, err := net.SplitHostPort(addrs[0])
		if err == nil {
			err = s.client.ClusterMeet(ctx, host, port).Err()
		}
		if err != nil {
			tb.Fatalf("CLUSTER MEET: %v", err)
		}
	}
	for _, s := range servers {
		await(tb, "the cluster", func(ctx context.Context) error {
			shards, err := s.client.ClusterShards(ctx).Result()
			if err != nil {
				return err
			}
			if len(shards) != nodes {
				return fmt.Errorf("%d shards, want %d", len(shards), nodes)
			}
			if state := s.client.ClusterInfo(ctx).Val(); !hasLine(state, "cluster_state:ok") {
				return fmt.Errorf("cluster info: %s", state)
			}
			return nil
		})
	}
	return servers, addrs
}

// startSentinel starts a Sentinel that watches the server at this port under this name,
// and returns the Sentinel's address.
func startSentinel(tb testing.TB, name string, port int, password string) (addr string) {
	tb.Helper()
	own := freePort(tb)
	config := filepath.Join(tb.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor %s 127.0.0.1 %d 1\nsentinel auth-pass %s %s\n",
		own, name, port, name, password)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(own))
	s := &server{
		args:   []string{config, "--sentinel"},
		client: redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, MaxRetries: -1}),
	}
	tb.Cleanup(func() { _ = s.client.Close() })
	tb.Cleanup(s.kill)
	s.start(tb)
	return addr
}

func clusterURL(addrs []string) string {
	return "redis://" + addrs[0] + "?" + url.Values{"cluster": {"true"}, "addr": addrs[1:]}.Encode()
}
