package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
)

// lineRoom is how many attributes most lines of the log have at most.
const lineRoom = 20

// requestIDHeader carries the name of a request in the log.
const requestIDHeader = "X-Request-Id"

var requestIDPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{16,128}$`)

// ValidRequestID reports whether a client may give this id to a request.
func ValidRequestID(id string) bool { return requestIDPattern.MatchString(id) }

// around wraps the handling of every request: it sets the headers that every answer has, answers
// errors, measures the request and logs it. It returns no error.
func (r *Router) around(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		request := c.Request()
		// An id from outside connects our log with the log of a proxy. It is used unless it could
		// spoil the log.
		id := request.Header.Get(requestIDHeader)
		if !ValidRequestID(id) {
			id = rand.Text()
		}
		factsOf(c).compressors = &r.compressors
		header := c.Response().Header()
		header.Set(requestIDHeader, id)
		for name, value := range r.headers {
			header.Set(name, value)
		}

		if err := recovered(next, c); err != nil && !c.Response().Committed {
			r.fail(c, err)
		}

		route, status, took := routeOf(c), c.Response().Status, time.Since(began)
		if r.observe != nil {
			r.observe(route, methodOf(request), status, took)
		}
		f := factsOf(c)
		attrs := append(make([]slog.Attr, 0, lineRoom),
			slog.String("method", methodOf(request)),
			slog.String("route", route),
			slog.Int("status", status),
			slog.Int64("duration_ms", took.Milliseconds()))
		if f.principal != nil {
			attrs = append(attrs, slog.String("principal", Bounded(f.principal.ID)))
		}
		attrs = append(attrs, slog.String("request_id", id))
		attrs = f.line.attrs(attrs, f, request, status)
		attrs = append(attrs, f.notes...)
		if f.warning != "" {
			attrs = append(attrs, slog.String("warning", Bounded(f.warning)))
		}
		if f.cause != nil {
			attrs = append(attrs, slog.Any("err", f.cause))
		}
		r.log.LogAttrs(context.WithoutCancel(request.Context()), levelOf(status, f), "request", attrs...)
		return nil
	}
}

// recovered calls next and turns a panic into an error.
func recovered(next echo.HandlerFunc, c echo.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("api: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return next(c)
}

// fail answers a request that has ended with err.
func (r *Router) fail(c echo.Context, err error) {
	f, body := r.failure(c, err)
	header := c.Response().Header()
	if f.Seconds > 0 {
		header.Set(echo.HeaderRetryAfter, strconv.Itoa(f.Seconds))
	}
	if f.Status == http.StatusUnauthorized {
		header.Set(echo.HeaderWWWAuthenticate, "Bearer")
	}
	// Writing fails only if the client has left, and then nobody needs the answer.
	_ = Answer(c, f.Status, body)
}

// failure returns what is answered to a request that has ended with err.
func (r *Router) failure(c echo.Context, err error) (f *Error, body any) {
	f = SetReason(c, err)
	if f.Status >= http.StatusInternalServerError {
		SetCause(c, err)
	}
	if envelope := r.envelopes[c.Path()]; envelope != nil {
		return f, envelope(c, f)
	}
	return f, f
}

// Failure returns status and body of the answer to a request that has ended with err, for a handler
// that sends them in a form of its own.
func (r *Router) Failure(c echo.Context, err error) (status int, body []byte, encoding error) {
	f, answer := r.failure(c, err)
	body, encoding = Encode(answer)
	return f.Status, body, encoding
}

// routeOf returns the route for log and metrics. A path is text that the client chose.
func routeOf(c echo.Context) string {
	// A request with a principal had a route, and what it did not find is a file.
	if c.Response().Status == http.StatusNotFound && factsOf(c).principal == nil {
		return "none"
	}
	return c.Path()
}

// methodOf returns the method for log and metrics. A method is text that the client chose as well.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
		return r.Method
	default:
		return "other"
	}
}
