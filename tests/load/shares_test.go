package tests

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestShare checks that no client can have all sandboxes where there is another one.
func TestShare(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"MAX_EXECUTIONS": "auto", "MAX_SANDBOXES": "8"})
		alice, bob := server.alice(), server.bob()
		p := program{Code: "print(await ask())", Tools: tools("ask")}
		pauses := []answer{alice.pause(t, p), alice.pause(t, p)}
		const message = "Too many CodeAPI executions at once: a client may have 2 that run, wait for a sandbox or are paused " +
			"(FERMATA_MAX_EXECUTIONS). Answer or cancel one of them. Please retry in 5 seconds."
		for _, start := range []answer{alice.post(t, p), alice.exec(t, nil, plain{Lang: "py", Code: "print(1)"}).answer} {
			if start.code != http.StatusTooManyRequests || start.Error != "rate_limited" || start.header.Get("Retry-After") != "5" ||
				!strings.Contains(start.raw, message) {
				t.Errorf("a third execution: got %v, want 429 and the limit", start)
			}
		}
		bob.post(t, program{Code: "print(1)"}).completes(t, "1\n")
		alice.post(t, pauses[0].answers(value("1"))).completes(t, "1\n")
		alice.post(t, program{Code: "print(1)"}).completes(t, "1\n")
		alice.post(t, pauses[1].answers(value("2"))).completes(t, "2\n")
	})
}

// TestTurns checks that a client that waits for a sandbox is served before the many requests
// that another one has made before.
func TestTurns(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		const sandboxes, many = 4, 200
		server := serveAlone(t, s, settings{"MAX_SANDBOXES": strconv.Itoa(sandboxes), "QUEUE_TIMEOUT": "60s"})
		alice, bob := server.alice(), server.bob()
		var wg sync.WaitGroup
		defer wg.Wait()
		ended := make(chan answer, many)
		for range many {
			wg.Go(func() {
				a, err := alice.send(t.Context(), program{Code: "import time; time.sleep(0.3); print(1)"})
				if err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
				ended <- a
			})
		}
		<-ended // All of them have been sent, but for a few.
		began := len(ended)
		bob.post(t, program{Code: "print(1)"}).completes(t, "1\n")
		// A place after those that are served at this moment.
		if served := len(ended) - began; served > 10*sandboxes {
			t.Errorf("%d programs of another client were served first", served)
		}
	})
}

// TestMaxStored checks what a client may have stored, and that others do not notice.
func TestMaxStored(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"MAX_STORED": "1MiB"})
		alice, bob := server.alice(), server.bob()
		const full = "Tool calls of this client that wait and its kept answers would take more than 1048576 bytes (FERMATA_MAX_STORED)"
		large := program{Code: "print('so far')\nprint(await ask(x='x' * 600_000))\nprint('y' * 700_000)", Tools: tools("ask")}

		first := alice.pause(t, large)
		second := alice.post(t, large)
		second.fails(t, 200, full)
		if second.Stdout != "so far\n" {
			t.Errorf("stdout = %q, want what was printed", second.Stdout)
		}
		// What the runner sends in parts is counted while it comes.
		alice.post(t, program{Code: "await asyncio.gather(*[ask(x='x' * 600_000) for _ in range(9)])", Tools: tools("ask")}).fails(t, 200, full)
		alice.post(t, program{Code: "print(1)"}).completes(t, "1\n")
		other := bob.pause(t, large)

		stdout := "so far\n1\n" + strings.Repeat("y", 700_000) + "\n"
		alice.post(t, first.answers(value("1"))).completes(t, stdout)
		// That answer is kept, and leaves no room for such calls.
		alice.post(t, first.answers(value("1"))).completes(t, stdout)
		alice.post(t, large).fails(t, 200, full)
		small := alice.pause(t, program{Code: "await ask()\nprint('y' * 700_000)", Tools: tools("ask")})
		alice.post(t, small.answers(value("1"))).completes(t, strings.Repeat("y", 700_000)+"\n")
		// An answer that is not kept is gone as an old one, and nothing runs again.
		alice.post(t, small.answers(value("1"))).fails(t, 400, "Execution expired")
		start := http.Header{"Idempotency-Key": {"large-answer"}}
		body := program{Code: "print('y' * 700_000)"}
		for i, want := range []string{"", "Execution expired"} {
			a, err := alice.request(t.Context(), http.MethodPost, programmatic, start, body)
			if err != nil || a.Error != want {
				t.Errorf("start %d with a key: got %v, %v, want the error %q", i, a, err, want)
			}
		}
		bob.post(t, other.answers(value("1"))).completes(t, stdout)
	})
}

// TestStoredIsForgotten checks that an answer counts for as long as it is kept, and no longer.
func TestStoredIsForgotten(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serveAlone(t, s, settings{"MAX_STORED": "1MiB", "KEEP": "1ms"}).alice()
		p := program{Code: "await ask()\nprint('y' * 700_000)", Tools: tools("ask")}
		c.run(t, p, value("1"))
		large := program{Code: "await ask(x='x' * 600_000)", Tools: tools("ask")}
		c.post(t, large).fails(t, 200, "Tool calls of this client that wait and its kept answers would take more than 1048576 bytes (FERMATA_MAX_STORED)")
		// The store keeps a record 30 s longer than the answer is good for.
		if err := within(2*time.Minute, func() error {
			if a := c.post(t, large); a.Status != "tool_call_required" {
				return fmt.Errorf("got %v, want a pause", a)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}
