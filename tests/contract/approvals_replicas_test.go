package contract

import (
	"net/http"
	"testing"

	"fermata/tests/harness"
)

// TestApprovalAtAnotherServer decides on two calls at servers that do not have the execution.
func TestApprovalAtAnotherServer(t *testing.T) {
	harness.OverReplicas(t, harness.Sandboxes(), func(t *testing.T, servers []*harness.Server) {
		clients := harness.Alices(servers)
		pause := clients[0].Pause(t, map[string]any{
			"code":      "print(await asyncio.gather(pay(n=1), pay(n=2), return_exceptions=True))",
			"approvals": true, "tools": []map[string]any{{"name": "pay", "approval": "always"}},
		})
		decide := func(c harness.Client, body string) int {
			t.Helper()
			a, err := c.Request(t.Context(), http.MethodPost, "/executions/"+pause.Header.Get("Fermata-Execution")+"/approvals", nil, body)
			if err != nil {
				t.Fatal(err)
			}
			return a.HTTPStatus
		}
		for i, c := range []struct {
			body   string
			status int
		}{
			{`{"call":"call_002","approve":false,"reason":"too dear"}`, 202},
			{`{"call":"call_002","approve":true}`, 409},
			{`{"call":"call_003","approve":true}`, 404},
			{`{"call":"call_001","approve":true}`, 202},
		} {
			if got := decide(clients[1+i%2], c.body); got != c.status {
				t.Errorf("%s: got %d, want %d", c.body, got, c.status)
			}
		}
		next := clients[2].Pause(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{}})
		if len(next.Calls) != 1 || next.Calls[0].ID != "call_001" || next.Calls[0].Approval != "" {
			t.Fatalf("the program waits for %v, want call_001", next.Calls)
		}
		clients[1].Post(t, next.Continue(harness.Value("5"))).Completes(t, "[5, ToolExecutionError('refused: too dear')]\n")
	})
}
