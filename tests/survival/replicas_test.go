package survival

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"fermata/tests/harness"
)

// balance returns the URL of a load balancer, which sends each request to the next server.
func balance(t *testing.T, servers []*harness.Server) string {
	t.Helper()
	var next atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse("http://" + servers[int(next.Add(1))%len(servers)].Settings["ADDR"])
			if err != nil {
				t.Error(err)
			}
			r.SetURL(to)
		},
		ErrorLog: log.New(io.Discard, "", 0), // Streams break off when a server is killed.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"error","error":"the balancer found nobody"}`)
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// TestAnyReplica sends each request to another server than the one before it.
func TestAnyReplica(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		bob := servers[2].Bob()
		twice := harness.Program{Code: "await ask(n=0)\n" + harness.Awkward.Code, Tools: harness.Awkward.Tools}
		start := c[0].Pause(t, twice)
		pause := c[1].Pause(t, start.Continue(harness.Echo))
		for _, other := range c {
			if again := other.Post(t, start.Continue(harness.Echo)); again.Raw != pause.Raw {
				t.Errorf(harness.AskedAgain, again, pause)
			}
			other.Post(t, start.Continue(harness.Value("0"))).Fails(t, 400, "Invalid continuation token")
			wrong := harness.Continuation{Token: pause.Token, Results: []harness.Result{{CallID: "call_999"}}}
			other.Post(t, wrong).Fails(t, 400, "tool_results[call_999] was not issued by the sandbox for this execution")
		}
		bob.Post(t, pause.Continue(harness.Echo)).Fails(t, 403, "Forbidden")
		large := `"` + strings.Repeat("<&>é", 1<<20/5) + `"`
		if a := c[2].Post(t, c[0].Pause(t, harness.AskOnce).Continue(harness.Value(large))); a.Status != "completed" || !strings.Contains(a.Stdout, "<&>é<&>é") {
			t.Errorf("a large result through another server: got %v", a)
		}
		end := c[2].Post(t, pause.Continue(harness.Echo))
		end.Completes(t, "<&>\u2028é 1.5\n")
		for _, other := range c {
			tells(t, other, nil, end)
			if again := other.Post(t, pause.Continue(harness.Echo)); again.Raw != end.Raw {
				t.Errorf(harness.AskedAgain, again, end)
			}
			other.Post(t, pause.Continue(harness.Value("0"))).Fails(t, 400, "Execution expired")
		}
		stop := walkers(t, harness.Client{URL: balance(t, servers), Key: "key-a"})
		time.Sleep(time.Second)
		stop()
	})
}

// TestRacingReplicas continues one round on all servers at once, with different results: exactly
// one continuation claims the round.
func TestRacingReplicas(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		for range 5 {
			pause := c[0].Pause(t, harness.Program{Code: "import time\nprint(await ask(n=1))\ntime.sleep(0.3)", Tools: harness.Tools("ask")})
			var wg sync.WaitGroup
			var passed atomic.Int64
			for i := range 9 {
				wg.Go(func() {
					a, err := c[i%3].Send(t.Context(), pause.Continue(harness.Value(strconv.Itoa(i))))
					switch {
					case err != nil:
						t.Error(err)
					case a.HTTPStatus == 200 && a.Stdout == strconv.Itoa(i)+"\n":
						passed.Add(1)
					case a.HTTPStatus != 409 && a.HTTPStatus != 400:
						t.Errorf("got %v, want 409 or 400 for those who lose", a)
					}
				})
			}
			wg.Wait()
			if got := passed.Load(); got != 1 {
				t.Errorf("%d of 9 racing continuations passed, want 1", got)
			}
		}
	})
}

// TestReplicaKilled kills the server of a paused program, whose process sandbox no other server can
// reach. The others say so, and the program goes on when the server is back. For containers see
// TestReplicaTakesOver.
func TestReplicaKilled(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes()[:1], func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		pause := c[0].Pause(t, harness.AskOnce)
		if err := servers[0].Kill(); err != nil {
			t.Fatal(err)
		}
		seen := tells(t, c[1], nil, pause) // on any server
		a := c[1].Post(t, pause.Continue(harness.Echo))
		a.Fails(t, 503, "The server that holds this execution is away; retry shortly")
		if a.Header.Get("Retry-After") == "" {
			t.Errorf("got %v without Retry-After", a)
		}
		c[1].Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		// A request that arrives shortly before the server is back waits for it.
		waiting := make(chan harness.Answer, 1)
		go func() {
			a, err := c[2].Send(t.Context(), pause.Continue(harness.Echo))
			if err != nil {
				t.Error(err)
			}
			waiting <- a
		}()
		if err := servers[0].Start(); err != nil {
			t.Fatal(err)
		}
		end := <-waiting
		end.Completes(t, "{'n': 1}\n")
		if again := c[1].Post(t, pause.Continue(harness.Echo)); again.Raw != end.Raw {
			t.Errorf(harness.AskedAgain, again, end)
		}
		tells(t, c[2], seen, end)
	})
}

// TestReplicasKilledInTurn kills one server after the other while programs send their requests to
// all of them in turn.
func TestReplicasKilledInTurn(t *testing.T) {
	kills := harness.Count(6, 60)
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		stop := walkers(t, harness.Client{URL: balance(t, servers), Key: "key-a"})
		for n := range kills {
			server := servers[n%len(servers)]
			time.Sleep(rand.N(500 * time.Millisecond))
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(time.Second))
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
	})
}

// suspend stops all threads of a server's process, by SIGSTOP.
func suspend(t *testing.T, s *harness.Server) {
	t.Helper()
	if err := s.Cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := harness.Within(answerLimit, func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.Cmd.Process.Pid))
		for _, thread := range threads {
			status, readErr := os.ReadFile(thread)
			if err = errors.Join(err, readErr); !bytes.Contains(status, []byte("State:\tT")) {
				err = errors.Join(err, fmt.Errorf("%s: it has not stopped", thread))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestReplicaStopped suspends a server for longer than its lease and lets it go on. Where another
// server can reach the sandbox, that one takes over meanwhile, and the suspended one can write no
// more.
func TestReplicaStopped(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		others := harness.Client{URL: balance(t, servers[1:]), Key: "key-a"}
		stop := walkers(t, others)
		pause := c[0].Pause(t, harness.AskOnce)
		begun := harness.NewMark()
		prints := c[0].Pause(t, harness.Program{
			Code:  "import time\nawait ask(n=1)\n" + begun.Line() + "for i in range(100):\n    print(i)\n    time.sleep(0.1)\nprint(await ask(n=2))",
			Tools: harness.Tools("ask"), Labels: harness.Labels{"it": "prints"},
		})
		witness := others.Witness(t.Context(), "it", "prints")
		first := make(chan harness.Answer, 1)
		go func() {
			a, err := insist(t.Context(), c[0], nil, prints.Continue(harness.Echo))
			if err != nil {
				t.Error(err)
			}
			first <- a
		}()
		begun.Await(t, 1)
		suspend(t, servers[0])
		// The kernel still accepts connections for the suspended server, so a request could wait
		// for ever. The client gives up after a while and asks again.
		reachable := servers[0].Settings["SANDBOX"] == "docker"
		taken := !reachable // Nobody else can take it over.
		for began := time.Now(); time.Since(began) < 8*time.Second || !taken; {
			if time.Since(began) > time.Minute {
				t.Fatal("no other server has taken over")
			}
			for _, body := range []any{prints.Continue(harness.Echo), pause.Continue(harness.Echo)} {
				ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
				a, err := c[1].Send(ctx, body)
				leave()
				switch {
				case err != nil || a.HTTPStatus == http.StatusServiceUnavailable:
				case reachable && a.HTTPStatus == http.StatusOK:
					taken = true
				default:
					t.Errorf("got %v while the server is stopped, want 503", a)
				}
			}
		}
		if err := servers[0].Cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		a, err := insist(t.Context(), c[1], nil, pause.Continue(harness.Echo))
		if err != nil {
			t.Fatal(err)
		}
		a.Completes(t, "{'n': 1}\n")
		tells(t, c[2], nil, a)
		next, err := insist(t.Context(), c[1], nil, prints.Continue(harness.Echo))
		if err != nil {
			t.Fatal(err)
		}
		if again := <-first; again.Raw != next.Raw {
			t.Errorf(harness.AskedAgain, again, next)
		}
		seen := tells(t, c[0], nil, next)
		a = c[2].Post(t, next.Continue(harness.Echo))
		var stdout strings.Builder
		for i := range 100 {
			fmt.Fprintln(&stdout, i)
		}
		a.Completes(t, stdout.String()+"{'n': 2}\n")
		if err := witness.Agrees(tells(t, c[1], seen, a), witnessPatience); err != nil {
			t.Error(err)
		}
		stop()
		reportsReady(t, c[0])
	})
}
