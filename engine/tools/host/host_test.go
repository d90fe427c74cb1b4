package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
	"fermata/engine/tools/source"
)

// A buffer is a log that may be read while it is written.
type buffer struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// A house is a host with its toolsets file and an endpoint.
type house struct {
	*host.Host
	t      *testing.T
	path   string
	url    string
	log    buffer
	reread chan os.Signal
}

// start opens a host for a file in which URL stands for the endpoint, which tells the X-Api-Key and the
// path of each request.
func start(t *testing.T, file string, settings policy.Settings) *house {
	t.Helper()
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(len(r.Header.Get("X-Api-Key")))
	}))
	t.Cleanup(endpoint.Close)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, path: filepath.Join(dir, "toolsets.yaml"), url: endpoint.URL, reread: make(chan os.Signal)}
	h.write(file)
	var err error
	h.Host, err = host.Open(t.Context(), host.Options{
		Path: h.path, Settings: settings, Log: slog.New(slog.NewTextHandler(&h.log, nil)), Reread: h.reread,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// write puts a new file in the place of the old one.
func (h *house) write(file string) {
	h.t.Helper()
	next := h.path + ".new"
	if err := os.WriteFile(next, []byte(strings.ReplaceAll(file, "URL", h.url)), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Rename(next, h.path); err != nil {
		h.t.Fatal(err)
	}
}

// change puts a new file in the place of the old one and lets the host read it.
func (h *house) change(file string) {
	h.t.Helper()
	h.write(file)
	h.reread <- os.Interrupt
	h.reread <- os.Interrupt // This is received when the first reading is over.
}

// grant returns the grant of a start.
func (h *house) grant(names ...string) *host.Grant {
	h.t.Helper()
	g, err := h.Grant(h.t.Context(), "alice", policy.Start{Toolsets: names})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(g.Release)
	return g
}

// key calls the tool weather.current, and returns the length of the X-Api-Key that the endpoint got.
func key(t *testing.T, g *host.Grant) string {
	t.Helper()
	r, err := g.Call(t.Context(), tools.Request{Toolset: "weather", Tool: "current", Input: json.RawMessage(`{"city": "Paris"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return string(r.Output)
}

const base = `toolsets:
  weather:
    title: Weather
    description: Current weather.
    private: true
    http:
      base_url: URL
      headers: {X-Api-Key: "0123456789abcdef"}
      tools:
        - {name: current, description: Weather now., method: GET, path: "/{city}", parameters: {type: object, properties: {city: {type: string, description: Name of a place}}, required: [city]}}
        - {name: forecast, description: Weather of the next days., method: GET, path: /forecast}
        - {name: admin, method: POST, path: /admin, callers: [direct]}
  orders:
    private: true
    http:
      base_url: URL
      tools: [{name: listOrders, description: Orders of a customer., method: GET, path: /orders}]
`

func TestGrant(t *testing.T) {
	h := start(t, base+"policies: {few: {allow: [weather.current]}}\nprincipals: {bob: few}\n", policy.Settings{Block: []string{"weather.forecast"}})
	if got := h.grant("weather").Tools; len(got) != 1 || got[0].Tool != "current" {
		t.Errorf("got %v: want the tool that is neither blocked nor for direct calls only", got)
	}
	for _, c := range []struct {
		who, name, want string
	}{
		{"alice", "weather.admin", "the tool weather.admin may not be used: its callers do not include code, which is for calls that programs make"},
		{"alice", "weather.forecast", "the tool weather.forecast may not be used: FERMATA_TOOLSETS_BLOCK blocks it"},
		{"alice", "wether", `there is no toolset "wether"`},
		{"alice", "weather.none", `the toolset weather has no tool "none"`},
		{"bob", "orders", "the toolset orders may not be used: the policy few does not allow it"},
	} {
		if _, err := h.Grant(t.Context(), c.who, policy.Start{Toolsets: []string{c.name}}); err == nil || err.Error() != c.want {
			t.Errorf("%s asks for %s: got %v, want %s", c.who, c.name, err, c.want)
		}
	}
}

func TestUnavailable(t *testing.T) {
	h := start(t, base+"  away:\n    private: true\n    mcp: {url: \"http://127.0.0.1:1/mcp\"}\n", policy.Settings{})
	_, err := h.Grant(t.Context(), "alice", policy.Start{Toolsets: []string{"away"}})
	unavailable, ok := errors.AsType[*host.UnavailableError](err)
	if !ok || unavailable.Toolset != "away" || unavailable.Reason == "" {
		t.Errorf("got %v, want that the toolset is unavailable", err)
	}
	if _, err := h.Docs(t.Context(), "alice", "away"); !errors.As(err, &unavailable) {
		t.Errorf("docs: got %v, want that the toolset is unavailable", err)
	}
	list := h.List("alice")
	if len(list) != 3 || list[2].State != tools.Unavailable {
		t.Errorf("got %v, want that the list tells of it", list)
	}
}

func TestReload(t *testing.T) {
	h := start(t, base, policy.Settings{})
	g := h.grant("weather")
	if got := key(t, g); got != "16" {
		t.Fatalf("the endpoint got a key of %s characters, want 16", got)
	}
	h.change(strings.ReplaceAll(base, "0123456789abcdef", "0123456789abcdefghij"))
	if got := key(t, g); got != "20" {
		t.Errorf("the endpoint got a key of %s characters, want 20: secrets are those of the moment", got)
	}
	h.change(strings.ReplaceAll(strings.ReplaceAll(base, "name: current", "name: currently"), "0123456789abcdef", "0123456789abcdefghijklmn"))
	if got := key(t, g); got != "24" {
		t.Errorf("the endpoint got a key of %s characters, want 24: a tool that is gone stays for who has started with it, with the secrets of the moment", got)
	}
	_, after, _ := strings.Cut(base, "  orders:")
	h.change("toolsets:\n  orders:" + after)
	if got := key(t, g); got != "16" {
		t.Errorf("the endpoint got a key of %s characters, want 16: a toolset that is gone stays as it was", got)
	}
	if got := g.Toolsets(); len(got) != 1 || got[0].Tools[0].Name != "current" {
		t.Errorf("got %v, want the tools of the start", got)
	}
	h.change("toolsets: {weather: 7}\n")
	if got := h.List("alice"); len(got) != 1 || !strings.Contains(h.log.String(), "toolsets.yaml:1") {
		t.Errorf("got %v and the log %s, want the former toolsets, and the place of the mistake", got, h.log.String())
	}
}

func TestReloadByItself(t *testing.T) {
	h := start(t, base, policy.Settings{})
	h.write(base + "policies: {none: {mode: \"off\"}}\nprincipals: {alice: none}\n")
	for begin := time.Now(); len(h.List("alice")) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 20*time.Second {
			t.Fatal("the host has not read the file again")
		}
	}
}

func TestPolicyOfTheMoment(t *testing.T) {
	h := start(t, base, policy.Settings{})
	g := h.grant("weather")
	approval := func(want, message string) {
		t.Helper()
		got, err := g.Approval(g.Tools[0])
		failed, _ := errors.AsType[*source.CallError](err)
		if got != want || (failed != nil) != (message != "") || failed != nil && failed.Message != message {
			t.Errorf("got %q, %v; want %q, %s", got, err, want, message)
		}
	}
	approval("", "")
	h.change(strings.ReplaceAll(base, "Weather now.,", "Weather now., approval: operator,"))
	approval(config.ApprovalOperator, "")
	h.change(strings.ReplaceAll(base, "Weather now.,", "Weather now., callers: [direct],"))
	approval("", "the tool weather.current may not be used: its callers do not include code, which is for calls that programs make")
	h.change(base + "policies: {few: {block: [weather]}}\nprincipals: {alice: few}\n")
	approval("", "the tool weather.current may not be used: the policy few blocks it")
}

func TestViews(t *testing.T) {
	h := start(t, base, policy.Settings{Block: []string{"weather.forecast"}})
	found, err := h.Find(t.Context(), "alice", []string{"orders", "weather.current", "weather"})
	if err != nil || len(found) != 2 || found[0].Key != "orders" || len(found[1].Tools) != 2 {
		t.Errorf("found %v, %v", found, err)
	}
	stub, err := h.Stub(t.Context(), "alice", "weather", false)
	if err != nil || !strings.Contains(stub, "def current(") || strings.Contains(stub, "forecast") || strings.Contains(stub, "admin") {
		t.Errorf("got the stub %s, %v", stub, err)
	}
	if bash, err := h.Stub(t.Context(), "alice", "weather", true); err != nil || !strings.Contains(bash, "weather_current()") {
		t.Errorf("got the shell functions %s, %v", bash, err)
	}
	docs, err := h.Docs(t.Context(), "alice", "weather")
	if err != nil || !strings.HasPrefix(docs, "## Toolset weather") || strings.Contains(docs, "forecast") {
		t.Errorf("got the docs %s, %v", docs, err)
	}
	prompt, err := h.Prompt(t.Context(), "alice", nil, false)
	if err != nil || !strings.Contains(prompt, "from fermata_tools.<key> import <Class>") || !strings.Contains(prompt, "asyncio.gather") ||
		!strings.Contains(prompt, docs) || !strings.Contains(prompt, "## Toolset orders") {
		t.Errorf("got the prompt %s, %v", prompt, err)
	}
	if prompt, err := h.Prompt(t.Context(), "alice", []string{"orders"}, true); err != nil || !strings.Contains(prompt, "strictly sequential") || strings.Contains(prompt, "Toolset weather") {
		t.Errorf("got the prompt %s, %v", prompt, err)
	}
}

func TestSearch(t *testing.T) {
	h := start(t, base, policy.Settings{Block: []string{"weather.forecast"}})
	for _, c := range []struct {
		query, toolset string
		want           string
	}{
		{"order", "", "listOrders"},
		{"LIST the customer's orders", "", "listOrders"},
		{"place", "", "current"}, // in the description of an argument
		{"weather next days", "", "current"},
		{"weather", "orders", ""},
		{"admin", "", ""},
		{"", "", ""},
		{strings.Repeat("ü", 2000), "", ""},
	} {
		var names []string
		for _, f := range h.Search("alice", c.query, c.toolset, 10) {
			names = append(names, f.Tool.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%.40q: found %s, want %s", c.query, got, c.want)
		}
	}
	if got := h.Search("alice", "weather orders", "", 1); len(got) != 1 {
		t.Errorf("found %d, want no more than the limit", len(got))
	}
}
