package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"fermata/tests/harness"
)

// A reply is what the server answers to a message.
type reply struct {
	status int
	header http.Header
	body   string
}

// post posts a message.
func post(t *testing.T, ctx context.Context, c harness.Client, header map[string]string, message string) (reply, error) { //nolint:revive // t comes first in tests
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/mcp", strings.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	c.Authorize(r)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = a.Body.Close() }()
	body, err := io.ReadAll(a.Body)
	return reply{a.StatusCode, a.Header, string(body)}, err
}

// must is post, which must be answered.
func must(t *testing.T, c harness.Client, header map[string]string, message string) reply {
	t.Helper()
	r, err := post(t, t.Context(), c, header, message)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	list       = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
)

// newer are the members of a request of version 2026-07-28.
const newer = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// runMessage returns a message that runs a program.
func runMessage(id int, code, more string) string {
	quoted, _ := json.Marshal(code) // A string can always be encoded.
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"run_program","arguments":{"code":%s}%s}}`, id, quoted, more)
}

// TestDoor refuses what the middleware of all routes refuses, and what the protocol does not have any
// more.
func TestDoor(t *testing.T) {
	server := harness.Serve(t, harness.ProcessSetup(), nil)
	c := server.Alice()
	for name, x := range map[string]struct {
		client  harness.Client
		header  map[string]string
		message string
		status  int
	}{
		"no key":              {harness.Client{URL: server.URL}, nil, list, 401},
		"a wrong key":         {harness.Client{URL: server.URL, Key: "wrong"}, nil, list, 401},
		"a foreign page":      {c, map[string]string{"Origin": "https://evil.example"}, list, 403},
		"a page without name": {c, map[string]string{"Origin": "null"}, list, 403},
		"a foreign site":      {c, map[string]string{"Sec-Fetch-Site": "cross-site"}, list, 403},
		"a form":              {c, map[string]string{"Content-Type": "text/plain"}, list, 415},
		"a batch":             {c, nil, "[" + list + "," + list + "]", 400},
		"no message":          {c, nil, `{`, 400},
		"a name twice":        {c, nil, `{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"tools/call"}`, 400},
		"a large body":        {c, nil, runMessage(1, strings.Repeat("#", 5<<20), ""), 413},
		"no such version":     {c, map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, list, 400},
		"another method":      {c, map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Mcp-Name": "run_program"}, runMessage(1, "print(1)", newer), 400},
	} {
		if r := must(t, x.client, x.header, x.message); r.status != x.status || strings.Contains(r.body, `"tools"`) {
			t.Errorf("%s: %d %.300s, want %d", name, r.status, r.body, x.status)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if a := c.Files(t, method, "/mcp"); a.HTTPStatus != http.StatusMethodNotAllowed {
			t.Errorf("%s: %v", method, a)
		}
	}
	if r := must(t, c, nil, list); r.status != 200 || !strings.Contains(r.body, "run_program") {
		t.Errorf("the list of tools: %d %.300s", r.status, r.body)
	}
}

// TestDefinitions bounds what the definitions of the tools cost a model: clients cut descriptions at
// 2 KB.
func TestDefinitions(t *testing.T) {
	session := connect(t, harness.Serve(t, harness.ProcessSetup(), nil).Alice(), nil)
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if len(tool.Description) > 2000 {
			t.Errorf("the description of %s has %d bytes", tool.Name, len(tool.Description))
		}
	}
	if want := "list_files read_file run_program search_tools wait_for_program"; strings.Join(names, " ") != want {
		t.Errorf("tools %q, want %s", names, want)
	}
}

// TestOlderCancel cancels a request as older versions of the protocol do, by a message, which names
// requests of its own session only.
func TestOlderCancel(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		server := harness.Serve(t, s, nil)
		c := server.Alice()
		session := must(t, c, nil, initialize).header.Get("Mcp-Session-Id")
		if session == "" {
			t.Fatal("there is no session id")
		}
		mine := map[string]string{"Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-06-18"}
		answered := make(chan reply, 1)
		go func() {
			r, err := post(t, t.Context(), c, mine, runMessage(7, "import time; time.sleep(60)", ""))
			if err != nil {
				r.body = err.Error()
			}
			answered <- r
		}()
		if err := harness.Within(10*time.Second, func() error { return listed(t, c, "running") }); err != nil {
			t.Fatal(err)
		}
		const cancelled = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`
		must(t, c, map[string]string{"Mcp-Session-Id": "another"}, cancelled)
		must(t, server.Bob(), mine, cancelled)
		select {
		case r := <-answered:
			t.Fatalf("another session has cancelled it: %+v", r)
		case <-time.After(300 * time.Millisecond):
		}
		if r := must(t, c, mine, cancelled); r.status != http.StatusAccepted {
			t.Errorf("cancelled: %+v", r)
		}
		select {
		case r := <-answered:
			harness.Contains(t, "the answer", r.body, "cancelled")
		case <-time.After(20 * time.Second):
			t.Error("the program was not cancelled")
		}
	})
}

// TestLostConnection asks again with the same key after the connection was lost: the program has gone
// on, and has run once.
func TestLostConnection(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_program","arguments":{"code":"import time,uuid\ntime.sleep(2)\nuuid.uuid4().hex","request_key":%q}}}`, "lost-"+t.Name())
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		if r, err := post(t, ctx, c, nil, message); err == nil {
			t.Fatalf("the connection was not lost: %+v", r)
		}
		first, second := must(t, c, nil, message), must(t, c, nil, message)
		harness.Contains(t, "the answer", first.body, `"status":"completed"`, `"value"`)
		if data(first.body) != data(second.body) {
			t.Errorf("two answers: %s and %s", first.body, second.body)
		}
	})
}

// data returns the message in a stream.
func data(stream string) string {
	_, message, _ := strings.Cut(stream, "data: ")
	return message
}

// TestFirstByte looks at the stream of a program that is silent: it begins at once.
func TestFirstByte(t *testing.T) {
	c := harness.Serve(t, harness.ProcessSetup(), nil).Alice()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.URL+"/mcp", bytes.NewReader([]byte(runMessage(1, "import time; time.sleep(4)", ""))))
	if err != nil {
		t.Fatal(err)
	}
	c.Authorize(r)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	began := time.Now()
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Body.Close() }()
	if took := time.Since(began); took > 3*time.Second || a.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("the first byte came after %v: %v", took, a.Header)
	}
	lines := bufio.NewScanner(a.Body)
	var text strings.Builder
	for lines.Scan() {
		text.WriteString(lines.Text() + "\n")
	}
	harness.Contains(t, "the stream", text.String(), ": the program runs", `"status":"completed"`)
}
