package live

import (
	"io"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
)

const (
	// maxApproval is the maximum size of the body of a decision, in bytes.
	maxApproval = 16 << 10
	// maxReason is the maximum length of its reason, in characters.
	maxReason = 1_000
)

// The errors of decisions that are refused.
var (
	errApprovalCall   = api.BadRequest("call must be the id of a call, such as call_001")
	errApprovalChoice = api.BadRequest("approve must be true or false")
	errApprovalReason = api.BadRequestf("reason must be a string of at most %d characters", maxReason)
)

// A decision is the body of a request that decides on a call.
type decision struct {
	Call    jsontext.Value `json:"call"`
	Approve jsontext.Value `json:"approve"`
	Reason  jsontext.Value `json:"reason"`
}

// A decided is the answer to a decision.
type decided struct {
	ID     string `json:"id"`
	Call   string `json:"call"`
	Status string `json:"status"`
}

// approve decides on a call that waits for approval.
func (h *handlers) approve(c echo.Context) error {
	x, err := h.find(c)
	if err != nil {
		return err
	}
	body, err := h.bodies.ReadJSON(c, maxApproval, io.Discard)
	if err != nil {
		return err
	}
	a, err := approvalOf(body)
	if err != nil {
		return err
	}
	who := api.PrincipalOf(c)
	a.Execution, a.Principal, a.Operator = x.ID(), who.ID, who.Operator
	if err := h.o.Executions.Approve(c.Request().Context(), a); err != nil {
		return err
	}
	status := "refused"
	if a.Approve {
		status = "approved"
	}
	return answer(c, http.StatusAccepted, decided{a.Execution, a.Call, status})
}

// approvalOf reads a decision.
func approvalOf(body []byte) (a engine.Approval, err error) {
	var d decision
	if jsontext.Value(body).Kind() != jsontext.KindBeginObject {
		return a, api.BadRequest("request body must be a JSON object")
	}
	if json.Unmarshal(body, &d) != nil {
		return a, api.ErrNotJSON
	}
	if json.Unmarshal(d.Call, &a.Call) != nil || a.Call == "" {
		return a, errApprovalCall
	}
	switch d.Approve.Kind() {
	case jsontext.KindTrue:
		a.Approve = true
	case jsontext.KindFalse:
	default:
		return a, errApprovalChoice
	}
	if d.Reason != nil && d.Reason.Kind() != jsontext.KindNull {
		if json.Unmarshal(d.Reason, &a.Reason) != nil || len([]rune(a.Reason)) > maxReason {
			return a, errApprovalReason
		}
	}
	a.Reason = strings.TrimSpace(a.Reason)
	return a, nil
}
