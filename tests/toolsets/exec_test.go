package toolsets

import (
	"encoding/json"
	"maps"
	"net/http"
	"testing"

	"fermata/tests/harness"
)

// TestExec runs programs on /exec, which may call the server's tools and never pause.
func TestExec(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		d, key := standard(t, s, nil), harness.NewKey()
		exec := func(code string, more map[string]any) (status int, stdout string) {
			t.Helper()
			p := program(key, code)
			body := map[string]any{"lang": "py", "code": p.Code, "toolsets": p.Toolsets}
			maps.Copy(body, more)
			a, err := d.Request(t.Context(), http.MethodPost, "/exec", nil, body)
			if err != nil {
				t.Fatal(err)
			}
			var ended struct{ Stdout, Error string }
			if err := json.Unmarshal([]byte(a.Raw), &ended); err != nil {
				t.Fatal(err)
			}
			return a.HTTPStatus, ended.Stdout + ended.Error
		}
		if status, text := exec(`print(HelpDesk.book(n=7, key=KEY)["n"])`, nil); status != 200 || text != "7\n" {
			t.Errorf("got %d %q, want the result of the call", status, text)
		}
		if status, text := exec(`print(HelpDesk.book(n=7, key=KEY)["n"])`, map[string]any{"max_cost": 2, "code": imports + "try:\n    HelpDesk.book(key='none')\nexcept ToolExecutionError:\n    print('too dear')\n"}); status != 200 || text != "too dear\n" {
			t.Errorf("got %d %q, want a call that is too dear", status, text)
		}
		if status, text := exec("", map[string]any{"approvals": true}); status != 400 || text != "approvals is not available on /exec, whose programs never pause: post to /exec/programmatic" {
			t.Errorf("got %d %q", status, text)
		}
	})
}
