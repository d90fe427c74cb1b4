package toolsets

import (
	"net/http"
	"slices"
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

// TestArtifactsOfToolsets lets tools of the server hand files over: to a program that waits for nothing
// else, and to one of which a part goes on.
func TestArtifactsOfToolsets(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d := standard(t, s, nil)
		a := d.Post(t, program(harness.NewKey(), `
			r = HelpDesk.order(ok=True, path="out/x.md", artifact={"content": "from a tool", "mime": "text/markdown"})
			print(r["artifact"], open("out/x.md").read())
			def hand(n):
			    HelpDesk.order(ok=True, artifact={"path": f"{n}.txt", "content": str(n)})
			    return open(f"{n}.txt").read()
			with ThreadPoolExecutor() as pool:
			    print(list(pool.map(hand, range(6))))
			try:
			    HelpDesk.order(ok=True, artifact={"path": "y", "base64": "?"})
			except ToolExecutionError as e:
			    print(e.code)
		`))
		a.Completes(t, "{'mime': 'text/markdown', 'path': 'out/x.md'} from a tool\n['0', '1', '2', '3', '4', '5']\nartifact_failed\n")
		if want := []string{"0.txt", "1.txt", "2.txt", "3.txt", "4.txt", "5.txt", "out/x.md"}; !slices.Equal(a.Names(), want) {
			t.Errorf("the answer has the files %q, want %q", a.Names(), want)
		}
		stored := map[string]bool{}
		for _, e := range d.tells(t, a).Events {
			switch e.Type {
			case "artifact.stored":
				stored[e.Call] = true
			case "call.completed":
				if !stored[e.Call] {
					t.Errorf("%s has ended before its file was stored", e.Call)
				}
			}
		}
		if len(stored) != 8 {
			t.Errorf("files of %d calls were stored, want 8", len(stored))
		}
	})
}
