package api

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/labstack/echo/v4"

	"fermata/api/auth"
)

// The declared length of a body costs no memory; the bytes that arrive do.
func TestBodiesGrowWithWhatHasCome(t *testing.T) {
	for _, c := range []struct {
		name            string
		body            io.Reader
		declared, least int64
		err             error
	}{
		{"one byte of many", io.MultiReader(strings.NewReader("x"), iotest.ErrReader(io.ErrUnexpectedEOF)), 49_999_999, firstBuffer, io.ErrUnexpectedEOF},
		{"small", strings.NewReader(`{"code":"#"}`), 12, 13, nil},
		{"empty", strings.NewReader(""), 0, 1, nil},
		{"undeclared", strings.NewReader("x"), -1, firstBuffer, nil},
		{"large", strings.NewReader(strings.Repeat("x", 300_000)), 300_000, 300_001, nil},
		{"large, undeclared", strings.NewReader(strings.Repeat("x", 300_000)), -1, 16 * firstBuffer, nil},
		{"byte by byte", iotest.OneByteReader(strings.NewReader(strings.Repeat("x", 70_000))), 70_000, 70_001, nil},
	} {
		b := newBudget(1 << 30)
		l := b.lease("ada")
		body, err := readAll(c.body, c.declared, l)
		if !errors.Is(err, c.err) || l.held != c.least || b.used != c.least || int64(cap(body)) > c.least {
			t.Errorf("%s: %v, holds %d (the budget says %d) with a buffer of %d; want %v, %d", c.name, err, l.held, b.used, cap(body), c.err, c.least)
		}
		if strings.HasPrefix(c.name, "large") && len(body) != 300_000 || !bytes.Equal(bytes.Trim(body, "x"), nil) && c.name != "small" {
			t.Errorf("%s: the body has %d bytes", c.name, len(body))
		}
		if l.release(); b.used != 0 || len(b.by) != 0 {
			t.Errorf("%s: the budget holds %d of %v after the end", c.name, b.used, b.by)
		}
	}
}

func TestBudget(t *testing.T) {
	b := newBudget(400)
	take := func(l *lease, n int64, want error) {
		t.Helper()
		if err := l.take(n); !errors.Is(err, want) {
			t.Errorf("%s takes %d with %d used: got %v, want %v", l.principal, n, b.used, err, want)
		}
	}
	alone := b.lease("ada")
	take(alone, 5000, nil) // The only body always fits.
	take(b.lease("bob"), 1, errBodies)
	alone.release()

	first, second := b.lease("ada"), b.lease("ada")
	take(first, 60, nil)
	take(second, 41, errOwnBodies)
	take(second, 40, nil)
	take(first, 1, errOwnBodies)
	bob, peers := b.lease("bob"), b.lease("")
	take(bob, 100, nil)
	take(peers, 150, nil)
	take(peers, 51, errBodies)
	take(peers, 50, nil) // Other servers are not bound to a share.
	take(b.lease("eve"), 1, errBodies)
	first.give(10)
	take(b.lease("eve"), 10, nil)
	if b.used != 400 {
		t.Errorf("%d are used, want 400", b.used)
	}
}

// However a request ends, it leaves nothing in the budget.
func TestRequestsLeaveNothingInTheBudget(t *testing.T) {
	r := New(Options{Auth: auth.New([]auth.Key{{Name: "ada", Key: "good-key"}}, nil), Log: slog.New(slog.DiscardHandler)})
	budget := r.Bodies.budget
	during := int64(0)
	r.Handle(http.MethodPost, "/x", func(c echo.Context) error {
		_, err := r.Bodies.ReadJSON(c, 1000, io.Discard)
		during = budget.used
		if c.Request().Header.Get("X-Panic") != "" {
			panic("a test")
		}
		return err
	}, r.Needs(Use))
	r.Handle(http.MethodPost, "/hold", func(c echo.Context) error {
		err := r.Bodies.Hold(c, 10)
		during = budget.used
		return errors.Join(err, errBodyTooLarge)
	}, r.Needs(Use))
	for _, c := range []struct {
		path, body, panics string
		during             int64
	}{
		{"/x", "", "", 1},
		{"/x", "{}", "", 3},
		{"/x", "{}", "yes", 3},
		{"/x", strings.Repeat("x", 1001), "", 0},
		{"/hold", "", "", 10},
		{"/hold", "x", "", 10},
	} {
		during = 0
		request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
		if c.body == "" {
			request.Body = http.NoBody
		}
		request.Header.Set("X-API-Key", "good-key")
		request.Header.Set("X-Panic", c.panics)
		request.Header.Set("Content-Type", "application/json")
		r.ServeHTTP(httptest.NewRecorder(), request)
		if during != c.during || budget.used != 0 || len(budget.by) != 0 {
			t.Errorf("%+v: %d bytes were held, and %d of %v are after the end; want %d and none", c, during, budget.used, budget.by, c.during)
		}
	}
}
