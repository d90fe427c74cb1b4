package mcp

import (
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
	to   interface{ message(text []byte) error }
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
