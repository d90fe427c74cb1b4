package outgoing

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"testing"
	"time"
)

// TestT31KeptConnectionsAreBounded checks that a principal with many kept connections loses its own ones, and
// that others do not lose theirs.
func TestT31KeptConnectionsAreBounded(t *testing.T) {
	p := &pool{all: map[*conn]bool{}, kept: map[string][]*conn{}}
	put := func(principal string) {
		a, b := net.Pipe()
		t.Cleanup(func() { _ = b.Close() })
		c := &conn{Conn: a, raw: a, in: bufio.NewReader(a), principal: principal, pool: p}
		if err := p.add(c); err != nil {
			t.Fatal(err)
		}
		p.put(c)
	}
	for range 2 * maxKeptPrincipal {
		put("many")
	}
	if n := len(p.kept["many"]); n != maxKeptPrincipal {
		t.Errorf("%d connections of one principal are kept, want %d", n, maxKeptPrincipal)
	}
	for i := range 2 * maxKept {
		put(strconv.Itoa(i))
	}
	total := 0
	for _, list := range p.kept {
		total += len(list)
	}
	if total != maxKept || p.count != maxKept || len(p.all) != maxKept {
		t.Errorf("%d connections are kept and %d open, want %d", total, len(p.all), maxKept)
	}
	if n := len(p.kept["many"]); n > 1 {
		t.Errorf("%d connections are left to the principal with the most", n)
	}
	for _, list := range p.kept {
		list[0].expire()
	}
	if p.count != 0 || len(p.all) != 0 || len(p.kept) != 0 {
		t.Errorf("%d connections are left after their time", p.count)
	}
	put("late")
	p.close()
	if p.add(&conn{}) == nil {
		t.Error("a closed pool takes connections")
	}
}

// TestNothingIsLeft checks that calls leave neither goroutines nor open connections, however they end.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		switch r.URL.Path {
		case "/hang":
			<-r.Context().Done()
		case "/cut":
			panic(http.ErrAbortHandler)
		default:
			_, _ = io.WriteString(w, "body")
		}
	}))
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Origin: u, Private: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		path := []string{"/", "/hang", "/cut"}[i%3]
		_, _ = c.Do(ctx, Request{Method: http.MethodPost, URL: u.JoinPath(path), Body: make([]byte, i<<12), Principal: "p", Repeatable: i%2 == 0, MaxBytes: 3 + int64(i%2)})
		cancel()
	}
	c.Close()
	s.Close()
	if len(c.pool.all) != 0 {
		t.Errorf("%d connections are open", len(c.pool.all))
	}
	for range 1000 {
		if runtime.NumGoroutine() <= before {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("%d goroutines are left of %d", runtime.NumGoroutine(), before)
}
