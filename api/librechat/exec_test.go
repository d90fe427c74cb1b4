package librechat_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

const execPath = "/exec"

func TestPlainStart(t *testing.T) {
	const id = "0123456789abcdef"
	for _, c := range []struct {
		name, body string
		want       engine.Start
	}{
		{"least", `{"lang":"py","code":"#"}`, engine.Start{Code: json.RawMessage(`"#"`), Timeout: time.Minute}},
		{
			"everything",
			`{"lang":"bash","code":"\u0023 \ud800","args":["a b","","é\ud83d\ude00"],"session_id":"` + session + `","timeout":1500.5,` +
				`"user_id":"u","entity_id":"e","files":[],"runtime_session_hint":7,"workspace_instance_id":[],` +
				`"tools":[],"continuation_token":"t"}`,
			engine.Start{
				Code: json.RawMessage(`"\u0023 \ud800"`), Session: session, Args: []string{"a b", "", "é😀"},
				Timeout: 1501 * time.Millisecond, Mode: engine.Bash,
			},
		},
		{"one argument", `{"lang":"python","code":"#","args":"a b"}`, engine.Start{Code: json.RawMessage(`"#"`), Args: []string{"a b"}, Timeout: time.Minute}},
		{"null", `{"lang":"sh","code":"#","args":null,"files":null,"session_id":null}`, engine.Start{Code: json.RawMessage(`"#"`), Timeout: time.Minute, Mode: engine.Bash}},
		{"language before lang", `{"lang":"ruby","language":"py","code":"#"}`, engine.Start{Code: json.RawMessage(`"#"`), Timeout: time.Minute}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := completed()
			w := call{path: execPath, body: c.body, header: map[string]string{
				"X-LibreChat-Code-Request-ID": id, "Idempotency-Key": "k",
			}}.do(t, newHandler(e, options()))
			if w.Code != http.StatusOK || len(e.starts) != 1 {
				t.Fatalf("got %d %s and %d starts, want 200 and 1", w.Code, w.Body, len(e.starts))
			}
			got := e.starts[0]
			if len(got.Session) != 21 || len(got.Request) != 64 {
				t.Errorf("session %q, request %q: want an id of 21 characters and a hash", got.Session, got.Request)
			}
			if c.want.Session == "" {
				c.want.Session = got.Session
			}
			c.want.Principal, c.want.RequestID, c.want.Key, c.want.Request = "ada", id, "k", got.Request
			c.want.Contract = engine.Exec
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("start (-want +got):\n%s", diff)
			}
			post(t, e, c.body)
			for _, other := range e.starts[1:] {
				if other.Request == got.Request {
					t.Errorf("the same body is the same request to %s, want another one", path)
				}
			}
		})
	}
}

func TestPlainRefusals(t *testing.T) {
	const args = "args must be an array of strings"
	const noTools = "tools are not available to programs on /exec: post programs that call tools to /exec/programmatic"
	for _, c := range []struct{ name, body, text string }{
		{"empty", `{}`, "Missing required field: code"},
		{"code a number", `{"lang":"py","code":5}`, "Missing required field: code"},
		{"code empty", `{"lang":"py","code":""}`, "Code cannot be empty"},
		{"code blank", `{"lang":"py","code":" \n"}`, "Code cannot be empty"},
		{"no lang", `{"code":"#"}`, "Missing required field: lang"},
		{"lang null", `{"code":"#","lang":null}`, "Missing required field: lang"},
		{"lang js", `{"code":"#","lang":"js"}`, "Unsupported language: js"},
		{"lang in capitals", `{"code":"#","lang":"PY"}`, "Unsupported language: PY"},
		{"lang a number", `{"code":"#","lang":5}`, "lang must be a string, the name of a language"},
		{"timeout a string", `{"lang":"py","code":"#","timeout":"1"}`, "timeout must be a positive number of milliseconds"},
		{"timeout zero", `{"lang":"py","code":"#","timeout":0}`, "timeout must be a positive number of milliseconds"},
		{"timeout long", `{"lang":"py","code":"#","timeout":300001}`, "timeout must be between 1000 and 300000 milliseconds"},
		{"args an object", `{"lang":"py","code":"#","args":{}}`, args},
		{"args a number", `{"lang":"py","code":"#","args":1}`, args},
		{"args of numbers", `{"lang":"py","code":"#","args":["a",1]}`, args},
		{"args with a null", `{"lang":"py","code":"#","args":[null]}`, args},
		{"args with a NUL", `{"lang":"py","code":"#","args":["a\u0000b"]}`, args},
		{"tools", `{"lang":"py","code":"#","tools":[{"name":"a"}]}`, noTools},
		{"tools an object", `{"lang":"py","code":"#","tools":{}}`, noTools},
		{"a slip", `{"lang":"py","code":"#","timeut":5000}`, `"timeut" is not known; did you mean timeout?`},
		{"files an object", `{"lang":"py","code":"#","files":{}}`, "files must be an array"},
		{"no JSON", `x`, "request body is not valid JSON"},
		{"array", `[]`, "request body must be a JSON object"},
		{"deep", `{"x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "request body is nested deeper than 500 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := completed()
			w := call{path: execPath, body: c.body}.do(t, newHandler(e, options()))
			want := `{"error":` + quote(c.text) + `}`
			if strings.HasPrefix(c.text, "Unsupported language") { // Clients tell the model not to try again.
				want = `{"error":` + quote(c.text) + `,"code":"unsupported_capability","message":"This server runs Python (py, python) and shell scripts (bash, sh)"}`
			}
			if w.Code != http.StatusBadRequest || w.Body.String() != want {
				t.Errorf("got %d %s, want 400 %s", w.Code, w.Body, want)
			}
			if len(e.starts) != 0 {
				t.Errorf("the execution was asked all the same")
			}
		})
	}
}

// TestPlainRouting checks what is refused for its headers, before a program is run.
func TestPlainRouting(t *testing.T) {
	permanent := func(text string) string {
		return `{"error":` + quote(text) + `,"code":"unsupported_capability"}`
	}
	for _, c := range []struct {
		name   string
		header map[string]string
		status int
		body   string
	}{
		{
			"stateful profile",
			map[string]string{"X-CodeAPI-Expected-Profile": "stateful"},
			http.StatusConflict,
			`{"error":"execution_profile_mismatch","code":"unsupported_capability",` +
				`"message":"Expected the stateful execution profile, but reached default","expected_profile":"stateful","actual_profile":"default"}`,
		},
		{
			"unknown profile",
			map[string]string{"X-CodeAPI-Expected-Profile": "other"},
			http.StatusBadRequest,
			`{"error":"invalid_execution_profile","code":"unsupported_capability",` +
				`"message":"Invalid execution profile: other","expected_profile":"other","actual_profile":"default"}`,
		},
		{"worker", map[string]string{"X-LibreChat-Code-Worker-ID": "w"}, http.StatusBadRequest, permanent("Code bridge worker routing requires the remote-bridge backend")},
		{"workspace", map[string]string{"X-LibreChat-Code-Workspace-ID": "w"}, http.StatusBadRequest, permanent("Workspace selection requires an authenticated bridge worker")},
		{"malformed workspace", map[string]string{"X-LibreChat-Code-Workspace-ID": "/"}, http.StatusBadRequest, permanent("Invalid code workspace ID")},
		{"request id", map[string]string{"X-LibreChat-Code-Request-ID": "short"}, http.StatusBadRequest, `{"error":"Invalid programmatic request ID"}`},
		{"no key", map[string]string{"X-API-Key": ""}, http.StatusUnauthorized, `{"error":"Invalid or missing API key"}`},
		{"text", map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType, `{"error":"Content-Type must be application/json"}`},
	} {
		for _, prefix := range []string{"", "/v1"} {
			t.Run(c.name+prefix, func(t *testing.T) {
				e := completed()
				w := call{path: prefix + execPath, body: `{"lang":"py","code":"#"}`, header: c.header}.do(t, newHandler(e, options()))
				if w.Code != c.status || w.Body.String() != c.body {
					t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, c.status, c.body)
				}
				if got := w.Header().Get("X-CodeAPI-Execution-Profile"); got != "default" {
					t.Errorf("profile of the answer = %q, want default", got)
				}
				if len(e.starts) != 0 {
					t.Errorf("the execution was asked all the same")
				}
			})
		}
	}
}

func TestPlainOutcomes(t *testing.T) {
	body := func(stderr, rest string) string {
		return `{"session_id":"` + session + `","stdout":"out","stderr":` + quote(stderr) + `,"files":[],` + rest + `,"wall_time":1500}`
	}
	ended := func(state core.State) core.Outcome {
		return core.Outcome{State: state, Session: session, Stdout: "out", Stderr: "err"}
	}
	for _, c := range []struct {
		name    string
		outcome core.Outcome
		body    string
		// reason and detail follow the body.
		reason, detail string
	}{
		{"completed", ended(core.Completed), body("err", `"code":0,"signal":null,"message":null,"status":null`), "", ""},
		{
			"raised", failed(core.RaisedError, "E: x", 0),
			body("err", `"code":1,"signal":null,"message":"Exited with error status 1","status":"RE"`),
			"raised", "",
		},
		{
			"exited", failed(core.ExitedCode, "", 3),
			body("err", `"code":3,"signal":null,"message":"Exited with error status 3","status":"RE"`),
			"exited", "",
		},
		{
			"killed", failed(core.ExitedCode, "", -11),
			body("err\n[sandbox] Killed by SIGSEGV\n", `"code":null,"signal":"SIGSEGV","message":"Killed by SIGSEGV","status":"SG"`),
			"exited", "Killed by SIGSEGV",
		},
		{
			"killed by a signal without a name", failed(core.ExitedCode, "", -40),
			body("err\n[sandbox] Killed by signal 40\n", `"code":null,"signal":"signal 40","message":"Killed by signal 40","status":"SG"`),
			"exited", "Killed by signal 40",
		},
		{
			"timed out", ended(core.TimedOut),
			body("err\n[sandbox] Time limit exceeded\n", `"code":null,"signal":"SIGKILL","message":"Time limit exceeded","status":"TO"`),
			"timed_out", "",
		},
		{
			"cancelled", ended(core.Cancelled),
			body("err\n[sandbox] Execution request cancelled\n", `"code":null,"signal":"SIGKILL","message":"Execution request cancelled","status":"XX"`),
			"cancelled", "",
		},
		{
			"memory", failed(core.OutOfMemory, "", 0),
			body("err\n[sandbox] Out of memory\n", `"code":null,"signal":"SIGKILL","message":"Out of memory","status":"RE"`),
			"out_of_memory", "The program needed more memory than FERMATA_MEMORY allows",
		},
		{
			"stdout", failed(core.StdoutFlood, "", 0),
			body("err\n[sandbox] stdout length exceeded\n", `"code":null,"signal":"SIGKILL","message":"stdout length exceeded","status":"OL"`),
			"stdout_flood", "The program printed more than FERMATA_OUTPUT allows",
		},
		{
			"stderr", failed(core.StderrFlood, "", 0),
			body("err\n[sandbox] stderr length exceeded\n", `"code":null,"signal":"SIGKILL","message":"stderr length exceeded","status":"EL"`),
			"stderr_flood", "The program printed more than FERMATA_OUTPUT allows",
		},
		{
			"a call", failed(core.UngrantedTool, "x", 0),
			body("err\n[sandbox] Sandbox requested an unregistered tool: x\n",
				`"code":null,"signal":"SIGKILL","message":"Sandbox requested an unregistered tool: x","status":"XX"`),
			"ungranted_tool", "The request that started the program did not define this tool",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.outcome.Ran = 1500 * time.Millisecond
			w := call{path: execPath, body: `{"lang":"py","code":"#"}`}.do(t, newHandler(&script{outcome: c.outcome}, options()))
			if c.reason != "" {
				why := `,"reason":` + quote(c.reason)
				if c.detail != "" {
					why += `,"detail":` + quote(c.detail)
				}
				c.body = strings.TrimSuffix(c.body, "}") + why + "}"
			}
			if w.Code != http.StatusOK || w.Body.String() != c.body {
				t.Errorf("got %d %s\nwant 200 %s", w.Code, w.Body, c.body)
			}
		})
	}
	for _, c := range []struct {
		name    string
		outcome core.Outcome
		status  int
		body    string
	}{
		{"lost", failed(core.SandboxLost, "", 0), http.StatusBadGateway, `{"error":"sandbox_execution_failed","reason":"sandbox_lost","message":"Sandbox execution failed"}`},
		{"paused", ended(core.Paused), http.StatusInternalServerError, `{"error":"Internal server error"}`},
		{"for an unknown reason", failed("", "", 0), http.StatusInternalServerError, `{"error":"Internal server error"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := call{path: execPath, body: `{"lang":"py","code":"#"}`}.do(t, newHandler(&script{outcome: c.outcome}, options()))
			if w.Code != c.status || w.Body.String() != c.body {
				t.Errorf("got %d %s, want %d %s", w.Code, w.Body, c.status, c.body)
			}
		})
	}
}

// TestPlainRate checks that programs without tools count with the others.
func TestPlainRate(t *testing.T) {
	o := options()
	o.Rates.Executions = api.Rate{Requests: 2, Window: time.Hour}
	h := newHandler(completed(), o)
	plain := call{path: execPath, body: `{"lang":"py","code":"#"}`}
	for _, c := range []call{plain, {body: `{"code":"#"}`}} {
		if w := c.do(t, h); w.Code != http.StatusOK {
			t.Errorf("got %d %s, want 200", w.Code, w.Body)
		}
	}
	w := plain.do(t, h)
	if got := w.Header().Get("Retry-After"); w.Code != http.StatusTooManyRequests || got != "1800" {
		t.Errorf("got %d %s, Retry-After %q, want 429 and 1800", w.Code, w.Body, got)
	}
}
