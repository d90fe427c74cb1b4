package tests

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// keyed is the header of a start that may be repeated.
func keyed(key string) http.Header { return http.Header{"Idempotency-Key": {key}} }

// postKeyed is post with a key.
func (c client) postKeyed(t testing.TB, key string, body any) answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	a, err := c.request(ctx, http.MethodPost, programmatic, keyed(key), body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// awkward calls a tool with what a JSON encoder may write in another way.
var awkward = program{Code: "got = await ask(text='<&>\u2028é', n=1.50)\nprint(got['text'], got['n'])", Tools: tools("ask")}

const askedAgain = "got %v for the same request, want the answer again: %v"

// TestRetries repeats requests: every answer is that of the first, byte for byte.
func TestRetries(t *testing.T) {
	overSetups(t, eachStore, func(t *testing.T, s setup) {
		server := serveAlone(t, s, nil)
		restart := func(t *testing.T) {
			t.Helper()
			if err := server.kill(); err != nil {
				t.Fatal(err)
			}
			if err := server.start(); err != nil {
				t.Fatal(err)
			}
		}
		same := func(t *testing.T, again, first answer) {
			t.Helper()
			if again.raw != first.raw || again.code != first.code {
				t.Errorf(askedAgain, again, first)
			}
		}
		t.Run("a round", func(t *testing.T) {
			twice := program{Code: "await ask(n=0)\n" + awkward.Code, Tools: awkward.Tools}
			start := server.alice().pause(t, twice)
			pause := server.alice().pause(t, start.answers(echo))
			same(t, server.alice().post(t, start.answers(echo)), pause)
			restart(t)
			same(t, server.alice().post(t, start.answers(echo)), pause)
			server.alice().post(t, start.answers(value("0"))).fails(t, 400, "Invalid continuation token")
			end := server.alice().post(t, pause.answers(echo))
			end.completes(t, "<&>\u2028é 1.5\n")
			same(t, server.alice().post(t, pause.answers(echo)), end)
			restart(t)
			same(t, server.alice().post(t, pause.answers(echo)), end)
			server.alice().post(t, pause.answers(value("0"))).fails(t, 400, "Execution expired")
			server.alice().post(t, start.answers(echo)).fails(t, 400, "Execution expired")
		})
		t.Run("a start", func(t *testing.T) {
			key := uuid.NewString()
			pause := server.alice().postKeyed(t, key, awkward)
			same(t, server.alice().postKeyed(t, key, awkward), pause)
			restart(t)
			same(t, server.alice().postKeyed(t, key, awkward), pause)
			const reused = "Idempotency-Key was used for another request"
			server.alice().postKeyed(t, key, paused).fails(t, 409, reused)
			if other := server.bob().postKeyed(t, key, awkward); other.Token == pause.Token || other.Status != pause.Status {
				t.Errorf("got %v for another principal's start, want an execution of its own", other)
			}
			server.alice().post(t, pause.answers(echo)).completes(t, "<&>\u2028é 1.5\n")
			server.alice().postKeyed(t, key, awkward).fails(t, 409, "The execution that this Idempotency-Key started has gone on")
			restart(t)
			server.alice().postKeyed(t, key, awkward).fails(t, 409, "The execution that this Idempotency-Key started has gone on")
			server.alice().postKeyed(t, key, paused).fails(t, 409, reused)
		})
		t.Run("a start that ends", func(t *testing.T) {
			key, random := uuid.NewString(), program{Code: "import uuid\nprint(uuid.uuid4())"}
			end := server.alice().postKeyed(t, key, random)
			same(t, server.alice().postKeyed(t, key, random), end)
			restart(t)
			same(t, server.alice().postKeyed(t, key, random), end)
			if other := server.alice().postKeyed(t, uuid.NewString(), random); other.Stdout == end.Stdout {
				t.Errorf("two keys have one execution: %v", other)
			}
		})
		t.Run("while a start runs", func(t *testing.T) {
			key, slow := uuid.NewString(), program{Code: "import time, uuid\ntime.sleep(1)\nprint(uuid.uuid4())"}
			var wg sync.WaitGroup
			answers := make([]answer, 6)
			for i := range answers {
				wg.Go(func() {
					a, err := server.alice().request(t.Context(), http.MethodPost, programmatic, keyed(key), slow)
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
			key, slow := uuid.NewString(), program{Code: "import time\ntime.sleep(1)\nprint(await ask(n=1))", Tools: tools("ask")}
			ctx, leave := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer leave()
			if a, err := server.alice().request(ctx, http.MethodPost, programmatic, keyed(key), slow); err == nil {
				t.Fatalf("got %v, want the client to have left", a)
			}
			pause := server.alice().postKeyed(t, key, slow)
			server.alice().post(t, pause.answers(echo)).completes(t, "{'n': 1}\n")
		})
		t.Run("a start that was running when the server was killed", func(t *testing.T) {
			key, slow := uuid.NewString(), program{Code: "import time\ntime.sleep(2)\nprint('ran')"}
			answers := make(chan error, 1)
			go func() {
				_, err := server.alice().request(t.Context(), http.MethodPost, programmatic, keyed(key), slow)
				answers <- err
			}()
			time.Sleep(300 * time.Millisecond) // No answer tells that a program has begun.
			restart(t)
			if err := <-answers; err == nil {
				t.Error("a request to a server that was killed had an answer")
			}
			a := server.alice().postKeyed(t, key, slow)
			a.completes(t, "ran\n")
			same(t, server.alice().postKeyed(t, key, slow), a)
		})
	})
}
