package librechat

import (
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine"
)

// maxCancelBody is the size of a request to cancel, which contains an id or a token.
const maxCancelBody = 64 << 10

// cancels handle requests to cancel executions.
type cancels struct {
	executions canceller
	bodies     *api.Bodies
	limit      int64
}

// A cancelRequest names what to cancel, in one of its members.
type cancelRequest struct {
	RequestID   jsontext.Value `json:"request_id"`
	ExecutionID jsontext.Value `json:"execution_id"`
	Execution   jsontext.Value `json:"execution"`
	Token       jsontext.Value `json:"continuation_token"`
	Session     jsontext.Value `json:"session_id"`

	unknown unknownNames
}

var cancelNames = membersOf[cancelRequest]()

// UnmarshalJSONFrom reads a request to cancel.
func (r *cancelRequest) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	return readObject(d, r, cancelNames, &r.unknown, 0)
}

// A target is what to cancel: the value of a member of a request.
type target struct{ member, value string }

// target returns what to cancel, or refuses the request.
func (r cancelRequest) target() (t target, err error) {
	for _, m := range []struct {
		name  string
		value jsontext.Value
	}{
		{"request_id", r.RequestID},
		{"execution_id", r.ExecutionID},
		{"execution", r.Execution},
		{"continuation_token", r.Token},
		{"session_id", r.Session},
	} {
		if isNull(m.value) {
			continue
		}
		if t.member != "" {
			return target{}, api.BadRequestf("%s and %s both say what to cancel: send one of request_id, execution_id, continuation_token and session_id",
				t.member, m.name)
		}
		text, ok := unquote(m.value)
		switch {
		case m.name == "request_id" && !api.ValidRequestID(text):
			return target{}, errCancelRequestID
		case !ok || text == "":
			return target{}, api.BadRequestf("%s must be a non-empty string", m.name)
		}
		t = target{m.name, text}
	}
	if t.member == "" {
		return target{}, errCancelRequestID
	}
	return t, nil
}

// A cancelAnswer tells what became of what was to be cancelled. Cancelled counts the executions of
// a session that were.
type cancelAnswer struct {
	Status    string `json:"status"`
	Cancelled *int   `json:"cancelled,omitempty"`
}

// cancel ends an execution, or all executions of a session. Operators may end those of all
// principals, but requests are the business of those who send them.
func (h *cancels) cancel(c echo.Context) error {
	who := api.PrincipalOf(c)
	body, err := h.bodies.ReadJSON(c, h.limit, io.Discard)
	if err != nil {
		return err
	}
	var r cancelRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return errCancelRequestID
	}
	t, err := r.target()
	if slip := cancelWords.slip(r.unknown, func(int) string { return "" }); slip != nil && !who.Operator {
		return slip
	}
	if who.Operator && (err != nil || t.member == "request_id") {
		return api.ErrOperator
	}
	if err != nil {
		return err
	}
	principal := who.ID
	if who.Operator {
		principal = ""
	}
	which := engine.Cancel{Principal: principal}
	missing := errCancelTarget
	switch t.member {
	case "request_id":
		which.RequestID = t.value
		api.SetClientRequestID(c, t.value)
		missing = nil // It may still come.
	case "continuation_token":
		which.Token = t.value
	case "session_id":
		api.Note(c, slog.String("session", api.Bounded(t.value)))
		n, state, err := h.executions.CancelSession(c.Request().Context(), engine.CancelSession{Principal: principal, Session: t.value})
		return h.answer(c, state, err, &n, errCancelSession)
	default:
		which.Execution = t.value
		api.Note(c, slog.String("execution", api.Bounded(t.value)))
	}
	state, err := h.executions.Cancel(c.Request().Context(), which)
	return h.answer(c, state, err, nil, missing)
}

// answer answers a request to cancel. missing is the answer about what nobody knows, if there is
// one.
func (h *cancels) answer(c echo.Context, state engine.Cancelling, err error, cancelled *int, missing *api.Error) error {
	switch {
	case errors.Is(err, engine.ErrForbidden):
		return errCancelForbidden
	case errors.Is(err, continuation.ErrToken):
		return err
	case err != nil:
		api.SetCause(c, err)
		return errCancelUnavailable
	}
	api.Note(c, slog.String("cancelling", string(state)))
	switch state {
	case engine.CancelCompleted:
		return api.Answer(c, http.StatusOK, cancelAnswer{"already_completed", cancelled})
	case engine.CancelDone:
		return api.Answer(c, http.StatusOK, cancelAnswer{"cancelled", cancelled})
	case engine.CancelUnknown:
		if missing != nil {
			return missing
		}
	case engine.CancelRequested:
	}
	// To the client it is the same whether the request is in progress or has not come yet.
	return api.Answer(c, http.StatusAccepted, cancelAnswer{"cancellation_requested", cancelled})
}
