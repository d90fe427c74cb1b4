package contract

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"fermata/tests/harness"
)

// TestApprovalLifetime looks at how long pauses last in which a call waits for approval, and others.
func TestApprovalLifetime(t *testing.T) {
	t.Parallel()
	c := harness.Serve(t, harness.ProcessSetup(), harness.Settings{"APPROVAL_TTL": "1h"}).Alice()
	for approval, want := range map[string]time.Duration{"always": time.Hour, "never": 5 * time.Minute} {
		a := c.Pause(t, map[string]any{
			"code": "await ask()", "approvals": true, "tools": []map[string]any{{"name": "ask", "approval": approval}},
		})
		detail, err := c.Request(t.Context(), http.MethodGet, "/executions/"+a.Header.Get("Fermata-Execution"), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var d struct {
			Expires time.Time                   `json:"pause_expires_at"`
			Waiting []struct{ Approval string } `json:"waiting"`
		}
		if err := json.Unmarshal([]byte(detail.Raw), &d); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(d.Expires); left > want || left < want-time.Minute {
			t.Errorf("approval %s: the pause lasts %s more, want %s", approval, left, want)
		}
		if len(d.Waiting) != 1 || (d.Waiting[0].Approval == "required") != (approval == "always") {
			t.Errorf("approval %s: got %v", approval, detail)
		}
	}
}
