package tools_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools"
)

func TestMCP(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	say := func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.Header.Get("X-Api-Key") + string(r.Params.Arguments)}}}, nil
	}
	const schema = `{"type": "object", "properties": {"n": {"type": "integer"}}}`
	for _, name := range []string{"say", "hidden"} {
		server.AddTool(&mcp.Tool{Name: name, Description: "Says it.", InputSchema: json.RawMessage(schema)}, say)
	}
	const file = `toolsets:
  api:
    private: true
    mcp:
      url: URL/mcp
      headers: {X-Api-Key: "${KEY}"}
      tools: {say: {cost: 2}, hidden: {hide: true}}
`
	o := open(t, file, "", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil).ServeHTTP)
	if s := o.Toolsets()[0]; s.State != tools.Starting {
		t.Errorf("before the first call the toolset is %+v", s)
	}
	got, err := o.call(t, "say", `{"n": 9007199254740993}`)
	if err != nil || got != `"***{\"n\":9007199254740993}"` {
		t.Errorf("got %s, %v", got, err)
	}
	s := o.Toolsets()[0]
	if s.State != tools.Ready || s.Source != "mcp" || len(s.Tools) != 1 || s.Tools[0].Description != "Says it." || s.Tools[0].Rules.Cost != 2 || s.Tools[0].Idempotent {
		t.Errorf("got %+v", s)
	}
	_, err = o.call(t, "say", `{"n": "x"}`)
	mustFail(t, err, "n must be a whole number, not a text")
	_, err = o.call(t, "hidden", `{}`)
	mustFail(t, err, `the toolset api has no tool "hidden"`)
}

func TestMCPUnavailable(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"no tool of that name": {"{url: URL/mcp, tools: [gone]}", "the toolset api is unavailable: it answered with the HTTP status 404"},
		"no command":           {"{command: [/nowhere/server]}", "the toolset api is unavailable: its command cannot be started"},
	} {
		t.Run(name, func(t *testing.T) {
			file := "toolsets: {api: {private: true, mcp: " + c.file + "}}\n"
			if strings.Contains(c.file, "command") {
				file = strings.Replace(file, "private", "trusted", 1)
			}
			_, err := open(t, file, "", http.NotFound).call(t, "gone", `{}`)
			mustFail(t, err, c.want)
		})
	}
}
