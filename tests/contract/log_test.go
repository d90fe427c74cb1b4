package contract

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"fermata/tests/harness"
)

// logged returns the line of the log about the request that led to a, which must belong to an
// execution.
func logged(t *testing.T, s *harness.Server, a harness.Answer) harness.LogLine {
	t.Helper()
	if a.Header.Get("Fermata-Execution") == "" {
		t.Fatalf("answer %v names no execution", a)
	}
	return s.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "request_id": a.Header.Get("X-Request-Id")})[0]
}

// TestLogTellsEnds checks that the log has one line for each request, which tells how the program
// has ended.
func TestLogTellsEnds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, harness.With(harness.JSONLog, harness.SmallLimits))
		c := server.Alice()
		for _, p := range []struct {
			program harness.Program
			outcome string
			reason  string
		}{
			{harness.Program{Code: "print('secret-output')"}, "completed", ""},
			{harness.Program{Code: "raise ValueError('secret-value')"}, "raised", ""},
			{harness.Program{Code: "import os; os._exit(3)"}, "exited", ""},
			{harness.Program{Code: "while True: pass", Timeout: 1000}, "timed_out", "Execution timeout"},
			{harness.Program{Code: "x = bytearray(1 << 30)"}, "out_of_memory", ""},
			{harness.Program{Code: "print('x' * (1 << 20))"}, "stdout_flood", ""},
		} {
			a := c.Post(t, p.program)
			line := logged(t, server, a)
			if line.Text("outcome") != p.outcome || line.Text("reason") != p.reason || line.Text("level") != "INFO" {
				t.Errorf("%s: line %v, want outcome %q and reason %q", p.program.Code, line, p.outcome, p.reason)
			}
			if line.Text("execution") != a.Header.Get("Fermata-Execution") || line.Text("session") != a.Session ||
				line.Text("contract") != "programmatic" || line.Text("principal") != "alice" {
				t.Errorf("%s: line %v does not say whose execution it was: %v", p.program.Code, line, a)
			}
			if line.Number("round") != 0 || line.Number("calls") != 0 || line.Number("waited_ms") < 0 {
				t.Errorf("%s: line %v, want no rounds, no calls and how long the start waited", p.program.Code, line)
			}
			if code := line.Number("exit_code"); code != map[bool]float64{true: 3, false: -1}[p.outcome == "exited"] {
				t.Errorf("%s: exit_code = %v", p.program.Code, code)
			}
			if ran := line.Number("ran_ms"); ran < 0 || p.outcome == "timed_out" && ran < 1000 {
				t.Errorf("%s: ran_ms = %v", p.program.Code, ran)
			}
		}
		for _, secret := range []string{"secret-output", "secret-value", "bytearray"} {
			if strings.Contains(server.Log.All(), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	})
}

// TestLogJoinsRounds checks that the lines of one execution can be joined, and that a repeated
// request tells that it is one.
func TestLogJoinsRounds(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, harness.JSONLog)
		c := server.Alice()
		a := c.Post(t, harness.Program{Code: "import asyncio\nawait asyncio.gather(ask(n='secret-input'), ask(n=2))\nawait ask(n=3)\n", Tools: harness.Tools("ask")})
		execution := a.Header.Get("Fermata-Execution")
		for a.Status == "tool_call_required" {
			next := a.Continue(harness.Value(`"secret-result"`))
			if len(a.Calls) == 1 {
				c.Post(t, harness.Continuation{Token: a.Token, Results: []harness.Result{{CallID: "call_009"}}}).
					Fails(t, http.StatusBadRequest, "tool_results[call_009] was not issued by the sandbox for this execution")
			}
			a = c.Post(t, next)
			if a.Status == "completed" {
				c.Post(t, next).Completes(t, "")
			}
		}
		lines := server.Log.AwaitLines(t, 5, harness.LogLine{"msg": "request", "execution": execution})
		var outcomes []string
		var rounds, calls []float64
		for _, line := range lines {
			outcomes = append(outcomes, line.Text("outcome"))
			rounds, calls = append(rounds, line.Number("round")), append(calls, line.Number("calls"))
			if line.Text("session") != a.Session || line.Text("contract") != "programmatic" {
				t.Errorf("line %v, want session %s", line, a.Session)
			}
		}
		if want := []string{"paused", "paused", "", "completed", "completed"}; !slices.Equal(outcomes, want) {
			t.Errorf("outcomes %q, want %q", outcomes, want)
		}
		if want := []float64{1, 2, 2, 2, 2}; !slices.Equal(rounds, want) {
			t.Errorf("rounds %v, want %v", rounds, want)
		}
		if want := []float64{2, 3, -1, 3, 3}; !slices.Equal(calls, want) {
			t.Errorf("calls %v, want %v", calls, want)
		}
		if reason := lines[2].Text("reason"); !strings.Contains(reason, "call_009") {
			t.Errorf("reason %q of a refused continuation", reason)
		}
		if lines[3]["repeated"] != nil || lines[4]["repeated"] != true {
			t.Errorf("lines %v, want the last one to be a repeated request", lines[3:])
		}
		for _, secret := range []string{"secret-input", "secret-result", "gather", a.Token} {
			if secret != "" && strings.Contains(server.Log.All(), secret) {
				t.Errorf("the log has %q", secret)
			}
		}
	})
}

// TestLogNamesRequests checks the ids by which a client can find its request in the log, and that
// nothing else that it sends gets there.
func TestLogNamesRequests(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, harness.JSONLog)
		const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		c := server.Alice()
		post := func(client harness.Client, header http.Header, body any) harness.LogLine {
			t.Helper()
			a, err := client.Request(t.Context(), http.MethodPost, "/exec", header, body)
			if err != nil {
				t.Fatal(err)
			}
			return server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "request_id": a.Header.Get("X-Request-Id")})[0]
		}
		line := post(c, http.Header{
			"X-Librechat-Code-Request-Id": {"client-request-0123456789"}, "Traceparent": {"00-" + trace + "-00f067aa0ba902b7-01"},
		}, `{"code":"print(1)","lang":"py"}`)
		if line.Text("client_request_id") != "client-request-0123456789" || line.Text("trace_id") != trace || line.Text("contract") != "exec" {
			t.Errorf("line %v, want the client's id, the trace and the contract", line)
		}
		line = post(c, http.Header{"Traceparent": {"00-" + trace + "-00f067aa0ba902b7-01 msg=forged"}}, `{"code":"print(1)","lang":"py"}`)
		if line["trace_id"] != nil {
			t.Errorf("line %v has a trace from a header that is not well formed", line)
		}
		long := strings.Repeat("x", 10_000) + "\nlevel=ERROR msg=forged"
		line = post(c, http.Header{"X-Codeapi-Expected-Profile": {strings.ReplaceAll(long, "\n", " ")}}, `{"code":"print(1)","lang":"py"}`)
		if reason := line.Text("reason"); !strings.HasPrefix(reason, "invalid_execution_profile") || len(reason) > 400 || strings.Contains(reason, "forged") {
			t.Errorf("reason %q of %d bytes, want the beginning of it", reason, len(reason))
		}

		// A refused key, and why.
		line = post(harness.Client{URL: server.URL, Key: "secret-key"}, http.Header{"X-Librechat-Code-Request-Id": {"client-request-9876543210"}}, `{}`)
		if line.Text("level") != "WARN" || line.Text("why") != "the key is not one of this server" || !strings.HasPrefix(line.Text("peer"), "127.0.0.1:") ||
			line.Text("client_request_id") != "client-request-9876543210" || line["principal"] != nil {
			t.Errorf("line %v, want a warning that tells who was refused and why", line)
		}
		line = post(harness.Client{URL: server.URL}, nil, `{}`)
		if line.Text("why") != "the request has no credentials" {
			t.Errorf("line %v, want why", line)
		}
		if strings.Contains(server.Log.All(), "secret-key") {
			t.Error("the log has a key")
		}

		// Other requests have nothing empty.
		a, err := c.Request(t.Context(), http.MethodGet, "/health", nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		line = server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "request_id": a.Header.Get("X-Request-Id")})[0]
		for _, key := range []string{"principal", "execution", "session", "round", "outcome", "reason", "calls", "contract"} {
			if _, has := line[key]; has {
				t.Errorf("line %v about a health check has %q", line, key)
			}
		}
	})
}

// TestLogTellsWhyTokens checks that the log tells what is wrong with a refused token of LibreChat, and
// has nothing of the token.
func TestLogTellsWhyTokens(t *testing.T) {
	harness.OverSetups(t, harness.Processes, func(t *testing.T, s harness.Setup) {
		const secret = "hs256-0123456789abcdef0123456789abcdef"
		server := harness.Serve(t, s, harness.With(harness.JSONLog, harness.Settings{"JWT_HS256_SECRET": secret, "JWT_ALGORITHMS": "HS256"}))
		for _, c := range []struct{ claim, value, kid, why string }{
			{"principal_source", "my-own", "hs256-dev", "principal_source is not known"},
			{"iss", "somebody", "hs256-dev", "token has invalid claims: token has invalid issuer"},
			{"jti", "secret-jti", "another-kid", "token is unverifiable: error while executing keyfunc: kid is not known"},
		} {
			claims := jwt.MapClaims{
				"iss": "librechat", "aud": "codeapi", "sub": "secret-user", "jti": "1", "principal_source": "librechat_jwt", "auth_context_hash": "h",
				"iat": time.Now().Unix(), "nbf": time.Now().Unix(), "exp": time.Now().Add(time.Minute).Unix(),
			}
			claims[c.claim] = c.value
			token := jwt.NewWithClaims(jwt.SigningMethodHS256, claims)
			token.Header["kid"] = c.kid
			signed, err := token.SignedString([]byte(secret))
			if err != nil {
				t.Fatal(err)
			}
			a, err := harness.Client{URL: server.URL, Key: signed}.Request(t.Context(), http.MethodPost, "/exec", nil, `{"code":"1","lang":"py"}`)
			if err != nil || a.HTTPStatus != http.StatusUnauthorized {
				t.Fatalf("got %v (%v), want 401", a, err)
			}
			line := server.Log.AwaitLines(t, 1, harness.LogLine{"msg": "request", "request_id": a.Header.Get("X-Request-Id")})[0]
			if line.Text("level") != "WARN" || line.Text("why") != c.why || line.Text("reason") != "Invalid bearer token" || line.Text("peer") == "" {
				t.Errorf("line %v, want a warning because %q", line, c.why)
			}
			for _, secret := range []string{"secret-", signed[:40], secret} {
				if strings.Contains(server.Log.All(), secret) {
					t.Errorf("the log has %q", secret)
				}
			}
		}
	})
}
