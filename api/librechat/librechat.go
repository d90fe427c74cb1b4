// Package librechat is the contract of LibreChat's code interpreter: programs with and
// without tools, their cancellation, and the files of sessions.
package librechat

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
)

// Register registers the routes of the contract.
func Register(r *api.Router, o Options) {
	r.Header(profileHeader, ourProfile)
	p := &programs{
		executions: o.Executions, inputs: o.Files, bodies: r.Bodies, limiters: r.Limiters, errors: o.Errors, limits: o.Limits, rules: newRules(),
		live: live{o.History, o.Readers, o.Timelines, r.Failure}, keys: o.Keys, noTimelines: o.NoTimelines,
	}
	if p.keys == nil {
		p.keys = func() []string { return nil }
	}
	c := &cancels{executions: o.Executions, bodies: r.Bodies, limit: min(maxCancelBody, o.Limits.Body)}
	f := &sessionFiles{o.Files}
	u := &uploads{o.Files, r.Bodies, o.UploadMemory}
	limit := r.Limiters.Limit
	for _, prefix := range []string{"", versionPrefix} {
		handle := func(right api.Right, method, path string, h echo.HandlerFunc, before ...echo.MiddlewareFunc) {
			r.Handle(method, prefix+path, h, append([]echo.MiddlewareFunc{r.Needs(right)}, before...)...)
		}
		r.Envelope(prefix+programmaticPath, envelope)
		handle(api.Use, http.MethodPost, execPath, p.exec, limit(api.ExecutionRequests))
		handle(api.Use, http.MethodPost, programmaticPath, p.programmatic)
		handle(api.End, http.MethodPost, cancelPath, c.cancel)
		if o.Files == nil {
			continue
		}
		handle(api.Change, http.MethodPost, "/upload", u.upload, limit(api.UploadRequests))
		handle(api.Change, http.MethodPost, "/upload/batch", u.uploadBatch, limit(api.UploadRequests))
		handle(api.See, http.MethodGet, "/files/:session", f.list, limit(api.ListRequests), r.Assembled.Around(api.PageBytes))
		handle(api.See, http.MethodGet, "/sessions/:session/objects/:file", f.stat, limit(api.ListRequests))
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			handle(api.See, method, "/download/:session/:file", f.download, limit(api.DownloadRequests))
		}
		handle(api.Change, http.MethodDelete, "/files/:session/:file", f.remove)
		handle(api.Change, http.MethodDelete, "/sessions/:session/objects/:file", f.remove)
	}
}

// An errorAnswer is an error on the path of programs with tools.
type errorAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"session_id,omitempty"`
	*api.Error
}

// envelope returns the form of an error on the path of programs with tools.
func envelope(c echo.Context, e *api.Error) any {
	if e.Status == http.StatusUnauthorized {
		return e
	}
	return errorAnswer{"error", api.SessionOf(c), e}
}
