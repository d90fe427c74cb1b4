package timeline

import (
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestIncludeOnReplicas: the answer carries the timeline as well if the server that gives it has handed the
// continuation over to another one, live or not, and when a third server is asked again.
func TestIncludeOnReplicas(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		owner, other, third := servers[0].Alice(), servers[1].Alice(), servers[2].Alice()
		pause := func(code string) harness.Continuation {
			t.Helper()
			return owner.Pause(t, including("await ask(n=1)\n"+code, object{"tools": harness.Tools("ask")})).Continue(harness.Echo)
		}
		next := pause(ending)
		a := other.Post(t, next)
		in, route := included(t, other, a)
		if in != route || !strings.Contains(in, document) {
			t.Errorf("the answer carries\n%s\nand the route tells\n%s", in, route)
		}
		if _, of := included(t, owner, a); of != route {
			t.Errorf("the route of the owner tells\n%s\nand that of the other server\n%s", of, route)
		}
		if again := third.Post(t, next); again.Raw != a.Raw {
			t.Errorf(harness.AskedAgain, again, a)
		}
		failed := other.Post(t, pause("raise ValueError('no')"))
		if in, route := included(t, other, failed); in != route || !strings.Contains(in, "Missing output files: t-7/files/a.txt, t-7/files/a.pdf") {
			t.Errorf("a failed program carries\n%s\nand the route tells\n%s", in, route)
		}
		// The last event of a live answer is the answer, so that the whole is no JSON.
		live, _ := other.Request(t.Context(), http.MethodPost, harness.Programmatic, http.Header{"Accept": {"text/event-stream"}}, pause(ending))
		if !strings.Contains(live.Raw, `"timeline":{"blocks":[`) || !strings.Contains(live.Raw, document) {
			t.Errorf("a live answer has no timeline: %s", live.Raw)
		}
	})
}
