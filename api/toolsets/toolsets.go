package toolsets

import (
	"context"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/tools"
	"fermata/engine/tools/policy"
)

// Toolsets tells what a principal may know about the tools that the server runs. A name is the key of a
// toolset, or a key, a dot and the name of a tool. All errors are in the table of api.
type Toolsets interface {
	// List returns the toolsets of which a principal may use something, each with those tools.
	List(principal string) []tools.Toolset
	// Find returns toolsets by name. Without names it returns the same as List. It waits for toolsets that
	// are being loaded.
	Find(ctx context.Context, principal string, names []string) ([]tools.Toolset, error)
	// Stub returns the source that programs import for a toolset.
	Stub(ctx context.Context, principal, key string, bash bool) (string, error)
	// Docs returns Markdown about a toolset for the prompt of a model.
	Docs(ctx context.Context, principal, key string) (string, error)
	// Prompt returns a section of a system prompt about toolsets, by name.
	Prompt(ctx context.Context, principal string, names []string, sequential bool) (string, error)
}

// A Caller makes calls without a program; *engine.Engine implements it.
type Caller interface {
	// CallTool makes one call of a tool.
	CallTool(ctx context.Context, c engine.ToolCall) (engine.ToolResult, error)
}

// The documents of toolsets have a room of their own, with more places than pages have, since they may wait for
// toolsets that are being loaded.
const (
	roomBytes = 128 << 20
	places    = 16
	beingMade = 1 << 20
)

// Options are the settings of the contract.
type Options struct {
	// Toolsets are the toolsets of the server, or nil if it has none.
	Toolsets Toolsets
	Calls    Caller
	// Body is the maximum size of the body of a request, in bytes.
	Body int64
}

// Register registers the routes of this package, except those for usage. A server without toolsets has the
// routes, too, and answers that it has no toolsets.
func Register(r *api.Router, o Options) {
	h := &handlers{toolsets: o.Toolsets, calls: o.Calls, bodies: r.Bodies, limit: o.Body}
	if h.toolsets == nil {
		h.toolsets = none{}
	}
	around := api.NewRoom(roomBytes, places, "documents of toolsets").Around(beingMade)
	for _, prefix := range []string{"", "/v1"} {
		get := func(path string, f echo.HandlerFunc) {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				r.Handle(method, prefix+path, f, r.Needs(api.See), around, api.Private)
			}
		}
		get("/toolsets", h.list)
		get("/toolsets/export", h.export)
		get("/tool/toolset/exportDefinitions", h.export)
		get("/toolsets/prompt", h.prompt)
		get("/toolsets/:key/stub", h.stub)
		get("/toolsets/:key/docs", h.docs)
		for _, path := range []string{"/tools/execute", "/tool/execute"} {
			r.Handle(http.MethodPost, prefix+path, h.execute, r.Needs(api.Use), r.Limiters.Limit(api.ExecutionRequests), api.Private)
		}
	}
}

// handlers are the handlers of the routes.
type handlers struct {
	toolsets Toolsets
	calls    Caller
	bodies   *api.Bodies
	limit    int64
}

// answer answers with v as JSON. The memory for it counts against the limit for bodies.
func (h *handlers) answer(c echo.Context, v any) error {
	body, err := api.Encode(v)
	if err != nil {
		return err
	}
	if err := h.bodies.Hold(c, int64(len(body))); err != nil {
		return err
	}
	return api.AnswerBytes(c, http.StatusOK, body)
}

// answerText answers with a text.
func answerText(c echo.Context, mediaType, text string) error {
	return api.AnswerBlob(c, http.StatusOK, mediaType+"; charset=UTF-8", []byte(text))
}

// missing turns the error about an unknown toolset into the answer of a route whose path names a toolset.
func missing(err error) error {
	if unknown, ok := errors.AsType[*policy.UnknownError](err); ok {
		return &api.Error{Status: http.StatusNotFound, Text: unknown.Error()}
	}
	return err
}

// none implements Toolsets for a server without toolsets.
type none struct{}

func (none) List(string) []tools.Toolset { return nil }

func (none) Find(_ context.Context, _ string, names []string) ([]tools.Toolset, error) {
	if len(names) > 0 {
		return nil, &policy.UnknownError{Asked: names[0]}
	}
	return nil, nil
}

func (none) Stub(_ context.Context, _, key string, _ bool) (string, error) {
	return "", &policy.UnknownError{Asked: key}
}

func (none) Docs(_ context.Context, _, key string) (string, error) {
	return "", &policy.UnknownError{Asked: key}
}

func (n none) Prompt(ctx context.Context, principal string, names []string, _ bool) (string, error) {
	if _, err := n.Find(ctx, principal, names); err != nil {
		return "", err
	}
	return "", &api.Error{Status: http.StatusNotFound, Text: "This server has no toolsets (FERMATA_TOOLSETS)"}
}
