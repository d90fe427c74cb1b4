package contract

import (
	"encoding/json"
	"testing"

	"fermata/tests/harness"
)

// TestEnvelopes answers calls of a client's tool with envelopes: the program gets what is in them.
func TestEnvelopes(t *testing.T) {
	const failure = `{"ok": false, "error": {"code": "E404", "message": "no such city", "where": "geo", "managed": true}, "ret": 1}`
	const program = `
		try:
		    print(await get(n=1))
		except ToolExecutionError as e:
		    print(e, e.code, e.where, e.managed)
	`
	cases := []struct{ name, code, result, stdout, event string }{
		{"a result", program, `{"ok": true, "error": null, "ret": {"a": [1.50]}}`, "{'a': [1.5]}\n", `{"type":"call.completed","output":{"a":[1.50]}}`},
		{"no result", program, `{"ok": true}`, "None\n", `{"type":"call.completed","output":null}`},
		{
			"a failure", program, failure, "no such city E404 geo True\n",
			`{"type":"call.failed","error":"no such city","envelope":true,"code":"E404","where":"geo"}`,
		},
		{"a failure of few words", program, `{"ok": false}`, "the tool reports a failure None None False\n", `{"type":"call.failed","error":"the tool reports a failure","envelope":true}`},
		{"no envelope", program, `{"ret": 5}`, "{'ret': 5}\n", `{"type":"call.completed","output":{"ret":5}}`},
		{"no object", program, `"plain"`, "plain\n", `{"type":"call.completed","output":"plain"}`},
		{"a tool without envelopes", `print((await plain(n=1))["ok"])`, failure, "False\n", `{"type":"call.completed","output":` + failure + `}`},
		{"blocking", `
			from fermata_tools.box import Box
			try:
			    Box.open()
			except ToolExecutionError as e:
			    print(e.code)
		`, failure, "E404\n", `{"type":"call.failed","error":"no such city","envelope":true,"code":"E404","where":"geo"}`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		tools := []harness.Tool{{Name: "get", Envelope: true}, {Name: "plain"}, {Name: "open", Envelope: true, Toolset: "box"}}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, _ := c.Run(t, harness.Program{Code: harness.Py(tc.code), Tools: tools}, harness.Value(tc.result))
				a.Completes(t, tc.stdout)
				endsOfCalls(t, c, a, tc.event)
			})
		}
		t.Run("is_error", func(t *testing.T) {
			t.Parallel()
			a, _ := c.Run(t, harness.Program{Code: harness.Py(program), Tools: tools}, harness.Failure("broken"))
			a.Completes(t, "broken None None False\n")
			endsOfCalls(t, c, a, `{"type":"call.failed","error":"broken"}`)
		})
		t.Run("bash", func(t *testing.T) {
			t.Parallel()
			a, _ := c.Run(t, harness.Program{Lang: "bash", Code: `get '{"n": 1}' || echo "failed: $?"`, Tools: tools}, harness.Value(failure))
			a.Completes(t, "{\"error\":\"no such city\"}\nfailed: 1\n")
			if a.Stderr != "no such city\n" {
				t.Errorf("stderr = %q", a.Stderr)
			}
		})
		t.Run("with an approval", func(t *testing.T) {
			t.Parallel()
			careful := harness.Program{Code: harness.Py(program), Tools: []harness.Tool{{Name: "get", Envelope: true, Approval: "always"}}, Approvals: true}
			a, _ := c.Run(t, careful, func(harness.Call) harness.Result {
				return harness.Result{Approve: new(true), Result: json.RawMessage(failure)}
			})
			a.Completes(t, "no such city E404 geo True\n")
			endsOfCalls(t, c, a, `{"type":"call.failed","error":"no such city","envelope":true,"code":"E404","where":"geo"}`)
		})
		t.Run("some of the results", func(t *testing.T) {
			t.Parallel()
			a := c.Pause(t, harness.Program{Code: "print(await asyncio.gather(get(n=1), get(n=2)))", Tools: tools})
			for len(a.Calls) > 0 {
				next := a.Continue(harness.Value(`{"ok": true, "ret": [7]}`))
				next.Results = next.Results[:1]
				a = c.Post(t, next)
			}
			a.Completes(t, "[[7], [7]]\n")
			endsOfCalls(t, c, a, `{"type":"call.completed","output":[7]}`, `{"type":"call.completed","output":[7]}`)
		})
	})
}

// endsOfCalls checks the events with which the calls of an ended execution have ended.
func endsOfCalls(t *testing.T, c harness.Client, a harness.Answer, want ...string) {
	t.Helper()
	j := harness.Journal{ID: a.Execution()}
	if err := j.Tells(t.Context(), c, a); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range j.Events {
		if e.Type != "call.completed" && e.Type != "call.failed" {
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal([]byte(e.Raw), &members); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"seq", "time", "call", "record", "took_ms"} {
			delete(members, name)
		}
		rest, err := harness.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(rest))
	}
	if len(got) != len(want) {
		t.Fatalf("the calls have ended with %q, want %q", got, want)
	}
	for i := range got {
		if !sameMembers(t, got[i], want[i]) {
			t.Errorf("call %d has ended with %s, want %s", i+1, got[i], want[i])
		}
	}
}

// sameMembers reports whether two objects have the same members, in whatever order.
func sameMembers(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y map[string]json.RawMessage
	if err := json.Unmarshal([]byte(a), &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(b), &y); err != nil {
		t.Fatal(err)
	}
	if len(x) != len(y) {
		return false
	}
	for name, value := range x {
		if harness.Compact(string(value)) != harness.Compact(string(y[name])) {
			return false
		}
	}
	return true
}
