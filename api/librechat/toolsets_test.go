package librechat_test

import (
	"net/http"
	"strings"
	"testing"

	"fermata/engine/core"

	"github.com/google/go-cmp/cmp"
)

func TestStartPassesToolsetsOn(t *testing.T) {
	e := completed()
	status, body := post(t, e, `{"code":"#","toolsets":["weather","desk.pay"],"sequential":true,"max_cost":0,"approvals":true,
		"tools":[{"name":"a","toolset":"local","class":"Local","approval":"always"},{"name":"b","approval":"never","envelope":false},
			{"name":"c"},{"name":"d","envelope":true}]}`)
	if status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, body)
	}
	got := e.starts[0]
	if strings.Join(got.Toolsets, " ") != "weather desk.pay" || !got.Sequential || got.MaxCost == nil || *got.MaxCost != 0 || !got.Approvals {
		t.Errorf("Start was asked %+v", got)
	}
	want := map[string]core.Traits{"a": {Toolset: "local", Class: "Local", Approval: true}, "d": {Envelope: true}}
	if diff := cmp.Diff(want, got.Traits); diff != "" {
		t.Errorf("traits (-want +got):\n%s", diff)
	}
}

func TestResumePassesApprovalsOn(t *testing.T) {
	e := completed()
	status, body := post(t, e, `{"continuation_token":"t","tool_results":[
		{"call_id":"call_001","approve":true}, {"call_id":"call_002","approve":true,"result":null},
		{"call_id":"call_003","approve":false,"reason":" no ","result":null}]}`)
	if status != http.StatusOK {
		t.Fatalf("got %d %s, want 200", status, body)
	}
	want := []core.Result{
		{CallID: "call_001", Approve: new(true)},
		{CallID: "call_002", Approve: new(true), Value: []byte("null"), Given: true},
		{CallID: "call_003", Approve: new(false), Value: []byte("null"), Reason: "no"},
	}
	if diff := cmp.Diff(want, e.resumes[0].Results); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// TestToolsetMistakes has one wrong member in each request.
func TestToolsetMistakes(t *testing.T) {
	o := options()
	o.contractOptions.Keys = func() []string { return []string{"weather"} }
	start := func(member string) string { return `{"code":"#",` + member + `}` }
	tools := func(tools string) string { return start(`"tools":[` + tools + `]`) }
	result := func(members string) string {
		return `{"continuation_token":"t","tool_results":[{"call_id":"call_001",` + members + `}]}`
	}
	for body, part := range map[string]string{
		start(`"toolsets":"weather"`):                                         "toolsets must be an array of names",
		start(`"toolsets":[5]`):                                               "toolsets must be an array of names",
		start(`"toolsets":[` + strings.Repeat(`"a",`, 100) + `"a"]`):          "Too many toolsets provided. Maximum is 100.",
		start(`"sequential":"yes"`):                                           "sequential must be a boolean",
		start(`"max_cost":-1`):                                                "max_cost must be a whole number from 0 to 1000000000",
		start(`"max_cost":1.5`):                                               "max_cost must be a whole number from 0 to 1000000000",
		start(`"approvals":1`):                                                "approvals must be a boolean",
		tools(`{"name":"a","toolset":"weather"}`):                             "tools[0].toolset: the server has a toolset with the key weather",
		tools(`{"name":"a","toolset":"No"}`):                                  "tools[0].toolset must be a small letter",
		tools(`{"name":"a","class":"A"}`):                                     "tools[0].class needs toolset beside it",
		tools(`{"name":"a","toolset":"b","class":"not one"}`):                 "tools[0].class must be a letter",
		tools(`{"name":"a","approval":true}`):                                 `tools[0].approval must be \"always\" or \"never\"`,
		tools(`{"name":"a","envelope":"yes"}`):                                `tools[0].envelope must be a boolean`,
		tools(`{"name":"a"},{"name":"a","envelope":true}`):                    `tools[0] and tools[1] define the tool \"a\" in different ways`,
		tools(`{"name":"a"},{"name":"a","approval":"always"}`):                `tools[0] and tools[1] define the tool \"a\" in different ways`,
		tools(`{"name":"a","toolset":"b"},{"name":"a","toolset":"c"}`):        `tools[0] and tools[1] define the tool \"a\" in different ways`,
		result(`"approve":"yes"`):                                             "tool_results[call_001].approve must be a boolean if present",
		result(`"approve":true,"reason":5`):                                   "tool_results[call_001].reason must be a string of at most 1000 characters",
		result(`"approve":true,"reason":"` + strings.Repeat("é", 1001) + `"`): "tool_results[call_001].reason must be a string of at most 1000 characters",
		result(`"reason":"why"`):                                              "tool_results[call_001].reason needs approve beside it",
		result(`"approve":false,"result":1`):                                  "tool_results[call_001] has approve false",
		result(`"approve":false,"is_error":true`):                             "tool_results[call_001] has approve false",
	} {
		w := call{body: body}.do(t, newHandler(completed(), o))
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), part) {
			t.Errorf("%.200s: got %d %s, want 400 with %q", body, w.Code, w.Body, part)
		}
	}
	w := call{path: "/exec", body: `{"lang":"py","code":"#","approvals":true}`}.do(t, newHandler(completed(), o))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "approvals is not available on /exec") {
		t.Errorf("approvals on /exec: got %d %s", w.Code, w.Body)
	}
}
