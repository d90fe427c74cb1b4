package librechat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"fermata/engine/core"
	"fermata/engine/outputs"
)

func TestStartPassesOutputsOn(t *testing.T) {
	const (
		list  = `["turn_2/files/a", {"path":"b","required":false,"min_bytes":0}]`
		names = `{"turn_id":"turn_2", "log":true}`
	)
	want := &outputs.Contract{
		Turn: "turn_2", Lenient: true, Log: true,
		Outputs: []outputs.Output{
			{Path: "turn_2/files/a", File: "turn_2/files/a", Name: "a", Required: true, MinBytes: 1},
			{Path: "b", File: "b", Name: "b"},
		},
	}
	for _, on := range []string{path, execPath} {
		e := completed()
		w := call{path: on, body: `{"lang":"py","code":"#","outputs":` + list + `,"on_missing":"report","timeline":` + names + `}`}.do(t, newHandler(e, options()))
		if w.Code != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", on, w.Code, w.Body)
		}
		got := e.starts[0]
		if diff := cmp.Diff(want, got.Outputs); diff != "" {
			t.Errorf("%s: the contract (-want +got):\n%s", on, diff)
		}
		if string(got.SentOutputs) != list || string(got.SentTimeline) != names {
			t.Errorf("%s: the journal gets %s and %s", on, got.SentOutputs, got.SentTimeline)
		}
	}
}

// TestNoContract sends what asks for nothing.
func TestNoContract(t *testing.T) {
	for _, members := range []string{``, `,"outputs":null,"on_missing":null,"timeline":null`, `,"outputs":[],"on_missing":"error"`} {
		e := completed()
		if status, body := post(t, e, `{"code":"#"`+members+`}`); status != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", members, status, body)
		}
		if got := e.starts[0]; got.Outputs != nil || got.SentOutputs != nil || got.SentTimeline != nil {
			t.Errorf("%s: got %+v, %s, %s, want nothing", members, got.Outputs, got.SentOutputs, got.SentTimeline)
		}
	}
}

// TestContractIsInHash: requests that differ in what the program must produce are no retries of each
// other.
func TestContractIsInHash(t *testing.T) {
	seen := map[string]string{}
	for _, members := range []string{``, `,"outputs":["a"]`, `,"outputs":["b"]`, `,"outputs":["a"],"on_missing":"report"`, `,"outputs":["a"],"timeline":{}`} {
		e := completed()
		post(t, e, `{"code":"#"`+members+`}`)
		hash := e.starts[0].Request
		if other, again := seen[hash]; again {
			t.Errorf("%q and %q have the same hash", members, other)
		}
		seen[hash] = members
	}
}

// TestContractMistakes has one wrong member in each request. The tables of engine/outputs and
// engine/timeline have the others.
func TestContractMistakes(t *testing.T) {
	for _, test := range []struct{ members, text string }{
		{`"outputs":"a"`, "outputs must be an array, whose entries are paths or objects with a path"},
		{`"outputs":["a","../b"]`, "outputs[1].path must not contain empty, . or .. segments"},
		{`"outputs":[{"path":"a","mime":"pdf"}]`, "outputs[0].mime must be a media type without parameters, such as application/pdf"},
		{`"outputs":[` + strings.Repeat(" ", outputs.MaxSize) + `"a"]`, "outputs must have at most 65536 bytes"},
		{`"on_missing":true`, `on_missing must be "error" or "report"`},
		{`"on_missing":"ignore"`, `on_missing must be "error" or "report"`},
		{`"timeline":[]`, "timeline must be an object"},
		{`"timeline":{"log":"yes"}`, "timeline.log must be true or false"},
		{`"timeline":{"notes":"","x":"` + strings.Repeat("x", 1<<16) + `"}`, "timeline must have at most 65536 bytes"},
	} {
		for _, on := range []string{path, execPath} {
			e := completed()
			w := call{path: on, body: `{"lang":"py","code":"#",` + test.members + `}`}.do(t, newHandler(e, options()))
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"error":`+quote(test.text)) || len(e.starts) > 0 {
				t.Errorf("%s %.100s: got %d %s, want 400 %s", on, test.members, w.Code, w.Body, test.text)
			}
		}
	}
}

// TestTimelineNeedsJournals: without them contracts work and timelines do not.
func TestTimelineNeedsJournals(t *testing.T) {
	o := options()
	o.NoTimelines = true
	h := newHandler(completed(), o)
	for body, status := range map[string]int{
		`{"code":"#","outputs":["a"],"timeline":null}`: http.StatusOK,
		`{"code":"#","timeline":{}}`:                   http.StatusBadRequest,
	} {
		w := call{body: body}.do(t, h)
		if w.Code != status || status != http.StatusOK && !strings.Contains(w.Body.String(), "this server's FERMATA_JOURNAL is not full") {
			t.Errorf("%s: got %d %s, want %d", body, w.Code, w.Body, status)
		}
	}
}

// TestAnswersTellOfOutputs has the answers of both paths, which differ from others in what they add.
func TestAnswersTellOfOutputs(t *testing.T) {
	all := []outputs.Judged{
		{Path: "a", State: outputs.Produced, ID: "file", Size: 7, Type: "text/plain"}, {Path: "b", State: outputs.Missing, Error: "file not produced"},
	}
	const (
		told = `"outputs":[{"path":"a","state":"produced","id":"file","size":7,"mime":"text/plain"},{"path":"b","state":"missing","error":"file not produced"}]`
		text = "Missing output files: b"
	)
	missing := core.Outcome{
		State: core.Failed, Session: session, Reason: core.OutputsMissing, Detail: "b", Stdout: "out", Outputs: all, Report: "Runtime error:\nx",
	}
	silent := core.Outcome{State: core.Completed, Session: session, Outputs: []outputs.Judged{{Path: "b", State: outputs.Missing}}}
	paused := core.Outcome{State: core.Paused, Session: session, Token: "t", Outputs: all, Report: "x"}
	for _, c := range []struct {
		path    string
		outcome core.Outcome
		want    string
	}{
		{path, missing, `{"status":"error","session_id":"` + session + `","error":"` + text + `","reason":"outputs_missing","stdout":"out","stderr":"",` + told + `,"report":"Runtime error:\nx"}`},
		{path, silent, `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","files":[],"outputs":[{"path":"b","state":"missing"}],"report":""}`},
		{path, paused, `{"status":"tool_call_required","session_id":"` + session + `","continuation_token":"t","tool_calls":[]}`},
		{
			execPath, missing, `{"session_id":"` + session + `","stdout":"out","stderr":"[sandbox] ` + text + `\n","files":[],"code":0,"signal":null,"message":"` + text +
				`","status":"RE","wall_time":0,"reason":"outputs_missing",` + told + `,"report":"Runtime error:\nx"}`,
		},
	} {
		w := call{path: c.path, body: `{"lang":"py","code":"#","outputs":["a","b"]}`}.do(t, newHandler(&script{outcome: c.outcome}, options()))
		if w.Code != http.StatusOK || w.Body.String() != c.want {
			t.Errorf("%s: got %d %s, want 200 %s", c.path, w.Code, w.Body, c.want)
		}
	}
}
