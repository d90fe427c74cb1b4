package api

import (
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"fermata/engine"
)

// cancel ends what another request has begun.
func (s *server) cancel(c echo.Context) error {
	body, err := s.readBody(c, min(maxCancelBody, s.options.Limits.Body), io.Discard)
	if err != nil {
		return err
	}
	var r struct {
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(body, &r); err != nil || !requestIDPattern.MatchString(r.RequestID) {
		return errCancelRequestID
	}
	state, err := s.executions.Cancel(c.Request().Context(), engine.Cancel{Principal: principal(c).ID, RequestID: r.RequestID})
	switch {
	case errors.Is(err, engine.ErrForbidden):
		return errCancelForbidden
	case err != nil:
		c.Set(causeKey, err)
		return errCancelUnavailable
	}
	// Whether the request is in flight or has not come yet is the same to its client.
	status, word := http.StatusAccepted, "cancellation_requested"
	if state == engine.CancelCompleted {
		status, word = http.StatusOK, "already_completed"
	}
	var o object
	o.text("status", word)
	return write(c, status, o.end())
}
