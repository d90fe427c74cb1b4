package tests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A redisServer is a Redis of the tests' own on a Unix socket.
type redisServer struct {
	dir    string
	args   []string
	client *redis.Client
	cmd    *exec.Cmd
	// used counts the databases that were given out.
	used atomic.Int64
}

// commonRedis is the Redis of all servers whose test does not break it.
var commonRedis = newRedis(filepath.Join(os.TempDir(), "fermata-redis-"+strconv.Itoa(os.Getpid())))

// startCommonRedis starts it, for the first server that needs it.
var startCommonRedis = sync.OnceValue(commonRedis.start)

// newRedis returns a Redis that does not run yet. A socket's path has at most 107
// bytes, so dir must be short.
func newRedis(dir string, args ...string) *redisServer {
	socket := filepath.Join(dir, "s")
	args = append([]string{
		"--dir", dir, "--unixsocket", socket, "--port", "0", "--save", "", "--appendonly", "no", "--loglevel", "warning",
		"--databases", "10000",
	}, args...)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DialerRetries: 1, MaxRetries: -1})
	return &redisServer{dir: dir, args: args, client: client}
}

// redisAlone returns a Redis of the test's own, which does not run yet.
func redisAlone(t *testing.T, args ...string) *redisServer {
	t.Helper()
	needRedis(t)
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path would be too long
	if err != nil {
		t.Fatal(err)
	}
	r := newRedis(dir, args...)
	t.Cleanup(r.kill)
	return r
}

// url is what a server takes for its setting.
func (r *redisServer) url() string { return "unix://" + filepath.Join(r.dir, "s") }

// database is the url of a database of its own for one server, which then is the
// only one of its group.
func (r *redisServer) database() string { return fmt.Sprintf("%s?db=%d", r.url(), r.used.Add(1)) }

// start starts Redis and waits until it answers.
func (r *redisServer) start() error {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return err
	}
	r.cmd = exec.Command("redis-server", r.args...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server, which these tests need: %w", err)
	}
	err := within(20*time.Second, func() error { return r.client.Ping(context.Background()).Err() })
	if err != nil {
		return errors.Join(fmt.Errorf("redis-server does not answer: %w", err), r.crash())
	}
	return nil
}

// crash ends Redis, which keeps its directory.
func (r *redisServer) crash() error {
	err := r.cmd.Process.Kill()
	_ = r.cmd.Wait() // It was killed.
	return err
}

// kill ends Redis, if it runs, and removes what it has kept.
func (r *redisServer) kill() {
	if r.cmd != nil {
		_ = r.crash() // It may have ended before.
	}
	_ = r.client.Close()
	_ = os.RemoveAll(r.dir)
}
