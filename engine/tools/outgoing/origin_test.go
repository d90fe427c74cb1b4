package outgoing_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"fermata/engine/tools/outgoing"
)

func TestT4Redirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another origin got %s %s with %v", r.Method, r.URL, r.Header)
	}))
	defer other.Close()
	var requests atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		to, status := r.URL.Query().Get("to"), http.StatusFound
		if r.Method == http.MethodPost {
			status = http.StatusTemporaryRedirect
		}
		var n int
		if _, err := fmt.Sscanf(r.URL.Path, "/hops/%d", &n); err == nil && n > 0 {
			to = fmt.Sprintf("/hops/%d", n-1)
		}
		if to == "" {
			_, _ = io.WriteString(w, r.Header.Get("X-Secret"))
			return
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	}))
	defer s.Close()
	c := open(t, s.URL, nil)
	do := func(method, at string) (*outgoing.Answer, error) {
		return c.Do(t.Context(), outgoing.Request{Method: method, URL: mustParse(t, at), Header: http.Header{"X-Secret": {"s"}}, Principal: "p", Repeatable: true, MaxBytes: 100})
	}
	for _, within := range []string{"/a", s.URL + "/a?b", "a/../b", "//" + s.Listener.Addr().String() + "/", strings.ToUpper(s.URL[:4]) + s.URL[4:]} {
		a, err := do(http.MethodGet, s.URL+"/?to="+url.QueryEscape(within))
		if err != nil || string(a.Body) != "s" {
			t.Errorf("redirect to %s: answer %v, error %v", within, a, err)
		}
	}
	host := s.Listener.Addr().String()
	for _, beyond := range []string{
		other.URL, "https://" + host, "//" + other.Listener.Addr().String(), `\\` + other.Listener.Addr().String(), `/\` + other.Listener.Addr().String(),
		"http://user:password@" + host, "http://user@" + host + "/", "http://localhost:" + s.URL[strings.LastIndex(s.URL, ":")+1:], "http://169.254.169.254/latest/meta-data", "file:///etc/passwd",
		"gopher://" + host, "http:", "http://", "http://[::1]:80/", "javascript:alert(1)", "http://" + host + ".evil.example/", "http://" + host + "@evil.example/", "/a b", "http://\u212aelvin/", "%zz",
	} {
		_, err := do(http.MethodGet, s.URL+"/?to="+url.QueryEscape(beyond))
		if e := mustFail(t, err, outgoing.Redirected); strings.ContainsAny(e.Error(), "@/%") {
			t.Errorf("text shows where it leads: %s", e)
		}
	}
	_, err := do(http.MethodPost, s.URL+"/?to=/a")
	wantReason(t, err, outgoing.Redirected)
	if _, err := do(http.MethodGet, s.URL+"/hops/5"); err != nil {
		t.Errorf("5 redirects failed: %v", err)
	}
	requests.Store(0)
	_, err = do(http.MethodGet, s.URL+"/hops/300")
	wantReason(t, err, outgoing.Circling)
	if n := requests.Load(); n != 6 {
		t.Errorf("%d requests for 300 redirects, want 6", n)
	}
	resp, err := c.HTTP("p").Get(s.URL + "/?to=" + other.URL)
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Errorf("a library's client follows: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	if resp, err := c.HTTP("p").Get(other.URL); err == nil {
		_ = resp.Body.Close()
		t.Error("a library's client leaves the origin")
	}
}

func TestT5Addresses(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	port := s.Listener.Addr().(*net.TCPAddr).AddrPort().Port()
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "10.0.0.1", "[::ffff:10.0.0.1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"[fd00::1]", "[::1]", "192.168.1.1", "172.31.0.1", "100.64.0.1", "[::127.0.0.1]", "198.18.0.1",
	} {
		at := fmt.Sprintf("http://%s:%d", host, port)
		_, err := get(t, open(t, at, func(o *outgoing.Options) { o.Private = false }), at)
		if e := mustFail(t, err, outgoing.Disallowed); e.Sent {
			t.Errorf("%s: error says that the request was sent", host)
		}
	}
	for _, host := range []string{"169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::169.254.169.254]", "[fe80::1]", "[fd00:ec2::254]", "100.100.100.200", "0.0.0.0", "[::]", "255.255.255.255", "224.0.0.1"} {
		at := fmt.Sprintf("http://%s:%d", host, port)
		_, err := get(t, open(t, at, nil), at) // with Private
		wantReason(t, err, outgoing.Disallowed)
	}
	for name, own := range map[string]string{"exact": "127.0.0.1", "all": "0.0.0.0", "all of both": "::"} {
		_, err := get(t, open(t, s.URL, func(o *outgoing.Options) {
			o.Forbidden = []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr(own), port)}
		}), s.URL)
		if err == nil {
			t.Errorf("%s: the server's own listener was reached", name)
			continue
		}
		wantReason(t, err, outgoing.Disallowed)
	}
}

func TestT5NoProxyFromTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the proxy of the environment was used") }))
	defer proxy.Close()
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer s.Close()
	at := strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
	if _, err := get(t, open(t, at, nil), at); err != nil {
		t.Error(err)
	}
}

func TestProxy(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "origin "+r.Header.Get("Proxy-Authorization"))
	}))
	defer origin.Close()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth(); user != "u" || password != "p" {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if r.Method != http.MethodConnect {
			_, _ = io.WriteString(w, "proxy "+r.RequestURI)
			return
		}
		to, err := new(net.Dialer).DialContext(r.Context(), "tcp", r.Host)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = to.Close() }()
		c, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = c.Close() }()
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { _, _ = io.Copy(to, c) }()
		_, _ = io.Copy(c, to)
	}))
	defer proxy.Close()
	use := func(o *outgoing.Options) {
		o.Proxy = mustParse(t, strings.Replace(proxy.URL, "//", "//u:p@", 1))
		o.RootCAs = origin.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	c := open(t, origin.URL, use)
	for range 2 {
		if a, err := get(t, c, origin.URL); err != nil || string(a.Body) != "origin " {
			t.Errorf("answer through a tunnel is %v, error %v", a, err)
		}
	}
	if a, err := get(t, open(t, "http://example.com", use), "http://example.com/a?b"); err != nil || string(a.Body) != "proxy http://example.com/a?b" {
		t.Errorf("answer through the proxy is %v, error %v", a, err)
	}
	_, err := get(t, open(t, "http://169.254.169.254", use), "http://169.254.169.254/")
	wantReason(t, err, outgoing.Disallowed)
	_, err = get(t, open(t, origin.URL, func(o *outgoing.Options) { o.Proxy = mustParse(t, proxy.URL) }), origin.URL)
	if e := mustFail(t, err, outgoing.Unreachable); e.Sent {
		t.Error("error says that the request was sent")
	}
}
