package survival

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// overRedis runs test with each sandbox and a Redis of the test's own, started with args.
func overRedis(t *testing.T, test func(t *testing.T, s harness.Setup, redis *harness.Redis), args ...string) {
	t.Parallel()
	for _, e := range harness.Sandboxes() {
		t.Run(e.Name, func(t *testing.T) {
			t.Parallel()
			redis := harness.RedisAlone(t, args...)
			all := harness.With(harness.Common, e.Settings, harness.Quick(t))
			test(t, harness.Setup{Name: e.Name, Settings: harness.With(all, harness.Settings{"REDIS_URL": redis.URL()})}, redis)
		})
	}
}

// health returns the answer of a health check.
func health(t testing.TB, c harness.Client, path string) harness.Answer {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodGet, path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reportsReady checks that the server soon says that it is ready, or that it is not for these
// reasons. It lives all the time.
func reportsReady(t testing.TB, c harness.Client, reasons ...string) {
	t.Helper()
	for _, path := range []string{"/ready", "/v1/ready"} {
		err := harness.Within(20*time.Second, func() error { return readyFor(health(t, c, path), reasons) })
		if err != nil {
			t.Errorf("GET %s: %v", path, err)
		}
	}
	if a := health(t, c, "/health"); a.HTTPStatus != http.StatusOK || a.Status != "healthy" {
		t.Errorf("GET /health: got %v, want 200 healthy, whatever /ready says", a)
	}
}

// readyFor returns an error unless an answer of /ready says that the server is ready, or that it is
// not for these reasons, and says so in words.
func readyFor(a harness.Answer, reasons []string) error {
	var said struct {
		Status, Version, Service, Message string
		Reasons                           []string
	}
	if err := json.Unmarshal([]byte(a.Raw), &said); err != nil {
		return fmt.Errorf("got %v: %w", a, err)
	}
	code, status := http.StatusOK, "healthy"
	if len(reasons) > 0 {
		code, status = http.StatusServiceUnavailable, "unhealthy"
	}
	if a.HTTPStatus != code || said.Status != status || said.Version == "" || said.Service != "fermata" ||
		!slices.Equal(said.Reasons, reasons) || (said.Message == "") != (len(reasons) == 0) {
		return fmt.Errorf("got %v, want %d %s with the reasons %q", a, code, status, reasons)
	}
	return nil
}

// isUnavailable checks that the server refuses a request soon, since Redis is not available.
func isUnavailable(t testing.TB, c harness.Client, body any) {
	t.Helper()
	began := time.Now()
	a := c.Post(t, body)
	a.Fails(t, 503, "The execution store is not available; retry shortly")
	if a.Header.Get("Retry-After") == "" {
		t.Errorf("got %v without Retry-After", a)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the refusal took %v", took)
	}
}

// TestRedisDownAtStart starts a server before its Redis.
func TestRedisDownAtStart(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		server := harness.LaunchAlone(t, s)
		c := server.Alice()
		reportsReady(t, c, "store")
		isUnavailable(t, c, harness.Program{Code: "print(1)"})
		if !strings.Contains(server.Log.All(), "the store is not available") {
			t.Errorf("the log does not say what is wrong:\n%s", server.Log.Tail())
		}
		for line := range strings.Lines(server.Log.All()) {
			if !strings.HasPrefix(line, "time=") {
				t.Errorf("the log has a line of another form: %s", line)
			}
		}
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		reportsReady(t, c)
		c.Post(t, c.Pause(t, harness.AskOnce).Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
}

// TestRedisDownWhenTheServerComesBack kills the server and Redis, and starts the server first.
// Paused programs go on when Redis is back.
func TestRedisDownWhenTheServerComesBack(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		server := harness.LaunchAlone(t, s)
		c := server.Alice()
		pause := c.Pause(t, harness.AskOnce)
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := redis.Crash(); err != nil {
			t.Fatal(err)
		}
		if err := server.Launch(); err != nil {
			t.Fatal(err)
		}
		if err := server.Await(); err != nil {
			t.Fatal(err)
		}
		reportsReady(t, c, "store")
		isUnavailable(t, c, pause.Continue(harness.Echo))
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		a, err := insist(t.Context(), c, nil, pause.Continue(harness.Echo))
		if err != nil {
			t.Fatal(err)
		}
		a.Completes(t, "{'n': 1}\n")
		reportsReady(t, c)
		// The idle sandboxes of the killed server end when Redis has told that no execution has
		// them.
		err = harness.Within(harness.ClearTimeout, func() error {
			left := slices.DeleteFunc(harness.Descendants(server.Heirs), func(p harness.Process) bool { return p.Dead })
			return harness.AtMost("processes of the killed server", len(left), 0)
		})
		if err != nil {
			t.Error(err)
		}
	}, "--appendonly", "yes", "--appendfsync", "always")
}

// TestRedisRestarts kills Redis and starts it again, with its data and without. Programs wait
// meanwhile, and none of them loses or repeats anything.
func TestRedisRestarts(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"with its data":    {"--appendonly", "yes", "--appendfsync", "always"},
		"without its data": nil,
	} {
		t.Run(name, func(t *testing.T) {
			overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
				if err := redis.Start(); err != nil {
					t.Fatal(err)
				}
				server := harness.LaunchAlone(t, s)
				c := server.Alice()
				restart := func(down func()) {
					t.Helper()
					if err := redis.Crash(); err != nil {
						t.Fatal(err)
					}
					down()
					if err := redis.Start(); err != nil {
						t.Fatal(err)
					}
				}

				begun := harness.NewMark()
				twice := harness.Program{Code: "import time\nprint(await ask(n=1))\n" + begun.Line() + "time.sleep(1)\nprint(await ask(n=2))", Tools: harness.Tools("ask")}
				waits, pauses, ends := c.Pause(t, harness.AskOnce), c.Pause(t, twice), c.Pause(t, harness.Program{
					Code: "import time\nprint(await ask(n=1))\n" + begun.Line() + "time.sleep(1)", Tools: harness.Tools("ask"),
				})
				seen := map[string]*harness.Journal{}
				for _, a := range []harness.Answer{waits, pauses, ends} {
					seen[a.Execution()] = tells(t, c, nil, a)
				}
				// Two programs run while Redis is down: one to its next pause, one to its end.
				answers := make(chan harness.Answer, 2)
				for _, body := range []harness.Continuation{pauses.Continue(harness.Echo), ends.Continue(harness.Echo)} {
					go func() {
						a, err := c.Send(t.Context(), body)
						if err != nil {
							t.Error(err)
						}
						answers <- a
					}()
				}
				begun.Await(t, 2)
				restart(func() {
					isUnavailable(t, c, waits.Continue(harness.Echo))
					reportsReady(t, c, "store")
					for range 2 {
						// The end of a program can be answered without a record, a pause cannot.
						if a := <-answers; a.HTTPStatus != 200 && a.HTTPStatus != 503 {
							t.Errorf("got %v without Redis, want an answer or 503", a)
						}
					}
				})
				next, err := insist(t.Context(), c, nil, pauses.Continue(harness.Echo))
				if err != nil {
					t.Fatal(err)
				}
				// The server tells a Redis without its data all that it had told the other one.
				for _, one := range []struct {
					paused harness.Answer
					stdout string
				}{{next, "{'n': 1}\n{'n': 2}\n"}, {ends, "{'n': 1}\n"}, {waits, "{'n': 1}\n"}} {
					end := c.Post(t, one.paused.Continue(harness.Echo))
					end.Completes(t, one.stdout)
					tells(t, c, seen[one.paused.Execution()], end)
				}
				reportsReady(t, c)
				walk := walkers
				if args == nil {
					walk = forgetfulWalkers
				}
				stop := walk(t, c)
				for range 3 {
					restart(func() { time.Sleep(300 * time.Millisecond) })
					time.Sleep(300 * time.Millisecond)
				}
				stop()
			}, args...)
		})
	}
}

// TestRedisHangs suspends Redis until the server has noticed.
func TestRedisHangs(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		server := harness.LaunchAlone(t, s)
		c := server.Alice()
		pause := c.Pause(t, harness.AskOnce)
		stop := walkers(t, c)
		if err := redis.Suspend(); err != nil {
			t.Fatal(err)
		}
		isUnavailable(t, c, pause.Continue(harness.Echo))
		reportsReady(t, c, "store")
		if err := redis.GoOn(); err != nil {
			t.Fatal(err)
		}
		a, err := insist(t.Context(), c, nil, pause.Continue(harness.Echo))
		if err != nil {
			t.Fatal(err)
		}
		a.Completes(t, "{'n': 1}\n")
		reportsReady(t, c)
		stop()
	})
}

// TestRedisFull fills Redis, which then answers but refuses writes: nobody can start a program, and programs that are
// paused go on, with results and output of some size, to further pauses and to their ends.
func TestRedisFull(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		server := harness.LaunchAlone(t, s)
		c := server.Alice()
		pause := c.Pause(t, harness.AskOnce)
		long := c.Pause(t, harness.Program{Code: "for n in range(2):\n    print(len((await ask(n=n))['text']))\n", Tools: harness.Tools("ask")})
		stop := walkers(t, c)
		limit := func(bytes string) {
			t.Helper()
			if err := redis.Client.ConfigSet(t.Context(), "maxmemory", bytes).Err(); err != nil {
				t.Fatal(err)
			}
		}
		limit("1")
		isUnavailable(t, c, harness.Program{Code: "print(1)"})
		reportsReady(t, c, "store")
		last := c.Post(t, pause.Continue(harness.Echo))
		last.Completes(t, "{'n': 1}\n")
		if again := c.Post(t, pause.Continue(harness.Echo)); again.Raw != last.Raw {
			t.Errorf("got %v, then %v, want the same answer", last, again)
		}
		// The lease of the server has been renewed several times by then.
		time.Sleep(8 * time.Second)
		isUnavailable(t, c, harness.Program{Code: "print(1)"})
		large := harness.Value(`{"text": "` + strings.Repeat("x", 60_000) + `"}`)
		long = c.Post(t, long.Continue(large))
		c.Post(t, long.Continue(large)).Completes(t, "60000\n60000\n")
		limit("0")
		reportsReady(t, c)
		c.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		stop()
	}, "--maxmemory-policy", "noeviction")
}

// TestRedisSlow makes each command of Redis take a while.
func TestRedisSlow(t *testing.T) {
	overRedis(t, func(t *testing.T, s harness.Setup, redis *harness.Redis) {
		if err := redis.Start(); err != nil {
			t.Fatal(err)
		}
		server := harness.LaunchAlone(t, s)
		stop := walkers(t, server.Alice())
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		for ctx.Err() == nil {
			// Redis serves nobody else meanwhile.
			_ = redis.Client.Do(ctx, "DEBUG", "SLEEP", "0.2").Err()
		}
		stop()
		reportsReady(t, server.Alice())
	}, "--enable-debug-command", "yes")
}
