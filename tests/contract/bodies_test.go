package contract

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"fermata/tests/harness"
)

const (
	headLength  = "Content-Length: 1000\r\n"
	headChunked = "Transfer-Encoding: chunked\r\n"
	headJSON    = "Content-Type: application/json\r\n"
	headKey     = "X-API-Key: key-a\r\n"
)

// TestAnswersBeforeTheBody announces bodies and does not send them. The server answers at once
// where it does not need the body, and closes the connection.
func TestAnswersBeforeTheBody(t *testing.T) {
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
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
		conn := s.SendRaw(t, c.line+" HTTP/1.1\r\nHost: x\r\n"+c.header+"\r\n")
		status, body, err := harness.ReadAnswer(conn, harness.AtOnce)
		if err != nil || status != c.status {
			t.Errorf("%s: got %d %s %v, want %d at once", c.name, status, body, err, c.status)
			continue
		}
		// net/http itself answers 417, and closes the connection only when the time for the body
		// is over.
		if c.status != http.StatusExpectationFailed {
			if err := harness.AwaitClose(conn, harness.AtOnce); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// TestSlowBodies sends bodies that never end. After a minute the server answers 408 or closes the
// connection.
func TestSlowBodies(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a minute")
	}
	t.Parallel()
	s := harness.Serve(t, harness.ProcessSetup(), nil)
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
		conn := s.SendRaw(t, c.line+" HTTP/1.1\r\nHost: x\r\n"+c.header+"\r\n")
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
				status, body, err := harness.ReadAnswer(conn, 90*time.Second)
				if err != nil || status != c.status || time.Since(began) < 50*time.Second {
					t.Errorf("%s: got %d %s %v after %v, want %d after a minute", c.name, status, body, err, time.Since(began), c.status)
				}
			}
			if err := harness.AwaitClose(conn, 90*time.Second); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		})
	}
	all.Wait()
}

// TestSilentConnections opens more connections than the server allows, none with a key. Clients
// with a key are served all the same, and programs that run are not disturbed.
func TestSilentConnections(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"MAX_CONNECTIONS": "200", "METRICS_ADDR": "127.0.0.1:0"})
	runs := make(chan harness.Answer, 1)
	go func() {
		a, err := s.Alice().Send(t.Context(), harness.Program{Code: "import time; time.sleep(5); print(1)"})
		if err != nil {
			t.Errorf("a program that runs was disturbed: %v", err)
		}
		runs <- a
	}()
	// This connection must be older than those that follow.
	err := harness.Within(harness.AtOnce, func() error {
		return harness.CompareMetrics(s.Metrics(t), map[string]float64{`fermata_executions{state="running"}`: 1})
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1020 {
		s.SendRaw(t, []string{
			"",
			"POST /exec HTTP/1.1\r\nHost: x\r\n",
			"POST /exec HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
			"GET /health HTTP/1.1\r\nHost: x\r\n\r\n",
			"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
		}[i%5])
	}
	for range 3 {
		// Each request has a connection of its own.
		conn := s.SendRaw(t, "POST /exec HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+headJSON+headKey+"Content-Length: 33\r\n\r\n"+`{"lang":"py","code":"print(6*7)"}`)
		if status, body, err := harness.ReadAnswer(conn, harness.AtOnce); err != nil || status != 200 {
			t.Errorf("got %d %s %v, want 200", status, body, err)
		}
	}
	s.Bob().Post(t, harness.Program{Code: "print(6*7)"}).Completes(t, "42\n")
	(<-runs).Completes(t, "1\n")
	if n := s.Metrics(t)["fermata_connections_pushed_out_total"]; n < 500 {
		t.Errorf("%v connections were pushed out, want more than 500", n)
	}
}

// TestDeclaredBodies declares large bodies and sends one byte of each: the server must not reserve
// memory for the rest.
func TestDeclaredBodies(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), nil)
	before := s.ResidentMiB(t)
	for range 150 {
		s.SendRaw(t, "POST /exec/programmatic HTTP/1.1\r\nHost: x\r\n"+headJSON+headKey+"Content-Length: 49999999\r\n\r\n{")
	}
	s.Bob().Post(t, harness.Program{Code: "print(1)"}).Completes(t, "1\n")
	if after := s.ResidentMiB(t); after > before+150 {
		t.Errorf("150 connections with a byte each took the server from %d to %d MiB", before, after)
	}
}

// TestBodyBudget sends large bodies that do not end. When they exceed the budget the server refuses
// more, first those of the client that already has the most.
func TestBodyBudget(t *testing.T) {
	t.Parallel()
	s := harness.ServeAlone(t, harness.ProcessSetup(), harness.Settings{"BODY_BUDGET": "48MiB", "API_KEYS": "alice:key-a,bob:key-b,carol:key-c,dave:key-d,eve:key-e,frank:key-f"})
	begin := func(key string) net.Conn {
		return s.SendRaw(t, "POST /exec/programmatic HTTP/1.1\r\nHost: x\r\n"+headJSON+"X-API-Key: "+key+"\r\nContent-Length: 9000000\r\n\r\n{"+strings.Repeat(" ", 3_500_000))
	}
	refused := func(conn net.Conn, status int, text string) {
		t.Helper()
		if got, body, err := harness.ReadAnswer(conn, harness.AtOnce); err != nil || got != status || !strings.Contains(body, text) {
			t.Errorf("got %d %s %v, want %d and %q", got, body, err, status, text)
		}
	}
	waits := func(conn net.Conn) {
		t.Helper()
		if got, body, err := harness.ReadAnswer(conn, 500*time.Millisecond); !errors.Is(err, os.ErrDeadlineExceeded) {
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
	// Closed connections give their bytes back: a body of the first client fits again.
	for _, conn := range append(others[:2], first) {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	err := harness.Within(harness.AtOnce, func() error {
		if a, err := (harness.Client{URL: s.URL, Key: "key-a"}).Send(t.Context(), harness.Program{Code: "print(1) #" + strings.Repeat("x", 3<<20)}); err != nil || a.Stdout != "1\n" {
			return fmt.Errorf("got %v %w, want it completed", a, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
