package toolsets

import (
	"net/http"
	"testing"

	"fermata/tests/harness"
)

// TestFailuresInEnvelopes looks at what the journal, and the record of the call, tell of the error in an
// envelope: of calls of programs, and of calls without one.
func TestFailuresInEnvelopes(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		a := d.Post(t, program(harness.NewKey(), `
			try:
			    HelpDesk.order(ok=False)
			except ToolExecutionError as e:
			    print(e)
		`))
		a.Completes(t, "no such order\n")
		for _, e := range d.tells(t, a).Events {
			if e.Type == "call.failed" {
				harness.Contains(t, "the event", e.Raw, `"error":"no such order","envelope":true,"code":"E404",`)
			}
		}
		parent := harness.NewKey()
		execute(t, d.Client, http.Header{"X-Ptc-Call-Id": {parent}}, `{"toolset":"desk","tool":"order","input":{"ok":false}}`, http.StatusOK)
		for _, path := range []string{"/executions/" + a.Execution() + "/calls", "/calls?parent_call_id=" + parent} {
			raw := fetched(t, d.Client, path, http.StatusOK).Raw
			harness.Contains(t, "GET "+path, raw, `"error":"no such order","code":"E404",`)
		}
	})
}
