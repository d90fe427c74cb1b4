package librechat_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"fermata/api"
	"fermata/engine"
)

func TestExecutionRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.Rates.Executions = api.Rate{Requests: 20, Window: 30 * time.Second}
		e := completed()
		h := newHandler(e, o)
		headers := func(name string, header http.Header, want string) {
			t.Helper()
			got := fmt.Sprintf("%s/%s/%s/%s", header.Get("RateLimit-Limit"), header.Get("RateLimit-Remaining"), header.Get("RateLimit-Reset"), header.Get("Retry-After"))
			if got != want {
				t.Errorf("%s: limit/remaining/reset/retry are %s, want %s", name, got, want)
			}
		}
		initial, continuation := call{body: `{"code":"#"}`}, call{body: `{"continuation_token":"t","tool_results":[{"call_id":"call_001"}]}`}
		for i := range 20 {
			w := initial.do(t, h)
			if w.Code != http.StatusOK {
				t.Fatalf("request %d: got %d %s, want 200", i, w.Code, w.Body)
			}
			if i == 0 {
				headers("the first", w.Header(), "20/19/2/")
			}
		}
		w := initial.do(t, h)
		want(t, w, http.StatusTooManyRequests, `{"status":"error","error":"rate_limited",`+
			`"message":"Too many CodeAPI execution requests. Please retry in 2 seconds.","retry_after_seconds":2}`)
		headers("the 21st", w.Header(), "20/0/30/2")
		if len(e.starts) != 20 {
			t.Errorf("%d programs were started, want 20", len(e.starts))
		}

		// Refused requests do not count, and other requests are not refused.
		if w := continuation.do(t, h); w.Code != http.StatusOK || w.Header().Get("RateLimit-Limit") != "" {
			t.Errorf("a continuation: got %d %s with headers %v, want 200 without a limit", w.Code, w.Body, w.Header())
		}
		other := initial
		other.header = map[string]string{"X-API-Key": "other-key"}
		if w := other.do(t, h); w.Code != http.StatusOK {
			t.Errorf("another principal: got %d %s, want 200", w.Code, w.Body)
		}
		time.Sleep(time.Second)
		want(t, initial.do(t, h), http.StatusTooManyRequests, `{"status":"error","error":"rate_limited",`+
			`"message":"Too many CodeAPI execution requests. Please retry in 1 second.","retry_after_seconds":1}`)
		time.Sleep(time.Second)
		if w := initial.do(t, h); w.Code != http.StatusOK {
			t.Errorf("after the wait: got %d %s, want 200", w.Code, w.Body)
		}
		time.Sleep(time.Hour)
		headers("after a long time", initial.do(t, h).Header(), "20/19/2/")
	})
}

func TestNoRate(t *testing.T) {
	h := newHandler(completed(), options())
	for range 100 {
		if w := (call{body: `{"code":"#"}`}).do(t, h); w.Code != http.StatusOK || w.Header().Get("RateLimit-Limit") != "" {
			t.Fatalf("got %d %s with headers %v, want 200 without a limit", w.Code, w.Body, w.Header())
		}
	}
}

func TestTooManyExecutions(t *testing.T) {
	e := completed()
	e.err = engine.ErrTooMany
	w := call{body: `{"code":"#"}`}.do(t, newHandler(e, options()))
	want(t, w, http.StatusTooManyRequests, `{"status":"error","session_id":"`+e.starts[0].Session+`","error":"rate_limited",`+
		`"message":"Too many CodeAPI executions at once. Please retry in 5 seconds.","retry_after_seconds":5}`)
	if got := w.Header().Get("Retry-After"); got != "5" {
		t.Errorf("Retry-After is %q, want 5", got)
	}
}
