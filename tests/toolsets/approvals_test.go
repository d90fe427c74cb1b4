package toolsets

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"fermata/tests/harness"
)

// asksToPay is a program that pays, which needs approval, and tells what came of it.
const asksToPay = `
	try:
	    print("paid", HelpDesk.pay(n=1, key=KEY)["n"])
	except ToolExecutionError as e:
	    print(e)
`

// waitsToPay starts asksToPay and returns its pause.
func (d desk) waitsToPay(t *testing.T, key string) harness.Answer {
	t.Helper()
	p := program(key, asksToPay)
	p.Approvals = true
	a := d.Pause(t, p)
	if c := a.Calls[0]; len(a.Calls) != 1 || c.Approval != "required" || c.Toolset != "desk" || c.Name != "pay" {
		t.Fatalf("calls = %v, want one that needs approval", a.Calls)
	}
	d.upstream.Sent(t, key, 0)
	return a
}

// byRoute answers an approval apart from a continuation.
func byRoute(t *testing.T, c harness.Client, execution, call string, approve bool) harness.Answer {
	t.Helper()
	body := fmt.Sprintf(`{"call":%q,"approve":%v,"reason":"by route"}`, call, approve)
	a, err := c.Request(t.Context(), http.MethodPost, "/executions/"+execution+"/approvals", nil, body)
	if err != nil && a.HTTPStatus == 0 {
		t.Fatal(err)
	}
	return a
}

// tooLate checks the answer to somebody who decides after somebody else has: that it is decided, or that
// the program has ended meanwhile.
func tooLate(t *testing.T, a harness.Answer) {
	t.Helper()
	if a.HTTPStatus != 409 && (a.HTTPStatus != 400 || a.Error != "Execution expired") {
		t.Errorf("got %v, want it refused because it is decided or over", a)
	}
}

// TestApprovals answers calls that need approval in continuations.
func TestApprovals(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		t.Run("approved", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			a := d.Post(t, d.waitsToPay(t, key).Continue(harness.Decision(true, "")))
			a.Completes(t, "paid 1\n")
			d.upstream.Sent(t, key, 1)
			types := d.tells(t, a).Types("approval.", "call.")
			if want := []string{"approval.requested", "approval.given", "call.started", "call.completed"}; !slices.Equal(types, want) {
				t.Errorf("events = %v, want %v", types, want)
			}
		})
		t.Run("refused", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			a := d.Post(t, d.waitsToPay(t, key).Continue(harness.Decision(false, "too dear")))
			a.Completes(t, "refused: too dear\n")
			d.upstream.Sent(t, key, 0)
			types := d.tells(t, a).Types("approval.", "call.")
			if want := []string{"approval.requested", "approval.refused", "call.failed"}; !slices.Equal(types, want) {
				t.Errorf("events = %v, want %v", types, want)
			}
		})
		t.Run("by a client that cannot ask", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			d.Post(t, program(key, asksToPay)).Completes(t, "this tool needs approval and the client cannot ask for it\n")
			d.upstream.Sent(t, key, 0)
		})
		t.Run("answers that decide nothing", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			pause := d.waitsToPay(t, key)
			for _, bad := range []harness.Handler{harness.Echo, func(harness.Call) harness.Result { return harness.Result{} }} {
				refused(t, d.Post(t, pause.Continue(bad)), 400, "call_001")
			}
			d.upstream.Sent(t, key, 0)
			d.Post(t, pause.Continue(harness.Decision(true, ""))).Completes(t, "paid 1\n")
		})
		t.Run("of the client's tools", func(t *testing.T) {
			t.Parallel()
			tool := harness.Tool{Name: "send", Approval: "always"}
			p := harness.Program{Code: "print(await send(n=1))", Tools: []harness.Tool{tool}, Approvals: true}
			asked := d.Pause(t, p)
			if asked.Calls[0].Approval != "required" {
				t.Errorf("calls = %v, want one that needs approval", asked.Calls)
			}
			next := d.Pause(t, asked.Continue(harness.Decision(true, "")))
			if next.Calls[0].Approval != "" || next.Calls[0].ID != asked.Calls[0].ID {
				t.Errorf("calls = %v, want the approved call", next.Calls)
			}
			a := d.Post(t, next.Continue(harness.Value("7")))
			a.Completes(t, "7\n")
			d.tells(t, a)

			// A result beside the approval saves the round.
			yes := true
			both := func(harness.Call) harness.Result { return harness.Result{Approve: &yes, Result: []byte("8")} }
			a = d.Post(t, d.Pause(t, p).Continue(both))
			a.Completes(t, "8\n")
			d.tells(t, a)
		})
	})
}

// TestApprovalsByRoute lets others than the client of the program decide.
func TestApprovalsByRoute(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, harness.Settings{"OPERATOR_KEYS": "olga:key-o"})
		operator := harness.Client{URL: d.URL, Key: "key-o"}
		t.Run("the program goes on at once", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			pause := d.waitsToPay(t, key)
			id, call := pause.Execution(), pause.Calls[0].ID
			for name, c := range map[string]harness.Client{"another principal": d.server.Bob(), "another call": d.Client} {
				wrong := call
				if name == "another call" {
					wrong = "call_999"
				}
				if a := byRoute(t, c, id, wrong, true); a.HTTPStatus != 404 {
					t.Errorf("%s: got %v, want 404", name, a)
				}
			}
			var waiting struct {
				Data []struct {
					Execution string `json:"execution"`
					Call      string `json:"call"`
				} `json:"data"`
			}
			get(t, operator, "/calls?status=waiting&limit=200", &waiting)
			found := false
			for _, w := range waiting.Data {
				found = found || w.Execution == id && w.Call == call
			}
			if !found {
				t.Errorf("the list of open approvals has %v, want %s", waiting.Data, id)
			}
			d.upstream.Sent(t, key, 0)
			if a := byRoute(t, operator, id, call, true); a.HTTPStatus != 202 {
				t.Errorf("got %v, want 202", a)
			}
			tooLate(t, byRoute(t, operator, id, call, false))
			d.upstream.Await(t, key, 1)
			d.Post(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{}}).Completes(t, "paid 1\n")
			d.upstream.Sent(t, key, 1)
		})
		t.Run("refused", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			pause := d.waitsToPay(t, key)
			if a := byRoute(t, d.Client, pause.Execution(), pause.Calls[0].ID, false); a.HTTPStatus != 202 {
				t.Errorf("got %v, want 202", a)
			}
			d.Post(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{}}).Completes(t, "refused: by route\n")
			d.upstream.Sent(t, key, 0)
		})
		t.Run("many at once", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			pause := d.waitsToPay(t, key)
			var all sync.WaitGroup
			var mu sync.Mutex
			accepted := 0
			for i := range 40 {
				all.Go(func() {
					a := byRoute(t, operator, pause.Execution(), pause.Calls[0].ID, i%2 == 0)
					mu.Lock()
					defer mu.Unlock()
					if a.HTTPStatus == 202 {
						accepted++
						return
					}
					tooLate(t, a)
				})
			}
			all.Wait()
			if accepted != 1 {
				t.Errorf("%d answers were accepted, want 1", accepted)
			}
			a := d.Post(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{}})
			if paid := strings.HasPrefix(a.Stdout, "paid"); paid != (len(d.upstream.Requests(key)) == 1) {
				t.Errorf("got %v with %d requests", a, len(d.upstream.Requests(key)))
			}
		})
		t.Run("nothing happens by a GET", func(t *testing.T) {
			t.Parallel()
			key := harness.NewKey()
			pause := d.waitsToPay(t, key)
			path := "/executions/" + pause.Execution() + "/approvals?call=call_001&approve=true"
			if a, _ := operator.Request(t.Context(), http.MethodGet, path, nil, nil); a.HTTPStatus < 400 {
				t.Errorf("got %v", a)
			}
			d.Post(t, pause.Continue(harness.Decision(false, "no"))).Completes(t, "refused: no\n")
			d.upstream.Sent(t, key, 0)
			tooLate(t, byRoute(t, d.Client, pause.Execution(), pause.Calls[0].ID, true))
		})
	})
}

// TestApprovalSurvives kills the server while a call waits for approval, and approves it at the next one.
func TestApprovalSurvives(t *testing.T) {
	harness.OverSetups(t, harness.EachStore, func(t *testing.T, s harness.Setup) {
		d, key := alone(t, s, nil), harness.NewKey()
		pause := d.waitsToPay(t, key)
		other := harness.NewKey()
		byOther := d.waitsToPay(t, other)
		d.restart(t)
		d.upstream.Sent(t, key, 0)
		a := d.Post(t, pause.Continue(harness.Decision(true, "")))
		a.Completes(t, "paid 1\n")
		d.upstream.Sent(t, key, 1)
		d.tells(t, a)
		if a := byRoute(t, d.Client, byOther.Execution(), "call_001", true); a.HTTPStatus != 202 {
			t.Errorf("got %v, want 202", a)
		}
		d.upstream.Await(t, other, 1)
		d.Post(t, harness.Continuation{Token: byOther.Token, Results: []harness.Result{}}).Completes(t, "paid 1\n")
	})
}

// An approval holds until the call can be made: a call before it in the same lane waits for approval longer.
func TestApprovalOfALane(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		u, first, second := harness.NewUpstream(t), harness.NewKey(), harness.NewKey()
		text := strings.Replace(harness.StandardToolsets, "path: /slow, lane: orders,", "path: /slow, lane: orders, approval: always,", 1)
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, u, text)})
		d := desk{server.Alice(), server, u}
		p := program(first, fmt.Sprintf(`
			got = await asyncio.gather(HelpDesk.aio.queue(ms=1, n=1, key=KEY), HelpDesk.aio.queue(ms=1, n=2, key=%q))
			print([g["n"] for g in got])
		`, second))
		p.Approvals = true
		both := d.Pause(t, p)
		if len(both.Calls) != 2 {
			t.Fatalf("calls = %v, want two that need approval", both.Calls)
		}
		// In another round nobody is asked about the second call again.
		next := both.Continue(harness.Decision(true, ""))
		next.Results = next.Results[1:]
		one := d.Pause(t, next)
		if len(one.Calls) != 1 || one.Calls[0].ID != both.Calls[0].ID {
			t.Fatalf("calls = %v, want %s alone", one.Calls, both.Calls[0].ID)
		}
		u.Sent(t, second, 0)
		a := d.Post(t, one.Continue(harness.Decision(true, "")))
		a.Completes(t, "[1, 2]\n")
		u.Sent(t, first, 1)
		u.Sent(t, second, 1)
		d.tells(t, a)
	})
}
