package live

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine/journal"
)

// streamLife is the maximum duration of a stream. After it, the reader must show its credentials again.
const streamLife = time.Hour

// toolCalls is the view of a stream that tells of tool calls only.
const toolCalls = "tool_calls"

var (
	errNotAcceptable = &api.Error{
		Status: http.StatusNotAcceptable,
		Text:   "events are offered as application/json, text/event-stream and application/x-ndjson",
	}
	errView = api.BadRequest("view=tool_calls must be read as text/event-stream")
)

// The reasons for which a stream ends although its reader should open it again.
var (
	errDraining = errors.New("the server shuts down")
	errLife     = errors.New("the time of this stream is over")
)

// events answers with the events of an execution: with those that are stored, or with a stream of all.
func (h *handlers) events(c echo.Context) error {
	q := queryOf(c)
	after, limit, view := q.after(c), q.Limit(mostEvents, mostEvents), q.Choice("view", toolCalls)
	if q.Err != nil {
		return q.Err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderVary, "Accept")
	form := api.Preferred(c.Request().Header, echo.MIMEApplicationJSON, api.EventStream, api.NDJSON)
	switch {
	case form == "":
		return errNotAcceptable
	case view == toolCalls && form != api.EventStream:
		return errView
	}
	x, err := h.find(c)
	if err != nil {
		return err
	}
	switch {
	case x.Mode() == journal.Off:
		return continuation.ErrNotFound
	case c.Request().Method == http.MethodHead:
		header.Set(echo.HeaderContentType, form)
		return c.NoContent(http.StatusOK)
	case form == echo.MIMEApplicationJSON:
		return h.assembled.Around(api.PageBytes)(func(c echo.Context) error { return eventPage(c, x, after, limit) })(c)
	}
	return h.stream(c, x, after, form, view)
}

// eventPage answers with the stored events, byte for byte.
func eventPage(c echo.Context, x *journal.Execution, after int64, limit int) error {
	list, more, err := x.Events(c.Request().Context(), after, limit)
	if err != nil {
		return err
	}
	size := 64
	for _, e := range list {
		size += len(e.Content) + 1
	}
	body := append(make([]byte, 0, size), `{"data":[`...)
	for i, e := range list {
		if i > 0 {
			body = append(body, ',')
		}
		body, after = append(body, e.Content...), e.Seq
	}
	body = append(body, `],"next":`...)
	if more {
		body = strconv.AppendInt(body, after, 10)
	} else {
		body = append(body, "null"...)
	}
	return api.AnswerBytes(c, http.StatusOK, append(body, '}'))
}

// stream answers with the events as they come, until the execution has ended.
func (h *handlers) stream(c echo.Context, x *journal.Execution, after int64, form, view string) error {
	who := api.PrincipalOf(c)
	done, err := h.o.Readers.Admit(who.ID)
	if err != nil {
		return err
	}
	defer done()
	end := time.Now().Add(streamLife)
	if !who.Expires.IsZero() && who.Expires.Before(end) {
		end = who.Expires
	}
	ctx, cancel := context.WithDeadlineCause(c.Request().Context(), end, errLife)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(h.o.Draining, func() { stop(errDraining) })()
	f, err := x.Follow(ctx, after)
	if err != nil {
		return err
	}
	defer f.Close()

	s := h.o.Readers.NewStream(c, form)
	send := func(e journal.Entry) error {
		s.Event(e.Seq, e.Type, e.Content)
		return nil
	}
	if view == toolCalls {
		send = func(e journal.Entry) error { return sendCall(ctx, s, x.ID(), f, e) }
	}
	if err = s.Open(); err == nil {
		err = s.Relay(ctx, f, send)
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDraining), errors.Is(cause, errLife):
		_ = s.Comment(cause.Error()) // The stream ends, whether the comment arrives or not.
	case err != nil && ctx.Err() == nil && !s.Left():
		api.SetCause(c, err)
	}
	return nil
}

// A callEvent is an event about a call in the view of tool calls.
type callEvent struct {
	journal.CallRecord
	PTC bool `json:"ptc"`
}

// A doneEvent is the last event in the view of tool calls.
type doneEvent struct {
	Execution string `json:"execution"`
	Status    string `json:"status"`
}

// sendCall sends the event of the view of tool calls that corresponds to an event, if there is one.
func sendCall(ctx context.Context, s *api.Stream, id string, f *journal.Follower, e journal.Entry) error {
	var name string
	switch e.Type {
	case journal.TypeCallStarted:
		name = "tool_call_start"
	case journal.TypeCallCompleted:
		name = "tool_call_end"
	case journal.TypeCallFailed:
		name = "tool_call_error"
	case journal.TypeEnded:
		status, err := e.Text("status")
		if err != nil {
			return err
		}
		data, err := encode(doneEvent{id, status})
		s.Event(e.Seq, "done", data)
		return err
	default:
		return nil
	}
	record, err := f.Call(ctx, e)
	if err != nil {
		return err
	}
	data, err := encode(callEvent{record, true})
	s.Event(e.Seq, name, data)
	return err
}
