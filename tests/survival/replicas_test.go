package tests

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
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

	"github.com/google/uuid"
)

// overReplicas runs test over three servers that share a Redis, with each of the engines.
func overReplicas(t *testing.T, engines []part, test func(t *testing.T, servers []*server)) {
	t.Parallel()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			redis := redisAlone(t)
			if err := redis.start(); err != nil {
				t.Fatal(err)
			}
			var servers []*server
			for range 3 {
				all := with(with(common, e.settings), quick(t))
				servers = append(servers, launchAlone(t, setup{e.name, with(all, settings{"REDIS_URL": redis.url()})}))
			}
			test(t, servers)
		})
	}
}

// balance returns the url of a load balancer: each request goes to the next server.
func balance(t *testing.T, servers []*server) string {
	t.Helper()
	var next atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse("http://" + servers[int(next.Add(1))%len(servers)].settings["ADDR"])
			if err != nil {
				t.Error(err)
			}
			r.SetURL(to)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"error","error":"the balancer found nobody"}`)
		},
	})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

func alices(servers []*server) []client {
	list := make([]client, len(servers))
	for i, s := range servers {
		list[i] = s.alice()
	}
	return list
}

// TestAnyReplica sends every request to another server than the one before it.
func TestAnyReplica(t *testing.T) {
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		c := alices(servers)
		bob := servers[2].bob()
		twice := program{Code: "await ask(n=0)\n" + awkward.Code, Tools: awkward.Tools}
		start := c[0].pause(t, twice)
		pause := c[1].pause(t, start.answers(echo))
		for _, other := range c {
			if again := other.post(t, start.answers(echo)); again.raw != pause.raw {
				t.Errorf(askedAgain, again, pause)
			}
			other.post(t, start.answers(value("0"))).fails(t, 400, "Invalid continuation token")
			wrong := continuation{pause.Token, []result{{CallID: "call_999"}}}
			other.post(t, wrong).fails(t, 400, "tool_results[call_999] was not issued by the sandbox for this execution")
		}
		bob.post(t, pause.answers(echo)).fails(t, 403, "Forbidden")
		large := `"` + strings.Repeat("<&>é", 1<<20/5) + `"`
		if a := c[2].post(t, c[0].pause(t, paused).answers(value(large))); a.Status != "completed" || !strings.Contains(a.Stdout, "<&>é<&>é") {
			t.Errorf("a large result through another server: got %v", a)
		}
		end := c[2].post(t, pause.answers(echo))
		end.completes(t, "<&>\u2028é 1.5\n")
		for _, other := range c {
			if again := other.post(t, pause.answers(echo)); again.raw != end.raw {
				t.Errorf(askedAgain, again, end)
			}
			other.post(t, pause.answers(value("0"))).fails(t, 400, "Execution expired")
		}
		stop := walkers(t, client{balance(t, servers), "key-a"})
		time.Sleep(time.Second)
		stop()
	})
}

// TestRacingReplicas sends one token with different results to all servers at once:
// one passes.
func TestRacingReplicas(t *testing.T) {
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		c := alices(servers)
		for range 5 {
			pause := c[0].pause(t, program{Code: "import time\nprint(await ask(n=1))\ntime.sleep(0.3)", Tools: tools("ask")})
			var wg sync.WaitGroup
			var passed atomic.Int64
			for i := range 9 {
				wg.Go(func() {
					a, err := c[i%3].send(t.Context(), pause.answers(value(strconv.Itoa(i))))
					switch {
					case err != nil:
						t.Error(err)
					case a.code == 200 && a.Stdout == strconv.Itoa(i)+"\n":
						passed.Add(1)
					case a.code != 409 && a.code != 400:
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

// TestKeyedStartOnReplicas sends one start to all servers at once.
func TestKeyedStartOnReplicas(t *testing.T) {
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		c, key := alices(servers), uuid.NewString()
		slow := program{Code: "import time, uuid\ntime.sleep(0.5)\nprint(uuid.uuid4(), await ask(n=1))", Tools: tools("ask")}
		answers := make([]answer, 6)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = c[i%3].request(t.Context(), http.MethodPost, programmatic, keyed(key), slow); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			if a.raw != answers[0].raw || a.Status != "tool_call_required" {
				t.Errorf(askedAgain, a, answers[0])
			}
		}
		c[1].postKeyed(t, key, paused).fails(t, 409, "Idempotency-Key was used for another request")
		if end := c[2].post(t, answers[0].answers(echo)); end.Status != "completed" {
			t.Errorf("got %v, want it completed", end)
		}
	})
}

// TestCancelOnReplicas is TestCancel with another server for every request.
func TestCancelOnReplicas(t *testing.T) {
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		bobs := []client{servers[0].bob(), servers[1].bob(), servers[2].bob()}
		processes := func() (n int) {
			for _, s := range servers {
				n += s.processes()
			}
			return n
		}
		testCancel(t, alices(servers), bobs, processes)
	})
}

// TestReplicaKilled kills the server of a paused program: the others say so, and the
// program goes on when the server is back. Of containers see TestReplicaTakesOver.
func TestReplicaKilled(t *testing.T) {
	overReplicas(t, engines()[:1], func(t *testing.T, servers []*server) {
		c := alices(servers)
		pause := c[0].pause(t, paused)
		if err := servers[0].kill(); err != nil {
			t.Fatal(err)
		}
		a := c[1].post(t, pause.answers(echo))
		a.fails(t, 503, "The server that holds this execution is away; retry shortly")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("got %v without Retry-After", a)
		}
		c[1].post(t, program{Code: "print(1)"}).completes(t, "1\n")
		// A request that comes while the server comes back waits for it.
		waiting := make(chan answer, 1)
		go func() {
			a, err := c[2].send(t.Context(), pause.answers(echo))
			if err != nil {
				t.Error(err)
			}
			waiting <- a
		}()
		if err := servers[0].start(); err != nil {
			t.Fatal(err)
		}
		end := <-waiting
		end.completes(t, "{'n': 1}\n")
		if again := c[1].post(t, pause.answers(echo)); again.raw != end.raw {
			t.Errorf(askedAgain, again, end)
		}
	})
}

// TestReplicasKilledInTurn kills one server after the other while programs run
// through all of them.
func TestReplicasKilledInTurn(t *testing.T) {
	kills := count(6, 60)
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		stop := walkers(t, client{balance(t, servers), "key-a"})
		for n := range kills {
			server := servers[n%len(servers)]
			time.Sleep(rand.N(500 * time.Millisecond))
			if err := server.kill(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(time.Second))
			if err := server.start(); err != nil {
				t.Fatal(err)
			}
		}
		stop()
	})
}

// stand stops a server's process, all of whose threads stand still then.
func (s *server) stand(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	err := within(5*time.Second, func() error {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", s.cmd.Process.Pid))
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

// TestReplicaStopped stops a server, beyond its lease, and lets it go on. Where
// another one can reach the sandbox it takes over meanwhile.
func TestReplicaStopped(t *testing.T) {
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		c := alices(servers)
		stop := walkers(t, client{balance(t, servers[1:]), "key-a"})
		pause := c[0].pause(t, paused)
		servers[0].stand(t)
		// The kernel still takes connections for it, so this must not wait for ever:
		// the client gives up, and asks again.
		for until := time.Now().Add(8 * time.Second); time.Now().Before(until); {
			ctx, leave := context.WithTimeout(t.Context(), 2*time.Second)
			a, err := c[1].send(ctx, pause.answers(echo))
			taken := servers[0].settings["SANDBOX"] == "docker" && a.Status == "completed"
			if err == nil && a.code != http.StatusServiceUnavailable && !taken {
				t.Errorf("got %v while the server is stopped, want 503", a)
			}
			leave()
		}
		if err := servers[0].cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		a, err := c[1].insist(t.Context(), nil, pause.answers(echo))
		if err != nil {
			t.Fatal(err)
		}
		a.completes(t, "{'n': 1}\n")
		stop()
		c[0].tells(t, 200, "healthy")
	})
}

// A forgery is a request to a path that only servers use.
type forgery struct {
	name, path, signedPath, secret string
	age                            time.Duration
	code                           int
}

// sign is a peer's signature.
func (f forgery) sign(t *testing.T, body string) string {
	t.Helper()
	key, err := hkdf.Key(sha256.New, []byte(f.secret), nil, "fermata peers", sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatInt(time.Now().Add(-f.age).UnixMilli(), 10)
	bodyHash := sha256.Sum256([]byte(body))
	hash := hex.EncodeToString(bodyHash[:])
	h := hmac.New(sha256.New, key)
	h.Write([]byte("request\n" + at + "\n" + f.signedPath + "\n" + hash))
	return at + "." + hash + "." + hex.EncodeToString(h.Sum(nil))
}

// TestPeerRequests sends what only a server may send.
func TestPeerRequests(t *testing.T) {
	const resume, cancel = "/internal/resume", "/internal/cancel"
	overReplicas(t, engines(), func(t *testing.T, servers []*server) {
		c := alices(servers)
		pause := c[0].pause(t, paused)
		body := fmt.Sprintf(`{"Principal":"alice","Token":%q,"Results":[{"CallID":"call_001","Value":7}],"Request":"r"}`, pause.Token)
		post := func(to client, path, signature, body string) answer {
			t.Helper()
			a, err := client{to.url, ""}.request(t.Context(), http.MethodPost, path, http.Header{"X-Fermata-Signature": {signature}}, body)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		for _, f := range []forgery{
			{"another secret", resume, resume, "another secret of at least 32 bytes", 0, 401},
			{"late", resume, resume, secret, 2 * time.Minute, 401},
			{"early", resume, resume, secret, -2 * time.Minute, 401},
			{"another path", resume, cancel, secret, 0, 401},
			{"to another server than the owner, which does not pass it on", resume, resume, secret, 0, 409},
		} {
			if a := post(c[1], f.path, f.sign(t, body), body); a.code != f.code || a.Session != "" {
				t.Errorf("%s: got %v, want %d", f.name, a, f.code)
			}
		}
		good := forgery{signedPath: resume, secret: secret}.sign(t, body)
		for name, signature := range map[string]string{
			"none": "", "no mac": strings.Split(good, ".")[0], "no time": strings.Split(good, ".")[1], "junk": "1.zz", "cut": good[:len(good)-2],
		} {
			if a := post(c[0], resume, signature, body); a.code != 401 {
				t.Errorf("signature %s: got %v, want 401", name, a)
			}
		}
		if a := post(c[0], resume, good, body+" "); a.code != 401 {
			t.Errorf("another body: got %v, want 401", a)
		}
		// A peer is trusted with whose the request is, a token is needed all the same.
		stolen := strings.Replace(body, `"alice"`, `"bob"`, 1)
		if a := post(c[0], resume, forgery{signedPath: resume, secret: secret}.sign(t, stolen), stolen); a.code != 409 || a.Error != "forbidden" {
			t.Errorf("another principal: got %v, want 409 forbidden", a)
		}
		c[0].post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
	})
	t.Run("without other servers", func(t *testing.T) {
		for _, e := range engines() {
			c := serve(t, setup{e.name, with(common, e.settings)}, nil).alice()
			a, err := c.request(t.Context(), http.MethodPost, "/internal/resume", nil, `{}`)
			if err != nil || a.code != http.StatusNotFound {
				t.Errorf("got %v %v, want 404", a, err)
			}
		}
	})
}
