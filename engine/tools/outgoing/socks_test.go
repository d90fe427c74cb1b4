package outgoing_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"fermata/engine/tools/outgoing"
)

// TestSOCKS5 checks that the name of the endpoint is given to the proxy, which connects to it.
func TestSOCKS5(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host+r.RequestURI) }))
	defer s.Close()
	names := make(chan string, 1)
	proxy := raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		head := make([]byte, 3) // version, one method, no authentication
		if _, err := io.ReadFull(in, head); err != nil {
			return
		}
		_, _ = c.Write([]byte{5, 0})
		ask := make([]byte, 5) // version, connect, 0, name, its length
		if _, err := io.ReadFull(in, ask); err != nil {
			return
		}
		name := make([]byte, int(ask[4])+2)
		if _, err := io.ReadFull(in, name); err != nil {
			return
		}
		names <- string(name[:ask[4]])
		to, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			return
		}
		defer func() { _ = to.Close() }()
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		go func() { _, _ = io.Copy(to, in) }()
		_, _ = io.Copy(c, to)
	})
	const at = "http://api.example.com/a?b"
	c := open(t, at, func(o *outgoing.Options) {
		o.Private = false
		o.Proxy = mustParse(t, strings.Replace(proxy, "http:", "socks5:", 1))
	})
	a, err := get(t, c, at)
	if err != nil || string(a.Body) != "api.example.com/a?b" {
		t.Fatalf("answer is %v, error %v", a, err)
	}
	if name := <-names; name != "api.example.com" {
		t.Errorf("the proxy was asked for %q", name)
	}
	c.Close()
	s.CloseClientConnections()
}
