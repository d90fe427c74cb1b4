package contract

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestRoutes sends requests to every route, with and without /v1, and to routes that do not exist.
func TestRoutes(t *testing.T) {
	cases := []struct {
		method, path string
		header       http.Header
		body         string
		want         int
		text         string
	}{
		{"GET", "/health", http.Header{"X-Api-Key": nil}, "", 200, ""},
		{"GET", "/nowhere", nil, "", 404, "Not found"},
		{"POST", "/exec/programmatic/nowhere", nil, "{}", 404, "Not found"},
		{"GET", harness.Programmatic, nil, "", 405, ""},
		{"PUT", harness.Programmatic, nil, "{}", 405, ""},
		{"DELETE", harness.Programmatic, nil, "", 405, ""},
		{"POST", harness.Programmatic, http.Header{"Content-Type": {"text/plain"}}, `{"code":"1"}`, 415, ""},
		{"POST", harness.Programmatic, http.Header{"Content-Type": nil}, `{"code":"1"}`, 415, ""},
		{"POST", harness.Programmatic, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, `{"code":"1"}`, 200, ""},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			for _, prefix := range []string{"", "/v1"} {
				name := fmt.Sprintf("%s %s%s %s", tc.method, prefix, tc.path, tc.header.Get("Content-Type"))
				t.Run(name, func(t *testing.T) {
					a, err := c.Request(t.Context(), tc.method, prefix+tc.path, tc.header, tc.body)
					if err != nil {
						t.Fatal(err)
					}
					if a.HTTPStatus != tc.want {
						t.Errorf("got %v, want %d", a, tc.want)
					}
					if tc.text != "" && a.Error != tc.text {
						t.Errorf("error = %q, want %q", a.Error, tc.text)
					}
					if got := a.Header.Get("X-CodeAPI-Execution-Profile"); got != "default" {
						t.Errorf("X-CodeAPI-Execution-Profile = %q, want %q", got, "default")
					}
					if got := a.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
						t.Errorf("Content-Type = %q, want application/json", got)
					}
				})
			}
		}
	})
}

// TestRefusedRequests sends starts that the server refuses, and checks the error.
func TestRefusedRequests(t *testing.T) {
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf(`{"name":"t%d"}`, i)
		}
		return `"tools":[` + strings.Join(list, ",") + `]`
	}
	const anything = "*"
	cases := []struct {
		name, body string
		header     http.Header
		want       int
		text       string
	}{
		{"no code", `{"tools":[]}`, nil, 400, "Missing required field: code"},
		{"empty object", `{}`, nil, 400, "Missing required field: code"},
		{"empty code", `{"code":""}`, nil, 400, "Missing required field: code"},
		{"blank code", `{"code":" \n\t"}`, nil, 400, "Missing required field: code"},
		{"code is not a string", `{"code":7}`, nil, 400, "Missing required field: code"},
		{"members are case-sensitive", `{"Code":"print(1)"}`, nil, 400, `"Code" is not known; did you mean code?`},
		{"not JSON", `{"code":`, nil, 400, anything},
		{"no body", ``, nil, 400, anything},
		{"an array", `[]`, nil, 400, anything},
		{"two values", `{"code":"print(1)"} {}`, nil, 400, anything},
		{"garbage at the end", `{"code":"print(1)"}x`, nil, 400, anything},
		{"not UTF-8", "{\"code\":\"print('\xff')\"}", nil, 400, anything},
		{"very deep", `{"code":"1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, nil, 400, anything},
		{"tools is not an array", harness.RequestJSON(`"tools":{}`), nil, 400, anything},
		{"101 tools", harness.RequestJSON(many(101)), nil, 400, "Too many tools provided (101). Maximum is 100."},
		{"tool is not an object", harness.RequestJSON(`"tools":[1]`), nil, 400, anything},
		{"tool with a name too long", harness.RequestJSON(`"tools":[{"name":"` + strings.Repeat("a", 257) + `"}]`), nil, 400, "tools[0].name must have at most 256 characters"},
		{"tool without a name", harness.RequestJSON(`"tools":[{}]`), nil, 400, "tools[0].name must be a non-empty string"},
		{"tool with an empty name", harness.RequestJSON(`"tools":[{"name":"a"},{"name":""}]`), nil, 400, "tools[1].name must be a non-empty string"},
		{"parameters that are not a schema", harness.RequestJSON(`"tools":[{"name":"a","parameters":[1,"x"]}]`), nil, 400, "tools[0].parameters must be an object, a JSON Schema"},
		{"two schemas in one definition", harness.RequestJSON(`"tools":[{"name":"a","parameters":{},"inputSchema":{"type":"object"}}]`), nil, 400, "tools[0].parameters and tools[0].inputSchema are different schemas for one tool"},
		{"two definitions of one name", harness.RequestJSON(`"tools":[{"name":"a"},{"name":"a","description":"other"}]`), nil, 400, `tools[0] and tools[1] define the tool "a" in different ways`},
		{"two names, one identifier", harness.RequestJSON(`"tools":[{"name":"a-b"},{"name":"a_b"}]`), nil, 400, `Tool names "a-b" and "a_b" normalize to the same identifier "a_b"`},
		{"timeout is text", harness.RequestJSON(`"timeout":"5"`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout 0", harness.RequestJSON(`"timeout":0`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout negative", harness.RequestJSON(`"timeout":-1`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout too small", harness.RequestJSON(`"timeout":999`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"timeout too large", harness.RequestJSON(`"timeout":300001`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"timeout beyond a float", harness.RequestJSON(`"timeout":1e999`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"unknown language", harness.RequestJSON(`"lang":"ruby"`), nil, 400, anything},
		{"language counts before lang", harness.RequestJSON(`"lang":"py","language":"ruby"`), nil, 400, anything},
		{"files is not an array", harness.RequestJSON(`"files":{}`), nil, 400, "files must be an array"},
		{"token is empty", harness.RequestJSON(`"continuation_token":""`), nil, 400, "Invalid continuation token"},
		{"token is a number", harness.RequestJSON(`"continuation_token":5`), nil, 400, "Invalid continuation token"},
		{"request id too short", harness.RequestJSON(`"timeout":1000`), http.Header{"X-Librechat-Code-Request-Id": {"short"}}, 400, "Invalid programmatic request ID"},
		{"stateful profile", harness.RequestJSON(`"timeout":1000`), http.Header{"X-Codeapi-Expected-Profile": {"stateful"}}, 409, "execution_profile_mismatch"},
		{"unknown profile", harness.RequestJSON(`"timeout":1000`), http.Header{"X-Codeapi-Expected-Profile": {"other"}}, 400, "invalid_execution_profile"},
		{"worker", harness.RequestJSON(`"timeout":1000`), http.Header{"X-Librechat-Code-Worker-Id": {"w"}}, 400, "Code bridge worker routing requires the remote-bridge backend"},
		{"workspace", harness.RequestJSON(`"timeout":1000`), http.Header{"X-Librechat-Code-Workspace-Id": {"w"}}, 400, "Selected-workspace programmatic execution supports bash only"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				a, err := c.Request(t.Context(), "POST", harness.Programmatic, tc.header, tc.body)
				if err != nil {
					t.Fatal(err)
				}
				text := tc.text
				if text == anything && a.Error != "" {
					text = a.Error
				}
				a.Fails(t, tc.want, text)
			})
		}
		t.Run("body too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 50 MB")
			}
			a := c.Post(t, `{"code":"print(1)","x":"`+strings.Repeat("x", 50<<20)+`"}`)
			a.Fails(t, 413, "request entity too large")
		})
	})
}

// TestAcceptedRequests sends unusual starts that the server must accept.
func TestAcceptedRequests(t *testing.T) {
	cases := []struct{ name, body string }{
		{"unknown members", harness.RequestJSON(`"entity_id":"e","user_id":"u","runtime_session_hint":"h","future":{"a":[1]}`)},
		{"tools null", harness.RequestJSON(`"tools":null`)},
		{"tools empty", harness.RequestJSON(`"tools":[]`)},
		{"a tool as the client sends it", harness.RequestJSON(`"tools":[{"name":"a","description":"d","parameters":{"type":"object"},"defer_loading":true,"allowed_callers":["code_execution"],"toolType":"mcp"}]`)},
		{"one name twice", harness.RequestJSON(`"tools":[{"name":"a"},{"name":"a"}]`)},
		{"no parameters", harness.RequestJSON(`"tools":[{"name":"a"},{"name":"b","parameters":null}]`)},
		{"files empty", harness.RequestJSON(`"files":[]`)},
		{"least timeout", harness.RequestJSON(`"timeout":1000`)},
		{"fraction of a millisecond", harness.RequestJSON(`"timeout":1000.5`)},
		{"most timeout", harness.RequestJSON(`"timeout":3e5`)},
		{"lang py", harness.RequestJSON(`"lang":"py"`)},
		{"lang python", harness.RequestJSON(`"lang":"python"`)},
		{"language counts before lang", harness.RequestJSON(`"language":"python","lang":"ruby"`)},
		{"an unusable session", harness.RequestJSON(`"session_id":"../../etc"`)},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) { c.Post(t, tc.body).Completes(t, "1\n") })
		}
	})
}

// TestRefusedContinuations sends continuations that the server refuses. The execution can then
// still be continued.
func TestRefusedContinuations(t *testing.T) {
	one := func(entry string) string { return `"tool_results":[` + entry + `]` }
	cases := []struct {
		name, results string
		want          int
		text          string
	}{
		{"no results", `"x":1`, 400, "tool_results must be an array when continuation_token is provided"},
		{"null", `"tool_results":null`, 400, "tool_results must be an array when continuation_token is provided"},
		{"an object", `"tool_results":{}`, 400, "tool_results must be an array when continuation_token is provided"},
		{"empty", `"tool_results":[]`, 400, "tool_results must be a non-empty array; resubmit with at least one result per pending tool call"},
		{"entry is not an object", one(`"x"`), 400, "tool_results entries must be objects"},
		{"no call_id", one(`{"result":1}`), 400, `tool_results[].call_id must match /^call_\d{3,6}$/, got: undefined`},
		{"call_id of another form", one(`{"call_id":"1","result":1}`), 400, `tool_results[].call_id must match /^call_\d{3,6}$/, got: 1`},
		{"is_error is text", one(`{"call_id":"call_001","is_error":"true"}`), 400, "tool_results[call_001].is_error must be a boolean if present"},
		{"is_error false with an error_message", one(`{"call_id":"call_001","is_error":false,"error_message":"no"}`), 400, "tool_results[call_001] has is_error false and an error_message: if the tool failed, is_error must be true"},
		{"error_message is a number", one(`{"call_id":"call_001","is_error":true,"error_message":1}`), 400, "tool_results[call_001].error_message must be a string if present"},
		{"twice the same", one(`{"call_id":"call_001","result":1},{"call_id":"call_001","result":1}`), 400, "Duplicate call_id in tool_results: call_001"},
		{"never issued", one(`{"call_id":"call_999","result":1}`), 400, "tool_results[call_999] was not issued by the sandbox for this execution"},
		{"one good, one never issued", one(`{"call_id":"call_001","result":1},{"call_id":"call_002","result":1}`), 400, "tool_results[call_002] was not issued by the sandbox for this execution"},
		{"too large", one(`{"call_id":"call_001","result":"` + strings.Repeat("x", 5_000_000) + `"}`), 400, "tool_results[call_001].result is 5000002 bytes, exceeds per-result cap 5000000"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		// goesOn checks that an execution can still be continued after a refusal.
		goesOn := func(t *testing.T, pause harness.Answer) {
			t.Helper()
			c.Post(t, pause.Continue(harness.Value(`"still here"`))).Completes(t, "still here\n")
		}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				pause := c.Pause(t, harness.AskOnce)
				c.Post(t, `{"continuation_token":"`+pause.Token+`",`+tc.results+`}`).Fails(t, tc.want, tc.text)
				goesOn(t, pause)
			})
		}
		t.Run("another principal", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			server.Bob().Post(t, pause.Continue(harness.Echo)).Fails(t, 403, "Forbidden")
			goesOn(t, pause)
		})
		t.Run("no key", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			if a := (harness.Client{URL: server.URL}).Post(t, pause.Continue(harness.Echo)); a.HTTPStatus != 401 {
				t.Errorf("got %v, want 401", a)
			}
			goesOn(t, pause)
		})
		t.Run("body too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 50 MB")
			}
			pause := c.Pause(t, harness.AskOnce)
			body := `{"continuation_token":"` + pause.Token + `","x":"` + strings.Repeat("x", 50<<20) + `"}`
			c.Post(t, body).Fails(t, 413, "request entity too large")
			goesOn(t, pause)
		})
		t.Run("all results too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 45 MB")
			}
			pause := c.Pause(t, harness.Program{Code: "print(len(await asyncio.gather(*[ask() for _ in range(9)])))", Tools: harness.Tools("ask")})
			a := c.Post(t, pause.Continue(harness.Value(`"`+strings.Repeat("x", 4_999_000)+`"`)))
			a.Fails(t, 400, "Aggregate tool_history for this execution would be 44991018 bytes, exceeds cap 40000000")
			c.Post(t, pause.Continue(harness.Echo)).Completes(t, "9\n")
		})
	})
}

// TestLenientContinuations sends unusual continuations that the server must accept.
func TestLenientContinuations(t *testing.T) {
	cases := []struct{ name, entry, stdout string }{
		{"no result is null", `{"call_id":"call_001"}`, "None\n"},
		{"error_message null", `{"call_id":"call_001","result":1,"is_error":false,"error_message":null}`, "1\n"},
		{"error_message empty", `{"call_id":"call_001","result":1,"is_error":false,"error_message":""}`, "1\n"},
		{"unknown members", `{"call_id":"call_001","result":1,"name":"ask","x":[]}`, "1\n"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				pause := c.Pause(t, harness.AskOnce)
				c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[`+tc.entry+`]}`).Completes(t, tc.stdout)
			})
		}
		t.Run("members of a first request", func(t *testing.T) {
			pause := c.Pause(t, harness.AskOnce)
			c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":1}],"code":"print(2)","timeout":-1,"tools":7}`).
				Completes(t, "1\n")
		})
	})
}

// TestErrorStyle compares a server that reports failed programs by the HTTP status with one that
// reports them in answers with status 200.
func TestErrorStyle(t *testing.T) {
	spin := harness.Program{Code: "print('so far')\nwhile True: pass", Timeout: 1000}
	rounds := harness.Program{Code: "while True: await ask()", Tools: harness.Tools("ask")}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		t.Run("http", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, nil).Alice()
			a := c.Post(t, spin)
			a.Fails(t, 408, "Execution timeout")
			if a.Stdout != "so far\n" || !harness.IDForm.MatchString(a.Session) {
				t.Errorf("got %v, want a session and what was printed", a)
			}
			a, _ = c.Run(t, rounds, harness.Echo)
			a.Fails(t, 400, "Exceeded maximum round trips (20)")
		})
		t.Run("inline", func(t *testing.T) {
			t.Parallel()
			c := harness.Serve(t, s, harness.Settings{"ERROR_STYLE": "inline"}).Alice()
			a := c.Post(t, spin)
			a.Fails(t, 200, "Time limit exceeded")
			if a.Stdout != "so far\n" {
				t.Errorf("stdout = %q, want what was printed", a.Stdout)
			}
			a, _ = c.Run(t, rounds, harness.Echo)
			a.Fails(t, 200, "Exceeded maximum round trips (20)")
			c.Post(t, `{}`).Fails(t, 400, "Missing required field: code")
		})
	})
}

// TestRequestIDInUse sends a request with the id of another one that is in flight.
func TestRequestIDInUse(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		header := http.Header{"X-Librechat-Code-Request-Id": {"0123456789abcdef-" + rand.Text()}}
		first := make(chan harness.Answer, 1)
		go func() {
			defer close(first)
			// The request below may come first; then this one has to wait.
			for {
				a, err := c.Request(t.Context(), "POST", harness.Programmatic, header, harness.Program{Code: "import time; time.sleep(1); print(1)"})
				if err != nil {
					t.Error(err)
					return
				}
				if a.HTTPStatus != http.StatusConflict {
					first <- a
					return
				}
			}
		}()
		err := harness.Within(5*time.Second, func() error {
			a, err := c.Request(t.Context(), "POST", harness.Programmatic, header, harness.Program{Code: "print(2)"})
			if err == nil && (a.HTTPStatus != http.StatusConflict || a.Error != "Programmatic request ID is already in use") {
				err = fmt.Errorf("got %v, want 409 while another request has the id", a)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		a := <-first
		a.Completes(t, "1\n")
		again, err := c.Request(t.Context(), "POST", harness.Programmatic, header, harness.Program{Code: "print(3)"})
		if err != nil {
			t.Fatal(err)
		}
		again.Completes(t, "3\n")
	})
}
