package harness

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

// A Redis is a Redis server of the tests, which listens on a Unix socket.
type Redis struct {
	Dir    string
	Args   []string
	Client *redis.Client
	cmd    *exec.Cmd
	// used counts the databases that servers have been given.
	used atomic.Int64
}

// commonRedis is the Redis of all servers whose tests leave it alone.
var commonRedis = newRedis(filepath.Join(os.TempDir(), "fermata-redis-"+strconv.Itoa(os.Getpid())))

// startCommonRedis starts commonRedis for the first server that needs it.
var startCommonRedis = sync.OnceValue(commonRedis.Start)

// newRedis returns a Redis that does not run yet. dir must be short, since the path of a socket
// has at most 107 bytes.
func newRedis(dir string, args ...string) *Redis {
	socket := filepath.Join(dir, "s")
	args = append([]string{
		"--dir", dir, "--unixsocket", socket, "--port", "0", "--save", "", "--appendonly", "no", "--loglevel", "warning",
		"--databases", "10000",
	}, args...)
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket, DialerRetries: 1, MaxRetries: -1})
	return &Redis{Dir: dir, Args: args, Client: client}
}

// RedisAlone returns a Redis of the test's own, which does not run yet.
func RedisAlone(t *testing.T, args ...string) *Redis {
	t.Helper()
	needRedis(t)
	dir, err := os.MkdirTemp("", "redis") //nolint:usetesting // the path would be too long
	if err != nil {
		t.Fatal(err)
	}
	r := newRedis(dir, args...)
	t.Cleanup(r.Kill)
	return r
}

// URL returns the value of the setting REDIS_URL for this Redis.
func (r *Redis) URL() string { return "unix://" + filepath.Join(r.Dir, "s") }

// database returns the URL of an unused database, so that a server has no other server in its
// group.
func (r *Redis) database() string { return fmt.Sprintf("%s?db=%d", r.URL(), r.used.Add(1)) }

// Start starts Redis and waits until it answers.
func (r *Redis) Start() error {
	if err := os.MkdirAll(r.Dir, 0o700); err != nil {
		return err
	}
	r.cmd = exec.Command("redis-server", r.Args...)
	r.cmd.SysProcAttr = dieWithParent()
	if err := r.cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server, which these tests need: %w", err)
	}
	err := Within(20*time.Second, func() error { return r.Client.Ping(context.Background()).Err() })
	if err != nil {
		return errors.Join(fmt.Errorf("redis-server does not answer: %w", err), r.Crash())
	}
	return nil
}

// Crash kills Redis. Its data stays.
func (r *Redis) Crash() error {
	err := r.cmd.Process.Kill()
	_ = r.cmd.Wait() // It was killed.
	return err
}

// Suspend stops Redis, which keeps its connections and answers nobody until GoOn.
func (r *Redis) Suspend() error { return r.cmd.Process.Signal(syscall.SIGSTOP) }

// GoOn ends what Suspend began.
func (r *Redis) GoOn() error { return r.cmd.Process.Signal(syscall.SIGCONT) }

// Kill kills Redis, if it runs, and removes its data.
func (r *Redis) Kill() {
	if r.cmd != nil {
		_ = r.Crash() // It may have ended before.
	}
	_ = r.Client.Close()
	_ = os.RemoveAll(r.Dir)
}
