package tests

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// overRedis runs test over every engine with a Redis of the test's own.
func overRedis(t *testing.T, test func(t *testing.T, s setup, redis *redisServer), args ...string) {
	t.Parallel()
	for _, e := range engines() {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			redis := redisAlone(t, args...)
			all := with(with(common, e.settings), quick(t))
			test(t, setup{e.name, with(all, settings{"REDIS_URL": redis.url()})}, redis)
		})
	}
}

// health returns what a server says of itself.
func (c client) health(t testing.TB, path string) answer {
	t.Helper()
	a, err := c.request(t.Context(), http.MethodGet, path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// tells checks that both health checks say this soon.
func (c client) tells(t testing.TB, code int, status string) {
	t.Helper()
	for _, path := range []string{"/health", "/ready", "/v1/health"} {
		err := within(20*time.Second, func() error {
			if a := c.health(t, path); a.code != code || a.Status != status {
				return fmt.Errorf("GET %s: got %v, want %d %s", path, a, code, status)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// unavailable checks that a request is refused for want of Redis, in bounded time.
func (c client) unavailable(t testing.TB, body any) {
	t.Helper()
	began := time.Now()
	a := c.post(t, body)
	a.fails(t, 503, "The execution store is not available; retry shortly")
	if a.header.Get("Retry-After") == "" {
		t.Errorf("got %v without Retry-After", a)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the refusal took %v", took)
	}
}

// TestRedisDownAtStart starts the server before its Redis.
func TestRedisDownAtStart(t *testing.T) {
	overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
		server := launchAlone(t, s)
		c := server.alice()
		c.tells(t, 503, "unhealthy")
		c.unavailable(t, program{Code: "print(1)"})
		if !strings.Contains(server.log.all(), "the store is not available") {
			t.Errorf("the log does not say what is wrong:\n%s", server.log.tail())
		}
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		c.tells(t, 200, "healthy")
		c.post(t, c.pause(t, paused).answers(echo)).completes(t, "{'n': 1}\n")
	})
}

// TestRedisDownWhenTheServerComesBack kills both, and starts the server first: what
// it left goes on when Redis is there again.
func TestRedisDownWhenTheServerComesBack(t *testing.T) {
	overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		server := launchAlone(t, s)
		c := server.alice()
		pause := c.pause(t, paused)
		if err := server.kill(); err != nil {
			t.Fatal(err)
		}
		if err := redis.crash(); err != nil {
			t.Fatal(err)
		}
		if err := server.launch(); err != nil {
			t.Fatal(err)
		}
		if err := server.await(); err != nil {
			t.Fatal(err)
		}
		c.tells(t, 503, "unhealthy")
		c.unavailable(t, pause.answers(echo))
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		a, err := c.insist(t.Context(), nil, pause.answers(echo))
		if err != nil {
			t.Fatal(err)
		}
		a.completes(t, "{'n': 1}\n")
		c.tells(t, 200, "healthy")
		// What the killed one had ready goes when Redis has told that nobody needs it.
		err = within(clearTimeout, func() error {
			left := slices.DeleteFunc(descendants(server.heirs), func(p process) bool { return p.dead })
			return atMost("processes of the killed server", len(left), 0)
		})
		if err != nil {
			t.Error(err)
		}
	}, "--appendonly", "yes", "--appendfsync", "always")
}

// TestRedisRestarts kills Redis and starts it again, with its data and without:
// programs wait meanwhile, and none loses or repeats anything.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"with its data":    {"--appendonly", "yes", "--appendfsync", "always"},
		"without its data": nil,
	} {
		t.Run(name, func(t *testing.T) {
			overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
				if err := redis.start(); err != nil {
					t.Fatal(err)
				}
				server := launchAlone(t, s)
				c := server.alice()
				restart := func(down func()) {
					t.Helper()
					if err := redis.crash(); err != nil {
						t.Fatal(err)
					}
					down()
					if err := redis.start(); err != nil {
						t.Fatal(err)
					}
				}

				twice := program{Code: "import time\nprint(await ask(n=1))\ntime.sleep(1)\nprint(await ask(n=2))", Tools: tools("ask")}
				waits, pauses, ends := c.pause(t, paused), c.pause(t, twice), c.pause(t, program{
					Code: "import time\nprint(await ask(n=1))\ntime.sleep(1)", Tools: tools("ask"),
				})
				// Two run while Redis goes: one to its next pause, one to its end.
				answers := make(chan answer, 2)
				for _, body := range []continuation{pauses.answers(echo), ends.answers(echo)} {
					go func() {
						a, err := c.send(t.Context(), body)
						if err != nil {
							t.Error(err)
						}
						answers <- a
					}()
				}
				time.Sleep(500 * time.Millisecond) // No answer tells that a program has begun.
				restart(func() {
					c.unavailable(t, waits.answers(echo))
					c.tells(t, 503, "unhealthy")
					for range 2 {
						// The end needs no record to be told; the pause does.
						if a := <-answers; a.code != 200 && a.code != 503 {
							t.Errorf("got %v without Redis, want an answer or 503", a)
						}
					}
				})
				next, err := c.insist(t.Context(), nil, pauses.answers(echo))
				if err != nil {
					t.Fatal(err)
				}
				c.post(t, next.answers(echo)).completes(t, "{'n': 1}\n{'n': 2}\n")
				c.post(t, ends.answers(echo)).completes(t, "{'n': 1}\n")
				c.post(t, waits.answers(echo)).completes(t, "{'n': 1}\n")
				c.tells(t, 200, "healthy")
				stop := walkers(t, c)
				for range 3 {
					restart(func() { time.Sleep(300 * time.Millisecond) })
					time.Sleep(300 * time.Millisecond)
				}
				stop()
			}, args...)
		})
	}
}

// TestRedisHangs has Redis hang for longer than any command may take.
func TestRedisHangs(t *testing.T) {
	overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		server := launchAlone(t, s)
		c := server.alice()
		pause := c.pause(t, paused)
		stop := walkers(t, c)
		if err := redis.client.Do(t.Context(), "CLIENT", "PAUSE", "10000", "ALL").Err(); err != nil {
			t.Fatal(err)
		}
		c.unavailable(t, pause.answers(echo))
		c.tells(t, 503, "unhealthy")
		a, err := c.insist(t.Context(), nil, pause.answers(echo))
		if err != nil {
			t.Fatal(err)
		}
		a.completes(t, "{'n': 1}\n")
		c.tells(t, 200, "healthy")
		stop()
	})
}

// TestRedisFull fills Redis up: it answers, but takes no writes.
func TestRedisFull(t *testing.T) {
	overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		server := launchAlone(t, s)
		c := server.alice()
		pause := c.pause(t, paused)
		stop := walkers(t, c)
		limit := func(bytes string) {
			t.Helper()
			if err := redis.client.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
				t.Fatal(err)
			}
		}
		limit("1")
		c.unavailable(t, pause.answers(echo))
		c.tells(t, 503, "unhealthy")
		c.unavailable(t, program{Code: "print(1)"})
		limit("0")
		c.tells(t, 200, "healthy")
		c.post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
		stop()
	}, "--maxmemory-policy", "noeviction")
}

// TestRedisSlow has every command take a while.
func TestRedisSlow(t *testing.T) {
	overRedis(t, func(t *testing.T, s setup, redis *redisServer) {
		if err := redis.start(); err != nil {
			t.Fatal(err)
		}
		server := launchAlone(t, s)
		stop := walkers(t, server.alice())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for ctx.Err() == nil {
			// Nobody else is served meanwhile.
			_ = redis.client.Do(ctx, "DEBUG", "SLEEP", "0.2").Err()
		}
		stop()
		server.alice().tells(t, 200, "healthy")
	}, "--enable-debug-command", "yes")
}
