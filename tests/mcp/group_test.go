package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tests/harness"
)

// TestGroup runs programs by one server of a group, and waits for them and decides on their calls by the
// others.
func TestGroup(t *testing.T) {
	path := harness.WriteToolsets(t, harness.NewUpstream(t), toolsetsFile)
	harness.OverReplicasWith(t, harness.Sandboxes(), harness.Settings{"TOOLSETS": path}, func(t *testing.T, servers []*harness.Server) {
		c := harness.Alices(servers)
		person := &sdk.ClientOptions{ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
		}}
		first, second := connect(t, c[0], person), connect(t, c[1], person)

		// The value of a program that another server runs, while it runs and after it has ended.
		left := run(t, first, "run_program", map[string]any{"code": "import time\nprint('begun', flush=True)\ntime.sleep(2)\nopen('a.txt', 'w').close()\n{'n': 1}", "wait_ms": 0})
		if left.Status != "running" || left.Execution == "" {
			t.Fatalf("a program that is left running: %+v", left)
		}
		var ends []result
		for _, session := range []*sdk.ClientSession{second, second, first} {
			ends = append(ends, run(t, session, "wait_for_program", map[string]any{"execution": left.Execution}))
		}
		for _, end := range ends {
			if end.Failed || end.Status != "completed" || string(end.Value) != `{"n":1}` || end.Stdout != "begun\n" || len(end.Files) != 1 || end.Text != ends[2].Text {
				t.Errorf("its result by one of the servers: %+v", end)
			}
		}

		// The approval of a call of a program that another server runs.
		pay := map[string]any{"code": "import time\ntime.sleep(1)\nfrom fermata_tools.shop import Shop\nShop.pay(amount=3)", "toolsets": []string{"shop.pay"}, "wait_ms": 0}
		left = run(t, first, "run_program", pay)
		end := run(t, second, "wait_for_program", map[string]any{"execution": left.Execution})
		if end.Failed || end.Status != "completed" || len(end.Value) == 0 || len(end.Calls) != 1 || end.Calls[0].Status != "completed" {
			t.Errorf("a call that is approved by another server: %+v", end)
		}
		left = run(t, first, "run_program", pay)
		silent := connect(t, c[1], nil)
		if r := run(t, silent, "wait_for_program", map[string]any{"execution": left.Execution, "wait_ms": 3000}); r.Status != "paused" || !r.Failed ||
			!strings.Contains(r.Error, "call_001 (shop.pay) needs the approval of a person") || !strings.Contains(r.Error, "POST /executions/"+left.Execution+"/approvals") {
			t.Errorf("a client that cannot ask: %+v", r)
		}
		if r, err := c[2].Request(t.Context(), http.MethodPost, "/executions/"+left.Execution+"/approvals", nil, map[string]any{"call": "call_001", "approve": false, "reason": "no"}); err != nil || r.HTTPStatus != http.StatusAccepted {
			t.Errorf("the approval: %v, %v", r, err)
		}
		if end := run(t, silent, "wait_for_program", map[string]any{"execution": left.Execution}); end.Status != "error" || !strings.Contains(end.Error, "refused: no") {
			t.Errorf("after it was refused elsewhere: %+v", end)
		}

		// An older client whose requests go to a server each.
		mine := begin(t, c[0], asking)
		messages := opened(t, c[1], mine, paying)
		q := question(t, messages)
		if r := must(t, c[2], mine, answerTo(q, yes)); r.status != http.StatusAccepted {
			t.Fatalf("the answer: %+v", r)
		}
		if r := ended(t, messages, q); r.Status != "completed" {
			t.Errorf("the program of an older client: %+v", r)
		}
	})
}
