package contract

import (
	"net/http"
	"testing"

	"fermata/tests/harness"
)

// TestSlashes sends requests to paths with a slash at the end, or with two in a row.
func TestSlashes(t *testing.T) {
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	for _, path := range []string{"/exec/", "//exec", "/exec/programmatic/", "//exec//programmatic", "/v1/exec/"} {
		a, err := c.Request(t.Context(), http.MethodPost, path, nil, map[string]any{"lang": "py", "code": "print(42)"})
		if err != nil || a.HTTPStatus != http.StatusOK || a.Stdout != "42\n" {
			t.Errorf("%s: got %v %v, want 42", path, a, err)
		}
	}
	ping := map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"}
	// The answer is a stream of events, and so no JSON.
	a, _ := c.Request(t.Context(), http.MethodPost, "/mcp/", http.Header{"Accept": {"application/json, text/event-stream"}}, ping)
	if a.HTTPStatus != http.StatusOK {
		t.Errorf("/mcp/: got %v", a)
	}
}

// TestHeadOfHealth asks as monitors do.
func TestHeadOfHealth(t *testing.T) {
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	for _, path := range []string{"/health", "/ready", "/v1/health", "/v1/ready", "/health/"} {
		if r := c.Files(t, http.MethodHead, path); r.HTTPStatus != http.StatusOK || r.Body != "" {
			t.Errorf("HEAD %s: %+v, want 200 without a body", path, r)
		}
	}
}
