package live

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/journal"
)

// The sizes of pages.
const (
	usualPage  = 50
	mostPage   = 200
	mostEvents = 1000
)

// statuses are the statuses of executions, and contracts the contracts under which they are started.
var (
	statuses = []string{
		journal.StatusRunning, journal.StatusPaused, journal.StatusCompleted, journal.StatusError,
		journal.StatusTimedOut, journal.StatusCancelled, journal.StatusExpired,
	}
	contracts = []string{"programmatic", "exec", "messages", "mcp", "tool"}
)

// list answers with summaries, the newest first.
func (h *handlers) list(c echo.Context) error {
	q, who := queryOf(c), api.ViewerOf(c)
	f := journal.Filter{
		Principal: q.principal(who),
		Statuses:  q.choices("status", statuses...),
		Contract:  q.Choice("contract", contracts...),
		Session:   q.text("session"),
		Labels:    q.labels("label"),
		Parent:    q.text("parent_call_id"),
		Tool:      q.text("tool"),
	}
	f.Since, f.Until = q.span()
	limit, after := q.Limit(usualPage, mostPage), q.cursor(executionCursor)
	if q.Err != nil {
		return q.Err
	}
	list, next, err := h.o.History.List(c.Request().Context(), who, f, after.Place, limit)
	if err != nil {
		return err
	}
	shown := make([]journal.Summary, len(list))
	for i, s := range list {
		shown[i] = show(s, who)
	}
	p := page{Data: shown}
	if next != nil {
		p.Next = cursor(executionCursor, journal.CallPlace{Place: *next})
	}
	return answer(c, http.StatusOK, p)
}

// show returns a summary without what the viewer may not see.
func show(s journal.Summary, v journal.Viewer) journal.Summary {
	s.Tools, s.Mode, s.Mark, s.Reason, s.Detail = nil, "", "", "", ""
	if !v.Operator {
		s.Principal = ""
	}
	return s
}

// detail answers with everything that is known about one execution except its events.
func (h *handlers) detail(c echo.Context) error {
	x, err := h.find(c)
	if err != nil {
		return err
	}
	d, err := x.Detail(c.Request().Context())
	if err != nil {
		return err
	}
	d.Summary = show(d.Summary, api.ViewerOf(c))
	return answer(c, http.StatusOK, d)
}

// A conflict is the answer to a request that comes too early or too late.
type conflict struct {
	Error  string `json:"error"`
	ID     string `json:"id"`
	Status string `json:"status"`
}

// forget removes the journal of an execution that has ended.
func (h *handlers) forget(c echo.Context) error {
	x, err := h.find(c)
	if err != nil {
		return err
	}
	s, err := x.Summary(c.Request().Context())
	if err != nil {
		return err
	}
	if !x.Ended() && !journal.Terminal(s.Status) {
		return answer(c, http.StatusConflict, conflict{"Execution has not ended", s.ID, s.Status})
	}
	if err := x.Forget(c.Request().Context()); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// A cancelling is the answer to a request to cancel an execution.
type cancelling struct {
	ID     string `json:"id"`
	Status string `json:"status"`
}

// cancel ends an execution.
func (h *handlers) cancel(c echo.Context) error {
	x, err := h.find(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	s, err := x.Summary(ctx)
	if err != nil {
		return err
	}
	if !journal.Terminal(s.Status) {
		result, err := h.o.Executions.Cancel(ctx, engine.Cancel{Execution: x.ID()})
		if err != nil {
			return err
		}
		if result != engine.CancelRequested && result != engine.CancelDone {
			// The execution has ended meanwhile.
			if s, err = x.Summary(ctx); err != nil {
				return err
			}
		}
	}
	if !journal.Terminal(s.Status) {
		return answer(c, http.StatusAccepted, cancelling{s.ID, "cancelling"})
	}
	return answer(c, http.StatusConflict, conflict{"Execution has ended", s.ID, s.Status})
}

// calls answers with the records of the calls of one execution, in the order in which they were made.
func (h *handlers) calls(c echo.Context) error {
	q := queryOf(c)
	limit, after := q.Limit(mostEvents, mostEvents), q.cursor(ownCallCursor)
	if q.Err != nil {
		return q.Err
	}
	x, err := h.find(c)
	if err != nil {
		return err
	}
	if after.ID != "" && after.ID != x.ID() {
		return api.BadRequest("after must be the value of next in an answer about this execution")
	}
	list, next, err := x.Calls(c.Request().Context(), after.Seq, limit)
	if err != nil {
		return err
	}
	p := page{Data: append([]journal.CallRecord{}, list...)}
	if next > 0 {
		p.Next = cursor(ownCallCursor, journal.CallPlace{Place: continuation.Place{Created: time.UnixMilli(0), ID: x.ID()}, Seq: next})
	}
	return answer(c, http.StatusOK, p)
}

// allCalls answers with the records of the calls of all executions.
func (h *handlers) allCalls(c echo.Context) error {
	q, who := queryOf(c), api.ViewerOf(c)
	f := journal.CallFilter{
		Principal: q.principal(who),
		Parent:    q.text("parent_call_id"),
		Toolset:   q.text("toolset"),
		Tool:      q.text("tool"),
		Status:    q.Choice("status", journal.CallStatuses()...),
	}
	f.Since, f.Until = q.span()
	limit, after := q.Limit(usualPage, mostPage), q.cursor(callCursor)
	if q.Err != nil {
		return q.Err
	}
	list, next, err := h.o.History.Calls(c.Request().Context(), who, f, after, limit)
	if err != nil {
		return err
	}
	p := page{Data: append([]journal.CallRecord{}, list...)}
	if next != nil {
		p.Next = cursor(callCursor, *next)
	}
	return answer(c, http.StatusOK, p)
}
