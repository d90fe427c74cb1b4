// Package peer is the contract between the servers of one group, which share a store and a secret:
// requests that are handed over to the owner of an execution, and announcements of addresses. All
// of it is signed.
package peer

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"fermata/api"
	"fermata/engine"
	"fermata/engine/core"
)

const (
	// A handed-over request may be larger than the body that the client sent: by resultRoom for
	// each result, whose members have names here, and by restRoom for everything else.
	resultRoom, restRoom = 128, 64 << 10
	// maxCancel is the size of a request to cancel that is passed on.
	maxCancel = 64 << 10
)

// principal owns the connections of other servers. No key has this name.
const principal = "\x00peers"

// Executions do what other servers ask for; *engine.Engine implements it.
type Executions interface {
	// Resume continues a paused execution until it pauses again or ends.
	Resume(ctx context.Context, r engine.Resume) (core.Outcome, error)
	// Cancel ends the execution that a request has started or continued, or refuses the request if
	// it comes later.
	Cancel(ctx context.Context, c engine.Cancel) (engine.Cancelling, error)
	// CancelSessionHere cancels the executions of a session that live on this server, and returns what
	// became of each, by its id.
	CancelSessionHere(ctx context.Context, c engine.CancelSession) map[string]engine.Cancelling
	// Approve decides on a call that waits for approval.
	Approve(ctx context.Context, a engine.Approval) error
}

// Limits bound the requests of clients that are handed over.
type Limits struct {
	// Body is the size of a client's body in bytes, and Results the number of results in
	// it.
	Body    int64
	Results int
}

// A handler answers other servers.
type handler struct {
	executions Executions
	key        Key
	limits     Limits
	bodies     *api.Bodies
}

// Register registers the routes for requests that are signed with key.
func Register(r *api.Router, executions Executions, key Key, limits Limits) {
	h := &handler{executions, key, limits, r.Bodies}
	r.Handle(http.MethodPost, resumePath, h.resume)
	r.Handle(http.MethodPost, cancelPath, h.cancel)
	r.Handle(http.MethodPost, approvePath, h.approve)
}

// resume handles a continuation that another server has handed over.
func (h *handler) resume(c echo.Context) error {
	var r resumeRequest
	done, err := h.read(c, resumePath, h.limits.Body+int64(h.limits.Results)*resultRoom+restRoom, &r)
	if err != nil {
		return err
	}
	defer done()
	api.SetContract(c, engine.Programmatic)
	api.SetClientRequestID(c, r.RequestID)
	api.Note(c, slog.String("principal", r.Principal))
	o, err := h.executions.Resume(c.Request().Context(), r.resume())
	api.SetStep(c, o)
	if err != nil {
		return h.refuse(c, err)
	}
	return h.answer(c, http.StatusOK, answer{Outcome: outcomeOf(o)})
}

// cancel handles a request to cancel that another server passes on.
func (h *handler) cancel(c echo.Context) error {
	var r cancelRequest
	done, err := h.read(c, cancelPath, maxCancel, &r)
	if err != nil {
		return err
	}
	defer done()
	if r.Session != "" {
		api.Note(c, slog.String("session", r.Session))
		outcomes := h.executions.CancelSessionHere(c.Request().Context(), engine.CancelSession{Principal: r.Principal, Session: r.Session})
		return h.answer(c, http.StatusOK, answer{Session: outcomes})
	}
	api.SetClientRequestID(c, r.RequestID)
	if r.Execution != "" {
		api.Note(c, slog.String("execution", r.Execution))
	}
	state, err := h.executions.Cancel(c.Request().Context(), engine.Cancel{
		Principal: r.Principal, RequestID: r.RequestID, Execution: r.Execution, HandedOver: true,
	})
	if err != nil {
		return h.refuse(c, err)
	}
	return h.answer(c, http.StatusOK, answer{Cancelling: state})
}

// approve decides on a call for a client of another server.
func (h *handler) approve(c echo.Context) error {
	var r approveRequest
	done, err := h.read(c, approvePath, maxCancel, &r)
	if err != nil {
		return err
	}
	defer done()
	api.Note(c, slog.String("execution", r.Execution))
	err = h.executions.Approve(c.Request().Context(), engine.Approval{
		Principal: r.Principal, Operator: r.Operator, Execution: r.Execution, Call: r.Call, Approve: r.Approve, Reason: r.Reason, HandedOver: true,
	})
	if err != nil {
		return h.refuse(c, err)
	}
	return h.answer(c, http.StatusOK, answer{})
}

// errSignature refuses what no server of the group has sent.
var errSignature = api.Unauthorized("the signature of a server of the group is missing, too old, or made with another secret")

// read reads a request of another server, of at most limit bytes, into v. The connection
// works for that server until done is called.
func (h *handler) read(c echo.Context, path string, limit int64, v any) (done func(), err error) {
	r := c.Request()
	hash, ok := h.key.verify(r.Header.Get(signatureHeader), time.Now(), path)
	if !ok {
		return nil, errSignature
	}
	leave := api.Occupy(r.Context(), principal)
	defer func() {
		if err != nil {
			leave()
		}
	}()
	body, err := h.bodies.Read(c, limit, io.Discard)
	if err != nil {
		return nil, err
	}
	if hexHash(body) != hash {
		return nil, errSignature
	}
	if err := decode(body, v); err != nil {
		return nil, api.ErrNotJSON
	}
	return leave, nil
}

// refuse answers with an error. The log has it as an error only if it is this server's fault and
// not the client's.
func (h *handler) refuse(c echo.Context, err error) error {
	a, known := refusal(err)
	if !known {
		return err
	}
	if api.SetReason(c, err).Status >= http.StatusInternalServerError {
		api.SetCause(c, err)
	}
	return h.answer(c, http.StatusConflict, a)
}

func (h *handler) answer(c echo.Context, status int, a answer) error {
	body, err := api.Encode(a)
	if err != nil {
		return err
	}
	signature := h.key.signAnswer(c.Request().Header.Get(signatureHeader), status, hexHash(body))
	c.Response().Header().Set(signatureHeader, signature)
	return api.AnswerBytes(c, status, body)
}
