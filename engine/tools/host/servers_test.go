package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools"
	"fermata/engine/tools/host"
	"fermata/engine/tools/mcptool"
	"fermata/engine/tools/policy"
)

// TestMain runs the tests. With the argument "mcp-server" the test binary is an MCP server instead. The second
// argument says how it behaves. The third one is a directory in which it writes its process id and that of
// its child.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "mcp-server" {
		serveMCP(os.Args[2], os.Args[3])
		return
	}
	m.Run()
}

// serveMCP serves the tool tell, which answers with the environment variable TOKEN.
func serveMCP(mode, dir string) {
	child := exec.Command("/bin/sleep", "1000")
	if err := child.Start(); err != nil {
		os.Exit(1)
	}
	for _, pid := range []int{os.Getpid(), child.Process.Pid} {
		_ = os.WriteFile(filepath.Join(dir, strconv.Itoa(pid)), nil, 0o600)
	}
	is := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	switch {
	case mode == "late" && !is("up"):
		os.Exit(1)
	case mode == "hangs":
		select {}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	schema := json.RawMessage(`{"type":"object"}`)
	if mode == "changed" {
		schema = json.RawMessage(`{"type":"object","required":["why"]}`)
	}
	answer := func() (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"token": os.Getenv("TOKEN"), "mode": mode}}, nil
	}
	s.AddTool(&mcp.Tool{Name: "tell", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return answer() })
	s.AddTool(&mcp.Tool{Name: "hold", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_ = os.WriteFile(filepath.Join(dir, "held"), nil, 0o600)
		for !is("go-on") {
			time.Sleep(5 * time.Millisecond)
		}
		return answer()
	})
	_ = s.Run(context.Background(), &mcp.StdioTransport{})
}

// A crew is a group of processes of MCP servers that share a directory.
type crew struct {
	t   *testing.T
	dir string
}

func newCrew(t *testing.T) crew { return crew{t, t.TempDir()} }

// toolset returns the part of a file with a toolset of an MCP server.
func (c crew) toolset(key, mode, token string) string {
	c.t.Helper()
	self, err := os.Executable()
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprintf("  %s:\n    trusted: true\n    unmasked: true\n    mcp: {command: [%q, mcp-server, %s, %q], env: {TOKEN: %q}}\n", key, self, mode, c.dir, token)
}

// leave creates a file in the directory, as a signal for the servers.
func (c crew) leave(name string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), nil, 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// has reports whether a server has created a file in the directory.
func (c crew) has(name string) bool {
	_, err := os.Stat(filepath.Join(c.dir, name))
	return err == nil
}

// running returns the process ids of the servers and children that run.
func (c crew) running() (pids []string) {
	c.t.Helper()
	names, err := os.ReadDir(c.dir)
	if err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names {
		if _, err := strconv.Atoi(name.Name()); err != nil {
			continue
		}
		if stat, err := os.ReadFile("/proc/" + name.Name() + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
			pids = append(pids, name.Name())
		}
	}
	return pids
}

// eventually waits until is returns true. It takes seconds, or longer if the machine is busy.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so within a minute: %s", what)
		}
	}
}

// tell calls a tool of an MCP server, and returns what it tells.
func tell(t *testing.T, g *host.Grant, toolset, tool string) string {
	t.Helper()
	r, err := g.Call(t.Context(), tools.Request{Toolset: toolset, Tool: tool, Input: json.RawMessage(`{}`)})
	if err != nil {
		return err.Error()
	}
	var told struct{ Token, Mode string }
	if err := json.Unmarshal(r.Output, &told); err != nil {
		return err.Error()
	}
	return told.Mode + " " + told.Token
}

// TestLateServer asks for a toolset whose server comes up after the host.
func TestLateServer(t *testing.T) {
	c := newCrew(t)
	h := start(t, "toolsets:\n"+c.toolset("late", "late", "one"), policy.Settings{})
	eventually(t, "the toolset is unavailable", func() bool { return h.List("alice")[0].State == tools.Unavailable })
	_, err := h.Grant(t.Context(), "alice", policy.Start{Toolsets: []string{"late"}})
	if away, ok := errors.AsType[*host.UnavailableError](err); !ok || !strings.Contains(away.Reason, "its process has ended") {
		t.Errorf("before the server is up: %v", err)
	}
	c.leave("up")
	eventually(t, "the toolset is ready", func() bool { return h.List("alice")[0].State == tools.Ready })
	if got := tell(t, h.grant("late"), "late", "tell"); got != "late one" {
		t.Errorf("the server tells %q", got)
	}
	h.ends(c)
}

// TestBackOffOfServers checks, in simulated time, when a server that never starts is tried again.
func TestBackOffOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "toolsets.yaml")
		if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		file := "toolsets:\n  away: {trusted: true, mcp: {command: [/nonexistent/server]}}\n"
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		tries := make(chan time.Time, 100)
		h, err := host.Open(t.Context(), host.Options{Path: path, Log: slog.New(noted{slog.DiscardHandler, tries})})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
		close(tries)
		var waits []time.Duration
		last := <-tries
		for at := range tries {
			waits, last = append(waits, at.Sub(last).Round(time.Second)), at
		}
		want := time.Second
		for i, wait := range waits {
			if wait != want {
				t.Errorf("before try %d it waits for %v, want %v", i+2, wait, want)
			}
			want = min(2*want, 5*time.Minute)
		}
		if len(waits) < 15 {
			t.Errorf("in an hour it was tried %d times again", len(waits))
		}
	})
}

// noted is a log handler that notes when an MCP server was found to be unavailable.
type noted struct {
	slog.Handler
	at chan<- time.Time
}

func (n noted) Enabled(context.Context, slog.Level) bool { return true }

func (n noted) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "the MCP server of a toolset is unavailable" {
		n.at <- r.Time
	}
	return nil
}

// TestServerRemoved removes an MCP toolset from the file while it is used. Executions that have started with
// it keep it, and its processes end with the last of them.
func TestServerRemoved(t *testing.T) {
	c := newCrew(t)
	h := start(t, base+c.toolset("told", "plain", "one"), policy.Settings{})
	g := h.grant("told")
	if got := tell(t, g, "told", "tell"); got != "plain one" {
		t.Fatalf("the server tells %q", got)
	}
	held := make(chan string, 1)
	go func() { held <- tell(t, g, "told", "hold") }()
	eventually(t, "a call is under way", func() bool { return c.has("held") })

	h.change(base)
	if _, err := h.Grant(t.Context(), "alice", policy.Start{Toolsets: []string{"told"}}); err == nil {
		t.Error("a start gets a toolset that is gone")
	}
	c.leave("go-on")
	if got := <-held; got != "plain one" {
		t.Errorf("the call that was under way tells %q", got)
	}
	if got := tell(t, g, "told", "tell"); got != "plain one" {
		t.Errorf("a call of an execution that has started before tells %q", got)
	}
	if running := c.running(); len(running) != 4 { // The servers of the host and of alice, each with a child.
		t.Errorf("these run: %v, want two servers with a child each", running)
	}
	g.Release()
	eventually(t, "all processes have ended", func() bool { return len(c.running()) == 0 })
}

// TestServerRemovedWhileItStarts removes an MCP toolset from the file before its server has answered.
func TestServerRemovedWhileItStarts(t *testing.T) {
	c := newCrew(t)
	h := start(t, base+c.toolset("told", "hangs", "one"), policy.Settings{})
	eventually(t, "the server runs", func() bool { return len(c.running()) == 2 })
	g := h.grant("weather")
	if got := key(t, g); got != "16" {
		t.Errorf("beside a server that hangs the endpoint got a key of %s characters, want 16", got)
	}
	g.Release() // While there is a grant, the whole former generation stays open.
	h.change(base)
	eventually(t, "its processes have ended", func() bool { return len(c.running()) == 0 })
	if got := key(t, h.grant("weather")); got != "16" {
		t.Errorf("the endpoint got a key of %s characters, want 16", got)
	}
}

// TestServerChanged changes an MCP toolset while it is used. Calls are made with the present secrets as long
// as the definition of the tool is the same, and the processes of each generation end with it.
func TestServerChanged(t *testing.T) {
	c := newCrew(t)
	h := start(t, base+c.toolset("told", "plain", "one"), policy.Settings{})
	g := h.grant("told")
	if got := tell(t, g, "told", "tell"); got != "plain one" {
		t.Fatalf("the server tells %q", got)
	}
	h.change(base + c.toolset("told", "plain", "two"))
	if got := tell(t, g, "told", "tell"); got != "plain two" {
		t.Errorf("with another secret the server tells %q", got)
	}
	h.change(base + c.toolset("told", "changed", "three"))
	if got := tell(t, h.grant("told"), "told", "tell"); !strings.Contains(got, "why") {
		t.Errorf("a tool with another schema takes the old input, and tells %q", got)
	}
	// The tools of an MCP server belong to its connection, so the former server is used.
	if got := tell(t, g, "told", "tell"); got != "plain one" {
		t.Errorf("an execution that has started before is told %q", got)
	}
	g.Release()
	h.change(base)
	eventually(t, "only what the last grant keeps runs", func() bool { return len(c.running()) <= 4 })
	h.ends(c)
}

// ends closes the host, after which no process of a crew may run. A killed process may take a moment to end.
func (h *house) ends(c crew) {
	h.t.Helper()
	if err := h.Close(h.t.Context()); err != nil {
		h.t.Error(err)
	}
	eventually(h.t, "nothing runs after the host has closed", func() bool { return len(c.running()) == 0 })
}

// TestSessionsOfPrincipal opens toolsets again. The sessions of former and present toolsets count together
// against the limit of a principal.
func TestSessionsOfPrincipal(t *testing.T) {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "tell", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: map[string]any{"token": "t", "mode": "web"}}, nil
	})
	endpoint := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(endpoint.Close)
	const half = mcptool.MaxSessions/2 + 1
	file := func(secret string) string {
		var text strings.Builder
		text.WriteString(base)
		for i := range half {
			fmt.Fprintf(&text, "  web%d: {private: true, mcp: {url: %q, headers: {X-Api-Key: %q}}}\n", i, endpoint.URL, secret)
		}
		return text.String()
	}
	h := start(t, file("0123456789abcdef"), policy.Settings{})
	told := map[string]int{}
	for range 2 {
		for i := range half {
			key := fmt.Sprintf("web%d", i)
			told[tell(t, h.grant(key), key, "tell")]++
		}
		h.change(file("0123456789abcdefghij"))
	}
	if told["web t"] != mcptool.MaxSessions || len(told) != 2 {
		t.Errorf("of %d calls in as many sessions these were the results: %v", 2*half, told)
	}
}
