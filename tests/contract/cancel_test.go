package tests

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const cancelPath = programmatic + "/cancel"

// identified is the header of a request with an id.
func identified(id string) http.Header {
	return http.Header{"X-Librechat-Code-Request-Id": {id}}
}

// cancel asks to cancel a request.
func (c client) cancel(t testing.TB, id string) answer {
	t.Helper()
	a, err := c.request(t.Context(), http.MethodPost, cancelPath, nil, fmt.Sprintf(`{"request_id":%q}`, id))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// postAs is post with an id.
func (c client) postAs(t testing.TB, id string, body any) answer {
	t.Helper()
	a, err := c.request(t.Context(), http.MethodPost, programmatic, identified(id), body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// is checks code and body.
func (a answer) is(t testing.TB, code int, body string) {
	t.Helper()
	if a.code != code || a.raw != body {
		t.Errorf("got %v, want %d %s", a, code, body)
	}
}

const (
	cancelRequested = `{"status":"cancellation_requested"}`
	cancelCompleted = `{"status":"already_completed"}`
)

// cancelledText is the error of an execution that was cancelled, by its client or by a server
// that stops.
const cancelledText = "Programmatic execution request cancelled"

// TestCancel walks through the contract's rows about cancelling on one server.
func TestCancel(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serveAlone(t, s, settings{"POOL_SIZE": "1"})
		testCancel(t, []client{server.alice()}, []client{server.bob()}, server.processes)
	})
}

// testCancel sends requests and cancels to servers in turn.
func testCancel(t *testing.T, alices, bobs []client, processes func() int) {
	turn := 0
	alice := func() client { turn++; return alices[turn%len(alices)] }
	bob := func() client { return bobs[(turn+1)%len(bobs)] }
	idle := resting(processes)
	ends := func(t *testing.T) {
		t.Helper()
		if err := within(5*time.Second, func() error { return atMost("processes", processes(), idle) }); err != nil {
			t.Errorf("after the cancel: %v", err)
		}
	}
	// Their processes tell that they have begun.
	const forever = "\nimport subprocess\nsubprocess.Popen(['sleep', '60'])\nwhile True: pass"
	loop := program{Code: "print('begun')" + forever}
	later := program{Code: "print('begun', await ask(n=1))" + forever, Tools: tools("ask")}
	// begun sends a request in the background and returns when it is in flight.
	begun := func(t *testing.T, ctx context.Context, id string, body any) <-chan answer {
		t.Helper()
		answers := make(chan answer, 1)
		c, probe := alice(), alice()
		go func() {
			defer close(answers)
			if a, err := c.request(ctx, http.MethodPost, programmatic, identified(id), body); err == nil {
				answers <- a
			}
		}()
		err := within(5*time.Second, func() error {
			// Whoever has the id lets nobody else use it.
			a, err := client{c.url, probe.key}.request(t.Context(), http.MethodPost, programmatic, identified(id), `{}`)
			if err == nil && (a.code == http.StatusConflict || a.code == http.StatusBadRequest) && processes() > idle {
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
		bob().cancel(t, id).is(t, 403, `{"error":"Programmatic request belongs to another principal"}`)
		alice().cancel(t, id).is(t, 202, cancelRequested)
		a := <-answers
		a.fails(t, 200, cancelledText)
		if len(a.Session) != 21 {
			t.Errorf("session = %q, want the execution's", a.Session)
		}
		alice().cancel(t, id).is(t, 200, cancelCompleted)
		bob().cancel(t, id).is(t, 403, `{"error":"Programmatic request belongs to another principal"}`)
		ends(t)
	})
	t.Run("a continuation", func(t *testing.T) {
		pause := alice().pause(t, later)
		id := uuid.NewString()
		answers := begun(t, t.Context(), id, pause.answers(echo))
		alice().cancel(t, id).is(t, 202, cancelRequested)
		a := <-answers
		a.fails(t, 200, cancelledText)
		alice().cancel(t, id).is(t, 200, cancelCompleted)
		// Its token leads nowhere, but to the same answer for the same request.
		if again := alice().post(t, pause.answers(echo)); again.raw != a.raw {
			t.Errorf("got %v for the same request, want %v", again, a)
		}
		alice().post(t, pause.answers(value("0"))).fails(t, 400, "Execution expired")
		ends(t)
	})
	t.Run("a continuation whose client has left", func(t *testing.T) {
		pause := alice().pause(t, later)
		id := uuid.NewString()
		ctx, leave := context.WithCancel(t.Context())
		answers := begun(t, ctx, id, pause.answers(echo))
		leave()
		<-answers
		if a := alice().cancel(t, id); a.code != 202 {
			t.Errorf("got %v, want 202: it still runs", a)
		}
		ends(t)
	})
	t.Run("a pause", func(t *testing.T) {
		id := uuid.NewString()
		pause := alice().postAs(t, id, later)
		if pause.Status != "tool_call_required" {
			t.Fatalf("got %v, want a pause", pause)
		}
		bob().cancel(t, id).is(t, 403, `{"error":"Programmatic request belongs to another principal"}`)
		alice().cancel(t, id).is(t, 200, cancelCompleted)
		ends(t)
		alice().post(t, pause.answers(echo)).fails(t, 400, "Execution expired")
		alice().cancel(t, id).is(t, 200, cancelCompleted)
	})
	t.Run("a pause that was gone on with", func(t *testing.T) {
		first, second := uuid.NewString(), uuid.NewString()
		pause := alice().postAs(t, first, program{Code: "print(await ask(n=1), await ask(n=2))", Tools: tools("ask")})
		next := alice().postAs(t, second, pause.answers(echo))
		alice().cancel(t, first).is(t, 200, cancelCompleted)
		alice().post(t, next.answers(echo)).completes(t, "{'n': 1} {'n': 2}\n")
		alice().cancel(t, second).is(t, 200, cancelCompleted)
	})
	t.Run("before the request", func(t *testing.T) {
		id := uuid.NewString()
		for range 2 {
			alice().cancel(t, id).is(t, 202, cancelRequested)
		}
		a := alice().postAs(t, id, program{Code: "print('ran')"})
		a.fails(t, 200, cancelledText)
		if a.Stdout != "" {
			t.Errorf("stdout = %q, want nothing: it was not to run", a.Stdout)
		}
		pause := alice().pause(t, paused)
		id = uuid.NewString()
		alice().cancel(t, id).is(t, 202, cancelRequested)
		alice().postAs(t, id, pause.answers(echo)).fails(t, 200, cancelledText)
		alice().post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
	})
	t.Run("malformed", func(t *testing.T) {
		for _, body := range []string{`{}`, `{"request_id":""}`, `{"request_id":"short"}`, `{"request_id":7}`, `x`, `{"request_id":"` + strings.Repeat("x", 129) + `"}`} {
			a, err := alice().request(t.Context(), http.MethodPost, "/v1"+cancelPath, nil, body)
			if err != nil {
				t.Fatal(err)
			}
			a.is(t, 400, `{"error":"Invalid or missing request_id"}`)
		}
		a, err := client{alice().url, "wrong"}.request(t.Context(), http.MethodPost, cancelPath, nil, `{}`)
		if err != nil {
			t.Fatal(err)
		}
		a.is(t, 401, `{"error":"Invalid or missing API key"}`)
	})
}
