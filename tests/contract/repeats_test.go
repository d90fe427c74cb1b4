package contract

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

// TestRetries repeats requests, also after the server was killed: each repeated request gets the
// first answer, byte for byte.
func TestRetries(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, nil)
		restart := func(t *testing.T) {
			t.Helper()
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}
		same := func(t *testing.T, again, first harness.Answer) {
			t.Helper()
			if again.Raw != first.Raw || again.HTTPStatus != first.HTTPStatus {
				t.Errorf(harness.AskedAgain, again, first)
			}
		}
		t.Run("a round", func(t *testing.T) {
			twice := harness.Program{Code: "await ask(n=0)\n" + harness.Awkward.Code, Tools: harness.Awkward.Tools}
			start := server.Alice().Pause(t, twice)
			pause := server.Alice().Pause(t, start.Continue(harness.Echo))
			same(t, server.Alice().Post(t, start.Continue(harness.Echo)), pause)
			restart(t)
			same(t, server.Alice().Post(t, start.Continue(harness.Echo)), pause)
			server.Alice().Post(t, start.Continue(harness.Value("0"))).Fails(t, 400, "Invalid continuation token")
			end := server.Alice().Post(t, pause.Continue(harness.Echo))
			end.Completes(t, "<&>\u2028é 1.5\n")
			same(t, server.Alice().Post(t, pause.Continue(harness.Echo)), end)
			restart(t)
			same(t, server.Alice().Post(t, pause.Continue(harness.Echo)), end)
			server.Alice().Post(t, pause.Continue(harness.Value("0"))).Fails(t, 400, "Execution expired")
			server.Alice().Post(t, start.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		})
		t.Run("a start", func(t *testing.T) {
			key := uuid.NewString()
			pause := server.Alice().PostKeyed(t, key, harness.Awkward)
			same(t, server.Alice().PostKeyed(t, key, harness.Awkward), pause)
			restart(t)
			same(t, server.Alice().PostKeyed(t, key, harness.Awkward), pause)
			const reused = "Idempotency-Key was used for another request"
			server.Alice().PostKeyed(t, key, harness.AskOnce).Fails(t, 409, reused)
			if other := server.Bob().PostKeyed(t, key, harness.Awkward); other.Token == pause.Token || other.Status != pause.Status {
				t.Errorf("got %v for another principal's start, want an execution of its own", other)
			}
			server.Alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "<&>\u2028é 1.5\n")
			server.Alice().PostKeyed(t, key, harness.Awkward).Fails(t, 409, "The execution that this Idempotency-Key started has gone on")
			restart(t)
			server.Alice().PostKeyed(t, key, harness.Awkward).Fails(t, 409, "The execution that this Idempotency-Key started has gone on")
			server.Alice().PostKeyed(t, key, harness.AskOnce).Fails(t, 409, reused)
		})
		t.Run("a start that ends", func(t *testing.T) {
			key, random := uuid.NewString(), harness.Program{Code: "import uuid\nprint(uuid.uuid4())"}
			end := server.Alice().PostKeyed(t, key, random)
			same(t, server.Alice().PostKeyed(t, key, random), end)
			restart(t)
			same(t, server.Alice().PostKeyed(t, key, random), end)
			if other := server.Alice().PostKeyed(t, uuid.NewString(), random); other.Stdout == end.Stdout {
				t.Errorf("two keys have one execution: %v", other)
			}
		})
		t.Run("while a start runs", func(t *testing.T) {
			key, slow := uuid.NewString(), harness.Program{Code: "import time, uuid\ntime.sleep(1)\nprint(uuid.uuid4())"}
			var wg sync.WaitGroup
			answers := make([]harness.Answer, 6)
			for i := range answers {
				wg.Go(func() {
					a, err := server.Alice().Request(t.Context(), http.MethodPost, harness.Programmatic, harness.Keyed(key), slow)
					if err != nil {
						t.Error(err)
					}
					answers[i] = a
				})
			}
			wg.Wait()
			for _, a := range answers {
				same(t, a, answers[0])
			}
			if answers[0].Status != "completed" {
				t.Errorf("got %v, want it completed", answers[0])
			}
		})
		t.Run("a start whose client has left", func(t *testing.T) {
			key, slow := uuid.NewString(), harness.Program{Code: "import time\ntime.sleep(1)\nprint(await ask(n=1))", Tools: harness.Tools("ask")}
			ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer leave()
			if a, err := server.Alice().Request(ctx, http.MethodPost, harness.Programmatic, harness.Keyed(key), slow); err == nil {
				t.Fatalf("got %v, want the client to have left", a)
			}
			pause := server.Alice().PostKeyed(t, key, slow)
			server.Alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		})
		t.Run("a start that was running when the server was killed", func(t *testing.T) {
			key, slow := uuid.NewString(), harness.Program{Code: "import time\ntime.sleep(2)\nprint('ran')"}
			answers := make(chan error, 1)
			go func() {
				_, err := server.Alice().Request(t.Context(), http.MethodPost, harness.Programmatic, harness.Keyed(key), slow)
				answers <- err
			}()
			time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
			restart(t)
			if err := <-answers; err == nil {
				t.Error("a request to a server that was killed had an answer")
			}
			a := server.Alice().PostKeyed(t, key, slow)
			a.Completes(t, "ran\n")
			same(t, server.Alice().PostKeyed(t, key, slow), a)
		})
	})
}

// TestRacingContinuations posts two continuations of one round at the same time: the first one
// claims the round, and the other has no effect.
func TestRacingContinuations(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		p := harness.Program{Code: harness.Py(`
			effects = []
			effects.append(await ask())
			print(effects)
		`), Tools: harness.Tools("ask")}
		race := func(t *testing.T, one, other string) (answers [2]harness.Answer) {
			t.Helper()
			pause := c.Pause(t, p)
			ready := make(chan struct{})
			var wg sync.WaitGroup
			for i, raw := range []string{one, other} {
				wg.Go(func() {
					next := pause.Continue(harness.Value(raw))
					<-ready
					var err error
					if answers[i], err = c.Send(t.Context(), next); err != nil {
						t.Error(err)
					}
				})
			}
			close(ready)
			wg.Wait()
			return answers
		}
		rounds := 200
		if testing.Short() || s.Docker() {
			rounds = 20
		}
		t.Run("different", func(t *testing.T) {
			t.Parallel()
			for range rounds {
				answers := race(t, "1", "2")
				completed := 0
				for i, a := range answers {
					switch {
					case a.Status == "completed":
						completed++
						a.Completes(t, fmt.Sprintf("[%d]\n", i+1))
					case a.HTTPStatus == http.StatusConflict:
						a.Fails(t, 409, "Another continuation is already in flight for this execution; retry shortly")
					default:
						a.Fails(t, 400, "Execution expired") // It came after the end.
					}
				}
				if completed != 1 {
					t.Fatalf("%d of two continuations had an effect, want 1: %v", completed, answers)
				}
			}
		})
		t.Run("identical", func(t *testing.T) {
			t.Parallel()
			for range rounds {
				answers := race(t, "1", "1")
				answers[0].Completes(t, "[1]\n")
				if answers[0].Raw != answers[1].Raw {
					t.Fatalf("got %v and %v for one request, want one answer", answers[0], answers[1])
				}
			}
		})
		t.Run("while it runs", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, harness.Program{Code: "import time\nx = await ask()\ntime.sleep(1)\nprint(x)", Tools: harness.Tools("ask")})
			first := make(chan harness.Answer, 1)
			go func() {
				a, err := c.Send(t.Context(), pause.Continue(harness.Value("1")))
				if err != nil {
					t.Error(err)
				}
				first <- a
			}()
			time.Sleep(300 * time.Millisecond) // No answer tells that the first one has begun.
			began := time.Now()
			c.Post(t, pause.Continue(harness.Value("2"))).Fails(t, 409, "Another continuation is already in flight for this execution; retry shortly")
			if took := time.Since(began); took > 500*time.Millisecond {
				t.Errorf("the refusal came after %v, want it at once", took)
			}
			a := <-first
			a.Completes(t, "1\n")
		})
	})
}

// TestKeyedStartOnReplicas sends one start with an idempotency key to all servers at once: one
// execution starts, and all get its answer.
func TestKeyedStartOnReplicas(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		c, key := harness.Alices(servers), uuid.NewString()
		slow := harness.Program{Code: "import time, uuid\ntime.sleep(0.5)\nprint(uuid.uuid4(), await ask(n=1))", Tools: harness.Tools("ask")}
		answers := make([]harness.Answer, 6)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() {
				var err error
				if answers[i], err = c[i%3].Request(t.Context(), http.MethodPost, harness.Programmatic, harness.Keyed(key), slow); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, a := range answers {
			if a.Raw != answers[0].Raw || a.Status != "tool_call_required" {
				t.Errorf(harness.AskedAgain, a, answers[0])
			}
		}
		c[1].PostKeyed(t, key, harness.AskOnce).Fails(t, 409, "Idempotency-Key was used for another request")
		if end := c[2].Post(t, answers[0].Continue(harness.Echo)); end.Status != "completed" {
			t.Errorf("got %v, want it completed", end)
		}
	})
}
