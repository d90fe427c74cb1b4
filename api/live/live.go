// Package live has the routes that show executions (lists, details, streams of events, records of tool
// calls), and those that change one: its calls are approved, and it is cancelled or forgotten. It reads
// journals through a journal.History, and does not depend on how they are written or stored.
package live

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/journal"
)

// Executions can be cancelled, and their calls approved; *engine.Engine implements it.
type Executions interface {
	// Cancel ends an execution, on whichever server it is.
	Cancel(ctx context.Context, c engine.Cancel) (engine.Cancelling, error)
	// Approve decides on a call that waits for approval, on whichever server its execution is.
	Approve(ctx context.Context, a engine.Approval) error
}

// Options are the settings of the contract. All of them must be set.
type Options struct {
	History    *journal.History
	Executions Executions
	// Readers limit the number of streams.
	Readers *api.Readers
	// Draining ends when the server is about to stop: then streams end as well.
	Draining context.Context //nolint:containedctx // it is the end of the server, not of a call
	// Log gets a line when an operator looks at another principal's execution.
	Log *slog.Logger
}

// Register registers the routes of the contract.
func Register(r *api.Router, o Options) {
	h := &handlers{o, r.Bodies, r.Assembled}
	for _, prefix := range []string{"", "/v1"} {
		handle := func(right api.Right, method, path string, f echo.HandlerFunc) {
			r.Handle(method, prefix+path, f, r.Needs(right), api.Private)
		}
		get := func(path string, f echo.HandlerFunc) {
			handle(api.See, http.MethodGet, path, f)
			handle(api.See, http.MethodHead, path, f)
		}
		page := r.Assembled.Around(api.PageBytes)
		get("/executions", page(h.list))
		get("/executions/:id", page(h.detail))
		get("/executions/:id/events", h.events)
		get("/executions/:id/calls", page(h.calls))
		get("/calls", page(h.allCalls))
		handle(api.Change, http.MethodDelete, "/executions/:id", h.forget)
		handle(api.End, http.MethodPost, "/executions/:id/cancel", h.cancel)
		handle(api.End, http.MethodPost, "/executions/:id/approvals", h.approve)
	}
}

// handlers are the handlers of the routes.
type handlers struct {
	o      Options
	bodies *api.Bodies
	// assembled limits pages of events; streams of events are limited by the readers.
	assembled *api.Room
}

// find returns the execution that a request names.
func (h *handlers) find(c echo.Context) (*journal.Execution, error) {
	return api.FindExecution(c, h.o.History, h.o.Log)
}

// answer answers with v as JSON. Values from journals keep their spelling.
func answer(c echo.Context, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return err
	}
	return api.AnswerBytes(c, status, body)
}

// encode returns v as JSON on one line.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// A page is the answer with a part of a list. Next is the cursor of the next page, or null.
type page struct {
	Data any `json:"data"`
	Next any `json:"next"`
}
