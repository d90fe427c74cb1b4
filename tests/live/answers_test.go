package live

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// A live answer ends with what would have been the answer.
func TestLiveAnswer(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		session := "abcdefghijklmnopqrstu"
		for name, p := range map[string]harness.Program{
			"completed":     {Code: "print('<&>\\u2028é')", Session: session},
			"raised":        {Code: "1/0", Session: session},
			"time is spent": {Code: "while True: pass", Session: session, Timeout: 1000},
			"flood":         {Code: "print('x' * 3_000_000)", Session: session},
		} {
			ordinary := c.Post(t, p)
			got := run(t, c, p)
			if got.Status != ordinary.HTTPStatus || string(got.Body) != ordinary.Raw {
				t.Errorf("%s: the live answer is %d %s,\nthe ordinary one %v", name, got.Status, got.Body, ordinary)
			}
			if n := names(got.Events); !strings.HasPrefix(n, "execution.started ") || !strings.HasSuffix(n, " execution.ended") {
				t.Errorf("%s: the events are %s", name, n)
			}
			checkOutput(t, got.Events, got.Answer)
		}
		exec := harness.ExecRequest{Lang: "py", Code: "print(1)\nraise SystemExit(3)", Session: session}
		got := open(t, c, http.MethodPost, harness.ExecPath, nil, exec).liveAnswer(t)
		if n := names(got.Events); n != "execution.started output execution.ended" || got.Status != 200 || !strings.Contains(string(got.Body), `"code":3`) {
			t.Errorf("/exec: got %s and %d %s", n, got.Status, got.Body)
		}
	})
}

// Each stretch of an execution is a live answer of its own, and a repeated request gets the answer
// alone.
func TestLiveRounds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		first := run(t, c, harness.Program{Code: "print(await ask(n=1))\nprint(await ask(n=2))", Tools: harness.Tools("ask")})
		if n := names(first.Events); n != "execution.started call.started execution.paused" || len(first.Calls) != 1 {
			t.Fatalf("got %s and %v", n, first.Answer)
		}
		next := first.Continue(harness.Value("10"))
		second := run(t, c, next)
		if n := names(second.Events); n != "execution.resumed call.completed output call.started execution.paused" {
			t.Errorf("the second stretch: %s", n)
		}
		again := run(t, c, next)
		if len(again.Events) != 0 || string(again.Body) != string(second.Body) {
			t.Errorf("a repeated request: got %s and %s, want %s", names(again.Events), again.Body, second.Body)
		}
		third := run(t, c, second.Continue(harness.Value("20")))
		if n := names(third.Events); n != "execution.resumed call.completed output execution.ended" {
			t.Errorf("the third stretch: %s", n)
		}
		third.Completes(t, "10\n20\n")
		checkOutput(t, append(append(first.Events, second.Events...), third.Events...), third.Answer)
	})
}

// Refusals are ordinary errors, and a client that would as soon have JSON gets JSON.
func TestOrdinaryAnswers(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, body := range []string{`{}`, `{"code":1}`, `{"code":"print(1)","tools":1}`, `{"continuation_token":"x","tool_results":[{"call_id":"call_001"}]}`, `{`} {
			status, _, text := fetch(t, c, http.MethodPost, harness.Programmatic, accepting(eventStream), body)
			ordinary, err := c.Send(t.Context(), body)
			if err != nil {
				t.Fatal(err)
			}
			if status != ordinary.HTTPStatus || text != ordinary.Raw {
				t.Errorf("%s: got %d %s, want %v", body, status, text, ordinary)
			}
		}
		for _, accept := range []string{"", "*/*", "application/json", "application/json, text/plain, */*", eventStream + ", application/json", eventStream + ";q=0.5, */*", "text/html", "nonsense"} {
			header := http.Header{}
			if accept != "" {
				header.Set("Accept", accept)
			}
			a, err := c.Request(t.Context(), http.MethodPost, harness.Programmatic, header, harness.Program{Code: "print(1)"})
			if err != nil {
				t.Fatal(err)
			}
			a.Completes(t, "1\n")
		}
		// The token stays good after a refusal.
		paused := run(t, c, harness.AskOnce)
		status, _, text := fetch(t, c, http.MethodPost, harness.Programmatic, accepting(eventStream), `{"continuation_token":"`+paused.Token+`","tool_results":[{"call_id":"call_999"}]}`)
		if status != http.StatusBadRequest {
			t.Errorf("a result of no call: got %d %s, want 400", status, text)
		}
		run(t, c, paused.Continue(harness.Value("1"))).Completes(t, "1\n")
	})
}

// A client that leaves its first live answer cancels the program.
func TestLeaving(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		st, id := begin(t, c, harness.Program{Code: "import time\ntime.sleep(60)"})
		r := open(t, c, http.MethodGet, "/executions/"+id+"/events", nil, nil)
		_ = st.response.Body.Close()
		began := time.Now()
		frames := r.all(t)
		if e := frames[len(frames)-1].event(t); e.Status != "cancelled" || time.Since(began) > 20*time.Second {
			t.Errorf("after %v: %s", time.Since(began), frames[len(frames)-1].Data)
		}
	})
}
