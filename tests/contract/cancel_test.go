package contract

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"fermata/tests/harness"
)

const cancelPath = harness.Programmatic + "/cancel"

// identified returns the header that gives a request an id, by which it can be cancelled.
func identified(id string) http.Header {
	return http.Header{"X-Librechat-Code-Request-Id": {id}}
}

// cancelRequest asks to cancel a request.
func cancelRequest(t testing.TB, c harness.Client, id string) harness.Answer {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodPost, cancelPath, nil, fmt.Sprintf(`{"request_id":%q}`, id))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// postAs posts a request that has an id.
func postAs(t testing.TB, c harness.Client, id string, body any) harness.Answer {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, identified(id), body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// isExactly checks the HTTP status and the whole body of an answer.
func isExactly(t testing.TB, a harness.Answer, code int, body string) {
	t.Helper()
	if a.HTTPStatus != code || a.Raw != body {
		t.Errorf("got %v, want %d %s", a, code, body)
	}
}

const (
	cancelRequested = `{"status":"cancellation_requested"}`
	cancelCompleted = `{"status":"already_completed"}`
	cancelDone      = `{"status":"cancelled"}`
)

// TestCancel cancels requests in every state, on one server.
func TestCancel(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.ServeAlone(t, s, harness.Settings{"POOL_SIZE": "1"})
		testCancel(t, []harness.Client{server.Alice()}, []harness.Client{server.Bob()}, server.Processes)
	})
}

// testCancel cancels requests in every state. It sends each request, and each cancel, to the next
// of the servers that the clients belong to. processes counts the processes of all servers.
func testCancel(t *testing.T, alices, bobs []harness.Client, processes func() int) {
	turn := 0
	alice := func() harness.Client { turn++; return alices[turn%len(alices)] }
	bob := func() harness.Client { return bobs[(turn+1)%len(bobs)] }
	idle := harness.Resting(processes)
	ends := func(t *testing.T) {
		t.Helper()
		if err := harness.Within(harness.ClearTimeout, func() error { return harness.AtMost("processes", processes(), idle) }); err != nil {
			t.Errorf("after the cancel: %v", err)
		}
	}
	// Each program starts a process, which shows that the program has begun.
	const forever = "\nimport subprocess\nsubprocess.Popen(['sleep', '60'])\nwhile True: pass"
	loop := harness.Program{Code: "print('begun')" + forever}
	later := harness.Program{Code: "print('begun', await ask(n=1))" + forever, Tools: harness.Tools("ask")}
	// begun sends a request in the background and returns when it is in flight.
	begun := func(t *testing.T, ctx context.Context, id string, body any) <-chan harness.Answer {
		t.Helper()
		answers := make(chan harness.Answer, 1)
		c, probe := alice(), alice()
		go func() {
			defer close(answers)
			if a, err := c.Request(ctx, http.MethodPost, harness.Programmatic, identified(id), body); err == nil {
				answers <- a
			}
		}()
		err := harness.Within(harness.ClearTimeout, func() error {
			// While a request is in flight its id cannot be used for another one.
			a, err := harness.Client{URL: c.URL, Key: probe.Key}.Request(t.Context(), http.MethodPost, harness.Programmatic, identified(id), `{}`)
			if err == nil && (a.HTTPStatus == http.StatusConflict || a.HTTPStatus == http.StatusBadRequest) && processes() > idle {
				return nil
			}
			return errors.Join(err, fmt.Errorf("got %v, want the request in flight", a))
		})
		if err != nil {
			t.Fatal(err)
		}
		return answers
	}

	t.Run("a start", func(t *testing.T) {
		id := uuid.NewString()
		answers := begun(t, t.Context(), id, loop)
		isExactly(t, cancelRequest(t, bob(), id), 403, `{"error":"Programmatic request belongs to another principal"}`)
		isExactly(t, cancelRequest(t, alice(), id), 202, cancelRequested)
		a := <-answers
		a.Fails(t, 200, harness.CancelledText)
		if len(a.Session) != 21 {
			t.Errorf("session = %q, want the execution's", a.Session)
		}
		isExactly(t, cancelRequest(t, alice(), id), 200, cancelCompleted)
		isExactly(t, cancelRequest(t, bob(), id), 403, `{"error":"Programmatic request belongs to another principal"}`)
		ends(t)
	})
	t.Run("a continuation", func(t *testing.T) {
		pause := alice().Pause(t, later)
		id := uuid.NewString()
		answers := begun(t, t.Context(), id, pause.Continue(harness.Echo))
		isExactly(t, cancelRequest(t, alice(), id), 202, cancelRequested)
		a := <-answers
		a.Fails(t, 200, harness.CancelledText)
		isExactly(t, cancelRequest(t, alice(), id), 200, cancelCompleted)
		// The token is good for nothing but the same answer to the same request.
		if again := alice().Post(t, pause.Continue(harness.Echo)); again.Raw != a.Raw {
			t.Errorf("got %v for the same request, want %v", again, a)
		}
		alice().Post(t, pause.Continue(harness.Value("0"))).Fails(t, 400, "Execution expired")
		ends(t)
	})
	t.Run("a continuation whose client has left", func(t *testing.T) {
		pause := alice().Pause(t, later)
		id := uuid.NewString()
		ctx, leave := context.WithCancel(t.Context())
		answers := begun(t, ctx, id, pause.Continue(harness.Echo))
		leave()
		<-answers
		if a := cancelRequest(t, alice(), id); a.HTTPStatus != 202 {
			t.Errorf("got %v, want 202: it still runs", a)
		}
		ends(t)
	})
	t.Run("a pause", func(t *testing.T) {
		id := uuid.NewString()
		pause := postAs(t, alice(), id, later)
		if pause.Status != "tool_call_required" {
			t.Fatalf("got %v, want a pause", pause)
		}
		isExactly(t, cancelRequest(t, bob(), id), 403, `{"error":"Programmatic request belongs to another principal"}`)
		isExactly(t, cancelRequest(t, alice(), id), 200, cancelDone)
		ends(t)
		alice().Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		isExactly(t, cancelRequest(t, alice(), id), 200, cancelCompleted)
	})
	t.Run("a pause that was continued", func(t *testing.T) {
		first, second := uuid.NewString(), uuid.NewString()
		pause := postAs(t, alice(), first, harness.Program{Code: "print(await ask(n=1), await ask(n=2))", Tools: harness.Tools("ask")})
		next := postAs(t, alice(), second, pause.Continue(harness.Echo))
		isExactly(t, cancelRequest(t, alice(), first), 200, cancelCompleted)
		alice().Post(t, next.Continue(harness.Echo)).Completes(t, "{'n': 1} {'n': 2}\n")
		isExactly(t, cancelRequest(t, alice(), second), 200, cancelCompleted)
	})
	t.Run("before the request", func(t *testing.T) {
		id := uuid.NewString()
		for range 2 {
			isExactly(t, cancelRequest(t, alice(), id), 202, cancelRequested)
		}
		a := postAs(t, alice(), id, harness.Program{Code: "print('ran')"})
		a.Fails(t, 200, harness.CancelledText)
		if a.Stdout != "" {
			t.Errorf("stdout = %q, want nothing: it was not to run", a.Stdout)
		}
		pause := alice().Pause(t, harness.AskOnce)
		id = uuid.NewString()
		isExactly(t, cancelRequest(t, alice(), id), 202, cancelRequested)
		postAs(t, alice(), id, pause.Continue(harness.Echo)).Fails(t, 200, harness.CancelledText)
		alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
	t.Run("malformed", func(t *testing.T) {
		for _, body := range []string{`{}`, `{"request_id":""}`, `{"request_id":"short"}`, `{"request_id":7}`, `x`, `{"request_id":"` + strings.Repeat("x", 129) + `"}`} {
			a, err := alice().Request(t.Context(), http.MethodPost, "/v1"+cancelPath, nil, body)
			if err != nil {
				t.Fatal(err)
			}
			isExactly(t, a, 400, `{"error":"Invalid or missing request_id"}`)
		}
		a, err := harness.Client{URL: alice().URL, Key: "wrong"}.Request(t.Context(), http.MethodPost, cancelPath, nil, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		isExactly(t, a, 401, `{"error":"Invalid or missing API key"}`)
	})
}

// TestCancelOnReplicas is TestCancel over three servers: each request goes to another server than
// the one before it.
func TestCancelOnReplicas(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		bobs := []harness.Client{servers[0].Bob(), servers[1].Bob(), servers[2].Bob()}
		processes := func() (n int) {
			for _, s := range servers {
				n += s.Processes()
			}
			return n
		}
		testCancel(t, harness.Alices(servers), bobs, processes)
	})
}
