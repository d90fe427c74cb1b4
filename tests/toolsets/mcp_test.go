package toolsets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// mcpServer is an MCP server that speaks over stdio.
const mcpServer = `
import json, os, sys
tools = [
    {"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}},
    {"name": "look", "description": "Tells what the server sees.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fails.", "inputSchema": {"type": "object"}},
    {"name": "deep", "description": "Answers with many levels.", "inputSchema": {"type": "object", "properties": {"levels": {"type": "integer"}}, "required": ["levels"]}},
    {"name": "die", "description": "Ends the server.", "inputSchema": {"type": "object"}},
]
def result(name, a):
    if name == "add":
        return {"structuredContent": {"sum": a["a"] + a["b"]}, "content": []}
    if name == "look":
        return {"content": [{"type": "text", "text": json.dumps({"names": sorted(os.environ), "pid": os.getpid()})}]}
    if name == "fail":
        return {"isError": True, "content": [{"type": "text", "text": "it cannot be done"}]}
    if name == "deep":
        return {"content": [{"type": "text", "text": "[" * a["levels"] + "]" * a["levels"]}]}
    os._exit(1)
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    answer = {"jsonrpc": "2.0", "id": m["id"]}
    if m["method"] == "initialize":
        answer["result"] = {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
    elif m["method"] == "tools/list":
        answer["result"] = {"tools": tools}
    elif m["method"] == "tools/call":
        answer["result"] = result(m["params"]["name"], m["params"].get("arguments") or {})
    else:
        answer["error"] = {"code": -32601, "message": "method not found"}
    print(json.dumps(answer), flush=True)
`

// TestMCPServers calls tools of an MCP server that the server starts, and of one that is not there.
func TestMCPServers(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		script := filepath.Join(t.TempDir(), "server.py")
		if err := os.WriteFile(script, []byte(mcpServer), 0o600); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`
toolsets:
  sums:
    trusted: true
    mcp: {command: [%s, -I, %s], env: {OWN_KEY: 0123456789abcdef0123}}
  gone:
    trusted: true
    mcp: {command: [/bin/false]}
`, harness.Python(), script)
		u := harness.NewUpstream(t)
		server := harness.ServeAlone(t, s, harness.Settings{"TOOLSETS": harness.WriteToolsets(t, u, text)})
		c := server.Alice()
		a := c.Post(t, harness.Program{Toolsets: []string{"sums"}, Code: harness.Py(`
			from fermata_tools.sums import Sums
			print(Sums.add(a=1, b=2))
			both = await asyncio.gather(Sums.aio.add(a=1, b=1), Sums.aio.add(a=2, b=2))
			print([b["sum"] for b in both])
			try:
			    Sums.fail()
			except ToolExecutionError as e:
			    print(e)
			print([type(Sums.deep(levels=n)).__name__ for n in (200, 2000)])
			print(sorted(n for n in Sums.look()["names"] if n not in ("LC_CTYPE",)))
			try:
			    Sums.die()
			except ToolExecutionError as e:
			    print("unknown" in str(e))
		`)})
		a.Completes(t, "{'sum': 3}\n[2, 4]\nit cannot be done\n['list', 'str']\n['OWN_KEY', 'PATH']\nTrue\n")
		// What died is started again, a second later.
		err := harness.Within(20*time.Second, func() error {
			a, err := c.Send(t.Context(), harness.Program{Toolsets: []string{"sums"}, Code: "from fermata_tools.sums import Sums\nprint(Sums.add(a=1, b=2))"})
			if err == nil && a.Stdout != "{'sum': 3}\n" {
				err = fmt.Errorf("got %v, want the sum", a)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(a.Raw, "0123456789abcdef0123") {
			t.Errorf("got %v, which has the key of the MCP server", a)
		}
		refused(t, c.Post(t, harness.Program{Toolsets: []string{"gone"}, Code: "print(1)"}), 503, "gone")
	})
}
