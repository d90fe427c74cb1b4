package librechat

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

// A client that asks for the same large answer many times gets as many copies as its share of the
// budget allows.
func TestLargeAnswersCount(t *testing.T) {
	r := api.New(api.Options{
		Open: true, Hosts: []string{"example.com"}, // the Host of httptest's requests
		BodyBudget: 8 << 20, Log: slog.New(slog.DiscardHandler),
	})
	post := func(path string) int {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
		return w.Code
	}
	hold := func(o core.Outcome, next func()) echo.HandlerFunc {
		return func(c echo.Context) error {
			if err := holdAnswer(r.Bodies, c, o); err != nil {
				return err
			}
			next()
			return c.NoContent(http.StatusNoContent)
		}
	}
	large := core.Outcome{Calls: []core.Call{{Input: make([]byte, 3<<19)}}}
	small := core.Outcome{Stdout: strings.Repeat("x", largeAnswer-1)}
	r.Handle(http.MethodPost, "/large", hold(large, func() {}), r.Needs(api.Use))
	r.Handle(http.MethodPost, "/small", hold(small, func() {}), r.Needs(api.Use))
	var meanwhile []int
	r.Handle(http.MethodPost, "/first", hold(large, func() {
		meanwhile = []int{post("/large"), post("/small")}
	}), r.Needs(api.Use))
	if status := post("/first"); status != http.StatusNoContent {
		t.Errorf("the only answer: got %d, want 204", status)
	}
	if meanwhile[0] != http.StatusTooManyRequests {
		t.Errorf("one more: got %d, want 429", meanwhile[0])
	}
	if meanwhile[1] != http.StatusNoContent {
		t.Errorf("a small one, which does not count: got %d, want 204", meanwhile[1])
	}
	if status := post("/large"); status != http.StatusNoContent {
		t.Errorf("after the first: got %d, want 204", status)
	}
}

// An answer has a place for each reason why a file is skipped.
func TestSkipReasons(t *testing.T) {
	for i, reason := range engine.SkipReasons {
		l := leftoversOf(core.Outcome{Skipped: core.Skipped{Reasons: map[string]int{reason: i + 1}}})
		body, err := api.Encode(l.Truncation.Reasons)
		var counts map[string]int
		if err == nil {
			err = json.Unmarshal(body, &counts)
		}
		if err != nil || counts[reason] != i+1 || len(counts) != len(engine.SkipReasons) {
			t.Errorf("%q is told as %s (%v)", reason, body, err)
		}
	}
}

// BenchmarkInputs compares how encodePause and the library encode the inputs of calls.
func BenchmarkInputs(b *testing.B) {
	input := json.RawMessage(`[` + strings.Repeat(`{"id":12345,"name":"Ada Lovelace","tags":["a","b"],"score":1.25},`, 1<<20/66) + `null]`)
	b.Run("inserted", func(b *testing.B) {
		b.SetBytes(int64(len(input)))
		for b.Loop() {
			if _, err := encodePause(core.Outcome{Calls: []core.Call{{Input: input}}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reformatted", func(b *testing.B) {
		b.SetBytes(int64(len(input)))
		for b.Loop() {
			if _, err := api.Encode(map[string]jsontext.Value{"input": jsontext.Value(input)}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
