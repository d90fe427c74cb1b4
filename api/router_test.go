package api_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"fermata/api"
)

// Each contract has its own form of errors, on its own paths.
func TestEnvelopes(t *testing.T) {
	type envelope struct {
		Kind  string     `json:"type"`
		Error *api.Error `json:"error"`
	}
	r := api.New(api.Options{Log: slog.New(slog.DiscardHandler)})
	refuse := func(echo.Context) error { return api.BadRequest("no") }
	r.Handle(http.MethodGet, "/plain/:id", refuse)
	r.Handle(http.MethodGet, "/other/:id", refuse)
	r.Envelope("/other/:id", func(_ echo.Context, e *api.Error) any { return envelope{"error", e} })
	for _, c := range []struct {
		method, path, want string
		status             int
	}{
		{http.MethodGet, "/plain/1", `{"error":"no"}`, 400},
		{http.MethodGet, "/other/1", `{"type":"error","error":{"error":"no"}}`, 400},
		{http.MethodPost, "/plain/1", `{"error":"Method not allowed"}`, 405},
		{http.MethodPost, "/other/1", `{"type":"error","error":{"error":"Method not allowed"}}`, 405},
		{http.MethodGet, "/other", `{"error":"Not found"}`, 404},
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody))
		if w.Code != c.status || w.Body.String() != c.want {
			t.Errorf("%s %s: got %d %s, want %d %s", c.method, c.path, w.Code, w.Body, c.status, c.want)
		}
	}
}
