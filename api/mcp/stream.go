package mcp

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
)

// questionPrefix begins the ids of requests with which the server asks a client of an older version of the
// protocol. The rest of the id names the execution and the call, so that any server of a group can take the
// answer.
const questionPrefix = "approve:"

// questionID returns the id of the request that asks about a call.
func questionID(execution, call string) string { return questionPrefix + execution + ":" + call }

// A stream is the answer to a request of an older client over HTTP, on which the server can ask the client
// for input. The client answers with a request of its own.
type stream struct {
	// asks is true if the client can ask a person.
	asks bool
	to   *writer
}

// ask asks the client to show a form to a person.
func (s *stream) ask(id string, form *sdk.ElicitParams) error {
	return s.send(struct {
		JSONRPC string            `json:"jsonrpc"`
		ID      string            `json:"id"`
		Method  string            `json:"method"`
		Params  *sdk.ElicitParams `json:"params"`
	}{"2.0", id, "elicitation/create", form})
}

// withdraw tells the client that the answer to a request is not needed any more. A client that has answered
// ignores this.
func (s *stream) withdraw(id string) error {
	type params struct {
		RequestID string `json:"requestId"`
		Reason    string `json:"reason"`
	}
	return s.send(struct {
		JSONRPC string `json:"jsonrpc"`
		Method  string `json:"method"`
		Params  params `json:"params"`
	}{"2.0", "notifications/cancelled", params{id, "the call is decided"}})
}

func (s *stream) send(message any) error {
	text, err := api.Encode(message)
	if err != nil {
		return err
	}
	return s.to.message(text)
}

// An asked is the answer of a client to a request of the server.
type asked struct {
	Result *sdk.ElicitResult `json:"result"`
	Error  jsontext.Value    `json:"error"`
}

// answered handles the answer of a client to a question.
func (h *handler) answered(c echo.Context, id jsontext.Value, body []byte) error {
	var name string
	var a asked
	// Unknown members are ignored. Known members are checked below.
	if json.Unmarshal(id, &name) != nil || json.Unmarshal(body, &a) != nil || a.Result == nil && a.Error == nil {
		return api.BadRequest("the body is neither a request nor the answer to a question of the server")
	}
	name, known := strings.CutPrefix(name, questionPrefix)
	execution, call, found := strings.Cut(name, ":")
	if !known || !found {
		return api.BadRequest("the id of the answer is not that of a question of the server")
	}
	f := &face{h.server, caller{who: api.PrincipalOf(c)}}
	approve, reason := answerOf(a.Result)
	if a.Result == nil {
		reason = reasonCannot
	}
	ctx := c.Request().Context()
	if _, err := f.find(ctx, execution); err != nil {
		return err
	}
	if err := f.decide(context.WithoutCancel(ctx), execution, call, approve, reason); err != nil {
		return err
	}
	return c.NoContent(202)
}
