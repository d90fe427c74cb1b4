package console

import (
	"testing"

	"fermata/tests/harness"
)

// TestApprovals decides on two calls that wait for approval, one after the other.
func TestApprovals(t *testing.T) {
	t.Parallel()
	server := serve(t, nil)
	alice := server.Alice()
	pause := alice.Pause(t, map[string]any{
		"title": "Payments", "approvals": true,
		"tools": []map[string]any{{"name": "pay", "approval": "always"}},
		"code":  "print(await asyncio.gather(pay(euros=1), pay(euros=1000), return_exceptions=True))",
	})
	tb := newTab(t, server.URL)
	tb.enter("key-a")
	tb.click("a", "Payments", found("h1", "Payments")+" !== undefined")
	tb.see(".waiting h2", "Waits for 2 calls")
	tb.see(".call .state", "Approval")
	tb.write(".waiting-call:nth-child(2) input", "too dear")
	tb.shoot("asked")
	tb.click(".waiting-call:nth-child(2) button", "Refuse", found(".waiting h2", "Waits for 1 call")+" !== undefined")
	tb.read(".waiting .value", `"euros": 1`)
	tb.see(".call .state", "Failed")
	tb.click(".waiting-call button", "Approve", found("button", "Approve")+" === undefined")

	// It is the client's tool, so the program asks for its result. Nothing is left to decide.
	tb.see(".call .state", "Waits")
	tb.see(".waiting h2", "Waits for 1 call")
	next := alice.Pause(t, harness.Continuation{Token: pause.Token, Results: []harness.Result{}})
	if len(next.Calls) != 1 || next.Calls[0].ID != "call_001" {
		t.Fatalf("the program waits for %v, want call_001", next.Calls)
	}
	alice.Post(t, next.Continue(harness.Value("5"))).Completes(t, "[5, ToolExecutionError('refused: too dear')]\n")
	tb.see(".pill", "Completed")
	tb.click(".call .id", "call_002", reads(".call-detail", "alice: too dear"))
	tb.read(".call-detail", "Refused by")
	tb.click(".call .id", "call_001", reads(".call-detail", "Approved by"))
	tb.shoot("decided")
	tb.clean()
}
