package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/labstack/echo/v4"
)

// Routes whose requests are all of one kind have the middleware of that kind.
func TestLimit(t *testing.T) {
	for kind, text := range map[RequestKind]string{
		ExecutionRequests: `{"error":"rate_limited","message":"Too many CodeAPI execution requests. Please retry in 60 seconds.","retry_after_seconds":60}`,
		UploadRequests:    `{"error":"Too many file uploads. Please retry in 60 seconds."}`,
		DownloadRequests:  `{"error":"Too many file downloads. Please retry in 60 seconds."}`,
		ListRequests:      `{"error":"Too many file list requests. Please retry in 60 seconds."}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := Rate{Requests: 1, Window: time.Minute}
			router := New(Options{
				Open: true, Hosts: []string{"example.com"}, // the Host of httptest's requests
				Log:   slog.New(slog.DiscardHandler),
				Rates: Rates{Executions: r, Uploads: r, Downloads: r, Lists: r},
			})
			router.Handle(http.MethodGet, "/x", func(c echo.Context) error { return c.NoContent(http.StatusNoContent) },
				router.Needs(Use), router.Limiters.Limit(kind))
			get := func() (status int, body string) {
				w := httptest.NewRecorder()
				router.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody))
				return w.Code, w.Body.String()
			}
			if status, body := get(); status != http.StatusNoContent {
				t.Errorf("the first request: got %d %s, want 204", status, body)
			}
			if status, body := get(); status != http.StatusTooManyRequests || body != text {
				t.Errorf("the second request: got %d %s\nwant 429 %s", status, body, text)
			}
			time.Sleep(time.Minute)
			if status, body := get(); status != http.StatusNoContent {
				t.Errorf("after the wait: got %d %s, want 204", status, body)
			}
		})
	}
}

func TestQuietPrincipalsAreForgotten(t *testing.T) {
	now := time.Now()
	l := newLimiters(Rates{Executions: Rate{Requests: 2, Window: time.Minute}}).by[ExecutionRequests]
	for i := range 1000 {
		l.take(fmt.Sprint("quiet", i), now)
	}
	now = now.Add(50 * time.Second)
	for range 2 {
		l.take("busy", now)
	}
	now = now.Add(20 * time.Second)
	if q := l.take("busy", now); q.wait == 0 {
		t.Errorf("got %+v, want a refusal: a principal that was busy is remembered", q)
	}
	var names []string
	for name := range l.buckets {
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "busy" {
		t.Errorf("%d principals are remembered, among them %.40s, want only busy", len(names), got)
	}
}
