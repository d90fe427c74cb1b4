package api_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"fermata/api"
	"fermata/continuation"
)

// Before a server has started, health checks are answered and all other requests wait.
func TestDoorway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := api.NewDoorway(api.New(api.Options{Log: slog.New(slog.DiscardHandler)}), "v1")
		ask := func(ctx context.Context, path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			door.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
			return w
		}
		for _, prefix := range []string{"", "/v1"} {
			if w := ask(t.Context(), prefix+"/health"); w.Code != http.StatusOK {
				t.Errorf("GET %s/health: got %d %s, want 200", prefix, w.Code, w.Body)
			}
			if w := ask(t.Context(), prefix+"/ready"); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `"reasons":["starting"]`) {
				t.Errorf("GET %s/ready: got %d %s, want 503 and starting", prefix, w.Code, w.Body)
			}
		}
		door.Ask(func(context.Context) error { return continuation.ErrUnavailable })
		if w := ask(t.Context(), "/ready"); !strings.Contains(w.Body.String(), `"reasons":["starting","store"]`) {
			t.Errorf("GET /ready without a store: got %s, want starting and store", w.Body)
		}
		gone, leave := context.WithCancel(t.Context())
		left, answered := make(chan int, 1), make(chan int, 1)
		go func() { left <- ask(gone, "/things").Code }()
		go func() { answered <- ask(t.Context(), "/things").Code }()
		synctest.Wait()
		leave()
		<-left
		if len(answered) > 0 {
			t.Error("a request was answered before the server had started")
		}
		door.Open(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
		if code := <-answered; code != http.StatusTeapot {
			t.Errorf("the request that waited got %d, want 418", code)
		}
		for _, path := range []string{"/ready", "/things"} {
			if w := ask(t.Context(), path); w.Code != http.StatusTeapot {
				t.Errorf("GET %s: got %d once it is open, want 418", path, w.Code)
			}
		}
	})
}
