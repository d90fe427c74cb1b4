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

// What cannot be checked of one tool's schema takes neither the tool nor its server away.
func TestMCPOddSchemas(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	for name, schema := range map[string]string{
		"fine":   `{"type": "object", "properties": {"n": {"type": "integer"}}}`,
		"ahead":  `{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string", "pattern": "^(?!a)"}}}`,
		"beyond": `{"type": "object", "properties": {"n": {"type": "integer"}, "s": {"$ref": "https://example.com/s"}}}`,
	} {
		server.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
		})
	}
	serve := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil).ServeHTTP
	o := open(t, "toolsets: {api: {private: true, mcp: {url: URL/mcp}}}\n", "", serve)
	for name, wrong := range map[string]string{"fine": "n must be a whole number, not a text", "ahead": "n must be a whole number, not a text", "beyond": ""} {
		if got, err := o.call(t, name, `{"n":1,"s":"a"}`); err != nil || got != `{"n":1,"s":"a"}` {
			t.Errorf("%s: %s, %v", name, got, err)
		}
		if got, err := o.call(t, name, `{"n":"x"}`); wrong != "" {
			mustFail(t, err, wrong)
		} else if err != nil {
			t.Errorf("%s: its input is checked, although its schema cannot be: %s, %v", name, got, err)
		}
	}
	notes := strings.Join(o.Toolsets()[0].Notes, "\n")
	for _, want := range []string{
		`inputs of "ahead" are not checked against "properties.s.pattern", which is not a regular expression of RE2`,
		`inputs of "beyond" are not checked: the schema refers to something outside of itself`,
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes are\n%s\nwhich lack %s", notes, want)
		}
	}
	unchecked := open(t, "toolsets: {api: {private: true, validate: false, mcp: {url: URL/mcp}}}\n", "", serve)
	if got, err := unchecked.call(t, "fine", `{"n":"x"}`); err != nil {
		t.Errorf("with validate: false: %s, %v", got, err)
	}
	if notes := unchecked.Toolsets()[0].Notes; len(notes) > 0 {
		t.Errorf("with validate: false there are notes: %q", notes)
	}
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
