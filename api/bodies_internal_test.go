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

	"fermata/engine"
)

// What a body declares costs nothing: memory comes with the bytes.
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
	take(alone, 5000, nil) // One that is alone always fits.
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
	take(peers, 50, nil) // The share is not theirs to keep to.
	take(b.lease("eve"), 1, errBodies)
	first.give(10)
	take(b.lease("eve"), 10, nil)
	if b.used != 400 {
		t.Errorf("%d are used, want 400", b.used)
	}
}

// Whatever becomes of a request, it leaves nothing in the budget.
func TestRequestsLeaveNothingInTheBudget(t *testing.T) {
	s := newServer(nil, Options{
		Keys: []Key{{Name: "ada", Key: "good-key"}}, Log: slog.New(slog.DiscardHandler), Limits: Limits{Body: 1000}, UploadMemory: 10,
	})
	e := s.router()
	during := int64(0)
	e.POST("/x", func(c echo.Context) error {
		_, err := s.readBody(c, 1000, io.Discard)
		during = s.bodies.used
		if c.Request().Header.Get("X-Panic") != "" {
			panic("a test")
		}
		return err
	}, s.authenticated)
	e.POST("/upload", s.upload, s.authenticated)
	for _, c := range []struct {
		path, body, panics string
		during             int64
	}{
		{"/x", "", "", 1},
		{"/x", "{}", "", 3},
		{"/x", "{}", "yes", 3},
		{"/x", strings.Repeat("x", 1001), "", 0},
		{"/upload", "", "", 0},
		{"/upload", "x", "", 0},
	} {
		during = 0
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
		if c.body == "" {
			r.Body = http.NoBody
		}
		r.Header.Set("X-API-Key", "good-key")
		r.Header.Set("X-Panic", c.panics)
		r.Header.Set("Content-Type", "application/json")
		if c.path == "/upload" {
			r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		}
		e.ServeHTTP(httptest.NewRecorder(), r)
		if during != c.during || s.bodies.used != 0 || len(s.bodies.by) != 0 {
			t.Errorf("%+v: %d bytes were held, and %d of %v are after the end; want %d and none", c, during, s.bodies.used, s.bodies.by, c.during)
		}
	}
}

// A client that asks for the same large answer many times has copies of it up to its share.
func TestLargeAnswersCount(t *testing.T) {
	b := newBudget(8 << 20)
	request := func() echo.Context {
		c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), httptest.NewRecorder())
		c.Set(leaseKey, b.lease("ada"))
		return c
	}
	large := engine.Outcome{Calls: []engine.Call{{Input: make([]byte, 3<<19)}}}
	first, second := request(), request()
	if err := holdAnswer(first, large); err != nil {
		t.Errorf("the only answer: %v", err)
	}
	if err := holdAnswer(second, large); !errors.Is(err, errOwnBodies) {
		t.Errorf("one more: got %v, want %v", err, errOwnBodies)
	}
	if err := holdAnswer(second, engine.Outcome{Stdout: strings.Repeat("x", largeAnswer-1)}); err != nil || b.used != 3<<19 {
		t.Errorf("a small one: got %v, and %d bytes are used; want no error, and %d", err, b.used, 3<<19)
	}
	first.Get(leaseKey).(*lease).release()
	if err := holdAnswer(second, large); err != nil {
		t.Errorf("after the first: %v", err)
	}
}
