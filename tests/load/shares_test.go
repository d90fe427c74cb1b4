package load

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestShareOfOneClient checks that one client cannot take all sandboxes of a server that has
// another client.
func TestShareOfOneClient(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"MAX_EXECUTIONS": "auto", "MAX_SANDBOXES": "8"})
		alice, bob := server.Alice(), server.Bob()
		p := harness.Program{Code: "print(await ask())", Tools: harness.Tools("ask")}
		pauses := []harness.Answer{alice.Pause(t, p), alice.Pause(t, p)}
		const message = "Too many CodeAPI executions at once: a client may have 2 that run, wait for a sandbox or are paused " +
			"(FERMATA_MAX_EXECUTIONS). Answer or cancel one of them. Please retry in 5 seconds."
		for _, start := range []harness.Answer{alice.Post(t, p), alice.Exec(t, nil, harness.ExecRequest{Lang: "py", Code: "print(1)"}).Answer} {
			if start.HTTPStatus != http.StatusTooManyRequests || start.Error != "rate_limited" || start.Header.Get("Retry-After") != "5" ||
				!strings.Contains(start.Raw, message) {
				t.Errorf("a third execution: got %v, want 429 and the limit", start)
			}
		}
		bob.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		alice.Post(t, pauses[0].Continue(harness.Value("1"))).Completes(t, "1\n")
		alice.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		alice.Post(t, pauses[1].Continue(harness.Value("2"))).Completes(t, "2\n")
	})
}

// TestClientsTakeTurns checks that a client does not have to wait for a sandbox until the many
// earlier requests of another client are served.
func TestClientsTakeTurns(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		const sandboxes, many = 4, 200
		server := harness.ServeAlone(t, s, harness.Settings{"MAX_SANDBOXES": strconv.Itoa(sandboxes), "QUEUE_TIMEOUT": "60s"})
		alice, bob := server.Alice(), server.Bob()
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer leave() // Nobody needs the rest.
		ended := make(chan harness.Answer, many)
		for range many {
			wg.Go(func() {
				a, err := alice.Send(ctx, harness.Program{Code: "import time; time.sleep(0.3); print(1)"})
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				ended <- a
			})
		}
		<-ended // By now nearly all requests have been sent.
		began := len(ended)
		bob.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		// Only those that already had a sandbox may come first.
		if served := len(ended) - began; served > 10*sandboxes {
			t.Errorf("%d programs of another client were served first", served)
		}
	})
}

// TestMaxStored fills what one client may have stored; other clients do not notice.
func TestMaxStored(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"MAX_STORED": "1MiB"})
		alice, bob := server.Alice(), server.Bob()
		const full = "Tool calls of this client that wait and its kept answers would take more than 1048576 bytes (FERMATA_MAX_STORED)"
		large := harness.Program{Code: "print('so far')\nprint(await ask(x='x' * 600_000))\nprint('y' * 700_000)", Tools: harness.Tools("ask")}

		first := alice.Pause(t, large)
		second := alice.Post(t, large)
		second.Fails(t, 200, full)
		if second.Stdout != "so far\n" {
			t.Errorf("stdout = %q, want what was printed", second.Stdout)
		}
		// Calls that the runner sends in several parts are counted as they arrive.
		alice.Post(t, harness.Program{Code: "await asyncio.gather(*[ask(x='x' * 600_000) for _ in range(9)])", Tools: harness.Tools("ask")}).Fails(t, 200, full)
		alice.Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
		other := bob.Pause(t, large)

		stdout := "so far\n1\n" + strings.Repeat("y", 700_000) + "\n"
		alice.Post(t, first.Continue(harness.Value("1"))).Completes(t, stdout)
		// The kept answer leaves no room for calls of this size.
		alice.Post(t, first.Continue(harness.Value("1"))).Completes(t, stdout)
		alice.Post(t, large).Fails(t, 200, full)
		small := alice.Pause(t, harness.Program{Code: "await ask()\nprint('y' * 700_000)", Tools: harness.Tools("ask")})
		alice.Post(t, small.Continue(harness.Value("1"))).Completes(t, strings.Repeat("y", 700_000)+"\n")
		// An answer that was too large to keep is gone like an expired one; the program does not
		// run again.
		alice.Post(t, small.Continue(harness.Value("1"))).Fails(t, 400, "Execution expired")
		start := http.Header{"Idempotency-Key": {"large-answer"}}
		body := harness.Program{Code: "print('y' * 700_000)"}
		for i, want := range []string{"", "Execution expired"} {
			a, err := alice.Request(t.Context(), http.MethodPost, harness.Programmatic, start, body)
			if err != nil || a.Error != want {
				t.Errorf("start %d with a key: got %v, %v, want the error %q", i, a, err, want)
			}
		}
		bob.Post(t, other.Continue(harness.Value("1"))).Completes(t, stdout)
	})
}

// TestStoredIsForgotten checks that an answer counts as stored only while it is kept.
func TestStoredIsForgotten(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.ServeAlone(t, s, harness.Settings{"MAX_STORED": "1MiB", "KEEP": "1ms"}).Alice()
		p := harness.Program{Code: "await ask()\nprint('y' * 700_000)", Tools: harness.Tools("ask")}
		c.Run(t, p, harness.Value("1"))
		large := harness.Program{Code: "await ask(x='x' * 600_000)", Tools: harness.Tools("ask")}
		c.Post(t, large).Fails(t, 200, "Tool calls of this client that wait and its kept answers would take more than 1048576 bytes (FERMATA_MAX_STORED)")
		// The store keeps a record for 30 s longer than the answer is valid.
		if err := harness.Within(2*time.Minute, func() error {
			if a := c.Post(t, large); a.Status != "tool_call_required" {
				return fmt.Errorf("got %v, want a pause", a)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
