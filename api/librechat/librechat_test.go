package librechat_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"fermata/api"
	"fermata/api/auth"
	"fermata/api/librechat"
	"fermata/api/peer"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/files"
	"fermata/stubs"
)

const (
	session = "abcdefghijklmnopqrstu"
	path    = "/exec/programmatic"
)

// script is an Executions that answers as a test says and notes its arguments.
type script struct {
	outcome core.Outcome
	err     error
	ready   error
	do      func(ctx context.Context)

	cancelling engine.Cancelling
	cancelled  int

	starts  []engine.Start
	resumes []engine.Resume
	cancels []engine.Cancel
	// sessions are the sessions that were to be cancelled.
	sessions []engine.CancelSession
}

func (s *script) Start(ctx context.Context, start engine.Start) (core.Outcome, error) {
	s.starts = append(s.starts, start)
	return s.answer(ctx)
}

func (s *script) Resume(ctx context.Context, resume engine.Resume) (core.Outcome, error) {
	s.resumes = append(s.resumes, resume)
	return s.answer(ctx)
}

// ExecutionOf takes tokens for genuine that begin with "genuine ", and what follows for the id.
func (s *script) ExecutionOf(token string) string {
	id, genuine := strings.CutPrefix(token, "genuine ")
	if !genuine {
		return ""
	}
	return id
}

func (s *script) Cancel(_ context.Context, c engine.Cancel) (engine.Cancelling, error) {
	s.cancels = append(s.cancels, c)
	return s.cancelling, s.err
}

func (s *script) CancelSession(_ context.Context, c engine.CancelSession) (int, engine.Cancelling, error) {
	s.sessions = append(s.sessions, c)
	return s.cancelled, s.cancelling, s.err
}

func (s *script) CancelSessionHere(context.Context, engine.CancelSession) map[string]engine.Cancelling {
	return nil
}

func (s *script) Approve(context.Context, engine.Approval) error { return s.err }

func (s *script) Ready(context.Context) error { return s.ready }

func (s *script) answer(ctx context.Context) (core.Outcome, error) {
	if s.do != nil {
		s.do(ctx)
	}
	return s.outcome, s.err
}

// completed is an Executions for tests in which the program does not matter.
func completed() *script {
	return &script{outcome: core.Outcome{State: core.Completed, Session: session}}
}

type (
	sharedOptions   = api.Options
	contractOptions = librechat.Options
)

// testOptions are the settings of a whole server.
type testOptions struct {
	sharedOptions
	contractOptions
	Keys    []auth.Key
	JWT     *auth.JWT
	PeerKey *peer.Key
}

// executions are what a whole server needs.
type executions interface {
	librechat.Executions
	Ready(ctx context.Context) error
	Approve(ctx context.Context, a engine.Approval) error
	CancelSessionHere(ctx context.Context, c engine.CancelSession) map[string]engine.Cancelling
}

// newHandler returns the handler of a whole server.
func newHandler(e executions, o testOptions) http.Handler {
	o.Auth = auth.New(o.Keys, o.JWT)
	r := api.New(o.sharedOptions)
	r.Health("v1.2.3", e.Ready)
	o.Executions = e
	librechat.Register(r, o.contractOptions)
	if o.PeerKey != nil {
		peer.Register(r, e, *o.PeerKey, peer.Limits{Body: o.Limits.Body, Results: o.Limits.Results})
	}
	return r
}

func options() testOptions {
	return testOptions{
		Keys:          []auth.Key{{Name: "ada", Key: "good-key"}, {Name: "bob", Key: "other-key"}},
		sharedOptions: api.Options{Log: slog.New(slog.DiscardHandler)},
		contractOptions: librechat.Options{
			Errors: api.HTTPErrors,
			Limits: librechat.Limits{Body: 1 << 20, Tools: 100, Results: 200, ResultBytes: 5000},
		},
	}
}

// A call is one request; zero fields are what a good client sends.
type call struct {
	method, path, body string
	header             map[string]string
}

func (c call) do(t *testing.T, h http.Handler) *httptest.ResponseRecorder {
	t.Helper()
	if c.method == "" {
		c.method = http.MethodPost
	}
	if c.path == "" {
		c.path = path
	}
	r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", "good-key")
	for name, value := range c.header {
		r.Header.Del(name)
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// post sends a body and returns status and answer.
func post(t *testing.T, e executions, body string) (int, string) {
	t.Helper()
	w := call{body: body}.do(t, newHandler(e, options()))
	return w.Code, w.Body.String()
}

func want(t *testing.T, w *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if w.Code != status || w.Body.String() != body {
		t.Errorf("got %d %s\nwant %d %s", w.Code, w.Body, status, body)
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestStartPassesTheProgramOn(t *testing.T) {
	e := completed()
	sent := `{
		"code": "print(\u0031, '\ud800')",
		"tools": [{"name":"get-weather","description":"Say \"hi\"","parameters":{"b":1.0,"a":12345678901234567890},"extra":[]},{"name":"名前"}],
		"session_id": "` + session + `", "timeout": 1500.2, "files": [], "lang": "py", "unknown": {"a": null}
	}`
	if status, body := post(t, e, sent); status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, body)
	}
	hash := sha256.Sum256([]byte(sent))
	wanted := []engine.Start{{
		Principal: "ada",
		Request:   hex.EncodeToString(hash[:]),
		Session:   session,
		Code:      json.RawMessage(`"print(\u0031, '\ud800')"`),
		Tools: []stubs.Tool{
			{Name: "get-weather", Description: `Say "hi"`, Parameters: json.RawMessage(`{"b":1.0,"a":12345678901234567890}`)},
			{Name: "名前"},
		},
		Timeout:   1501 * time.Millisecond,
		Contract:  engine.Programmatic,
		WantValue: true,
	}}
	if diff := cmp.Diff(wanted, e.starts); diff != "" {
		t.Errorf("Start was asked (-want +got):\n%s", diff)
	}
}

func TestStartDefaults(t *testing.T) {
	for _, body := range []string{
		`{"code":"#"}`,
		`{"code":"#","tools":null,"files":null,"lang":null,"language":null,"session_id":null}`,
		`{"code":"#","tools":[],"files":[],"language":"python","lang":"bash","session_id":"too-short"}`,
		` {"session_id":"","code":"#"} `,
		`{"tool_results":5,"code":"#"}`,
		`{"code":"no","code":"#"}`,
	} {
		e := completed()
		if status, answer := post(t, e, body); status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", body, status, answer)
			continue
		}
		got := e.starts[0]
		if !regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`).MatchString(got.Session) {
			t.Errorf("%s: session %q is not an id", body, got.Session)
		}
		if string(got.Code) != `"#"` || len(got.Tools) != 0 || got.Timeout != api.DefaultTimeout {
			t.Errorf("%s: Start was asked %+v", body, got)
		}
	}
}

func TestStartMakesFreshSessions(t *testing.T) {
	e := completed()
	h := newHandler(e, options())
	seen := map[string]bool{}
	for range 100 {
		call{body: `{"code":"#"}`}.do(t, h)
		seen[e.starts[len(e.starts)-1].Session] = true
	}
	if len(seen) != 100 {
		t.Errorf("100 executions have %d sessions, want 100", len(seen))
	}
}

func TestResumePassesTheResultsOn(t *testing.T) {
	e := completed()
	body := `{"continuation_token":"t.o/k","code":5,"tools":5,"timeout":"x","files":5,"lang":"bash","tool_results":[
		{"call_id":"call_002","result": {"n":1.0, "big":123456789012345678901, "s":"\u00e9"} },
		{"call_id":"call_001","is_error":true,"error_message":"no \ud83d\ude00","result":1},
		{"call_id":"call_1000","is_error":true,"error_message":null},
		{"call_id":"call_100000","is_error":true,"error_message":"","more":1},
		{"call_id":"call_004","is_error":false,"error_message":"","result":null},
		{"call_id":"call_005","error_message":"no is_error"},
		{"call_id":"call_006","error_message":"","result":1},
		{"call_id":"call_007","error_message":null,"result":1}]}`
	if status, answer := post(t, e, body); status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, answer)
	}
	hash := sha256.Sum256([]byte(body))
	wanted := []engine.Resume{{
		Principal: "ada",
		Token:     "t.o/k",
		Request:   hex.EncodeToString(hash[:]),
		Results: []core.Result{
			{CallID: "call_002", Value: json.RawMessage(`{"n":1.0, "big":123456789012345678901, "s":"\u00e9"}`), Given: true},
			{CallID: "call_001", Failed: true, Message: json.RawMessage(`"no \ud83d\ude00"`), Value: json.RawMessage("1"), Given: true},
			{CallID: "call_1000", Failed: true},
			{CallID: "call_100000", Failed: true},
			{CallID: "call_004", Value: json.RawMessage("null"), Given: true},
			{CallID: "call_005", Failed: true, Message: json.RawMessage(`"no is_error"`)},
			{CallID: "call_006", Failed: true, Value: json.RawMessage("1"), Given: true},
			{CallID: "call_007", Value: json.RawMessage("1"), Given: true},
		},
	}}
	if diff := cmp.Diff(wanted, e.resumes); diff != "" {
		t.Errorf("Resume was asked (-want +got):\n%s", diff)
	}
}

// What a program cannot write to a file is replaced; what is beside it keeps its meaning.
func TestHalvesOfSurrogatePairs(t *testing.T) {
	e := completed()
	body := `{"continuation_token":"t.o/k","tool_results":[
		{"call_id":"call_001","result": {"n":1.0, "big":123456789012345678901, "s":"\ud800\u00e9\ud83d\ude00"} },
		{"call_id":"call_002","result": [1.50, "\ud83d\ude00"]},
		{"call_id":"call_003","is_error":true,"error_message":"no \ud83d"}]}`
	if status, answer := post(t, e, body); status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, answer)
	}
	wanted := []core.Result{
		{CallID: "call_001", Value: json.RawMessage("{\"n\":1.0,\"big\":123456789012345678901,\"s\":\"\uFFFDé😀\"}"), Given: true},
		{CallID: "call_002", Value: json.RawMessage(`[1.50, "\ud83d\ude00"]`), Given: true},
		{CallID: "call_003", Failed: true, Message: json.RawMessage("\"no \uFFFD\"")},
	}
	if diff := cmp.Diff(wanted, e.resumes[0].Results); diff != "" {
		t.Errorf("Resume was asked with (-want +got):\n%s", diff)
	}
}

func TestRefusals(t *testing.T) {
	tools := func(n int) string {
		return `{"code":"#","tools":[` + strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, n), ",") + `]}`
	}
	results := func(entries ...string) string {
		return `{"continuation_token":"t","tool_results":[` + strings.Join(entries, ",") + `]}`
	}
	sized := func(id, size int) string {
		return fmt.Sprintf(`{"call_id":"call_%03d","result":"%s"}`, id, strings.Repeat("x", size-2))
	}
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprintf(`{"call_id":"call_%03d"}`, i)
	}
	const (
		noCode      = "Missing required field: code"
		positive    = "timeout must be a positive number of milliseconds"
		timeRange   = "timeout must be between 1000 and 300000 milliseconds"
		badToken    = "Invalid continuation token"
		noResults   = "tool_results must be an array when continuation_token is provided"
		callIDWants = `tool_results[].call_id must match /^call_\d{3,6}$/, got: `
	)
	for _, c := range []struct{ name, body, text string }{
		{"empty", ``, "request body is not valid JSON at byte 0"},
		{"blank", "  \n", "request body is not valid JSON at byte 3"},
		{"cut", `{"code":"#"`, "request body is not valid JSON at byte 11"},
		{"trailing data", `{"code":"#"} {}`, "request body is not valid JSON at byte 13"},
		{"no JSON at all", `code=1`, "request body is not valid JSON"},
		{"array", `[{"code":"#"}]`, "request body must be a JSON object"},
		{"null", `null`, "request body must be a JSON object"},
		{"invalid UTF-8", "{\"code\":\"\xff\"}", "request body is not valid UTF-8"},
		{"invalid UTF-8 in what is ignored", "{\"code\":\"#\",\"x\":\"\xc0\x80\"}", "request body is not valid UTF-8"},
		{"NaN", `{"code":"#","timeout":NaN}`, "request body is not valid JSON at byte 22"},
		{"deep", `{"code":"#","x":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "request body is nested deeper than 500 levels"},

		{"neither code nor token", `{}`, noCode},
		{"code null", `{"code":null}`, noCode},
		{"code a number", `{"code":5}`, noCode},
		{"code empty", `{"code":""}`, noCode},
		{"code blank", `{"code":" \n\t\u00a0"}`, noCode},
		{"code in capitals", `{"CODE":"#"}`, `"CODE" is not known; did you mean code?`},

		{"tools an object", `{"code":"#","tools":{}}`, "tools must be an array"},
		{"tools a string", `{"code":"#","tools":"x"}`, "tools must be an array"},
		{"too many tools", tools(101), "Too many tools provided (101). Maximum is 100."},
		{"tool a string", `{"code":"#","tools":["x"]}`, "tools[0] must be an object"},
		{"second tool null", `{"code":"#","tools":[{"name":"x"},null]}`, "tools[1] must be an object"},
		{"tool without name", `{"code":"#","tools":[{}]}`, "tools[0].name must be a non-empty string"},
		{"tool with empty name", `{"code":"#","tools":[{"name":"a"},{"name":""}]}`, "tools[1].name must be a non-empty string"},
		{"tool name too long", `{"code":"#","tools":[{"name":"` + strings.Repeat("é", 257) + `"}]}`, "tools[0].name must have at most 256 characters"},
		{"tool name a number", `{"code":"#","tools":[{"name":5}]}`, "tools[0].name must be a non-empty string"},
		{"tool parameters a list", `{"code":"#","tools":[{"name":"a","parameters":[]}]}`, "tools[0].parameters must be an object, a JSON Schema"},
		{"input_schema a string", `{"code":"#","tools":[{"name":"a","input_schema":"{}"}]}`, "tools[0].input_schema must be an object, a JSON Schema"},
		{"inputSchema true", `{"code":"#","tools":[{"name":"a","inputSchema":true}]}`, "tools[0].inputSchema must be an object, a JSON Schema"},
		{"function a string", `{"code":"#","tools":[{"type":"function","function":"a"}]}`, "tools[0].function must be an object"},
		{"function without name", `{"code":"#","tools":[{"type":"function","function":{}}]}`, "tools[0].name must be a non-empty string"},
		{"function name a number", `{"code":"#","tools":[{"function":{"name":5}}]}`, "tools[0].function.name must be a non-empty string"},
		{"function description a number", `{"code":"#","tools":[{"function":{"name":"a","description":5}}]}`, "tools[0].function.description must be a string"},
		{"function parameters a number", `{"code":"#","tools":[{"function":{"name":"a","parameters":5}}]}`, "tools[0].function.parameters must be an object, a JSON Schema"},
		{"two names", `{"code":"#","tools":[{"name":"a","function":{"name":"b"}}]}`, "tools[0].name and tools[0].function.name differ"},
		{"two descriptions", `{"code":"#","tools":[{"description":"a","function":{"name":"b","description":"b"}}]}`, "tools[0].description and tools[0].function.description differ"},
		{"two schemas", `{"code":"#","tools":[{"name":"a","parameters":{},"input_schema":{"type":"object"}}]}`, "tools[0].parameters and tools[0].input_schema are different schemas for one tool"},
		{"three schemas", `{"code":"#","tools":[{"name":"a","inputSchema":{"a":1,"b":2},"input_schema":{"b":2, "a":1},"function":{"parameters":{}}}]}`, "tools[0].input_schema and tools[0].function.parameters are different schemas for one tool"},
		{"one name, two schemas", `{"code":"#","tools":[{"name":"a"},{"name":"b"},{"name":"a","parameters":{}}]}`, `tools[0] and tools[2] define the tool "a" in different ways`},
		{"one name, two descriptions", `{"code":"#","tools":[{"name":"a"},{"name":"a","description":"b"}]}`, `tools[0] and tools[1] define the tool "a" in different ways`},
		{"tool description a list", `{"code":"#","tools":[{"name":"a","description":[]}]}`, "tools[0].description must be a string"},

		{"timeout a string", `{"code":"#","timeout":"5000"}`, positive},
		{"timeout null", `{"code":"#","timeout":null}`, positive},
		{"timeout zero", `{"code":"#","timeout":0}`, positive},
		{"timeout negative", `{"code":"#","timeout":-0.5}`, positive},
		{"timeout tiny", `{"code":"#","timeout":0.5}`, timeRange},
		{"timeout short", `{"code":"#","timeout":999}`, timeRange},
		{"timeout long", `{"code":"#","timeout":300000.5}`, timeRange},
		{"timeout beyond floats", `{"code":"#","timeout":1e999}`, timeRange},

		{"language sh", `{"code":"#","lang":"sh"}`, `Unsupported language "sh"; supported values are "python" and "bash"`},
		{"language before lang", `{"code":"#","lang":"py","language":"js"}`, `Unsupported language "js"; supported values are "python" and "bash"`},
		{"language in capitals", `{"code":"#","lang":"Python"}`, `Unsupported language "Python"; supported values are "python" and "bash"`},
		{"language empty", `{"code":"#","lang":""}`, `Unsupported language ""; supported values are "python" and "bash"`},
		{"language a number", `{"code":"#","language":5,"lang":"py"}`, `language must be a string`},
		{"lang a number", `{"code":"#","lang":5,"language":"py"}`, `lang must be a string, the name of a language`},

		{"files an object", `{"code":"#","files":{}}`, "files must be an array"},
		{"files", `{"code":"#","files":[{"id":"x"}]}`, "files are not supported by this server"},

		{"token empty", `{"code":"#","continuation_token":""}`, badToken},
		{"token a number", `{"continuation_token":5}`, badToken},
		{"token null", `{"code":"#","continuation_token":null}`, badToken},
		{"no results", `{"continuation_token":"t"}`, noResults},
		{"results null", `{"continuation_token":"t","tool_results":null}`, noResults},
		{"results an object", `{"continuation_token":"t","tool_results":{}}`, noResults},
		{"result a string", results(`{"call_id":"call_001"}`, `"x"`), "tool_results entries must be objects"},
		{"too many results", results(many...), "Too many tool_results provided (201). Maximum is 200."},
		{"no call id", results(`{"result":1}`), callIDWants + "undefined"},
		{"call id a number", results(`{"call_id":1}`), callIDWants + "1"},
		{"call id short", results(`{"call_id":"call_01"}`), callIDWants + "call_01"},
		{"call id long", results(`{"call_id":"call_1234567"}`), callIDWants + "call_1234567"},
		{"call id with a line end", results(`{"call_id":"call_001\n"}`), callIDWants + "call_001\n"},
		{"call id very long", results(`{"call_id":"` + strings.Repeat("é", 200) + `"}`), callIDWants + strings.Repeat("é", 100) + "…"},
		{"is_error a string", results(`{"call_id":"call_001","is_error":"true"}`), "tool_results[call_001].is_error must be a boolean if present"},
		{"is_error null", results(`{"call_id":"call_001","is_error":null}`), "tool_results[call_001].is_error must be a boolean if present"},
		{"error_message a number", results(`{"call_id":"call_001","error_message":5}`), "tool_results[call_001].error_message must be a string if present"},
		{"is_error false and a message", results(`{"call_id":"call_001","is_error":false,"error_message":"no"}`), "tool_results[call_001] has is_error false and an error_message: if the tool failed, is_error must be true"},
		{"result too large", results(sized(1, 5001)), "tool_results[call_001].result is 5001 bytes, exceeds per-result cap 5000"},
		{"same id twice", results(`{"call_id":"call_001"}`, `{"call_id":"call_001"}`), "Duplicate call_id in tool_results: call_001"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := completed()
			w := call{body: c.body}.do(t, newHandler(e, options()))
			var got struct{ Status, Error string }
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("the answer %q is not JSON: %v", w.Body, err)
			}
			if w.Code != http.StatusBadRequest || got.Status != "error" || got.Error != c.text {
				t.Errorf("got %d %s\nwant 400 with the text %q", w.Code, w.Body, c.text)
			}
			if len(e.starts)+len(e.resumes) != 0 {
				t.Errorf("the execution was asked all the same")
			}
		})
	}
}

func TestLimitsAreAccepted(t *testing.T) {
	tools := strings.TrimSuffix(strings.Repeat(`{"name":"t"},`, 100), ",")
	for name, body := range map[string]string{
		"100 tools":      `{"code":"#","tools":[` + tools + `]}`,
		"1 s":            `{"code":"#","timeout":999.5}`,
		"300 s":          `{"code":"#","timeout":3e5}`,
		"depth 500":      `{"code":"#","x":` + strings.Repeat("[", 499) + strings.Repeat("]", 499) + `}`,
		"brackets in it": `{"code":"` + strings.Repeat(`[\"`, 1000) + `"}`,
		"result cap":     `{"continuation_token":"t","tool_results":[{"call_id":"call_001","result":"` + strings.Repeat("x", 4998) + `"}]}`,
	} {
		if status, answer := post(t, completed(), body); status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", name, status, answer)
		}
	}
}

func TestRefusalNamesTheSessionItKnows(t *testing.T) {
	_, got := post(t, completed(), `{"session_id":"`+session+`"}`)
	if wanted := `{"status":"error","session_id":"` + session + `","error":"Missing required field: code"}`; got != wanted {
		t.Errorf("got %s, want %s", got, wanted)
	}
}

func TestRoutes(t *testing.T) {
	for _, c := range []struct {
		call   call
		status int
		body   string
	}{
		{call{path: "/v1" + path, body: `{"code":"#"}`}, 200, `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","files":[]}`},
		{call{path: "/nowhere"}, 404, `{"error":"Not found"}`},
		{call{path: "//exec/programmatic/", body: `{"code":"#"}`}, 200, `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","files":[]}`},
		{call{path: "/v1//exec/programmatic"}, 400, `{"status":"error","error":"request body is not valid JSON at byte 0"}`},
		{call{method: "GET"}, 405, `{"status":"error","error":"Method not allowed"}`},
		{call{method: "DELETE", path: "/v1/health"}, 405, `{"error":"Method not allowed"}`},
		{call{body: `{"code":"#"}`, header: map[string]string{"Content-Type": "text/plain"}}, 415, `{"status":"error","error":"Content-Type must be application/json"}`},
		{call{body: `{"code":"#"}`, header: map[string]string{"Content-Type": ""}}, 415, `{"status":"error","error":"Content-Type must be application/json"}`},
		{call{body: strings.Repeat(" ", 1<<20+1)}, 413, `{"status":"error","error":"request entity too large"}`},
	} {
		t.Run(c.call.method+c.call.path, func(t *testing.T) {
			w := c.call.do(t, newHandler(completed(), options()))
			want(t, w, c.status, c.body)
			if c.status == 405 && w.Header().Get("Allow") == "" {
				t.Error("405 without Allow")
			}
			if got := w.Header().Get("Content-Type"); got != "application/json" {
				t.Errorf("Content-Type = %q, want application/json", got)
			}
		})
	}
}

func TestHealth(t *testing.T) {
	for _, prefix := range []string{"", "/v1"} {
		e := completed()
		h := newHandler(e, options())
		live := call{method: "GET", path: prefix + "/health", header: map[string]string{"X-API-Key": ""}}
		ready := call{method: "GET", path: prefix + "/ready", header: map[string]string{"X-API-Key": ""}}
		const healthy = `"version":"v1.2.3","service":"fermata"`
		want(t, live.do(t, h), 200, `{"status":"healthy",`+healthy+`}`)
		want(t, ready.do(t, h), 200, `{"status":"healthy",`+healthy+`}`)
		for _, c := range []struct {
			err  error
			want string
		}{
			{errTest, `"reasons":["internal"],"message":"The log of the server says why."`},
			{engine.ErrClosing, `"reasons":["draining"],"message":"The server is shutting down."`},
			{files.ErrNoAnswer, `"reasons":["files"],"message":"The bucket of files (FERMATA_FILES_URL) has not answered yet."`},
			{
				errors.Join(fmt.Errorf("store: %w", continuation.ErrUnavailable), engine.ErrNoCapacity),
				`"reasons":["full","store"],"message":"All sandboxes (FERMATA_MAX_SANDBOXES) are in use by programs that run or are paused. ` +
					`The execution store does not answer, or refuses to write."`,
			},
		} {
			e.ready = c.err
			want(t, ready.do(t, h), 503, `{"status":"unhealthy",`+healthy+`,`+c.want+`}`)
			want(t, live.do(t, h), 200, `{"status":"healthy",`+healthy+`}`)
		}
	}
}
