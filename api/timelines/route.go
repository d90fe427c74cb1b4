package timelines

import (
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine/timeline"
)

// Register registers the route of timelines.
func (m *Maker) Register(r *api.Router, log *slog.Logger) {
	h := &handler{m, log}
	for _, prefix := range []string{"", "/v1"} {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r.Handle(method, prefix+"/executions/:id/timeline", h.timeline, r.Needs(api.See))
		}
	}
}

type handler struct {
	maker *Maker
	log   *slog.Logger
}

// timeline answers with the timeline of an execution, or with some blocks of it.
func (h *handler) timeline(c echo.Context) error {
	w, view, err := wishOf(c)
	if err != nil {
		return err
	}
	x, err := api.FindExecution(c, h.maker.history, h.log)
	if err != nil {
		return err
	}
	made, err := h.maker.make(c.Request().Context(), api.ViewerOf(c), x, w)
	if err != nil {
		return err
	}
	defer made.Close()
	view.Missing = made.Missing(w.Paths)
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return made.send(c, http.StatusOK, func(w io.Writer) error { return made.Write(w, view) })
}

// maxPaths is how many paths a request may ask for.
const maxPaths = 100

// wishOf returns what a request asks for.
func wishOf(c echo.Context) (w Wish, v timeline.View, err error) {
	q := api.QueryOf(c)
	q.Slips("view", "base64", "namespace", "path", "turn_id", "tool_call_id", "tool_id", "notes")
	view := q.Choice("view", "blocks", "rendered")
	v.Blocks, v.Rendered = view != "rendered", view != "blocks"
	if base64 := q.Choice("base64", "true", "false"); base64 != "" {
		wanted := base64 == "true"
		w.Base64 = &wanted
	}
	if space := timeline.Namespace(q.Choice("namespace", string(timeline.Conversation), "")); q.Values.Has("namespace") {
		w.Namespace = &space
	}
	if w.Paths = q.Values["path"]; len(w.Paths) > maxPaths {
		q.Refuse("path", "occur at most "+strconv.Itoa(maxPaths)+" times")
	}
	var given timeline.Names
	for _, p := range []struct {
		name string
		set  func(text, name string) error
	}{{"turn_id", given.SetTurn}, {"tool_call_id", given.SetCall}, {"tool_id", given.SetTool}, {"notes", given.SetNotes}} {
		value, there := q.One(p.name)
		switch {
		case !there || q.Err != nil:
		case p.name == "notes" && (value == "true" || value == "false"):
			w.Mute = value == "false"
		default:
			q.Err = p.set(value, p.name)
		}
	}
	w.Named = func(usual timeline.Names) timeline.Names { return usual.With(given) }
	return w, v, q.Err
}
