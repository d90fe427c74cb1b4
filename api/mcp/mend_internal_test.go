package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestArguments checks which arguments are taken though a client has changed their form.
func TestArguments(t *testing.T) {
	number := func(n int64) *int64 { return &n }
	for arguments, want := range map[string]any{
		`{"code":"1","toolsets":"[\"a\", \"b.c\"]"}`:      program{Code: "1", Toolsets: []string{"a", "b.c"}},
		`{"code":"1","toolsets":"[]"}`:                    program{Code: "1", Toolsets: []string{}},
		`{"code":"1","toolsets":" weather "}`:             program{Code: "1", Toolsets: []string{"weather"}},
		`{"code":"1","toolsets":"weather.get-x"}`:         program{Code: "1", Toolsets: []string{"weather.get-x"}},
		`{"code":"1","timeout":"5000","wait_ms":5000.0}`:  program{Code: "1", Timeout: number(5000), Wait: number(5000)},
		`{"code":"1","timeout":5e3,"toolsets":"[\"a\"]"}`: program{Code: "1", Timeout: number(5000), Toolsets: []string{"a"}},
		`{"code":"1","toolsets":"a, b"}`:                  "toolsets must be a list",
		`{"code":"1","toolsets":"[\"a\""}`:                "toolsets must be a list",
		`{"code":"1","toolsets":"[1]"}`:                   "toolsets.0 must be a string",
		`{"code":"1","toolsets":""}`:                      "toolsets must be a list",
		`{"code":"1","toolsets":{"a":1}}`:                 "toolsets must be a list",
		`{"code":"1","timeout":"5s"}`:                     "timeout must be a whole number",
		`{"code":"1","timeout":"-5"}`:                     "timeout must be a whole number",
		`{"code":"1","timeout":1.5}`:                      "timeout must be a whole number",
		`{"code":"1","timeout":1e300}`:                    "timeout must be a whole number",
		`{"code":"1","timeout":"5000","tiemout":1}`:       "tiemout is not an argument",
		`{"code":"1","timeout":5000,"timeout":1}`:         "an argument is there twice",
		`{"code":1}`: "code must be a string",
		`{"code":"1","timeout":"99999999999999999999999"}`: "timeout must be a whole number",
	} {
		var got program
		err := decode(&sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Arguments: json.RawMessage(arguments)}}, &got)
		if refusal, ok := want.(string); ok {
			if err == nil || !strings.Contains(err.Error(), refusal) {
				t.Errorf("%s: error %v, want %q", arguments, err, refusal)
			}
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(program{})); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", arguments, err, diff)
		}
	}
}
