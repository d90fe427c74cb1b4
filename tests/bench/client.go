package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

// maxClients is how many connections a client keeps open: as many as the largest load has clients.
const maxClients = 64

// A client sends requests to a server.
type client struct {
	url, key string
	http     *http.Client
}

func newClient(url, key string) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: maxClients}
	return &client{url: url, key: key, http: &http.Client{Transport: transport}}
}

// A program is the request that starts an execution.
type program struct {
	Lang  string `json:"lang"`
	Code  string `json:"code"`
	Tools []tool `json:"tools,omitempty"`
	// Toolsets are those of the server that the program may call.
	Toolsets []string `json:"toolsets,omitempty"`
}

// The languages of programs.
const (
	python = "python"
	bash   = "bash"
)

type tool struct {
	Name string `json:"name"`
}

// A continuation is the request that continues an execution with the results of its calls.
type continuation struct {
	Token   string   `json:"continuation_token"`
	Results []result `json:"tool_results"`
}

type result struct {
	CallID  string          `json:"call_id"`
	Result  json.RawMessage `json:"result"`
	IsError bool            `json:"is_error"`
}

// A call is a tool call of the program. The programs here say in its input which call it is
// (n) and in which PID namespace they run.
type call struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Input struct {
		N         int    `json:"n"`
		Namespace string `json:"namespace"`
	} `json:"input"`
}

// An answer is a server's answer, and how long it took.
type answer struct {
	Status string `json:"status"`
	Token  string `json:"continuation_token"`
	Calls  []call `json:"tool_calls"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	Error  string `json:"error"`

	// took is the time from the first byte of the request to the last byte of the answer.
	took time.Duration
}

// start starts a program, which has the tool lookup, and returns when it pauses or ends.
func (c *client) start(ctx context.Context, lang, code string) (answer, error) {
	body, err := json.Marshal(program{Lang: lang, Code: code, Tools: []tool{{Name: "lookup"}}})
	if err != nil {
		return answer{}, err
	}
	return c.post(ctx, body)
}

// resume continues a paused execution with value as the result of each call.
func (c *client) resume(ctx context.Context, paused answer, value json.RawMessage) (answer, error) {
	next := continuation{Token: paused.Token}
	for _, call := range paused.Calls {
		next.Results = append(next.Results, result{CallID: call.ID, Result: value})
	}
	body, err := json.Marshal(next)
	if err != nil {
		return answer{}, err
	}
	return c.post(ctx, body)
}

func (c *client) post(ctx context.Context, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/exec/programmatic", bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		request.Header.Set("X-API-Key", c.key)
	}
	begin := time.Now()
	response, err := c.http.Do(request)
	if err != nil {
		return answer{}, err
	}
	text, err := io.ReadAll(response.Body)
	took := time.Since(begin)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, fmt.Errorf("read answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("answer %s: %.500s", response.Status, text)
	}
	a := answer{took: took}
	if err := json.Unmarshal(text, &a); err != nil {
		return answer{}, fmt.Errorf("the answer is not the JSON it should be: %w: %.500s", err, text)
	}
	return a, nil
}

// paused returns an error unless the answer is a pause with this number of calls of lookup,
// whose inputs count from first.
func (a answer) paused(first, calls int) error {
	if a.Status != "tool_call_required" || len(a.Calls) != calls || a.Token == "" {
		return fmt.Errorf("got %+v, want a pause with %d calls", a, calls)
	}
	// A shell that makes calls at the same time makes them in any order.
	inOrder := slices.SortedFunc(slices.Values(a.Calls), func(a, b call) int { return a.Input.N - b.Input.N })
	for i, call := range inOrder {
		if call.Name != "lookup" || call.Input.N != first+i {
			return fmt.Errorf("got the call %+v, want one of lookup with n=%d", call, first+i)
		}
	}
	return nil
}

// completed returns an error unless the program completed and printed stdout.
func (a answer) completed(stdout string) error {
	if a.Status != "completed" || a.Stdout != stdout || a.Stderr != "" {
		return fmt.Errorf("got %+v, want it completed with stdout %q", a, stdout)
	}
	return nil
}

// healthy returns an error unless the server is healthy.
func (c *client) healthy(ctx context.Context) error {
	_, err := c.get(ctx, c.url+"/health")
	return err
}

// get returns the body of a page.
func (c *client) get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusOK {
		err = errors.Join(err, fmt.Errorf("GET %s: %s", url, response.Status))
	}
	return body, errors.Join(err, response.Body.Close())
}
