package httptool_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fermata/engine/tools/httptool"
)

// flaky is an endpoint that fails some times before it answers.
func flaky(t *testing.T, times int32, fail func(w http.ResponseWriter)) (string, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Idempotency-Key"); key != "" && key != "key-1" {
			t.Errorf("the key is %q", key)
		}
		if body, err := io.ReadAll(r.Body); err != nil || r.Method == http.MethodPut && string(body) != `{"a":1}` {
			t.Errorf("the body is %q, error %v", body, err)
		}
		if n.Add(1) <= times {
			fail(w)
			return
		}
		_, _ = io.WriteString(w, "ok")
	}))
	t.Cleanup(s.Close)
	return s.URL, &n
}

func TestRetries(t *testing.T) {
	t.Parallel()
	put := httptool.Operation{Method: "PUT", Path: "/", Parameters: []httptool.Parameter{{Name: "a", In: httptool.InBody}}}
	status := func(status int, after string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			if after != "" {
				w.Header().Set("Retry-After", after)
			}
			w.WriteHeader(status)
		}
	}
	cut := func(w http.ResponseWriter) {
		if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
			_ = c.Close()
		}
	}
	for name, test := range map[string]struct {
		fail     func(http.ResponseWriter)
		times    int32
		requests int32
		failure  string
	}{
		"429":                   {status(429, "0"), 2, 3, ""},
		"502":                   {status(502, ""), 1, 2, ""},
		"503":                   {status(503, "Mon, 02 Jan 2006 15:04:05 GMT"), 2, 3, ""},
		"504":                   {status(504, "0"), 2, 3, ""},
		"cut":                   {cut, 1, 2, ""},
		"too often":             {status(503, "0"), 3, 3, "status 503 Service Unavailable"},
		"500":                   {status(500, "0"), 1, 1, "status 500 Internal Server Error"},
		"404":                   {status(404, ""), 1, 1, "status 404 Not Found"},
		"after a second":        {status(503, "1"), 1, 2, ""},
		"after the deadline":    {status(503, "120"), 1, 1, "status 503"},
		"after ages":            {status(503, strings.Repeat("9", 40)), 1, 1, "status 503"},
		"at a date far away":    {status(503, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)), 1, 1, "status 503"},
		"after what is no time": {status(503, "soon"), 1, 2, ""},
		"redirect is not tried": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 1, 1, "redirects"},
		"wait is not kept twice": {status(503, "-1"), 1, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at, requests := flaky(t, test.times, test.fail)
			s := open(t, at, put, func(o *httptool.Options) { o.Retries = 2 })
			begin := time.Now()
			got, err := repeatable(t, s, `{"a": 1}`)
			if test.failure == "" && (err != nil || string(got) != `"ok"`) {
				t.Errorf("the result is %s, error %v", got, err)
			}
			if test.failure != "" {
				wantFailure(t, err, test.failure)
			}
			if n := requests.Load(); n != test.requests {
				t.Errorf("%d requests, want %d", n, test.requests)
			}
			if took := time.Since(begin); took > 20*time.Second || name == "after a second" && took < time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// TestT30OnceAtMost checks that a call that must not be repeated is sent once, however the endpoint fails.
func TestT30OnceAtMost(t *testing.T) {
	for name, test := range map[string]struct {
		fail    func(http.ResponseWriter)
		unknown bool
	}{
		"cut":          {func(w http.ResponseWriter) { c, _, _ := http.NewResponseController(w).Hijack(); _ = c.Close() }, true},
		"bad gateway":  {func(w http.ResponseWriter) { w.WriteHeader(http.StatusBadGateway) }, true},
		"slow gateway": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusGatewayTimeout) }, true},
		"unavailable": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, false},
		"too many": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) }, false},
	} {
		for _, method := range []string{"GET", "POST"} {
			t.Run(name+" "+method, func(t *testing.T) {
				at, requests := flaky(t, 1_000_000, test.fail)
				s := open(t, at, httptool.Operation{Method: method, Path: "/"}, func(o *httptool.Options) { o.Retries = 5 })
				const calls = 20
				for range calls {
					_, err := call(t, s, "{}")
					if f := mustFail(t, err, "the "); f.Unknown != test.unknown {
						t.Errorf("the failure %q is unknown: %t", f.Message, f.Unknown)
					}
				}
				if n := requests.Load(); n != calls {
					t.Errorf("%d requests for %d calls", n, calls)
				}
			})
		}
	}
	at, _ := flaky(t, 0, nil)
	s := open(t, at, httptool.Operation{Method: "GET", Path: "/"}, func(o *httptool.Options) { o.Private = false })
	_, err := call(t, s, "{}")
	if f := mustFail(t, err, "address of the endpoint is not allowed"); f.Unknown {
		t.Error("a call that was not sent is unknown")
	}
}

// TestT30NoRetries checks that without retries no request is sent twice, even if the endpoint closes
// connections that it has promised to keep.
func TestT30NoRetries(t *testing.T) {
	for retries, want := range map[int]string{0: "once", 2: "again"} {
		t.Run(want, func(t *testing.T) {
			at, requests := cutting(t)
			s := open(t, at, httptool.Operation{Method: "GET", Path: "/"}, func(o *httptool.Options) { o.Retries = retries })
			const calls = 10
			for range calls {
				if got, err := repeatable(t, s, "{}"); err != nil || string(got) != `"ok"` {
					t.Errorf("the result is %s, error %v", got, err)
				}
			}
			if n := requests.Load(); (n == calls) != (retries == 0) {
				t.Errorf("%d requests for %d calls with %d retries", n, calls, retries)
			}
		})
	}
}

// cutting is an endpoint that answers the first request of each connection, keeps the connection, and
// cuts it when the second request has come.
func cutting(t *testing.T) (string, *atomic.Int32) {
	t.Helper()
	var n atomic.Int32
	type connection struct{}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		if of, ok := r.Context().Value(connection{}).(*atomic.Int32); !ok || of.Add(1) > 1 {
			panic(http.ErrAbortHandler)
		}
		_, _ = io.WriteString(w, "ok")
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, connection{}, new(atomic.Int32))
	}
	s.Start()
	t.Cleanup(s.Close)
	return s.URL, &n
}
