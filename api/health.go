package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/files"
)

// readyTimeout bounds all checks of readiness, so that a store that hangs counts as away.
const readyTimeout = 2 * time.Second

// A healthAnswer is the answer to a check of liveness or readiness.
type healthAnswer struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Service string `json:"service"`
	// Reasons are the codes of why the server is not ready, and Message says the same to people.
	Reasons []string `json:"reasons,omitempty"`
	Message string   `json:"message,omitempty"`
}

// A reason is why a server cannot start executions now.
type reason struct {
	err        error
	code, text string
	// trouble is true if somebody has to mend something. Then the log has the error.
	trouble bool
}

// reasons are all reasons, in the order in which answers tell them.
var reasons = []reason{
	{errStarting, "starting", "The server is starting.", false},
	{engine.ErrClosing, "draining", "The server is shutting down.", false},
	{engine.ErrNoCapacity, "full", "All sandboxes (FERMATA_MAX_SANDBOXES) are in use by programs that run or are paused.", false},
	{continuation.ErrUnavailable, "store", "The execution store does not answer, or refuses to write.", true},
	{files.ErrNoAnswer, "files", "The bucket of files (FERMATA_FILES_URL) has not answered yet.", true},
}

// healthPaths are the paths of the routes of Health.
var healthPaths = []string{"/health", "/ready", "/v1/health", "/v1/ready"}

// unknownReason stands for an error that is in no entry of reasons.
var unknownReason = reason{nil, "internal", "The log of the server says why.", true}

// Health registers the routes of health checks, which need no credentials. /health tells that the
// server lives: it answers, so it does. /ready tells whether the server can start executions now:
// it can if all checks return nil. Errors of several reasons may be joined.
func (r *Router) Health(version string, checks ...func(context.Context) error) {
	healthy := healthAnswer{Status: "healthy", Version: version, Service: "fermata"}
	live := func(c echo.Context) error { return Answer(c, http.StatusOK, healthy) }
	ready := func(c echo.Context) error {
		ctx, cancel := context.WithTimeout(c.Request().Context(), readyTimeout)
		defer cancel()
		var errs []error
		for _, check := range checks {
			errs = append(errs, check(ctx))
		}
		err := errors.Join(errs...)
		if err == nil {
			return Answer(c, http.StatusOK, healthy)
		}
		return Answer(c, http.StatusServiceUnavailable, unready(c, healthy, reasonsOf(err), err))
	}
	for _, prefix := range []string{"", "/v1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r.Handle(method, prefix+"/health", live)
			r.Handle(method, prefix+"/ready", ready)
		}
	}
}

// unready makes the answer of a healthy server that of one that is not ready.
func unready(c echo.Context, a healthAnswer, why []reason, err error) healthAnswer {
	a.Status = "unhealthy"
	var texts []string
	for _, w := range why {
		a.Reasons, texts = append(a.Reasons, w.code), append(texts, w.text)
		if w.trouble {
			SetCause(c, err)
		}
	}
	a.Message = strings.Join(texts, " ")
	Note(c, slog.String("reasons", strings.Join(a.Reasons, ",")))
	return a
}

// reasonsOf returns all reasons that are joined in err.
func reasonsOf(err error) []reason {
	var found []reason
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			found = append(found, r)
		}
	}
	if len(found) == 0 {
		return []reason{unknownReason}
	}
	return found
}
