package contract

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// isOver checks that a continuation is refused since its execution is over, and with which reason.
func isOver(t testing.TB, a harness.Answer, reason, detail string) {
	t.Helper()
	a.Fails(t, 400, "Execution expired")
	if a.Reason != reason || a.Detail != detail {
		t.Errorf("got %v, want the reason %q and the detail %q", a, reason, detail)
	}
}

var errNotExpired = errors.New("the execution has not expired")

// TestReasonsOfExpiredExecutions continues executions that are over. The owner of the token is told
// how they have ended, nobody else is.
func TestReasonsOfExpiredExecutions(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"PAUSE_TTL": "2s"})
		c := server.Alice()
		late := harness.Value(`"late"`)
		program := func(rest string) harness.Program {
			return harness.Program{Code: "await ask(n=1)\n" + rest, Tools: harness.Tools("ask"), Timeout: 1000}
		}
		t.Run("finished", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, program("print(1)"))
			c.Post(t, pause.Continue(harness.Echo)).Completes(t, "1\n")
			isOver(t, c.Post(t, pause.Continue(late)), "finished", "The program has completed")
			stranger := server.Bob().Post(t, pause.Continue(late))
			stranger.Fails(t, 403, "Forbidden")
			if stranger.Reason != "" || stranger.Detail != "" {
				t.Errorf("got %v, want nothing about another's execution", stranger)
			}
			forged := pause.Continue(late)
			forged.Token += "x"
			if a := c.Post(t, forged); a.Reason != "" || a.Detail != "" {
				t.Errorf("got %v, want nothing for a token that is not genuine", a)
			}
		})
		t.Run("failed", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, program("1 / 0"))
			c.Post(t, pause.Continue(harness.Echo)).Fails(t, 200, "ZeroDivisionError: division by zero")
			isOver(t, c.Post(t, pause.Continue(late)), "finished", "The program has ended with an error")
		})
		t.Run("timed out", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, program("while True: pass"))
			end := c.Post(t, pause.Continue(harness.Echo))
			end.Fails(t, 408, "Execution timeout")
			again := c.Post(t, pause.Continue(late))
			again.Fails(t, 400, "Execution expired")
			if end.Reason != "timed_out" || again.Reason != "timed_out" {
				t.Errorf("got %v and then %v, want the reason timed_out", end, again)
			}
		})
		t.Run("cancelled", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, program(""))
			isExactly(t, cancelBy(t, c, "continuation_token", pause.Token), 200, cancelDone)
			isOver(t, c.Post(t, pause.Continue(late)), "cancelled", "The execution was cancelled")
		})
		t.Run("the pause has run out", func(t *testing.T) {
			t.Parallel()
			first := c.Pause(t, program("await ask(n=2)"))
			request := first.Continue(harness.Echo)
			pause := c.Pause(t, request)
			id := pause.Header.Get("Fermata-Execution")
			err := harness.Within(20*time.Second, func() error {
				a, err := c.Request(t.Context(), http.MethodGet, "/executions/"+id, nil, nil)
				if err == nil && a.Status != "expired" {
					return errNotExpired
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			const detail = "The pause ran out after 2 s"
			isOver(t, c.Post(t, pause.Continue(late)), "expired", detail)
			isOver(t, c.Post(t, request), "expired", detail) // The kept answer.
		})
	})
}

// TestReasonsOfErrors checks that an answer that tells of an error has a word for its reason.
func TestReasonsOfErrors(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, harness.SmallLimits).Alice()
		for _, tc := range []struct{ code, reason, detail string }{
			{"1 / 0", "raised", ""},
			{"sys.exit(3)", "exited", ""},
			{"os.kill(os.getpid(), 9)", "exited", "Killed by SIGKILL"},
			{"while True: print('x' * 1000)", "stdout_flood", "The program printed more than FERMATA_OUTPUT allows"},
			{"while True: await ask()", "too_many_rounds", "FERMATA_MAX_ROUNDS bounds how often a program may pause; calls that wait together are one round"},
		} {
			a, _ := c.Run(t, harness.Program{Code: tc.code, Tools: harness.Tools("ask"), Timeout: 20_000}, harness.Echo)
			if a.Error == "" || a.Reason != tc.reason || a.Detail != tc.detail {
				t.Errorf("%s: got %v, want the reason %q and the detail %q", tc.code, a, tc.reason, tc.detail)
			}
		}
		for code, want := range map[string]string{
			"raise SystemExit(3)": `"reason":"exited"}`,
			"print(1)":            `"wall_time":`,
		} {
			a, err := c.Request(t.Context(), http.MethodPost, "/exec", nil, map[string]string{"lang": "py", "code": code})
			if err != nil || !strings.Contains(a.Raw, want) || strings.Contains(a.Raw, "reason") != strings.Contains(want, "reason") {
				t.Errorf("%s: got %v %v, want %s", code, a, err, want)
			}
		}
	})
}
