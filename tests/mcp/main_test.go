// Package mcp tests the server as agents use it, over the Model Context Protocol: with the clients of the
// official SDKs for Go and, which Node runs (client.mjs), for TypeScript, and with requests made by hand.
package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// keyed sends each request with the key of a client.
type keyed struct{ client harness.Client }

func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	k.client.Authorize(r)
	return http.DefaultTransport.RoundTrip(r)
}

// connect returns a session of the Go SDK's client with /mcp.
func connect(t *testing.T, c harness.Client, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o).Connect(t.Context(),
		&sdk.StreamableClientTransport{Endpoint: c.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed{c}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// A result is what run_program and wait_for_program answer.
type result struct {
	Status, Stdout, Stderr, Error, Session, Execution string
	Value                                             json.RawMessage
	Files                                             []struct{ Path string }
	Calls                                             []struct{ Tool, Status, Error string }
	// Failed and Text are of the result itself.
	Failed bool   `json:"-"`
	Text   string `json:"-"`
}

// call calls a tool and returns its result.
func call(ctx context.Context, session *sdk.ClientSession, tool string, arguments map[string]any) (result, error) {
	answer, err := session.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		return result{}, err
	}
	r := result{Failed: answer.IsError}
	if len(answer.Content) > 0 {
		if text, ok := answer.Content[0].(*sdk.TextContent); ok {
			r.Text = text.Text
		}
	}
	encoded, err := json.Marshal(answer.StructuredContent)
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(encoded, &r)
}

// run is call, which must work.
func run(t *testing.T, session *sdk.ClientSession, tool string, arguments map[string]any) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := call(ctx, session, tool, arguments)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// listed returns an error unless an execution of a client has a status.
func listed(t *testing.T, c harness.Client, status string) error {
	t.Helper()
	reply := c.Files(t, http.MethodGet, "/executions?limit=1&contract=mcp&status="+status)
	var page struct {
		Data []struct {
			Status string `json:"status"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(reply.Body), &page); err != nil {
		return err
	}
	if len(page.Data) != 1 || page.Data[0].Status != status {
		return fmt.Errorf("no execution is %s: %s", status, reply.Body)
	}
	return nil
}
