package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// asMCPServer makes the test binary an MCP server over its standard input and output.
const asMCPServer = "TEST_AS_MCP_SERVER"

// serveMCP is the MCP server.
func serveMCP() {
	fmt.Fprintln(os.Stderr, "ready\x1b[1m", os.Getenv("TOKEN"))
	if err := newMCPServer().Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// newMCPServer returns an MCP server that tells what it knows.
func newMCPServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	add := func(name, description, schema string, run func(r *mcp.CallToolRequest) *mcp.CallToolResult) {
		server.AddTool(&mcp.Tool{Name: name, Description: description, InputSchema: json.RawMessage(schema)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return run(r), nil
		})
	}
	text := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	echo := func(r *mcp.CallToolRequest) *mcp.CallToolResult { return text(string(r.Params.Arguments)) }
	add("echo", "Returns its input. "+os.Getenv("TOKEN"), `{"type": "object", "properties": {"n": {"type": "integer"}}}`, echo)
	add("echo.text", "", `{"type": "object"}`, echo)
	add("fail", "", `{"type": "object"}`, func(*mcp.CallToolRequest) *mcp.CallToolResult {
		failed := text("wrong token " + os.Getenv("TOKEN") + "\x1b[1m")
		failed.IsError = true
		return failed
	})
	add("know", "", `{"type": "object"}`, func(*mcp.CallToolRequest) *mcp.CallToolResult {
		return text(strings.Join(os.Environ(), "\n"))
	})
	add("key", "", `{"type": "object"}`, func(r *mcp.CallToolRequest) *mcp.CallToolResult {
		return text(fmt.Sprintf("a key of %d bytes, %q", len(r.Extra.Header.Get("X-Api-Key")), r.Extra.Header.Get("X-Api-Key")))
	})
	add("wrong", "", `{"type": "object", "properties": {"p": {"pattern": "("}}}`, echo)
	return server
}

const mcpFile = `toolsets:
  files:
    trusted: true
    mcp: {command: [EXE], env: {TEST_AS_MCP_SERVER: "1", TOKEN: "${KEY}"}, tools: {wrong: {hide: true}, echo.text: {text: true}}}
  some:
    trusted: true
    mcp: {command: [EXE], env: {TEST_AS_MCP_SERVER: "1"}, tools: [echo]}
  missing:
    trusted: true
    mcp: {command: [EXE], env: {TEST_AS_MCP_SERVER: "1"}, tools: {wrong: {hide: true}, delete: {approval: always}}}
  wrong:
    trusted: true
    mcp: {command: [EXE], env: {TEST_AS_MCP_SERVER: "1"}}
  ends:
    trusted: true
    mcp: {command: ["/bin/false"]}
  nowhere:
    trusted: true
    mcp: {command: ["/there/is/no/such-server"]}
  web:
    private: true
    mcp: {url: URL/mcp, headers: {X-Api-Key: "${KEY}"}, tools: [echo, key]}
  public:
    mcp: {url: URL/mcp}
`

// mcpShell returns a shell with toolsets of MCP servers.
func mcpShell(t *testing.T) shell {
	t.Helper()
	server := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return newMCPServer() }, nil))
	t.Cleanup(server.Close)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return newShell(t, map[string]string{"toolsets.yaml": strings.NewReplacer("URL", server.URL, "EXE", exe).Replace(mcpFile)})
}

func TestToolsetsMCP(t *testing.T) {
	s := mcpShell(t)
	const missing = "fermata: the toolset missing is unavailable: the file names tools that it does not offer: delete\n"
	for name, c := range map[string]struct {
		line, stdout, stderr string
		status               int
	}{
		"stdio":         {`call toolsets.yaml files.echo '{"n": 9007199254740993}'`, `{"n":9007199254740993}` + "\n", "", 0},
		"text":          {`call toolsets.yaml files.echo.text '{"n": 1}'`, `"{\"n\":1}"` + "\n", "", 0},
		"T10 a failure": {`call toolsets.yaml files.fail`, "", "fermata: wrong token ***\\x1b[1m\n", 1},
		"a wrong input": {`call toolsets.yaml files.echo '{"n": "x"}'`, "", "fermata: n must be a whole number, not a text\n", 1},
		"no tool":       {`call toolsets.yaml some.fail`, "", "fermata: the toolset some has no tool \"fail\"\n", 1},
		"hidden":        {`call toolsets.yaml files.wrong`, "", "fermata: the toolset files has no tool \"wrong\"\n", 1},
		"T13 rules":     {`call toolsets.yaml missing.echo`, "", missing, 1},
		"T13 docs":      {`docs toolsets.yaml missing`, "", missing, 1},
		"T7 a schema":   {`call toolsets.yaml wrong.echo`, "{}\n", "", 0},
		"ends":          {`call toolsets.yaml ends.echo`, "", "fermata: the toolset ends is unavailable: its process has ended, or it has closed the connection\n", 1},
		"no command":    {`call toolsets.yaml nowhere.echo`, "", "fermata: the toolset nowhere is unavailable: its command cannot be started\n", 1},
		"HTTP":          {`call toolsets.yaml web.echo '{"n": 1}'`, `{"n":1}` + "\n", "", 0},
		"T10 a header":  {`call toolsets.yaml web.key`, `"a key of 25 bytes, \"***\""` + "\n", "", 0},
		"T5 private":    {`call toolsets.yaml public.echo '{"n": 1}'`, "", "fermata: the toolset public is unavailable: ", 1},
		"stub":          {`stub toolsets.yaml files`, "\n    def echo(n: int = None, ", "", 0},
		"docs":          {`docs toolsets.yaml files`, "\n- `Files.echo(n=)`: \"Returns its input. ***\"\n", "", 0},
		"verbose":       {`call --verbose toolsets.yaml files.echo`, "{}\n", "ready", 0},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, stderr, status := s.run(t, "fermata toolsets "+c.line)
			if !strings.Contains(stdout, c.stdout) || c.stdout == "" && stdout != "" || !strings.Contains(stderr, c.stderr) || c.stderr == "" && stderr != "" || status != c.status {
				t.Errorf("status %d; got\n%s%s\nwant\n%s%s", status, stdout, stderr, c.stdout, c.stderr)
			}
			if all := stdout + stderr; strings.Contains(all, "secret of") || strings.Contains(all, "\x1b") {
				t.Errorf("a secret or a control character is printed: %q", all)
			}
		})
	}
}

// TestT17Environment asks a server over standard input and output what it knows.
func TestT17Environment(t *testing.T) {
	t.Setenv("OF_THE_SERVER", "1")
	stdout, stderr, status := mcpShell(t).run(t, "fermata toolsets call toolsets.yaml files.know")
	var text string
	if err := json.Unmarshal([]byte(stdout), &text); err != nil || status != 0 {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	for line := range strings.Lines(text) {
		if name, _, _ := strings.Cut(line, "="); name != "TEST_AS_MCP_SERVER" && name != "TOKEN" && name != "PATH" {
			t.Errorf("the server knows %s", line)
		}
	}
	if !strings.Contains(text, "TOKEN=***") {
		t.Errorf("got %s", text)
	}
}
