package tests

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

// paused is a program that waits for the tool "ask" and prints what it gets.
var paused = program{Code: "print(await ask(n=1))\n", Tools: tools("ask")}

func TestAuthentication(t *testing.T) {
	basic := func(text string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(text)) }
	cases := []struct {
		name   string
		header http.Header
		want   int
	}{
		{"X-API-Key", http.Header{"X-Api-Key": {"key-a"}}, 200},
		{"Bearer", http.Header{"Authorization": {"Bearer key-a"}}, 200},
		{"bearer in small letters", http.Header{"Authorization": {"bearer key-a"}}, 200},
		{"ApiKey", http.Header{"Authorization": {"ApiKey key-a"}}, 200},
		{"APIKEY in capitals", http.Header{"Authorization": {"APIKEY key-a"}}, 200},
		{"Basic user", http.Header{"Authorization": {basic("key-a:")}}, 200},
		{"Basic password", http.Header{"Authorization": {basic(":key-a")}}, 200},
		{"good key, foreign Authorization", http.Header{"X-Api-Key": {"key-a"}, "Authorization": {"Bearer other"}}, 200},
		{"foreign key, good Authorization", http.Header{"X-Api-Key": {"other"}, "Authorization": {"Bearer key-a"}}, 200},
		{"none", nil, 401},
		{"empty", http.Header{"X-Api-Key": {""}}, 401},
		{"wrong", http.Header{"X-Api-Key": {"key-c"}}, 401},
		{"the name for the key", http.Header{"X-Api-Key": {"alice"}}, 401},
		{"a prefix", http.Header{"X-Api-Key": {"key-"}}, 401},
		{"Bearer without a key", http.Header{"Authorization": {"Bearer "}}, 401},
		{"unknown scheme", http.Header{"Authorization": {"Digest key-a"}}, 401},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := client{url: serve(t, s, nil).url}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				a, err := c.request(t.Context(), "POST", programmatic, tc.header, program{Code: "print(1)"})
				if err != nil {
					t.Fatal(err)
				}
				if a.code != tc.want {
					t.Errorf("got %v, want %d", a, tc.want)
				}
				if want := "Invalid or missing API key"; tc.want == 401 && a.Error != want {
					t.Errorf("error = %q, want %q", a.Error, want)
				}
			})
		}
		t.Run("before the body", func(t *testing.T) {
			a, err := c.request(t.Context(), "POST", programmatic, nil, "{")
			if err != nil || a.code != 401 {
				t.Errorf("got %v %v, want 401", a, err)
			}
		})
	})
}

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
		{"GET", programmatic, nil, "", 405, ""},
		{"PUT", programmatic, nil, "{}", 405, ""},
		{"DELETE", programmatic, nil, "", 405, ""},
		{"POST", programmatic, http.Header{"Content-Type": {"text/plain"}}, `{"code":"1"}`, 415, ""},
		{"POST", programmatic, http.Header{"Content-Type": nil}, `{"code":"1"}`, 415, ""},
		{"POST", programmatic, http.Header{"Content-Type": {"application/json; charset=utf-8"}}, `{"code":"1"}`, 200, ""},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for _, tc := range cases {
			for _, prefix := range []string{"", "/v1"} {
				name := fmt.Sprintf("%s %s%s %s", tc.method, prefix, tc.path, tc.header.Get("Content-Type"))
				t.Run(name, func(t *testing.T) {
					a, err := c.request(t.Context(), tc.method, prefix+tc.path, tc.header, tc.body)
					if err != nil {
						t.Fatal(err)
					}
					if a.code != tc.want {
						t.Errorf("got %v, want %d", a, tc.want)
					}
					if tc.text != "" && a.Error != tc.text {
						t.Errorf("error = %q, want %q", a.Error, tc.text)
					}
					if got := a.header.Get("X-CodeAPI-Execution-Profile"); got != "default" {
						t.Errorf("X-CodeAPI-Execution-Profile = %q, want %q", got, "default")
					}
					if got := a.header.Get("Content-Type"); !strings.HasPrefix(got, "application/json") {
						t.Errorf("Content-Type = %q, want application/json", got)
					}
				})
			}
		}
	})
}

// request returns the JSON of a program that is otherwise good with these members.
func request(members ...string) string {
	return `{"code":"print(1)",` + strings.Join(members, ",") + `}`
}

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
		{"code is no string", `{"code":7}`, nil, 400, "Missing required field: code"},
		{"names of members have a case", `{"Code":"print(1)"}`, nil, 400, "Missing required field: code"},
		{"not JSON", `{"code":`, nil, 400, anything},
		{"no body", ``, nil, 400, anything},
		{"an array", `[]`, nil, 400, anything},
		{"two values", `{"code":"print(1)"} {}`, nil, 400, anything},
		{"garbage at the end", `{"code":"print(1)"}x`, nil, 400, anything},
		{"not UTF-8", "{\"code\":\"print('\xff')\"}", nil, 400, anything},
		{"very deep", `{"code":"1","x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, nil, 400, anything},
		{"tools is no array", request(`"tools":{}`), nil, 400, anything},
		{"101 tools", request(many(101)), nil, 400, "Too many tools provided (101). Maximum is 100."},
		{"tool is no object", request(`"tools":[1]`), nil, 400, anything},
		{"tool with a name too long", request(`"tools":[{"name":"` + strings.Repeat("a", 257) + `"}]`), nil, 400, "tools[0].name must have at most 256 characters"},
		{"tool without a name", request(`"tools":[{}]`), nil, 400, "tools[0].name must be a non-empty string"},
		{"tool with an empty name", request(`"tools":[{"name":"a"},{"name":""}]`), nil, 400, "tools[1].name must be a non-empty string"},
		{"two names, one identifier", request(`"tools":[{"name":"a-b"},{"name":"a_b"}]`), nil, 400, `Tool names "a-b" and "a_b" normalize to the same identifier "a_b"`},
		{"timeout is text", request(`"timeout":"5"`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout 0", request(`"timeout":0`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout negative", request(`"timeout":-1`), nil, 400, "timeout must be a positive number of milliseconds"},
		{"timeout too small", request(`"timeout":999`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"timeout too large", request(`"timeout":300001`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"timeout beyond a float", request(`"timeout":1e999`), nil, 400, "timeout must be between 1000 and 300000 milliseconds"},
		{"unknown language", request(`"lang":"ruby"`), nil, 400, anything},
		{"language counts before lang", request(`"lang":"py","language":"ruby"`), nil, 400, anything},
		{"files is no array", request(`"files":{}`), nil, 400, "files must be an array"},
		{"token is empty", request(`"continuation_token":""`), nil, 400, "Invalid continuation token"},
		{"token is a number", request(`"continuation_token":5`), nil, 400, "Invalid continuation token"},
		{"request id too short", request(`"timeout":1000`), http.Header{"X-Librechat-Code-Request-Id": {"short"}}, 400, "Invalid programmatic request ID"},
		{"stateful profile", request(`"timeout":1000`), http.Header{"X-Codeapi-Expected-Profile": {"stateful"}}, 409, "execution_profile_mismatch"},
		{"unknown profile", request(`"timeout":1000`), http.Header{"X-Codeapi-Expected-Profile": {"other"}}, 400, "invalid_execution_profile"},
		{"worker", request(`"timeout":1000`), http.Header{"X-Librechat-Code-Worker-Id": {"w"}}, 400, "Code bridge worker routing requires the remote-bridge backend"},
		{"workspace", request(`"timeout":1000`), http.Header{"X-Librechat-Code-Workspace-Id": {"w"}}, 400, "Selected-workspace programmatic execution supports bash only"},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				a, err := c.request(t.Context(), "POST", programmatic, tc.header, tc.body)
				if err != nil {
					t.Fatal(err)
				}
				text := tc.text
				if text == anything && a.Error != "" {
					text = a.Error
				}
				a.fails(t, tc.want, text)
			})
		}
		t.Run("body too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 50 MB")
			}
			a := c.post(t, `{"code":"print(1)","x":"`+strings.Repeat("x", 50<<20)+`"}`)
			a.fails(t, 413, "request entity too large")
		})
	})
}

func TestAcceptedRequests(t *testing.T) {
	cases := []struct{ name, body string }{
		{"unknown members", request(`"entity_id":"e","user_id":"u","runtime_session_hint":"h","future":{"a":[1]}`)},
		{"tools null", request(`"tools":null`)},
		{"tools empty", request(`"tools":[]`)},
		{"a tool as the client sends it", request(`"tools":[{"name":"a","description":"d","parameters":{"type":"object"},"defer_loading":true,"allowed_callers":["code_execution"],"toolType":"mcp"}]`)},
		{"one name twice", request(`"tools":[{"name":"a"},{"name":"a"}]`)},
		{"parameters that are no schema", request(`"tools":[{"name":"a","parameters":[1,"x"]},{"name":"b","parameters":null}]`)},
		{"files empty", request(`"files":[]`)},
		{"least timeout", request(`"timeout":1000`)},
		{"fraction of a millisecond", request(`"timeout":1000.5`)},
		{"most timeout", request(`"timeout":3e5`)},
		{"lang py", request(`"lang":"py"`)},
		{"lang python", request(`"lang":"python"`)},
		{"language counts before lang", request(`"language":"python","lang":"ruby"`)},
		{"an unusable session", request(`"session_id":"../../etc"`)},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) { c.post(t, tc.body).completes(t, "1\n") })
		}
	})
}

var sessionForm = regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)

// TestBodies checks which members the answers have, and no others.
func TestBodies(t *testing.T) {
	members := func(t *testing.T, a answer, want ...string) {
		t.Helper()
		var body map[string]json.RawMessage
		if err := json.Unmarshal([]byte(a.raw), &body); err != nil {
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
		if !sessionForm.MatchString(a.Session) {
			t.Errorf("session_id = %q, want 21 characters of A-Za-z0-9_-", a.Session)
		}
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		pause := c.pause(t, paused)
		members(t, pause, "status", "session_id", "continuation_token", "tool_calls")
		if got, want := compact(pause.raw), `"tool_calls":[{"id":"call_001","name":"ask","input":{"n":1}}]`; !strings.Contains(got, want) {
			t.Errorf("got %s, want it to contain %s", got, want)
		}
		end := c.post(t, pause.answers(echo))
		end.completes(t, "{'n': 1}\n")
		members(t, end, "status", "session_id", "stdout", "stderr", "files")
		if !strings.Contains(end.raw, `"files":[]`) {
			t.Errorf("got %v, want files to be an empty array", end)
		}
		if end.Session != pause.Session {
			t.Errorf("session_id = %q at the end, %q at the pause; want one", end.Session, pause.Session)
		}
		failed := c.post(t, program{Code: "1/0"})
		members(t, failed, "status", "session_id", "error", "stdout", "stderr")

		const own = "own-session_012345678"
		if a := c.post(t, program{Code: "print(1)", Session: own}); a.Session != own {
			t.Errorf("session_id = %q, want the one of the request, %q", a.Session, own)
		}
		if a := c.post(t, program{Code: "print(1)", Session: "short"}); !sessionForm.MatchString(a.Session) {
			t.Errorf("session_id = %q, want a new one", a.Session)
		}
	})
}

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
		{"entry is no object", one(`"x"`), 400, "tool_results entries must be objects"},
		{"no call_id", one(`{"result":1}`), 400, `tool_results[].call_id must match /^call_\d{3,6}$/, got: undefined`},
		{"call_id of another form", one(`{"call_id":"1","result":1}`), 400, `tool_results[].call_id must match /^call_\d{3,6}$/, got: 1`},
		{"is_error is text", one(`{"call_id":"call_001","is_error":"true"}`), 400, "tool_results[call_001].is_error must be a boolean if present"},
		{"error_message is a number", one(`{"call_id":"call_001","is_error":true,"error_message":1}`), 400, "tool_results[call_001].error_message must be a string if present"},
		{"twice the same", one(`{"call_id":"call_001","result":1},{"call_id":"call_001","result":1}`), 400, "Duplicate call_id in tool_results: call_001"},
		{"never issued", one(`{"call_id":"call_999","result":1}`), 400, "tool_results[call_999] was not issued by the sandbox for this execution"},
		{"one good, one never issued", one(`{"call_id":"call_001","result":1},{"call_id":"call_002","result":1}`), 400, "tool_results[call_002] was not issued by the sandbox for this execution"},
		{"too large", one(`{"call_id":"call_001","result":"` + strings.Repeat("x", 5_000_000) + `"}`), 400, "tool_results[call_001].result is 5000002 bytes, exceeds per-result cap 5000000"},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		server := serve(t, s, nil)
		c := server.alice()
		// goesOn checks that a refusal has left the execution as it was.
		goesOn := func(t *testing.T, pause answer) {
			t.Helper()
			c.post(t, pause.answers(value(`"still here"`))).completes(t, "still here\n")
		}
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				pause := c.pause(t, paused)
				c.post(t, `{"continuation_token":"`+pause.Token+`",`+tc.results+`}`).fails(t, tc.want, tc.text)
				goesOn(t, pause)
			})
		}
		t.Run("another principal", func(t *testing.T) {
			pause := c.pause(t, paused)
			server.bob().post(t, pause.answers(echo)).fails(t, 403, "Forbidden")
			goesOn(t, pause)
		})
		t.Run("no key", func(t *testing.T) {
			pause := c.pause(t, paused)
			if a := (client{url: server.url}).post(t, pause.answers(echo)); a.code != 401 {
				t.Errorf("got %v, want 401", a)
			}
			goesOn(t, pause)
		})
		t.Run("body too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 50 MB")
			}
			pause := c.pause(t, paused)
			body := `{"continuation_token":"` + pause.Token + `","x":"` + strings.Repeat("x", 50<<20) + `"}`
			c.post(t, body).fails(t, 413, "request entity too large")
			goesOn(t, pause)
		})
		t.Run("all results too large", func(t *testing.T) {
			if testing.Short() {
				t.Skip("sends 45 MB")
			}
			pause := c.pause(t, program{Code: "print(len(await asyncio.gather(*[ask() for _ in range(9)])))", Tools: tools("ask")})
			a := c.post(t, pause.answers(value(`"`+strings.Repeat("x", 4_999_000)+`"`)))
			a.fails(t, 400, "Aggregate tool_history for this execution would be 44991018 bytes, exceeds cap 40000000")
			c.post(t, pause.answers(echo)).completes(t, "9\n")
		})
	})
}

func TestLenientContinuations(t *testing.T) {
	cases := []struct{ name, entry, stdout string }{
		{"no result is null", `{"call_id":"call_001"}`, "None\n"},
		{"error_message null", `{"call_id":"call_001","result":1,"is_error":false,"error_message":null}`, "1\n"},
		{"error_message without is_error", `{"call_id":"call_001","result":1,"error_message":"no"}`, "1\n"},
		{"unknown members", `{"call_id":"call_001","result":1,"name":"ask","x":[]}`, "1\n"},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				pause := c.pause(t, paused)
				c.post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[`+tc.entry+`]}`).completes(t, tc.stdout)
			})
		}
		t.Run("members of a first request", func(t *testing.T) {
			pause := c.pause(t, paused)
			c.post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":1}],"code":"print(2)","timeout":-1,"tools":7}`).
				completes(t, "1\n")
		})
	})
}

// TestErrorStyle checks the answers of a server that tells of failures inline.
func TestErrorStyle(t *testing.T) {
	spin := program{Code: "print('so far')\nwhile True: pass", Timeout: 1000}
	rounds := program{Code: "while True: await ask()", Tools: tools("ask")}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		t.Run("http", func(t *testing.T) {
			t.Parallel()
			c := serve(t, s, nil).alice()
			a := c.post(t, spin)
			a.fails(t, 408, "Execution timeout")
			if a.Stdout != "so far\n" || !sessionForm.MatchString(a.Session) {
				t.Errorf("got %v, want a session and what was printed", a)
			}
			a, _ = c.run(t, rounds, echo)
			a.fails(t, 400, "Exceeded maximum round trips (20)")
		})
		t.Run("inline", func(t *testing.T) {
			t.Parallel()
			c := serve(t, s, settings{"ERROR_STYLE": "inline"}).alice()
			a := c.post(t, spin)
			a.fails(t, 200, "Time limit exceeded")
			if a.Stdout != "so far\n" {
				t.Errorf("stdout = %q, want what was printed", a.Stdout)
			}
			a, _ = c.run(t, rounds, echo)
			a.fails(t, 200, "Exceeded maximum round trips (20)")
			c.post(t, `{}`).fails(t, 400, "Missing required field: code")
		})
	})
}

func TestRequestIDInUse(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		header := http.Header{"X-Librechat-Code-Request-Id": {"0123456789abcdef-" + rand.Text()}}
		first := make(chan answer, 1)
		go func() {
			defer close(first)
			// The request below may be the first one, too, for a moment.
			for {
				a, err := c.request(t.Context(), "POST", programmatic, header, program{Code: "import time; time.sleep(1); print(1)"})
				if err != nil {
					t.Error(err)
					return
				}
				if a.code != http.StatusConflict {
					first <- a
					return
				}
			}
		}()
		err := within(5*time.Second, func() error {
			a, err := c.request(t.Context(), "POST", programmatic, header, program{Code: "print(2)"})
			if err == nil && (a.code != http.StatusConflict || a.Error != "Programmatic request ID is already in use") {
				err = fmt.Errorf("got %v, want 409 while another request has the id", a)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		a := <-first
		a.completes(t, "1\n")
		again, err := c.request(t.Context(), "POST", programmatic, header, program{Code: "print(3)"})
		if err != nil {
			t.Fatal(err)
		}
		again.completes(t, "3\n")
	})
}
