package tests

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// atOnce is how long an answer may take that needs nothing but the head of a request, on
// a machine that is busy.
const atOnce = 10 * time.Second

// head sends the head of a request, and whatever follows it, over a connection of its own.
func (s *server) head(t testing.TB, text string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// The server may close a connection before it has all of this.
	_, _ = io.WriteString(conn, text)
	return conn
}

// answerOf reads the answer on a connection.
func answerOf(conn net.Conn, within time.Duration) (status int, body string, err error) {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return 0, "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// closes returns nil if the server closes the connection in time.
func closes(conn net.Conn, within time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the connection is open after %v", within)
	}
	return nil // However it ended.
}

// resident is the resident set of the server's process in MiB.
func (s *server) resident(t testing.TB) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	kB := regexp.MustCompile(`VmRSS:\s*(\d+) kB`).FindSubmatch(status)
	if kB == nil {
		t.Fatalf("no resident set in %s", status)
	}
	n, err := strconv.Atoi(string(kB[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n >> 10
}

const (
	headLength  = "Content-Length: 1000\r\n"
	headChunked = "Transfer-Encoding: chunked\r\n"
	headJSON    = "Content-Type: application/json\r\n"
	headKey     = "X-API-Key: key-a\r\n"
)

// TestAnswersBeforeTheBody announces bodies that do not come. What can be answered without
// them is, at once, and the connection does not stay open.
func TestAnswersBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := serve(t, processSetup(), nil)
	for _, c := range []struct {
		name, line, header string
		status             int
	}{
		{"no key", "POST /exec/programmatic", headLength + headJSON, 401},
		{"wrong key, chunked", "POST /exec", headChunked + headJSON + "X-API-Key: wrong\r\n", 401},
		{"no key, upload", "POST /upload", headLength, 401},
		{"expecting 100", "POST /v1/exec", headLength + "Expect: 100-continue\r\n", 401},
		{"expecting much", "POST /v1/exec", headLength + "Expect: much\r\n", 417},
		{"no route", "POST /nowhere", headLength, 404},
		{"another server", "POST /internal/resume", headLength, 404},
		{"no method", "PUT /exec", headLength + headKey, 405},
		{"too large", "POST /exec", headJSON + headKey + "Content-Length: 999999999\r\n", 413},
		{"too large to cancel", "POST /exec/programmatic/cancel", headJSON + headKey + "Content-Length: 65537\r\n", 413},
		{"wrong type", "POST /exec", headLength + headKey, 415},
		{"no form", "POST /upload", headLength + headKey, 400},
		{"health", "GET /health", headLength, 200},
		{"health, chunked", "GET /health", headChunked, 200},
	} {
		conn := s.head(t, c.line+" HTTP/1.1\r\nHost: x\r\n"+c.header+"\r\n")
		status, body, err := answerOf(conn, atOnce)
		if err != nil || status != c.status {
			t.Errorf("%s: got %d %s %v, want %d at once", c.name, status, body, err, c.status)
			continue
		}
		// net/http answers 417 itself; its connection ends with the time for a body.
		if c.status != http.StatusExpectationFailed {
			if err := closes(conn, atOnce); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestSlowBodies sends bodies that do not end: they end with 408, or their connections do.
func TestSlowBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a minute")
	}
	t.Parallel()
	s := serve(t, processSetup(), nil)
	var all sync.WaitGroup
	for _, c := range []struct {
		name, line, header string
		drip               time.Duration
		status             int // 0 is the end of the connection
	}{
		{"silent", "POST /exec", headLength + headJSON + headKey, 0, 408},
		{"dripping", "POST /exec/programmatic", headLength + headJSON + headKey, 2 * time.Second, 408},
		{"expecting much", "POST /exec", headLength + "Expect: much\r\n", 2 * time.Second, 0},
	} {
		conn := s.head(t, c.line+" HTTP/1.1\r\nHost: x\r\n"+c.header+"\r\n")
		stop := make(chan struct{})
		if c.drip > 0 {
			go func() {
				for {
					select {
					case <-time.After(c.drip):
						_, _ = io.WriteString(conn, " ")
					case <-stop:
						return
					}
				}
			}()
		}
		all.Go(func() {
			defer close(stop)
			began := time.Now()
			if c.status != 0 {
				status, body, err := answerOf(conn, 90*time.Second)
				if err != nil || status != c.status || time.Since(began) < 50*time.Second {
					t.Errorf("%s: got %d %s %v after %v, want %d after a minute", c.name, status, body, err, time.Since(began), c.status)
				}
			}
			if err := closes(conn, 90*time.Second); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	all.Wait()
}

// TestSilentConnections takes more connections than there may be, in ways that need no
// key. Those who have one are served, and what runs is not disturbed.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	s := serveAlone(t, processSetup(), settings{"MAX_CONNECTIONS": "200", "METRICS_ADDR": "127.0.0.1:0"})
	runs := make(chan answer, 1)
	go func() {
		a, err := s.alice().send(t.Context(), program{Code: "import time; time.sleep(5); print(1)"})
		if err != nil {
			t.Errorf("a program that runs was disturbed: %v", err)
		}
		runs <- a
	}()
	// Its connection must be older than the others.
	err := within(atOnce, func() error {
		return compareMetrics(s.metrics(t), map[string]float64{`fermata_executions{state="running"}`: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1020 {
		s.head(t, []string{
			"",
			"POST /exec HTTP/1.1\r\nHost: x\r\n",
			"POST /exec HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
			"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		}[i%5])
	}
	for range 3 {
		// A connection of its own each time.
		conn := s.head(t, "POST /exec HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+headJSON+headKey+"Content-Length: 33\r\n\r\n"+`{"lang":"py","code":"print(6*7)"}`)
		if status, body, err := answerOf(conn, atOnce); err != nil || status != 200 {
			t.Errorf("got %d %s %v, want 200", status, body, err)
		}
	}
	s.bob().post(t, program{Code: "print(6*7)"}).completes(t, "42\n")
	(<-runs).completes(t, "1\n")
	if n := s.metrics(t)["fermata_connections_pushed_out_total"]; n < 500 {
		t.Errorf("%v connections were pushed out, want more than 500", n)
	}
}

// TestDeclaredBodies declares large bodies and sends a byte of each.
func TestDeclaredBodies(t *testing.T) {
	t.Parallel()
	s := serveAlone(t, processSetup(), nil)
	before := s.resident(t)
	for range 150 {
		s.head(t, "POST /exec/programmatic HTTP/1.1\r\nHost: x\r\n"+headJSON+headKey+"Content-Length: 49999999\r\n\r\n{")
	}
	s.bob().post(t, program{Code: "print(1)"}).completes(t, "1\n")
	if after := s.resident(t); after > before+150 {
		t.Errorf("150 connections with a byte each took the server from %d to %d MiB", before, after)
	}
}

// TestBodyBudget sends large bodies that do not end: they are refused when there are too
// many bytes, first those of who has most.
func TestBodyBudget(t *testing.T) {
	t.Parallel()
	s := serveAlone(t, processSetup(), settings{"BODY_BUDGET": "48MiB", "API_KEYS": "alice:key-a,bob:key-b,carol:key-c,dave:key-d,eve:key-e,frank:key-f"})
	begin := func(key string) net.Conn {
		return s.head(t, "POST /exec/programmatic HTTP/1.1\r\nHost: x\r\n"+headJSON+"X-API-Key: "+key+"\r\nContent-Length: 9000000\r\n\r\n{"+strings.Repeat(" ", 3_500_000))
	}
	refused := func(conn net.Conn, status int, text string) {
		t.Helper()
		if got, body, err := answerOf(conn, atOnce); err != nil || got != status || !strings.Contains(body, text) {
			t.Errorf("got %d %s %v, want %d and %q", got, body, err, status, text)
		}
	}
	waits := func(conn net.Conn) {
		t.Helper()
		if got, body, err := answerOf(conn, 500*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d %s %v, want no answer yet", got, body, err)
		}
	}
	first := begin("key-a")
	waits(first)
	refused(begin("key-a"), 429, "a quarter of the bytes")
	others := []net.Conn{begin("key-b"), begin("key-c"), begin("key-d"), begin("key-e")}
	for _, conn := range others {
		waits(conn)
	}
	refused(begin("key-f"), 503, "FERMATA_BODY_BUDGET")
	// A small one still fits, also of who has much, and memory comes back.
	for _, conn := range append(others[:2], first) {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	err := within(atOnce, func() error {
		if a, err := (client{s.url, "key-a"}).send(t.Context(), program{Code: "print(1) #" + strings.Repeat("x", 3<<20)}); err != nil || a.Stdout != "1\n" {
			return fmt.Errorf("got %v %w, want it completed", a, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestManyArguments sends arguments up to the limits, and beyond.
func TestManyArguments(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		run := func(lang, code string, args ...string) answer {
			t.Helper()
			a, err := c.request(t.Context(), http.MethodPost, "/exec", nil, map[string]any{"lang": lang, "code": code, "args": args})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		most := make([]string, 1000)
		for i := range most {
			most[i] = strings.Repeat("x", 1048)
		}
		long := strings.Repeat("x", 128<<10-1)
		for _, lang := range []string{"py", "bash"} {
			code := map[string]string{"py": "import sys; print(len(sys.argv) - 1, sum(map(len, sys.argv[1:])))", "bash": `all="$*"; echo $# $(( ${#all} - $# + 1 ))`}[lang]
			if a := run(lang, code, most...); a.Stdout != "1000 1048000\n" {
				t.Errorf("%s: got %v, want all arguments", lang, a)
			}
			if a := run(lang, code, long, "x"); a.Stdout != "2 131072\n" {
				t.Errorf("%s: got %v, want all arguments", lang, a)
			}
		}
		for text, args := range map[string][]string{
			"Too many args provided. Maximum is 1000.":   append(most, ""),
			"args[1] is 131072 bytes, maximum is 131071": {"", long + "x"},
			"args have more than 1048576 bytes together": {long, long, long, long, long, long, long, long, "123456789"},
		} {
			if a := run("py", "print(1)", args...); a.code != 400 || a.Error != text {
				t.Errorf("got %v, want 400 %s", a, text)
			}
		}
	})
}

// TestTenMillionArguments is refused without being taken apart.
func TestTenMillionArguments(t *testing.T) {
	t.Parallel()
	s := serveAlone(t, processSetup(), nil)
	before := s.resident(t)
	body := `{"lang":"py","code":"print(1)","args":[` + strings.Repeat(`"",`, 10_000_000) + `""]}`
	a, err := s.alice().request(t.Context(), http.MethodPost, "/exec", nil, body)
	if err != nil || a.code != 400 || a.Error != "Too many args provided. Maximum is 1000." {
		t.Errorf("got %v %v, want 400", a, err)
	}
	// The body is there twice while it grows, and once more as garbage.
	if after := s.resident(t); after > before+250 {
		t.Errorf("a body of 30 MB took the server from %d to %d MiB", before, after)
	}
}

// TestWrongKeysWait counts how fast keys can be tried.
func TestWrongKeysWait(t *testing.T) {
	t.Parallel()
	s := serve(t, processSetup(), nil)
	for _, key := range []string{"key-b.", "k"} {
		began := time.Now()
		a, err := client{s.url, key}.send(t.Context(), program{Code: "print(1)"})
		if err != nil || a.code != http.StatusUnauthorized || time.Since(began) < 250*time.Millisecond {
			t.Errorf("got %v %v after %v, want 401 after 250 ms", a, err, time.Since(began))
		}
	}
}

// TestShortKeysAreRefused starts a server that others reach with a key that they can guess.
func TestShortKeysAreRefused(t *testing.T) {
	t.Parallel()
	s, err := newServer(with(common, settings{"ADDR": "0.0.0.0:0", "API_KEYS": "alice:a-long-key-of-alice,bob:key-b"}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.removeGroups() }()
	if err := s.start(); err == nil {
		stopAfter(t, s)
	}
	if log := s.log.all(); !strings.Contains(log, "that of bob has 5") || !strings.Contains(log, "openssl rand -hex 24") || strings.Contains(log, "key-b") {
		t.Errorf("the server says %q, want whose key is short and how to make a better one, and not the key", log)
	}
	ours := serve(t, processSetup(), nil)
	if log := ours.log.all(); !strings.Contains(log, "short enough to be guessed") || strings.Contains(log, "key-a") {
		t.Errorf("the server says %q, want a warning of the short key", log)
	}
}

// TestOpenServers sends what web pages can make a browser send to a server that lets
// everyone in.
func TestOpenServers(t *testing.T) {
	t.Parallel()
	s := serve(t, processSetup(), settings{"AUTH": "off", "API_KEYS": "", "HOSTS": "fermata, other.example"})
	address := strings.TrimPrefix(s.url, "http://")
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, host string
		header     http.Header
		status     int
	}{
		{"its address", address, nil, 200},
		{"another address", "10.1.2.3", nil, 200},
		{"an address of version 6", "[::1]:" + port, nil, 200},
		{"localhost", "localhost:" + port, nil, 200},
		{"a name that was set", "fermata:8000", nil, 200},
		{"another that was set", "OTHER.example", nil, 200},
		{"a page of its own", address, http.Header{"Origin": {"http://" + address}, "Sec-Fetch-Site": {"same-origin"}}, 200},
		{"a name of somebody's", "rebound.example:" + port, nil, 403},
		{"a name like an address", "127.0.0.1.rebound.example", nil, 403},
		{"a name like localhost", "localhost.rebound.example", nil, 403},
		{"a page of another site", address, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"a page of another port", "localhost:" + port, http.Header{"Origin": {"http://localhost:3000"}, "Sec-Fetch-Site": {"same-site"}}, 403},
		{"a page without an origin", address, http.Header{"Origin": {"null"}}, 403},
		{"a browser that tells", address, http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
	} {
		for _, path := range []string{programmatic, "/exec", "/upload"} {
			contentType, body := "application/json", `{"lang":"py","code":"print(1)"}`
			if path == "/upload" {
				contentType = "multipart/form-data; boundary=x"
				body = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(r.Header, c.header)
			r.Host = c.host
			r.Header.Set("Content-Type", contentType)
			response, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if response.StatusCode != c.status || c.status == 403 && !strings.Contains(string(text), "FERMATA_AUTH") {
				t.Errorf("%s, %s: got %d %s, want %d", c.name, path, response.StatusCode, text, c.status)
			}
		}
	}
}

// TestStateDirectoryIsClosed starts a server on a directory that others can read.
func TestStateDirectoryIsClosed(t *testing.T) {
	t.Parallel()
	s, err := newServer(common)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.dir, "state")
	if err := errors.Join(os.Chmod(dir, 0o755), s.start()); err != nil {
		t.Fatal(err)
	}
	stopAfter(t, s)
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 || !strings.Contains(s.log.all(), "was open to other users") {
		t.Errorf("the state directory has mode %v (%v), want 0700 and a line in the log", info.Mode(), err)
	}
	if os.Geteuid() != 0 {
		return
	}
	foreign, err := newServer(common)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.removeGroups() }()
	if err := os.Chown(filepath.Join(foreign.dir, "state"), 4321, 4321); err != nil {
		t.Fatal(err)
	}
	if err := foreign.start(); err == nil {
		stopAfter(t, foreign)
		t.Error("a server runs on the state directory of another user")
	}
	if !strings.Contains(foreign.log.all(), "belongs to another user") {
		t.Errorf("the server says %q, want whose the directory is", foreign.log.all())
	}
}

// TestMembersOfWrongTypes sends every member of a request as what it may not be: each is
// refused by its name. Only parameters may be anything: they are documentation, and what is
// no schema documents nothing.
func TestMembersOfWrongTypes(t *testing.T) {
	t.Parallel()
	s := serve(t, processSetup(), nil)
	const id = "abcdefghijklmnopqrstu"
	file := func(member, value string) string {
		members := map[string]json.RawMessage{"id": json.RawMessage(`"` + id + `"`), "name": json.RawMessage(`"a"`), "storage_session_id": json.RawMessage(`"` + id + `"`)}
		members[member] = json.RawMessage(value)
		raw, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		return `"files":[` + string(raw) + `]`
	}
	token := s.alice().pause(t, paused).Token
	goOn := func(result string) string {
		return `{"continuation_token":"` + token + `","tool_results":` + result + `}`
	}
	both := map[string]string{
		`"session_id":5`:                "session_id",
		`"session_id":["` + id + `"]`:   "session_id",
		`"session_id":{}`:               "session_id",
		`"session_id":true`:             "session_id",
		`"timeout":"5"`:                 "timeout",
		`"timeout":[]`:                  "timeout",
		`"timeout":true`:                "timeout",
		`"files":{}`:                    "files",
		`"files":"a"`:                   "files",
		`"files":[5]`:                   "files[0]",
		file("id", `5`):                 "files[0].id",
		file("name", `5`):               "files[0].name",
		file("storage_session_id", `5`): "files[0].storage_session_id",
		file("resource_id", `5`):        "files[0].resource_id",
		file("kind", `5`):               "files[0].kind",
		file("version", `"5"`):          "files[0].version",
	}
	cases := map[string]map[string]string{
		programmatic: {
			`{"code":5}`:                                          "code",
			`{"code":["x"]}`:                                      "code",
			`{"code":"1","tools":{}}`:                             "tools",
			`{"code":"1","tools":["t"]}`:                          "tools[0]",
			`{"code":"1","tools":[{"name":5}]}`:                   "tools[0].name",
			`{"code":"1","tools":[{"name":["t"]}]}`:               "tools[0].name",
			`{"code":"1","tools":[{"name":"t","description":5}]}`: "tools[0].description",
			`{"code":"1","language":5}`:                           "language",
			`{"code":"1","lang":{}}`:                              "language",
			`{"continuation_token":5,"tool_results":[]}`:          "continuation token",
			goOn(`{}`):              "tool_results",
			goOn(`["call_001"]`):    "tool_results",
			goOn(`[{"call_id":1}]`): "call_id",
			goOn(`[{"call_id":"call_001","is_error":1}]`):      "is_error",
			goOn(`[{"call_id":"call_001","error_message":1}]`): "error_message",
		},
		"/exec": {
			`{"lang":"py","code":5}`:              "code",
			`{"lang":5,"code":"1"}`:               "language",
			`{"lang":"py","code":"1","args":5}`:   "args",
			`{"lang":"py","code":"1","args":[5]}`: "args",
			`{"lang":"py","code":"1","args":{}}`:  "args",
		},
		programmatic + "/cancel": {
			`{"request_id":1234567890123456}`:     "request_id",
			`{"request_id":["1234567890123456"]}`: "request_id",
		},
	}
	for member, name := range both {
		cases[programmatic][`{"code":"1",`+member+`}`] = name
		cases["/exec"][`{"lang":"py","code":"1",`+member+`}`] = name
	}
	for path, bodies := range cases {
		for body, name := range bodies {
			a, err := s.alice().request(t.Context(), http.MethodPost, path, nil, body)
			if err != nil || a.code != 400 || !strings.Contains(a.Error, name) {
				t.Errorf("%s %s: got %v %v, want 400 and %s", path, body, a, err, name)
			}
		}
	}
	// What is null, or a string that is no id, is none.
	for _, session := range []string{`null`, `""`, `"no-id"`} {
		a, err := s.alice().request(t.Context(), http.MethodPost, "/exec", nil, `{"lang":"py","code":"print(1)","session_id":`+session+`}`)
		if err != nil || a.Stdout != "1\n" {
			t.Errorf("session %s: got %v %v, want it run", session, a, err)
		}
	}
}
