package mcptool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/engine/tools/source"
)

// plain returns a simple transport for tests, with a connection for each request.
func plain(string) http.RoundTripper { return &http.Transport{DisableKeepAlives: true} }

// webSource returns the source of an MCP server that h implements.
func webSource(t *testing.T, h http.Handler, change func(*Options)) *Source {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	o := Options{Toolset: "web", URL: server.URL + "/mcp", Transport: plain, times: quick()}
	if change != nil {
		change(&o)
	}
	return newSource(t, o)
}

// sdkServer returns a server of the official SDK with a tool that returns the header X-Key and its input.
func sdkServer(o *mcp.StreamableHTTPOptions) http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "real", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: r.Extra.Header.Get("X-Key") + string(r.Params.Arguments)}}}, nil
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, o)
}

func TestStreamableHTTP(t *testing.T) {
	for name, o := range map[string]*mcp.StreamableHTTPOptions{"sessions": {}, "stateless": {Stateless: true}, "JSON": {JSONResponse: true}} {
		t.Run(name, func(t *testing.T) {
			s := webSource(t, sdkServer(o), func(o *Options) { o.Headers = map[string]string{"X-Key": "k3y"} })
			got, err := call(t, s, "alice", "echo", `{"n":9007199254740993}`)
			if got != `"k3y{\"n\":9007199254740993}"` || err != nil {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
}

// A webServer is an MCP server over HTTP whose calls of tools are answered by a function.
type webServer struct {
	call     func(w http.ResponseWriter, id json.RawMessage)
	mu       sync.Mutex
	sessions map[string]bool
	calls    atomic.Int32
	gets     atomic.Int32
	versions sync.Map
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		if r.Method == http.MethodGet {
			s.gets.Add(1)
		}
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var m message
	if json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions == nil {
		s.sessions = map[string]bool{}
	}
	id := r.Header.Get("Mcp-Session-Id")
	if m.Method != "initialize" && m.Method != "server/discover" && !s.sessions[id] {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch m.Method {
	case "initialize":
		id = fmt.Sprint("session-", len(s.sessions))
		s.sessions[id] = true
		w.Header().Set("Mcp-Session-Id", id)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"hostile","version":"1"}}}`, m.ID)
	case "tools/list":
		s.versions.Store(r.Header.Get("Mcp-Protocol-Version"), true)
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"it",%s}]}}`, m.ID, anyInput)
	case "tools/call":
		s.calls.Add(1)
		s.call(w, m.ID)
	default:
		if len(m.ID) > 0 {
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
		} else {
			w.WriteHeader(http.StatusAccepted)
		}
	}
}

func stream(w http.ResponseWriter, format string, args ...any) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprintf(w, format, args...)
	_ = http.NewResponseController(w).Flush()
}

func TestStreamOfEvents(t *testing.T) {
	server := &webServer{call: func(w http.ResponseWriter, id json.RawMessage) {
		stream(w, ": hello\r\n\r\nevent: strange\ndata: x\n\nid: 7\nretry: 1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\r\ndata:\"id\":%s,\"result\":{\"content\":[]}}\n\n", id)
	}}
	s := webSource(t, server, nil)
	if got, err := call(t, s, "alice", "it", `{}`); got != `[]` || err != nil {
		t.Errorf("%s, %v", got, err)
	}
	if _, ok := server.versions.Load("2025-06-18"); !ok {
		t.Error("the version of the protocol was not sent")
	}
}

func TestT4RedirectsAreNotFollowed(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	s := webSource(t, &webServer{call: func(w http.ResponseWriter, _ json.RawMessage) {
		w.Header().Set("Location", other.URL)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}}, nil)
	_, err := call(t, s, "alice", "it", `{}`)
	wantFailure(t, err, true, "the HTTP status 307")
	if elsewhere.Load() != 0 {
		t.Error("the redirect was followed")
	}
}

func TestT14HostileHTTP(t *testing.T) {
	endless := func(w http.ResponseWriter, part string) {
		for range 64 {
			if _, err := io.WriteString(w, strings.Repeat(part, 1<<20/len(part))); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		call func(w http.ResponseWriter, id json.RawMessage)
		why  string
	}{
		"endless JSON":   {func(w http.ResponseWriter, _ json.RawMessage) { endless(w, " ") }, string(errLargeMessage)},
		"endless line":   {func(w http.ResponseWriter, _ json.RawMessage) { stream(w, "data: "); endless(w, "x") }, string(errLargeMessage)},
		"endless event":  {func(w http.ResponseWriter, _ json.RawMessage) { stream(w, "\n"); endless(w, "data: x\n") }, string(errLargeMessage)},
		"endless events": {func(w http.ResponseWriter, _ json.RawMessage) { stream(w, "\n"); endless(w, ":\n\n\n") }, string(errLargeMessage)},
		"no JSON":        {func(w http.ResponseWriter, _ json.RawMessage) { stream(w, "data: x\n\n") }, "lost before the answer was there"},
		"another id": {func(w http.ResponseWriter, _ json.RawMessage) {
			stream(w, "data: {\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{}}\n\n")
		}, string(errUnasked)},
		"deep": {func(w http.ResponseWriter, _ json.RawMessage) {
			_, _ = io.WriteString(w, strings.Repeat("[", 1<<20))
		}, "lost before the answer was there"},
	} {
		t.Run(name, func(t *testing.T) {
			s := webSource(t, &webServer{call: c.call}, nil)
			_, err := call(t, s, "alice", "it", `{}`)
			wantFailure(t, err, true, c.why)
		})
	}
}

func TestT30HTTPCallsAreSentOnce(t *testing.T) {
	for name, c := range map[string]struct {
		call    func(w http.ResponseWriter, id json.RawMessage)
		unknown bool
		why     string
	}{
		"cut off": {func(http.ResponseWriter, json.RawMessage) { panic(http.ErrAbortHandler) }, true, "lost before the answer was there"},
		"cut off stream": {func(w http.ResponseWriter, _ json.RawMessage) {
			stream(w, "id: 1\nretry: 1\ndata:\n\n")
			panic(http.ErrAbortHandler)
		}, true, "lost before the answer was there"},
		"stream without an answer": {func(w http.ResponseWriter, _ json.RawMessage) { stream(w, "id: 1\nretry: 1\ndata:\n\n") }, true, "lost before the answer was there"},
		"503":                      {func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusServiceUnavailable) }, true, "the HTTP status 503"},
		"403":                      {func(w http.ResponseWriter, _ json.RawMessage) { w.WriteHeader(http.StatusForbidden) }, false, "the HTTP status 403"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &webServer{call: c.call}
			s := webSource(t, server, nil)
			_, err := call(t, s, "alice", "it", `{}`)
			wantFailure(t, err, c.unknown, c.why)
			if strings.Contains(err.Error(), "127.0.0.1") {
				t.Errorf("the failure has an address: %v", err)
			}
			if server.calls.Load() != 1 || server.gets.Load() != 0 {
				t.Errorf("the server got %d calls and %d requests to resume them", server.calls.Load(), server.gets.Load())
			}
		})
	}
}

// TestT30TransportsDoNotRepeat uses the transport of net/http. By itself it repeats a request that has an
// Idempotency-Key on another connection, if a kept connection breaks.
func TestT30TransportsDoNotRepeat(t *testing.T) {
	kept := &http.Transport{}
	server := &webServer{call: func(http.ResponseWriter, json.RawMessage) { panic(http.ErrAbortHandler) }}
	s := webSource(t, server, func(o *Options) {
		o.Headers = map[string]string{"Idempotency-Key": "one"}
		o.Transport = func(string) http.RoundTripper { return kept }
	})
	t.Cleanup(kept.CloseIdleConnections)
	_, err := call(t, s, "alice", "it", `{}`)
	wantFailure(t, err, true, "lost before the answer was there")
	if n := server.calls.Load(); n != 1 {
		t.Errorf("the server got %d calls", n)
	}
}

func TestForgottenSession(t *testing.T) {
	server := &webServer{call: func(w http.ResponseWriter, id json.RawMessage) {
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
	}}
	s := webSource(t, server, nil)
	for range 2 {
		if got, err := call(t, s, "alice", "it", `{}`); got != `[]` || err != nil {
			t.Errorf("%s, %v", got, err)
		}
		server.mu.Lock()
		for id := range server.sessions {
			server.sessions[id] = false // As if the server had been restarted.
		}
		server.mu.Unlock()
	}
}

func TestUnreachable(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	s := newSource(t, Options{Toolset: "web", URL: gone.URL, Transport: plain, times: quick()})
	_, err := s.Tools(t.Context())
	wantFailure(t, err, false, string(errUnreachable))

	s = webSource(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }), nil)
	_, err = s.Tools(t.Context())
	wantFailure(t, err, false, "it answered with the HTTP status 401")

	s = webSource(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // After that the server notices that the client has left.
		<-r.Context().Done()
	}), func(o *Options) { o.times.start = 200 * time.Millisecond })
	_, err = s.Tools(t.Context())
	wantFailure(t, err, false, "was not ready within")

	// A caller that waits for a shorter time than the start may take is not told of the longer one.
	s = webSource(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}), nil)
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.Tools(soon)
	wantFailure(t, err, false, string(errNotYet))
}

func TestOptions(t *testing.T) {
	for want, o := range map[string]Options{
		"either a command or a URL": {},
		"needs a transport":         {URL: "https://mcp.example.com"},
		"must begin with http":      {URL: "file:///etc/passwd", Transport: plain},
	} {
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	s := hostileSource(t, "", nil)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := s.Call(t.Context(), source.Call{Tool: "echo"})
	wantFailure(t, err, false, string(errClosed))
}
