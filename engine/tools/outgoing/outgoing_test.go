package outgoing_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"fermata/engine/tools/outgoing"
)

// mustParse returns a URL.
func mustParse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// open returns a client of a URL that may connect to this machine.
func open(t *testing.T, at string, change func(*outgoing.Options)) *outgoing.Client {
	t.Helper()
	o := outgoing.Options{Origin: mustParse(t, at), Private: true}
	if change != nil {
		change(&o)
	}
	c, err := outgoing.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// get makes a repeatable GET of a URL.
func get(t *testing.T, c *outgoing.Client, at string) (*outgoing.Answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return c.Do(ctx, outgoing.Request{Method: http.MethodGet, URL: mustParse(t, at), Principal: "p", Repeatable: true, MaxBytes: 1 << 20})
}

// wantReason checks why a call has failed.
func wantReason(t *testing.T, err error, want outgoing.Reason) {
	t.Helper()
	_ = mustFail(t, err, want)
}

// mustFail checks why a call has failed, and returns the failure.
func mustFail(t *testing.T, err error, want outgoing.Reason) *outgoing.Error {
	t.Helper()
	var e *outgoing.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v, want the reason %q", err, want)
	}
	if e.Reason != want {
		t.Fatalf("reason is %q (%v), want %q", e.Reason, e.Err, want)
	}
	return e
}

// raw starts an endpoint that sends raw bytes, and returns its URL. It calls serve for each connection, with
// the number of the connection and a reader for the requests.
func raw(t *testing.T, serve func(n int, c net.Conn, in *bufio.Reader)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = c.Close() }()
				serve(n, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// say starts an endpoint that answers one request with the given bytes.
func say(t *testing.T, answer string) string {
	t.Helper()
	return raw(t, func(_ int, c net.Conn, in *bufio.Reader) {
		if _, err := http.ReadRequest(in); err == nil {
			_, _ = io.WriteString(c, answer)
		}
	})
}

func TestAnswer(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Seen", r.Method+" "+r.URL.String()+" "+r.Header.Get("X-Sent"))
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.Copy(w, r.Body)
	}))
	defer s.Close()
	c := open(t, s.URL, nil)
	for range 3 {
		a, err := c.Do(t.Context(), outgoing.Request{
			Method: http.MethodPost, URL: mustParse(t, s.URL+"/a?b=c"), Header: http.Header{"X-Sent": {"d"}},
			Body: []byte("body"), Principal: "p", Repeatable: true, MaxBytes: 4,
		})
		if err != nil {
			t.Fatal(err)
		}
		if a.Status != http.StatusTeapot || string(a.Body) != "body" || a.Header.Get("X-Seen") != "POST /a?b=c d" {
			t.Errorf("answer is %d %q %q", a.Status, a.Body, a.Header.Get("X-Seen"))
		}
	}
}

func TestTLS(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	defer s.Close()
	_, err := get(t, open(t, s.URL, nil), s.URL)
	wantReason(t, err, outgoing.Insecure)
	c := open(t, s.URL, func(o *outgoing.Options) { o.RootCAs = s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs })
	for range 3 {
		a, err := get(t, c, s.URL)
		if err != nil || string(a.Body) != "HTTP/1.1" {
			t.Fatalf("answer is %v, error %v", a, err)
		}
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	at := strings.Replace(plain.URL, "http:", "https:", 1)
	_, err = get(t, open(t, at, nil), at)
	wantReason(t, err, outgoing.Insecure)
}

// connections starts a server that counts its connections.
func connections(t *testing.T, h http.HandlerFunc) (*httptest.Server, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			n.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, &n
}

func TestT31ConnectionsAreKeptForEachPrincipal(t *testing.T) {
	s, made := connections(t, func(http.ResponseWriter, *http.Request) {})
	c := open(t, s.URL, nil)
	for range 3 {
		for _, principal := range []string{"a", "b"} {
			if _, err := c.Do(t.Context(), outgoing.Request{Method: http.MethodGet, URL: mustParse(t, s.URL), Principal: principal, Repeatable: true, MaxBytes: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := made.Load(); n != 2 {
		t.Errorf("%d connections were made, want one for each of 2 principals", n)
	}
}

func TestT30NoHiddenRepetition(t *testing.T) {
	t.Run("fresh connection", func(t *testing.T) {
		var first atomic.Bool
		first.Store(true)
		s, made := connections(t, func(_ http.ResponseWriter, r *http.Request) {
			if first.Swap(false) {
				return
			}
			if !r.Close || r.ProtoMinor != 1 || r.Header.Get("Idempotency-Key") != "" {
				t.Errorf("request is HTTP/1.%d with %v", r.ProtoMinor, r.Header)
			}
		})
		c := open(t, s.URL, nil)
		for i := range 4 { // the first one leaves a connection behind that could be used
			if _, err := c.Do(t.Context(), outgoing.Request{Method: http.MethodGet, URL: mustParse(t, s.URL), Principal: "a", Repeatable: i == 0, MaxBytes: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n := made.Load(); n != 4 {
			t.Errorf("%d connections for 3 calls that may not be repeated", n)
		}
	})
	t.Run("cut after the request", func(t *testing.T) {
		var requests atomic.Int32
		at := raw(t, func(_ int, _ net.Conn, in *bufio.Reader) {
			if _, err := http.ReadRequest(in); err == nil {
				requests.Add(1)
			}
		})
		c := open(t, at, nil)
		for range 20 {
			_, err := c.Do(t.Context(), outgoing.Request{Method: http.MethodGet, URL: mustParse(t, at), Principal: "a", MaxBytes: 1})
			if !mustFail(t, err, outgoing.Broken).Sent {
				t.Error("the error does not say that the request was sent")
			}
		}
		if n := requests.Load(); n != 20 {
			t.Errorf("%d requests for 20 calls that may not be repeated", n)
		}
	})
	t.Run("kept connection that is dead", func(t *testing.T) {
		at := raw(t, func(n int, c net.Conn, in *bufio.Reader) {
			for i := 0; ; i++ {
				if _, err := http.ReadRequest(in); err != nil || n == 1 && i == 1 {
					return // the first connection takes a second request and answers nothing
				}
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			}
		})
		c := open(t, at, nil)
		for range 3 {
			if _, err := get(t, c, at); err != nil {
				t.Errorf("a call that may be repeated failed: %v", err)
			}
		}
	})
}

func TestT3Framing(t *testing.T) {
	for name, test := range map[string]struct {
		answer string
		want   outgoing.Reason
	}{
		"length and chunks":      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", outgoing.Ambiguous},
		"chunks and length":      {"HTTP/1.1 200 OK\r\ntransfer-encoding : chunked\r\ncontent-length: 5\r\n\r\n0\r\n\r\n", outgoing.Ambiguous},
		"two lengths":            {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", outgoing.Ambiguous},
		"list of lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nabc", outgoing.Malformed},
		"negative length":        {"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nabc", outgoing.Malformed},
		"huge length":            {"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nabc", outgoing.Malformed},
		"unknown coding":         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nabc", outgoing.Malformed},
		"bad chunk":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", outgoing.Malformed},
		"cut chunk":              {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", outgoing.Broken},
		"no HTTP":                {"SSH-2.0-OpenSSH\r\n\r\n", outgoing.Malformed},
		"HTTP/2":                 {"HTTP/2.0 200 OK\r\n\r\n", outgoing.Malformed},
		"status that is none":    {"HTTP/1.1 banana\r\n\r\n", outgoing.Malformed},
		"carriage return":        {"HTTP/1.1 200 OK\r\nA: b\rContent-Length: 1\r\n\r\n", outgoing.Malformed},
		"NUL":                    {"HTTP/1.1 200 OK\r\nA: b\x00\r\n\r\n", outgoing.Malformed},
		"nothing":                {"", outgoing.Broken},
		"cut headers":            {"HTTP/1.1 200 OK\r\nA: b", outgoing.Broken},
		"10 MB of headers":       {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("a", 10<<20) + "\r\n\r\n", outgoing.LongHeaders},
		"10,000 headers":         {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: bcdefgh\r\n", 10_000) + "\r\n", outgoing.LongHeaders},
		"10,000 interim answers": {strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 10_000), outgoing.LongHeaders},
		"switch of protocols":    {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: a\r\n\r\n", outgoing.Malformed},
		"trailers without end":   {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: A\r\n\r\n0\r\n" + strings.Repeat("A: bcdefgh\r\n", 10_000), outgoing.Malformed},
	} {
		t.Run(name, func(t *testing.T) {
			at := say(t, test.answer)
			_, err := get(t, open(t, at, nil), at)
			if e := mustFail(t, err, test.want); strings.Contains(e.Error(), "127.0.0.1") {
				t.Errorf("text names an address: %s", e)
			}
		})
	}
	t.Run("interim answers are passed over", func(t *testing.T) {
		at := say(t, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		if a, err := get(t, open(t, at, nil), at); err != nil || string(a.Body) != "ok" {
			t.Errorf("answer is %v, error %v", a, err)
		}
	})
}

// TestT3SmuggledAnswer checks that the next call gets its own answer, although each endpoint below sends a
// second answer after the first.
func TestT3SmuggledAnswer(t *testing.T) {
	const smuggled = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nsmuggled"
	later := make(chan struct{}, 1)
	for name, send := range map[string]func(c net.Conn, canary string){
		"behind a length": func(c net.Conn, canary string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s%s", len(canary), canary, smuggled)
		},
		"behind chunks": func(c net.Conn, canary string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n%s", len(canary), canary, smuggled)
		},
		"one byte too many": func(c net.Conn, canary string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s\n", len(canary), canary)
		},
		"begun only": func(c net.Conn, canary string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s%s", len(canary), canary, smuggled[:20])
		},
		"a moment later": func(c net.Conn, canary string) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(canary), canary)
			_, _ = io.WriteString(c, smuggled)
			later <- struct{}{}
		},
		"body of an answer without one": func(c net.Conn, _ string) {
			_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n"+smuggled)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var made atomic.Int32
			at := raw(t, func(n int, c net.Conn, in *bufio.Reader) {
				made.Store(int32(n))
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					send(c, r.URL.Query().Get("canary"))
				}
			})
			client := open(t, at, nil)
			for i := range 50 {
				canary := fmt.Sprintf("canary-%d", i)
				a, err := get(t, client, at+"/?canary="+canary)
				if err != nil {
					t.Fatal(err)
				}
				if got := string(a.Body); got != canary && a.Status != http.StatusNoContent {
					t.Fatalf("call %d got %q", i, got)
				}
				if name == "a moment later" {
					<-later // what has not arrived cannot be told from an answer
				}
			}
			if n := made.Load(); n != 50 {
				t.Errorf("%d connections for 50 calls: some were used again", n)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	at := raw(t, func(_ int, _ net.Conn, in *bufio.Reader) { _, _ = io.Copy(io.Discard, in) })
	c := open(t, at, nil)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	_, err := c.Do(ctx, outgoing.Request{Method: http.MethodPost, URL: mustParse(t, at), Body: []byte("a"), Principal: "p", MaxBytes: 100})
	wantReason(t, err, outgoing.Cancelled)
	time.AfterFunc(50*time.Millisecond, c.Close)
	_, err = c.Do(t.Context(), outgoing.Request{Method: http.MethodGet, URL: mustParse(t, at), Principal: "p", MaxBytes: 100})
	wantReason(t, err, outgoing.Broken)
	if _, err = get(t, c, at); err == nil {
		t.Error("a closed client makes calls")
	}
}

func TestUnreachable(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := "http://" + l.Addr().String()
	_ = l.Close()
	_, err = get(t, open(t, at, nil), at)
	if e := mustFail(t, err, outgoing.Unreachable); e.Sent || strings.Contains(e.Error(), "127") {
		t.Errorf("error is %v, sent %t", e, e.Sent)
	}
	_, err = get(t, open(t, "http://no-such-host.invalid", nil), "http://no-such-host.invalid")
	wantReason(t, err, outgoing.Unreachable)
	_, err = get(t, open(t, at, nil), "http://127.0.0.1:1")
	wantReason(t, err, outgoing.WrongOrigin)
}

func TestNew(t *testing.T) {
	for _, origin := range []string{"", "ftp://a", "/a", "http://", "http:a"} {
		if _, err := outgoing.New(outgoing.Options{Origin: mustParse(t, origin)}); err == nil {
			t.Errorf("origin %q is taken", origin)
		}
	}
	for _, proxy := range []string{"ftp://a", "a", "http://"} {
		if _, err := outgoing.New(outgoing.Options{Origin: mustParse(t, "http://a"), Proxy: mustParse(t, proxy)}); err == nil {
			t.Errorf("proxy %q is taken", proxy)
		}
	}
}
