package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"
)

func TestSlashes(t *testing.T) {
	r := New(Options{Log: slog.New(slog.DiscardHandler)})
	r.Handle(http.MethodPost, "/exec/programmatic", func(c echo.Context) error { return c.String(http.StatusOK, "program") })
	r.Handle(http.MethodPost, "/download/:session/:file", func(c echo.Context) error {
		return c.String(http.StatusOK, c.Param("session")+" "+c.Param("file"))
	})
	for target, want := range map[string]string{
		"/exec/programmatic":         "program",
		"/exec/programmatic/":        "program",
		"//exec///programmatic//":    "program",
		"/exec/programmatic/?a=//b/": "program",
		"/exec/programmatics/":       `{"error":"Not found"}`,
		"/download//s/a%2F%2Fb/":     "s a%2F%2Fb",
		"/download/s/a%2F":           "s a%2F",
		"/":                          `{"error":"Not found"}`,
		"//":                         `{"error":"Not found"}`,
	} {
		w := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		u, err := request.URL.Parse("http://example.com" + target)
		if err != nil {
			t.Fatal(err)
		}
		request.URL = u
		if r.ServeHTTP(w, request); w.Body.String() != want || w.Header().Get("Location") != "" {
			t.Errorf("%s: %d %s, want %s", target, w.Code, w.Body, want)
		}
	}
}
