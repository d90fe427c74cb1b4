package contract

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestMembersOfAnswers checks that answers have exactly the members of the contract.
func TestMembersOfAnswers(t *testing.T) {
	members := func(t *testing.T, a harness.Answer, want ...string) {
		t.Helper()
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(a.Raw), &body); err != nil {
			t.Fatal(err)
		}
		expected := map[string]bool{}
		for _, name := range want {
			expected[name] = true
		}
		got := map[string]bool{}
		for name := range maps.Keys(body) {
			got[name] = true
		}
		if !maps.Equal(got, expected) {
			t.Errorf("got %v, want exactly the members %v", a, want)
		}
		if !harness.IDForm.MatchString(a.Session) {
			t.Errorf("session_id = %q, want 21 characters of A-Za-z0-9_-", a.Session)
		}
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		pause := c.Pause(t, harness.AskOnce)
		members(t, pause, "status", "session_id", "continuation_token", "rounds_left", "tool_calls")
		if got, want := harness.Compact(pause.Raw), `"tool_calls":[{"id":"call_001","name":"ask","input":{"n":1}}]`; !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
		end := c.Post(t, pause.Continue(harness.Echo))
		end.Completes(t, "{'n': 1}\n")
		members(t, end, "status", "session_id", "stdout", "stderr", "files")
		if !strings.Contains(end.Raw, `"files":[]`) {
			t.Errorf("got %v, want files to be an empty array", end)
		}
		if end.Session != pause.Session {
			t.Errorf("session_id = %q at the end, %q at the pause; want one", end.Session, pause.Session)
		}
		failed := c.Post(t, harness.Program{Code: "1/0"})
		members(t, failed, "status", "session_id", "error", "reason", "stdout", "stderr")

		const own = "own-session_012345678"
		if a := c.Post(t, harness.Program{Code: "print(1)", Session: own}); a.Session != own {
			t.Errorf("session_id = %q, want the one of the request, %q", a.Session, own)
		}
		if a := c.Post(t, harness.Program{Code: "print(1)", Session: "short"}); !harness.IDForm.MatchString(a.Session) {
			t.Errorf("session_id = %q, want a new one", a.Session)
		}
	})
}

// TestMembersOfRequests sends every member of a request with a value of a wrong type: the error
// names the member.
func TestMembersOfRequests(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
	const id = "abcdefghijklmnopqrstu"
	file := func(member, value string) string {
		members := map[string]json.RawMessage{"id": json.RawMessage(`"` + id + `"`), "name": json.RawMessage(`"a"`), "storage_session_id": json.RawMessage(`"` + id + `"`)}
		members[member] = json.RawMessage(value)
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return `"files":[` + string(raw) + `]`
	}
	token := s.Alice().Pause(t, harness.AskOnce).Token
	goOn := func(result string) string {
		return `{"continuation_token":"` + token + `","tool_results":` + result + `}`
	}
	both := map[string]string{
		`"session_id":5`:                "session_id",
		`"session_id":["` + id + `"]`:   "session_id",
		`"session_id":{}`:               "session_id",
		`"session_id":true`:             "session_id",
		`"timeout":"5"`:                 "timeout",
		`"timeout":[]`:                  "timeout",
		`"timeout":true`:                "timeout",
		`"files":{}`:                    "files",
		`"files":"a"`:                   "files",
		`"files":[5]`:                   "files[0]",
		file("id", `5`):                 "files[0].id",
		file("name", `5`):               "files[0].name",
		file("storage_session_id", `5`): "files[0].storage_session_id",
		file("resource_id", `5`):        "files[0].resource_id",
		file("kind", `5`):               "files[0].kind",
		file("version", `"5"`):          "files[0].version",
	}
	cases := map[string]map[string]string{
		harness.Programmatic: {
			`{"code":5}`:                                                       "code",
			`{"code":["x"]}`:                                                   "code",
			`{"code":"1","tools":{}}`:                                          "tools",
			`{"code":"1","tools":["t"]}`:                                       "tools[0]",
			`{"code":"1","tools":[{"name":5}]}`:                                "tools[0].name",
			`{"code":"1","tools":[{"name":["t"]}]}`:                            "tools[0].name",
			`{"code":"1","tools":[{"name":"t","description":5}]}`:              "tools[0].description",
			`{"code":"1","language":5}`:                                        "language",
			`{"code":"1","lang":{}}`:                                           "lang must be",
			`{"code":"1","lang":5,"language":"python"}`:                        "lang must be",
			`{"code":"1","title":5}`:                                           "title",
			`{"code":"1","labels":[]}`:                                         "labels",
			`{"code":"1","labels":{"a":5}}`:                                    "labels.a",
			`{"code":"1","parent_call_id":5}`:                                  "parent_call_id",
			`{"code":"1","tools":[{"name":"t","parameters":"{}"}]}`:            "tools[0].parameters",
			`{"code":"1","tools":[{"name":"t","input_schema":[]}]}`:            "tools[0].input_schema",
			`{"code":"1","tools":[{"name":"t","inputSchema":true}]}`:           "tools[0].inputSchema",
			`{"code":"1","tools":[{"function":"t"}]}`:                          "tools[0].function",
			`{"code":"1","tools":[{"function":{"name":5}}]}`:                   "tools[0].function.name",
			`{"code":"1","tools":[{"function":{"name":"t","description":5}}]}`: "tools[0].function.description",
			`{"code":"1","tools":[{"function":{"name":"t","parameters":5}}]}`:  "tools[0].function.parameters",
			`{"continuation_token":5,"tool_results":[]}`:                       "continuation token",
			goOn(`{}`):              "tool_results",
			goOn(`["call_001"]`):    "tool_results",
			goOn(`[{"call_id":1}]`): "call_id",
			goOn(`[{"call_id":"call_001","is_error":1}]`):      "is_error",
			goOn(`[{"call_id":"call_001","error_message":1}]`): "error_message",
		},
		"/exec": {
			`{"lang":"py","code":5}`:              "code",
			`{"lang":5,"code":"1"}`:               "lang must be",
			`{"language":5,"code":"1"}`:           "language must be",
			`{"lang":"py","code":"1","title":5}`:  "title",
			`{"lang":"py","code":"1","tools":{}}`: "tools",
			`{"lang":"py","code":"1","args":5}`:   "args",
			`{"lang":"py","code":"1","args":[5]}`: "args",
			`{"lang":"py","code":"1","args":{}}`:  "args",
		},
		harness.Programmatic + "/cancel": {
			`{"request_id":1234567890123456}`:     "request_id",
			`{"request_id":["1234567890123456"]}`: "request_id",
		},
	}
	for member, name := range both {
		cases[harness.Programmatic][`{"code":"1",`+member+`}`] = name
		cases["/exec"][`{"lang":"py","code":"1",`+member+`}`] = name
	}
	for path, bodies := range cases {
		for body, name := range bodies {
			a, err := s.Alice().Request(t.Context(), http.MethodPost, path, nil, body)
			if err != nil || a.HTTPStatus != 400 || !strings.Contains(a.Error, name) {
				t.Errorf("%s %s: got %v %v, want 400 and %s", path, body, a, err, name)
			}
		}
	}
	// A session_id that is null, or a string that is not an id, counts as none.
	for _, session := range []string{`null`, `""`, `"no-id"`} {
		a, err := s.Alice().Request(t.Context(), http.MethodPost, "/exec", nil, `{"lang":"py","code":"print(1)","session_id":`+session+`}`)
		if err != nil || a.Stdout != "1\n" {
			t.Errorf("session %s: got %v %v, want it run", session, a, err)
		}
	}
}
