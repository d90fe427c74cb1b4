package contract

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"fermata/engine/files"
	"fermata/tests/harness"
)

// cancelBy asks to cancel what a member of the request names.
func cancelBy(t testing.TB, c harness.Client, member, value string) harness.Answer {
	t.Helper()
	a, err := c.Request(t.Context(), http.MethodPost, cancelPath, nil, fmt.Sprintf(`{%q:%q}`, member, value))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCancelTargets cancels executions by their ids, tokens and sessions, on one server.
func TestCancelTargets(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		testCancelTargets(t, []harness.Client{server.Alice()}, []harness.Client{server.Bob()})
	})
}

// TestCancelTargetsOnReplicas is TestCancelTargets over three servers: each request goes to another
// server than the one before it.
func TestCancelTargetsOnReplicas(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		testCancelTargets(t, harness.Alices(servers), []harness.Client{servers[0].Bob(), servers[1].Bob(), servers[2].Bob()})
	})
}

func testCancelTargets(t *testing.T, alices, bobs []harness.Client) {
	turn := 0
	alice := func() harness.Client { turn++; return alices[turn%len(alices)] }
	bob := func() harness.Client { return bobs[(turn+1)%len(bobs)] }
	const missing = `{"error":"Execution not found"}`
	idOf := func(a harness.Answer) string { return a.Header.Get("Fermata-Execution") }
	token := func(a harness.Answer) string { return a.Token }
	// runs sends a request whose program does not end, and returns when that runs.
	runs := func(t *testing.T, session string) (id string, answers <-chan harness.Answer) {
		t.Helper()
		begun := harness.NewMark()
		pause := alice().Pause(t, harness.Program{
			Code: "await ask(n=1)\n" + begun.Line() + "while True: pass", Tools: harness.Tools("ask"), Session: session,
		})
		done := make(chan harness.Answer, 1)
		c := alice()
		go func() {
			defer close(done)
			if a, err := c.Send(t.Context(), pause.Continue(harness.Echo)); err == nil {
				done <- a
			}
		}()
		begun.Await(t, 1)
		return idOf(pause), done
	}

	for name, by := range map[string]struct {
		member string
		of     func(harness.Answer) string
	}{
		"execution_id":       {"execution_id", idOf},
		"execution":          {"execution", idOf},
		"continuation_token": {"continuation_token", token},
	} {
		t.Run("a pause by "+name, func(t *testing.T) {
			pause := alice().Pause(t, harness.AskOnce)
			isExactly(t, cancelBy(t, bob(), by.member, by.of(pause)), 404, missing)
			isExactly(t, cancelBy(t, alice(), by.member, by.of(pause)), 200, cancelDone)
			alice().Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
			isExactly(t, cancelBy(t, alice(), by.member, by.of(pause)), 200, cancelCompleted)
			isExactly(t, cancelBy(t, bob(), by.member, by.of(pause)), 404, missing)
		})
		t.Run("an end by "+name, func(t *testing.T) {
			pause := alice().Pause(t, harness.AskOnce)
			alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
			isExactly(t, cancelBy(t, alice(), by.member, by.of(pause)), 200, cancelCompleted)
		})
	}
	t.Run("a running program by its id", func(t *testing.T) {
		id, answers := runs(t, "")
		isExactly(t, cancelBy(t, bob(), "execution_id", id), 404, missing)
		isExactly(t, cancelBy(t, alice(), "execution_id", id), 202, cancelRequested)
		(<-answers).Fails(t, 200, harness.CancelledText)
		isExactly(t, cancelBy(t, alice(), "execution_id", id), 200, cancelCompleted)
	})
	t.Run("by the token of an earlier round", func(t *testing.T) {
		first := alice().Pause(t, harness.Program{Code: "await ask(n=1)\nawait ask(n=2)", Tools: harness.Tools("ask")})
		second := alice().Pause(t, first.Continue(harness.Echo))
		isExactly(t, cancelBy(t, alice(), "continuation_token", first.Token), 200, cancelDone)
		alice().Post(t, second.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
	})
	t.Run("a session", func(t *testing.T) {
		session, other := files.NewID(), files.NewID()
		in := func(session string) harness.Program {
			return harness.Program{Code: harness.AskOnce.Code, Tools: harness.AskOnce.Tools, Session: session}
		}
		foreign := bob().Pause(t, in(session))
		aside := alice().Pause(t, in(other))
		isExactly(t, cancelBy(t, alice(), "session_id", session), 404, `{"error":"No execution of this session was found"}`)
		first, second := alice().Pause(t, in(session)), alice().Pause(t, in(session))
		isExactly(t, cancelBy(t, alice(), "session_id", session), 200, `{"status":"cancelled","cancelled":2}`)
		isExactly(t, cancelBy(t, alice(), "session_id", session), 200, `{"status":"already_completed","cancelled":0}`)
		_, answers := runs(t, session)
		third := alice().Pause(t, in(session))
		isExactly(t, cancelBy(t, alice(), "session_id", session), 202, `{"status":"cancellation_requested","cancelled":2}`)
		(<-answers).Fails(t, 200, harness.CancelledText)
		for _, pause := range []harness.Answer{first, second, third} {
			alice().Post(t, pause.Continue(harness.Echo)).Fails(t, 400, "Execution expired")
		}
		bob().Post(t, foreign.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
		alice().Post(t, aside.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
	t.Run("what nobody knows", func(t *testing.T) {
		for _, value := range []string{uuid.NewString(), "x", strings.Repeat("é", 20_000), "../" + uuid.NewString()} {
			isExactly(t, cancelBy(t, alice(), "execution_id", value), 404, missing)
			isExactly(t, cancelBy(t, alice(), "session_id", value), 404, `{"error":"No execution of this session was found"}`)
			isExactly(t, cancelBy(t, alice(), "continuation_token", value), 400, `{"error":"Invalid continuation token"}`)
		}
	})
	t.Run("two targets", func(t *testing.T) {
		pause := alice().Pause(t, harness.AskOnce)
		body := fmt.Sprintf(`{"execution_id":%q,"session_id":%q}`, idOf(pause), pause.Session)
		a, err := alice().Request(t.Context(), http.MethodPost, "/v1"+cancelPath, nil, body)
		if err != nil || a.HTTPStatus != 400 || !strings.Contains(a.Error, "execution_id and session_id") {
			t.Errorf("got %v %v, want 400 that names both", a, err)
		}
		alice().Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}\n")
	})
}
