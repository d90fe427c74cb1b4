package api

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// TestAssembled bounds how many answers are made for one client at once. An answer counts before it is made, and for
// its size while it is sent.
func TestAssembled(t *testing.T) {
	t.Parallel()
	r := New(Options{Auth: auth.New([]auth.Key{{Name: "ada", Key: "good-key"}}, nil), Log: slog.New(slog.DiscardHandler)})
	var while, after int64
	var principal string
	r.Handle(http.MethodGet, "/x", func(c echo.Context) error {
		principal = PrincipalOf(c).ID
		while = r.Assembled.budget.used
		err := AnswerBytes(c, http.StatusOK, []byte("{}"))
		after = r.Assembled.budget.used
		return err
	}, r.Needs(See), r.Assembled.Around(PageBytes))
	get := func() *httptest.ResponseRecorder {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", http.NoBody)
		request.Header.Set("X-API-Key", "good-key")
		recorder := httptest.NewRecorder()
		r.ServeHTTP(recorder, request)
		return recorder
	}
	if a := get(); a.Code != http.StatusOK || while != PageBytes || after != 2 || r.Assembled.budget.used != 0 || len(r.Assembled.taken) != 0 {
		t.Errorf("got %d; it counted for %d bytes, then for %d, and %d are left", a.Code, while, after, r.Assembled.budget.used)
	}
	for range assembledPlaces {
		place, err := r.Assembled.Enter(t.Context(), principal)
		if err != nil {
			t.Fatal(err)
		}
		defer place.Leave()
	}
	if a := get(); a.Code != http.StatusTooManyRequests || a.Header().Get("Retry-After") != "1" {
		t.Errorf("with all places taken: got %d %s, Retry-After %q", a.Code, a.Body, a.Header().Get("Retry-After"))
	}
}
