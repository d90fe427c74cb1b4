package librechat

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
)

// maxCancelBody is the size of a request to cancel, which contains an id.
const maxCancelBody = 64 << 10

// cancels handle requests to cancel other requests.
type cancels struct {
	executions canceller
	bodies     *api.Bodies
	limit      int64
}

// A cancelRequest names the request to cancel.
type cancelRequest struct {
	RequestID string `json:"request_id"`
}

// A cancelAnswer tells what became of that request.
type cancelAnswer struct {
	Status string `json:"status"`
}

// cancel ends the execution that another request has started or continued.
func (h *cancels) cancel(c echo.Context) error {
	body, err := h.bodies.ReadJSON(c, h.limit, io.Discard)
	if err != nil {
		return err
	}
	var r cancelRequest
	if err := json.Unmarshal(body, &r); err != nil || !api.ValidRequestID(r.RequestID) {
		return errCancelRequestID
	}
	state, err := h.executions.Cancel(c.Request().Context(), engine.Cancel{Principal: api.PrincipalOf(c).ID, RequestID: r.RequestID})
	switch {
	case errors.Is(err, engine.ErrForbidden):
		return errCancelForbidden
	case err != nil:
		api.SetCause(c, err)
		return errCancelUnavailable
	}
	// To the client it is the same whether the request is in progress or has not come yet.
	if state == engine.CancelCompleted {
		return api.Answer(c, http.StatusOK, cancelAnswer{"already_completed"})
	}
	return api.Answer(c, http.StatusAccepted, cancelAnswer{"cancellation_requested"})
}
