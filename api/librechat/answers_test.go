package librechat_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/stubs"
)

var errTest = errors.New("the disk is on fire")

func failed(reason core.Reason, detail string, code int) core.Outcome {
	return core.Outcome{
		State: core.Failed, Session: session, Reason: reason, Detail: detail, Code: code,
		Stdout: "out", Stderr: "err",
	}
}

func TestOutcomes(t *testing.T) {
	ended := func(text string) string {
		return `{"status":"error","session_id":"` + session + `","error":` + quote(text) + `,WHY"stdout":"out","stderr":"err"}`
	}
	for _, c := range []struct {
		name    string
		outcome core.Outcome
		status  int
		body    string
		// inlined is the body in the inline style, where it differs; its status is 200.
		inlined string
		// reason and detail are where the body has WHY.
		reason, detail string
		// said is the last line of stderr in the inline style, of an ending whose text LibreChat's client does not show.
		said string
	}{
		{
			name: "paused",
			outcome: core.Outcome{
				State: core.Paused, Session: session, Token: "t.o/k", RoundsLeft: new(0), Stdout: "é\n", Stderr: "",
				Calls: []core.Call{
					{ID: "call_001", Name: "get-\"weather\"", Input: json.RawMessage(`{"b": 1.0, "a":12345678901234567890, "s":"\ud800<>\u2028"}`)},
					{ID: "call_002", Name: "名前", Input: json.RawMessage(`{}`)},
				},
			},
			status: 200,
			body: `{"status":"tool_call_required","session_id":"` + session + `","continuation_token":"t.o/k","rounds_left":0,"partial_stdout":"é\n","tool_calls":[` +
				`{"id":"call_001","name":"get-\"weather\"","input":{"b": 1.0, "a":12345678901234567890, "s":"\ud800<>\u2028"}},` +
				`{"id":"call_002","name":"名前","input":{}}]}`,
		},
		{
			name:    "completed",
			outcome: core.Outcome{State: core.Completed, Session: session, Stdout: "a\n\x00é", Stderr: "warning"},
			status:  200,
			body:    `{"status":"completed","session_id":"` + session + `","stdout":"a\n\u0000é","stderr":"warning","files":[]}`,
		},
		{
			name:    "returned",
			outcome: core.Outcome{State: core.Completed, Session: session, Value: json.RawMessage(`{"a":1.50,"s":"\ud800\u2028<"}`)},
			status:  200,
			body:    `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","value":{"a":1.50,"s":"\ud800\u2028<"},"files":[]}`,
		},
		{
			name:    "returned what is empty",
			outcome: core.Outcome{State: core.Completed, Session: session, Value: json.RawMessage(`""`)},
			status:  200,
			body:    `{"status":"completed","session_id":"` + session + `","stdout":"","stderr":"","value":"","files":[]}`,
		},
		{
			name:    "timed out",
			outcome: core.Outcome{State: core.TimedOut, Session: session, Stdout: "out", Stderr: "err", Detail: "It stood at line 3"},
			status:  408, body: ended("Execution timeout"), inlined: ended("Time limit exceeded"), reason: "timed_out", detail: "It stood at line 3",
		},
		{
			name:    "cancelled",
			outcome: core.Outcome{State: core.Cancelled, Session: session, Stdout: "out", Stderr: "err"},
			status:  200, body: ended("Programmatic execution request cancelled"), reason: "cancelled",
			said: "Programmatic execution request cancelled",
		},
		{
			name: "too many rounds", outcome: failed(core.TooManyRounds, "", 20),
			status: 400, body: ended("Exceeded maximum round trips (20)"), inlined: ended("Exceeded maximum round trips (20)"),
			said:   "Exceeded maximum round trips (20): FERMATA_MAX_ROUNDS bounds how often a program may pause; calls that wait together are one round",
			reason: "too_many_rounds", detail: "FERMATA_MAX_ROUNDS bounds how often a program may pause; calls that wait together are one round",
		},
		{
			name: "too many calls", outcome: failed(core.TooManyCalls, "", 10000),
			status: 400, body: ended("Execution exceeded maximum tool calls (10000)"), inlined: ended("Execution exceeded maximum tool calls (10000)"),
			said:   "Execution exceeded maximum tool calls (10000): FERMATA_MAX_CALLS bounds the tool calls of one execution",
			reason: "too_many_calls", detail: "FERMATA_MAX_CALLS bounds the tool calls of one execution",
		},
		{
			name: "raised", outcome: failed(core.RaisedError, "ZeroDivisionError: division by zero", 0),
			status: 200, body: ended("ZeroDivisionError: division by zero"),
			reason: "raised",
		},
		{name: "raised nothing", outcome: failed(core.RaisedError, "", 0), status: 200, body: ended("Execution failed or timed out"), reason: "raised"},
		{name: "exited", outcome: failed(core.ExitedCode, "", 3), status: 200, body: ended("Sandbox exited with code 3"), reason: "exited"},
		{
			name: "killed", outcome: failed(core.ExitedCode, "", -9),
			status: 200, body: ended("Sandbox exited with code -9"),
			reason: "exited", detail: "Killed by SIGKILL",
		},
		{
			name: "out of memory", outcome: failed(core.OutOfMemory, "", 0),
			status: 200, body: ended("Out of memory"),
			reason: "out_of_memory", detail: "The program needed more memory than FERMATA_MEMORY allows",
		},
		{
			name: "stdout flood", outcome: failed(core.StdoutFlood, "", 0),
			status: 200, body: ended("stdout length exceeded"),
			reason: "stdout_flood", detail: "The program printed more than FERMATA_OUTPUT allows",
		},
		{
			name: "stderr flood", outcome: failed(core.StderrFlood, "", 0),
			status: 200, body: ended("stderr length exceeded"),
			reason: "stderr_flood", detail: "The program printed more than FERMATA_OUTPUT allows",
		},
		{
			name: "ungranted tool", outcome: failed(core.UngrantedTool, "X", 0),
			status: 200, body: ended("Sandbox requested an unregistered tool: X"),
			reason: "ungranted_tool", detail: "The request that started the program did not define this tool",
		},
		{
			name: "sandbox lost", outcome: failed(core.SandboxLost, "", 0),
			status: 200, body: ended("Sandbox execution failed"),
			said:   "Sandbox execution failed: The sandbox ended, and the program was not the cause",
			reason: "sandbox_lost", detail: "The sandbox ended, and the program was not the cause",
		},

		{
			name: "a pause that has run out", outcome: core.Outcome{State: core.Expired, Session: session, Detail: "The pause ran out after 300 s"},
			status: 400, body: `{"status":"error","session_id":"` + session + `","error":"Execution expired",WHY"stdout":"","stderr":""}`,
			reason: "expired", detail: "The pause ran out after 300 s",
		},

		{name: "running is no answer", outcome: core.Outcome{State: core.Running}, status: 500},
		{name: "nor is nothing", outcome: core.Outcome{}, status: 500},
		{name: "unknown reason", outcome: failed("aliens", "", 0), status: 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, style := range []api.ErrorStyle{api.HTTPErrors, api.InlineErrors} {
				o := options()
				o.Errors = style
				status, body := c.status, c.body
				if style == api.InlineErrors && c.inlined != "" {
					status, body = http.StatusOK, c.inlined
				}
				h := newHandler(&script{outcome: c.outcome}, o)
				first := call{body: `{"code":"#","session_id":"` + session + `"}`}.do(t, h)
				why := `"reason":"` + c.reason + `",`
				if c.detail != "" {
					why += `"detail":` + quote(c.detail) + `,`
				}
				body = strings.Replace(body, "WHY", why, 1)
				if style == api.InlineErrors && c.said != "" { // The client shows stderr, and not this text.
					body = strings.Replace(body, `"stderr":"err"`, `"stderr":`+quote("err\n"+c.said+"\n"), 1)
				}
				if status == http.StatusInternalServerError {
					body = `{"status":"error","session_id":"` + session + `","error":"Internal server error"}`
				}
				want(t, first, status, body)
				again := call{body: `{"code":"#","session_id":"` + session + `"}`}.do(t, h)
				if again.Body.String() != first.Body.String() {
					t.Errorf("the same outcome was answered with %s and then %s", first.Body, again.Body)
				}
			}
		})
	}
}

func TestAnswersAreUTF8(t *testing.T) {
	for name, outcome := range map[string]core.Outcome{
		"output": {State: core.Completed, Stdout: "a\xffb", Stderr: "\xc0\x80"},
		"detail": failed(core.RaisedError, "\xed\xa0\x80", 0),
		"call":   {State: core.Paused, Calls: []core.Call{{Name: "\xff", Input: json.RawMessage("{\"a\":\"\xff\"}")}}},
	} {
		_, body := post(t, &script{outcome: outcome}, `{"code":"#"}`)
		if !utf8.ValidString(body) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %q is not JSON in UTF-8", name, body)
		}
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		text   string
		retry  bool
	}{
		{continuation.ErrToken, 400, "Invalid continuation token", false},
		{continuation.ErrTokenExpired, 400, "Execution expired", false},
		{core.ErrExpired, 400, "Execution expired", false},
		{engine.ErrForbidden, 403, "Forbidden", false},
		{engine.ErrInFlight, 409, "Another continuation is already in flight for this execution; retry shortly", false},
		{engine.ErrNoCapacity, 503, "No sandbox is free; retry shortly", true},
		{engine.ErrClosing, 503, "Service is shutting down", true},
		{continuation.ErrUnavailable, 503, "The execution store is not available; retry shortly", true},
		{&core.ResultsError{Size: 12_001, Limit: 12_000}, 400, "Aggregate tool_history for this execution would be 12001 bytes, exceeds cap 12000", false},
		{&core.ResultError{CallID: "call_999"}, 400, "tool_results[call_999] was not issued by the sandbox for this execution", false},
		{&stubs.CollisionError{First: "a-b", Second: "a_b", Identifier: "a_b"}, 400, `Tool names "a-b" and "a_b" normalize to the same identifier "a_b"`, false},
		{errTest, 500, "Internal server error", false},
		{context.Canceled, 500, "Internal server error", false},
	} {
		t.Run(c.err.Error(), func(t *testing.T) {
			h := newHandler(&script{err: fmt.Errorf("while testing: %w", c.err)}, options())
			w := call{body: `{"continuation_token":"t","tool_results":[{"call_id":"call_001"}]}`}.do(t, h)
			want(t, w, c.status, `{"status":"error","error":`+quote(c.text)+`}`)
			if got := w.Header().Get("Retry-After") != ""; got != c.retry {
				t.Errorf("Retry-After is there: %t, want %t", got, c.retry)
			}

			w = call{body: `{"code":"#","session_id":"` + session + `"}`}.do(t, h)
			want(t, w, c.status, `{"status":"error","session_id":"`+session+`","error":`+quote(c.text)+`}`)
		})
	}
}

// The run is cancelled when its client leaves, and the log says so.
func TestClientLeaves(t *testing.T) {
	var lines bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewJSONHandler(&lines, nil))
	entered, left, logged := make(chan struct{}), make(chan error, 1), make(chan struct{})
	e := completed()
	e.err = context.Canceled
	e.do = func(ctx context.Context) {
		close(entered)
		<-ctx.Done()
		left <- ctx.Err()
	}
	h := newHandler(e, o)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(logged)
		h.ServeHTTP(w, r)
	}))
	defer server.Close()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(`{"code":"#"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", "good-key")
	go func() {
		select {
		case <-entered:
			cancel()
		case <-t.Context().Done():
		}
	}()
	if response, err := server.Client().Do(r); err == nil {
		t.Fatalf("the client was answered with %s, want its own cancellation (%v)", response.Status, response.Body.Close())
	}
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the run ended with %v, want context.Canceled", err)
	}
	<-logged
	if got := lines.String(); !strings.Contains(got, `"status":499`) || !strings.Contains(got, `"level":"INFO"`) {
		t.Errorf("logged %s, want status 499 at level INFO", got)
	}
}

func TestPanic(t *testing.T) {
	var lines bytes.Buffer
	o := options()
	o.Log = slog.New(slog.NewJSONHandler(&lines, nil))
	e := completed()
	e.do = func(context.Context) { panic("oh no") }
	w := call{body: `{"code":"#","session_id":"` + session + `"}`}.do(t, newHandler(e, o))
	want(t, w, 500, `{"status":"error","session_id":"`+session+`","error":"Internal server error"}`)
	if got := lines.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "oh no") || !strings.Contains(got, `"level":"ERROR"`) {
		t.Errorf("logged %s, want one line at level ERROR that names the panic", got)
	}
}

func TestLog(t *testing.T) {
	for _, c := range []struct {
		call  call
		err   error
		lines []string
	}{
		{call{path: "/v1" + path, body: `{"code":"secret-code"}`}, nil, []string{`"msg":"request"`, `"method":"POST"`, `"route":"/v1/exec/programmatic"`, `"status":200`, `"principal":"ada"`, `"duration_ms":`, `"request_id":"`, `"level":"INFO"`}},
		{call{path: "/secret-path", body: `{}`}, nil, []string{`"route":"none"`, `"status":404`, `"reason":"Not found"`}},
		{call{method: "PUT"}, nil, []string{`"route":"/exec/programmatic"`, `"status":405`}},
		{call{body: `{"continuation_token":"secret-token","tool_results":[{"call_id":"call_001","result":"secret-result"}]}`}, engine.ErrNoCapacity, []string{`"status":503`, `"level":"ERROR"`, `no sandbox is free`}},
		{call{body: `{"code":"secret-code"}`}, errTest, []string{`"status":500`, `"err":"the disk is on fire"`}},
		{call{header: map[string]string{"X-API-Key": "secret-key"}}, nil, []string{`"status":401`}},
	} {
		var log bytes.Buffer
		o := options()
		o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		e := completed()
		e.err = c.err
		c.call.do(t, newHandler(e, o))
		got := log.String()
		if strings.Count(got, "\n") != 1 {
			t.Errorf("logged %q, want one line", got)
		}
		for _, part := range c.lines {
			if !strings.Contains(got, part) {
				t.Errorf("logged %s, want %s in it", got, part)
			}
		}
		for _, part := range []string{"secret", "good-key"} {
			if strings.Contains(got, part) {
				t.Errorf("logged %s, which tells %q", got, part)
			}
		}
	}
}
