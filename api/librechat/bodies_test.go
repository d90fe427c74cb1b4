package librechat_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestContentTypeMayHaveParameters(t *testing.T) {
	w := call{body: `{"code":"#"}`, header: map[string]string{"Content-Type": "Application/JSON; charset=utf-8"}}.do(t, newHandler(completed(), options()))
	if w.Code != http.StatusOK {
		t.Errorf("got %d %s, want 200", w.Code, w.Body)
	}
}

// A body without a declared length is read as far as the limit.
func TestChunkedBodyTooLarge(t *testing.T) {
	server := httptest.NewServer(newHandler(completed(), options()))
	defer server.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+path, io.MultiReader(strings.NewReader(strings.Repeat(" ", 1<<20)), strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", "good-key")
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	if wanted := `{"status":"error","error":"request entity too large"}`; response.StatusCode != http.StatusRequestEntityTooLarge || string(body) != wanted {
		t.Errorf("got %d %s, want 413 %s", response.StatusCode, body, wanted)
	}
}

// A client that declares too much is refused before anything is read or set aside.
func TestDeclaredBodyTooLarge(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, unreadable{t, w})
	r.ContentLength = 1 << 50
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-API-Key", "good-key")
	newHandler(completed(), options()).ServeHTTP(w, r)
	want(t, w, 413, `{"status":"error","error":"request entity too large"}`)
}
