package toolsets

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestTakenOverWhileACallRuns kills one server of a group while it runs calls, and the client goes on at
// another one. Where that server can reach the sandbox it takes the program over; otherwise it says so,
// until the first one is back. In either case calls that may be repeated are, the others fail, and the
// endpoint sees them once.
func TestTakenOverWhileACallRuns(t *testing.T) {
	harness.OverReplicasWith(t, harness.Sandboxes(), harness.Toolsets(t), func(t *testing.T, servers []*harness.Server) {
		u, once, again := harness.NewUpstream(t), harness.NewKey(), harness.NewKey()
		p := program(once, `
			await ask(n=0)
			got = await asyncio.gather(HelpDesk.aio.hold(n=1, key=KEY), Weather.aio.wait(n=2, key=AGAIN), return_exceptions=True)
			print(got[0], got[1]["n"])
			print(HelpDesk.book(n=3, key=KEY)["n"])
		`)
		p.Code, p.Tools = strings.ReplaceAll(p.Code, "AGAIN", fmt.Sprintf("%q", again)), harness.Tools("ask")
		first, second := servers[0], desk{servers[1].Alice(), servers[1], u}
		pause := first.Alice().Pause(t, p)
		go func() { _, _ = first.Alice().Send(t.Context(), pause.Continue(harness.Echo)) }() // The server is killed.
		u.Await(t, once, 1)
		u.Await(t, again, 1)
		if err := first.Kill(); err != nil {
			t.Fatal(err)
		}
		reachable := first.Settings["SANDBOX"] == "docker"
		if !reachable {
			second.Post(t, pause.Continue(harness.Echo)).Fails(t, http.StatusServiceUnavailable, "The server that holds this execution is away; retry shortly")
			if err := first.Start(); err != nil {
				t.Fatal(err)
			}
		}
		ended := make(chan harness.Answer, 1)
		go func() {
			a, err := second.Insist(t.Context(), http.MethodPost, harness.Programmatic, nil, pause.Continue(harness.Echo))
			if err != nil {
				t.Error(err)
			}
			ended <- a
		}()
		u.Await(t, again, 2)
		u.Release(again)
		a := <-ended
		a.Completes(t, unknown+" 2\n3\n")
		u.Sent(t, once, 2)
		u.Sent(t, again, 2)
		if j := second.tells(t, a); len(j.Calls) != 4 {
			t.Errorf("calls = %v, want 4", j.Calls)
		}
		if reachable {
			if err := first.Start(); err != nil { // It is stopped at the end.
				t.Fatal(err)
			}
		}
		if other := first.Alice().Post(t, pause.Continue(harness.Echo)); other.Raw != a.Raw {
			t.Errorf(harness.AskedAgain, other, a)
		}
		u.Sent(t, once, 2)
		u.Sent(t, again, 2)
	})
}
