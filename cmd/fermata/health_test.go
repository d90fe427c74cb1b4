package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealthCommand(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status":"unhealthy","message":"All sandboxes are in use."}`)
			return
		}
		_, _ = io.WriteString(w, `{"status":"healthy"}`)
	}))
	defer server.Close()
	addr := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(addr, ":")
	for _, c := range []struct {
		args []string
		addr string // FERMATA_ADDR
		want string // in the error; none if it is empty
	}{
		{nil, addr, ""},
		{nil, ":" + port, ""},
		{nil, "0.0.0.0:" + port, ""},
		{[]string{"--url", server.URL + "/health"}, "127.0.0.1:1", ""},
		{[]string{"--ready"}, addr, "503 Service Unavailable: {\"status\":\"unhealthy\",\"message\":\"All sandboxes"},
		{nil, "127.0.0.1:1", "connection refused"},
		{nil, "8000", "--addr must be HOST:PORT"},
		{[]string{"--url", "nonsense"}, addr, "nonsense"},
	} {
		t.Setenv("FERMATA_ADDR", c.addr)
		var stdout bytes.Buffer
		err := run(t.Context(), append([]string{"health"}, c.args...), &stdout, io.Discard)
		switch {
		case c.want == "" && (err != nil || stdout.String() != "healthy\n"):
			t.Errorf("health %v at %s = %v, printed %q, want healthy", c.args, c.addr, err, stdout.String())
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("health %v at %s = %v, want an error with %q", c.args, c.addr, err, c.want)
		}
	}
}

func TestHealthTarget(t *testing.T) {
	for addr, want := range map[string]string{
		":8000": "http://127.0.0.1:8000/health", "[::]:8000": "http://[::1]:8000/health", "[::1]:1": "http://[::1]:1/health",
		"0.0.0.0:8000": "http://127.0.0.1:8000/health", "fermata:8000": "http://fermata:8000/health",
	} {
		if got, err := (&health{Addr: addr}).target(); got != want || err != nil {
			t.Errorf("the server at %s is asked at %s, %v, want %s", addr, got, err, want)
		}
	}
}
