package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// Keys of what belongs to one request.
const (
	principalKey = "principal"
	sessionKey   = "session"
	causeKey     = "cause"
)

// retryAfter is how many seconds a client should wait when we are busy.
const retryAfter = "1"

func principal(c echo.Context) Principal {
	who, _ := c.Get(principalKey).(Principal)
	return who
}

// observe is around every request: it sets the headers that every answer has,
// answers errors, measures and writes the line in the log. No error leaves it.
func (s *server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		began := time.Now()
		r := c.Request()
		// An id from outside joins our log with the proxy's, if it is fit for one.
		id := r.Header.Get(requestIDHeader)
		if !requestIDPattern.MatchString(id) {
			id = rand.Text()
		}
		header := c.Response().Header()
		header.Set(requestIDHeader, id)
		header.Set(profileHeader, ourProfile)
		header.Set(echo.HeaderXContentTypeOptions, "nosniff")

		err := recovered(next, c)
		if err != nil && !c.Response().Committed {
			f := answerTo(r.Context(), err)
			if f.status >= http.StatusInternalServerError {
				c.Set(causeKey, err)
			}
			// It fails only if the client has gone, which is its own affair.
			_ = write(c, f.status, s.encodeFailure(c, f))
		}

		route, status, took := routeOf(c), c.Response().Status, time.Since(began)
		if s.options.Observe != nil {
			s.options.Observe(route, methodOf(r), status, took)
		}
		attrs := []slog.Attr{
			slog.String("method", methodOf(r)),
			slog.String("route", route),
			slog.Int("status", status),
			slog.Int64("duration_ms", took.Milliseconds()),
			slog.String("principal", principal(c).ID),
			slog.String("request_id", id),
		}
		level := slog.LevelInfo
		if cause, ok := c.Get(causeKey).(error); ok {
			level = slog.LevelError
			attrs = append(attrs, slog.Any("err", cause))
		}
		s.options.Log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
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

// encodeFailure returns the body of a failure and sets the headers that go with it.
func (s *server) encodeFailure(c echo.Context, f *failure) []byte {
	header := c.Response().Header()
	if f.retry {
		header.Set(echo.HeaderRetryAfter, retryAfter)
	}
	if f.seconds > 0 {
		header.Set(echo.HeaderRetryAfter, strconv.Itoa(f.seconds))
	}
	if f.status == http.StatusUnauthorized {
		header.Set(echo.HeaderWWWAuthenticate, "Bearer")
	}
	var o object
	if onProgrammaticPath(c) && f.status != http.StatusUnauthorized {
		o.text("status", "error")
		if session, ok := c.Get(sessionKey).(string); ok {
			o.text("session_id", session)
		}
	}
	o.text("error", f.text)
	if f.details != "" {
		o.text("details", f.details)
	}
	if f.permanent {
		o.text("code", "unsupported_capability")
	}
	if f.message != "" {
		o.text("message", f.message)
	}
	if f.actual != "" {
		o.text("expected_profile", f.expected)
		o.text("actual_profile", f.actual)
	}
	if f.text == rateLimited {
		o.raw("retry_after_seconds", []byte(strconv.Itoa(f.seconds)))
	}
	return o.end()
}

// onProgrammaticPath reports whether the path is that of programmatic execution,
// whatever the method.
func onProgrammaticPath(c echo.Context) bool {
	return strings.TrimPrefix(c.Request().URL.Path, "/v1") == programmaticPath
}

// routeOf returns the route for log and figures: a path is the client's to invent.
func routeOf(c echo.Context) string {
	// Behind a route there is a principal, and what is not found is a file.
	if c.Response().Status == http.StatusNotFound && c.Get(principalKey) == nil {
		return "none"
	}
	return c.Path()
}

// methodOf returns the method for log and figures: that, too, is the client's to invent.
func methodOf(r *http.Request) string {
	switch r.Method {
	case http.MethodGet, http.MethodPost, http.MethodDelete:
		return r.Method
	default:
		return "other"
	}
}
