package tools_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"fermata/engine/tools"
	"fermata/stubs"
)

// A realServer is an MCP server of npm or PyPI, and what becomes of it as a toolset.
type realServer struct {
	pack string   // with its registry and version
	run  []string // the program of the package and its arguments; DIR is an empty directory
	env  string   // such as "NAME=value OTHER=value"
	// tools is how many tools the server offers, and notes how many notes the toolset has about them.
	tools, notes int
	// tool is called with input, and its result or its failure contains want. It is empty if calls need a network, a key or a project.
	tool, input, want string
}

// String returns the row of the server in the table of docs/compatibility.md.
func (s realServer) String() string {
	called, result := "–", "lists its tools; not called"
	if s.tool != "" {
		called, result = "`"+s.tool+"`", "`"+s.want+"`"
	}
	return fmt.Sprintf("| `%s` | %d tools, %d notes | %s | %s |", s.pack, s.tools, s.notes, called, result)
}

const maker = "npm:@modelcontextprotocol/"

// realServers returns the servers of the table in docs/compatibility.md.
func realServers() []realServer {
	return []realServer{
		{maker + "server-everything@2026.8.31", []string{"mcp-server-everything"}, "", 13, 0, "echo", `{"message":"hello"}`, "Echo: hello"},
		{maker + "server-filesystem@2026.8.31", []string{"mcp-server-filesystem", "DIR"}, "", 14, 0, "write_file", `{"path":"DIR/a.txt","content":"x"}`, "Successfully wrote to"},
		{maker + "server-memory@2026.8.31", []string{"mcp-server-memory"}, "MEMORY_FILE_PATH=DIR/m.json", 9, 0, "create_entities", `{"entities":[{"name":"Ada","entityType":"person","observations":["writes"]}]}`, "Ada"},
		{maker + "server-sequential-thinking@2026.8.31", []string{"mcp-server-sequential-thinking"}, "", 1, 0, "sequentialthinking", `{"thought":"a","nextThoughtNeeded":false,"thoughtNumber":1,"totalThoughts":1}`, "thoughtHistoryLength"},
		{maker + "server-pdf@2.0.4", []string{"mcp-pdf-server", "--stdio"}, "", 9, 0, "list_pdfs", `{}`, "localFiles"},
		{maker + "server-map@2.0.3", []string{"mcp-map-server", "--stdio"}, "", 2, 0, "show-map", `{"west":1,"south":1,"east":2,"north":2}`, "W:1.0000"},
		{maker + "server-budget-allocator@2.0.3", []string{"mcp-budget-allocator-server", "--stdio"}, "", 1, 0, "get-budget-data", `{}`, "categories"},
		{"npm:@notionhq/notion-mcp-server@2.5.2", []string{"notion-mcp-server"}, "NOTION_TOKEN=lantern-of-the-harbour", 24, 0, "", "", ""},
		{"npm:tavily-mcp@0.2.22", []string{"tavily-mcp"}, "TAVILY_API_KEY=lantern-of-the-harbour", 5, 0, "", "", ""},
		{"npm:@hubspot/mcp-server@0.4.0", []string{"mcp-hubspot"}, "PRIVATE_APP_ACCESS_TOKEN=lantern-of-the-harbour", 21, 0, "", "", ""},
		{"npm:@upstash/context7-mcp@4.1.1", []string{"context7-mcp"}, "", 2, 0, "", "", ""},
		{"npm:@elastic/mcp-server-elasticsearch@0.3.1", []string{"mcp-server-elasticsearch"}, "ES_URL=http://127.0.0.1:9 ES_API_KEY=lantern-of-the-harbour", 4, 0, "", "", ""},
		{"npm:exa-mcp-server@3.4.1", []string{"exa-mcp-server"}, "EXA_API_KEY=lantern-of-the-harbour", 2, 0, "", "", ""},
		{"npm:@eslint/mcp@0.3.13", []string{"mcp"}, "", 1, 0, "", "", ""},
		{"npm:figma-developer-mcp@0.13.2", []string{"figma-developer-mcp", "--stdio"}, "FIGMA_API_KEY=lantern-of-the-harbour", 2, 0, "", "", ""},
		{"npm:@antv/mcp-server-chart@0.9.10", []string{"mcp-server-chart"}, "", 27, 0, "", "", ""},
		{"npm:@brightdata/mcp@2.11.3", []string{"mcp"}, "API_TOKEN=lantern-of-the-harbour", 5, 0, "", "", ""},
		{"npm:@sentry/mcp-server@0.39.0", []string{"sentry-mcp"}, "SENTRY_ACCESS_TOKEN=lantern-of-the-harbour", 9, 0, "", "", ""},
		{"npm:mcp-server-kubernetes@4.1.7", []string{"mcp-server-kubernetes"}, "", 23, 0, "", "", ""},
		{"npm:firecrawl-mcp@3.26.0", []string{"firecrawl-mcp"}, "FIRECRAWL_API_KEY=lantern-of-the-harbour", 29, 0, "", "", ""},
		{"pypi:mcp-server-time==2026.10.19", []string{"mcp-server-time"}, "", 2, 0, "convert_time", `{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokyo"}`, "T21:00:00+09:00"},
		{"pypi:mcp-server-git==2026.10.19", []string{"mcp-server-git"}, "", 12, 0, "", "", ""},
		{"pypi:mcp-server-fetch==2026.10.24", []string{"mcp-server-fetch"}, "", 1, 0, "", "", ""},
		{"pypi:mcp-server-sqlite==2025.4.25 mcp<2", []string{"mcp-server-sqlite", "--db-path", "DIR/x.db"}, "", 6, 0, "read_query", `{"query":"SELECT 40 + 2 AS n"}`, "{'n': 42}"},
		{"pypi:mcp-server-calculator==0.2.1", []string{"mcp-server-calculator"}, "", 1, 0, "calculate", `{"expression":"6*7"}`, "42"},
		{"pypi:duckduckgo-mcp-server==0.7.0", []string{"duckduckgo-mcp-server"}, "", 3, 0, "", "", ""},
	}
}

// TestRealServers installs MCP servers of npm and PyPI, opens each as a toolset, and compares what becomes of it with
// the table in docs/compatibility.md. It is skipped without FERMATA_TEST_COMPAT=1. What is installed stays in
// FERMATA_TEST_COMPAT_DIR if that is set.
func TestRealServers(t *testing.T) {
	page, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	servers := realServers()
	for _, s := range servers {
		if !strings.Contains(string(page), "\n"+s.String()+"\n") {
			t.Errorf("the table lacks the row\n%s", s)
		}
	}
	for _, kind := range []string{"npm", "pypi"} {
		rows := strings.Count(string(page), "\n| `"+kind+":")
		for _, s := range servers {
			if strings.HasPrefix(s.pack, kind) {
				rows--
			}
		}
		if rows != 0 {
			t.Errorf("the table has %d rows of %s more than there are servers", rows, kind)
		}
	}
	if os.Getenv("FERMATA_TEST_COMPAT") != "1" {
		return
	}
	root := os.Getenv("FERMATA_TEST_COMPAT_DIR")
	if root == "" {
		root = t.TempDir()
	}
	for _, s := range servers {
		t.Run(s.pack, func(t *testing.T) { tryServer(t, s, root) })
	}
}

// tryServer compares one server with its row.
func tryServer(t *testing.T, s realServer, root string) {
	empty := t.TempDir()
	inside := func(text string) string { return strings.ReplaceAll(text, "DIR", empty) }
	command, env := install(t, root, s)
	for i := range command {
		command[i] = inside(command[i])
	}
	quoted, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	var entries []string
	for entry := range strings.FieldsSeq(inside(env)) {
		name, value, _ := strings.Cut(entry, "=")
		entries = append(entries, fmt.Sprintf("%q: %q", name, value))
	}
	// Open replaces the word URL, so that the name of a variable must be without it.
	file := fmt.Sprintf("toolsets: {api: {trusted: true, mcp: {timeout: 120s, start_timeout: 90s, command: %s, env: {%s}}}}\n", quoted, strings.ReplaceAll(strings.Join(entries, ", "), "URL", `\x55RL`))
	start := time.Now()
	o := open(t, file, "", echo)
	toolset, err := o.Toolset(t.Context(), "api")
	if err != nil || toolset.State != tools.Ready {
		t.Fatalf("%s: %s, %v", toolset.State, toolset.Reason, err)
	}
	took := time.Since(start)
	got := s
	got.tools, got.notes = len(toolset.Tools), len(toolset.Notes)
	if got.tools != s.tools || got.notes != s.notes {
		t.Errorf("the row must be\n%s", got)
	}
	for _, note := range toolset.Notes {
		t.Log(note)
	}
	checkOrder(t, toolset, listed(t, command, inside(env)))
	if s.tool != "" {
		result, err := o.call(t, s.tool, inside(s.input))
		if text := fmt.Sprint(result, err); !strings.Contains(text, s.want) {
			t.Errorf("%s returns %.500s", s.tool, text)
		}
	}
	t.Logf("ready within %s: %d tools, %d notes", took.Round(time.Millisecond), got.tools, got.notes)
}

// install installs the package of a server below root, unless it is there, and returns the command that starts the
// server, and its environment.
func install(t *testing.T, root string, s realServer) (command []string, env string) {
	t.Helper()
	registry, name, _ := strings.Cut(s.pack, ":")
	dir := filepath.Join(root, registry+"-"+strings.NewReplacer("/", "+", " ", "+").Replace(name))
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir}
	command, env = append([]string{filepath.Join(dir, "node_modules", ".bin", s.run[0])}, s.run[1:]...), s.env
	if registry == "pypi" {
		args = []string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", dir}
		command = append([]string{python, filepath.Join(dir, "bin", s.run[0])}, s.run[1:]...)
		env = "PYTHONPATH=" + dir + " " + env
	}
	if _, err := os.Stat(dir); err != nil {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), args[0], append(args[1:], strings.Fields(name)...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, out)
		}
	}
	return command, env
}

// listed asks a server for its tools, without a toolset, and returns the names of their parameters as they are declared.
func listed(t *testing.T, command []string, env string) map[string][]string {
	t.Helper()
	server := exec.CommandContext(t.Context(), command[0], command[1:]...)
	server.Env = []string{"PATH=" + os.Getenv("PATH")}
	server.Env = append(server.Env, strings.Fields(env)...)
	in, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = in.Close()
		_ = server.Process.Kill()
		_ = server.Wait()
	}()
	stop := time.AfterFunc(90*time.Second, func() { _ = server.Process.Kill() })
	defer stop.Stop()
	answers := bufio.NewReaderSize(io.LimitReader(out, 16<<20), 1<<20)
	ask := func(id int, message string) json.RawMessage {
		if _, err := io.WriteString(in, message+"\n"); err != nil {
			t.Fatal(err)
		}
		for {
			line, err := answers.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var m struct {
				ID     json.RawMessage `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if json.Unmarshal(line, &m) == nil && string(m.ID) == strconv.Itoa(id) && m.Result != nil {
				return m.Result
			}
		}
	}
	ask(1, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if _, err := io.WriteString(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"); err != nil {
		t.Fatal(err)
	}
	var list struct {
		Tools []struct {
			Name        string `json:"name"`
			InputSchema struct {
				Properties json.RawMessage `json:"properties"`
			} `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(ask(2, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`), &list); err != nil {
		t.Fatal(err)
	}
	declared := map[string][]string{}
	for _, tool := range list.Tools {
		declared[tool.Name] = members(t, tool.InputSchema.Properties)
	}
	return declared
}

// members returns the names of the members of a JSON object in their order.
func members(t *testing.T, object json.RawMessage) []string {
	t.Helper()
	names := []string{}
	if len(object) == 0 {
		return names
	}
	d := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		name, err := d.Token()
		var skipped json.RawMessage
		if err == nil {
			err = d.Decode(&skipped)
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name.(string))
	}
	return names
}

// parametersOf is a Python program that prints, for each method of a module, its positional parameters without a
// default, and its others.
const parametersOf = `
import ast, json, sys
methods = {}
for node in ast.walk(ast.parse(sys.stdin.buffer.read())):
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        a = node.args
        names = [p.arg for p in a.posonlyargs + a.args if p.arg not in ("self", "cls")]
        first = len(names) - len(a.defaults)
        methods[node.name] = [names[:first], names[first:] + [p.arg for p in a.kwonlyargs]]
print(json.dumps(methods))
`

// checkOrder checks that the module of a toolset can be parsed, and that the parameters of each method have the order in
// which the server declares them: first those that are required, then the others.
func checkOrder(t *testing.T, toolset tools.Toolset, declared map[string][]string) {
	t.Helper()
	s := toolset.ForPrograms()
	module, err := stubs.PythonModule(s)
	if err != nil {
		t.Fatal(err)
	}
	python := exec.CommandContext(t.Context(), "python3", "-I", "-c", parametersOf)
	python.Stdin = strings.NewReader(module)
	out, err := python.CombinedOutput()
	if err != nil {
		t.Fatalf("the module cannot be parsed: %v: %s", err, out)
	}
	var methods map[string][2][]string
	if err := json.Unmarshal(out, &methods); err != nil {
		t.Fatal(err)
	}
	known := 0
	for _, tool := range s.Tools {
		names, offered := declared[tool.Name]
		method, found := methods[stubs.Method(tool.Name)]
		if !offered || !found {
			t.Errorf("%s: declared: %v, a method: %v", tool.Name, offered, found)
			continue
		}
		for _, group := range method {
			last := -1
			for _, parameter := range group {
				i := slices.IndexFunc(names, func(name string) bool { return stubs.Identifier(name) == parameter })
				if i < 0 {
					t.Logf("%s: %s is not the name of a property", tool.Name, parameter)
					continue
				}
				if known++; i < last {
					t.Errorf("%s: the parameters are %v, and declared are %v", tool.Name, method, names)
				}
				last = i
			}
		}
	}
	t.Logf("%d parameters are in their order", known)
}
