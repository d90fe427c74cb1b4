package tests

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"
)

const programmatic = "/exec/programmatic"

// A client talks to a server with a key, or with a token of LibreChat in its place.
type client struct {
	url, key string
}

// authorize adds the credentials to a request.
func (c client) authorize(r *http.Request) {
	switch {
	case strings.Count(c.key, ".") == 2:
		r.Header.Set("Authorization", "Bearer "+c.key)
	case c.key != "":
		r.Header.Set("X-API-Key", c.key)
	}
}

// alice is the principal of most tests.
func (s *server) alice() client { return client{s.url, "key-a"} }

// bob is another.
func (s *server) bob() client { return client{s.url, "key-b"} }

// A program is an initial request.
type program struct {
	Code    string    `json:"code"`
	Tools   []tool    `json:"tools,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Timeout int       `json:"timeout,omitempty"`
	Files   []fileRef `json:"files,omitempty"`
	Lang    string    `json:"lang,omitempty"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// tools returns tools with these names.
func tools(names ...string) []tool {
	list := make([]tool, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

// py takes the tabs off a program that is indented as the Go code around it.
func py(code string) string {
	code = strings.TrimRight(strings.TrimPrefix(code, "\n"), "\t")
	margin := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimPrefix(line, margin))
	}
	return b.String()
}

// A continuation is a request that goes on.
type continuation struct {
	Token   string   `json:"continuation_token"`
	Results []result `json:"tool_results"`
}

type result struct {
	CallID  string          `json:"call_id"`
	Result  json.RawMessage `json:"result,omitempty"`
	IsError bool            `json:"is_error"`
	Message string          `json:"error_message,omitempty"`
}

type call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// input returns the input of a call without the spaces that it may have.
func (c call) input() string { return compact(string(c.Input)) }

// compact takes the spaces out of JSON, or returns what is none as it is.
func compact(raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return raw
	}
	return b.String()
}

// An answer is what a server answers.
type answer struct {
	code   int         `json:"-"`
	header http.Header `json:"-"`
	raw    string      `json:"-"`

	Status  string `json:"status"`
	Session string `json:"session_id"`
	Token   string `json:"continuation_token"`
	Calls   []call `json:"tool_calls"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Error   string `json:"error"`

	leftFiles
}

// String shows an answer in a failure.
func (a answer) String() string {
	raw := a.raw
	if len(raw) > 3000 {
		raw = raw[:1500] + " … " + raw[len(raw)-1500:]
	}
	return fmt.Sprintf("%d %s", a.code, raw)
}

// request sends a request and returns the answer. A []byte or string is the body as
// it is, all else is sent as JSON.
func (c client) request(ctx context.Context, method, path string, header http.Header, body any) (answer, error) {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		raw = b
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = marshal(b); err != nil {
			return answer{}, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	c.authorize(r)
	maps.Copy(r.Header, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return answer{}, err
	}
	a := answer{code: response.StatusCode, header: response.Header, raw: string(text)}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("answer %v is not the JSON it should be: %w", a, err)
	}
	return a, nil
}

// marshal is json.Marshal without escapes of HTML.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// send posts to the programmatic endpoint.
func (c client) send(ctx context.Context, body any) (answer, error) {
	return c.request(ctx, http.MethodPost, programmatic, nil, body)
}

// post sends and expects an answer, of whatever kind.
func (c client) post(t testing.TB, body any) answer {
	t.Helper()
	if p, ok := body.(program); ok {
		needLibraries(t, p.Code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	a, err := c.send(ctx, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// pause posts and expects a pause.
func (c client) pause(t testing.TB, body any) answer {
	t.Helper()
	a := c.post(t, body)
	if a.code != http.StatusOK || a.Status != "tool_call_required" || len(a.Calls) == 0 {
		t.Fatalf("got %v, want a pause", a)
	}
	return a
}

// answers returns a continuation with each call's result.
func (a answer) answers(handle handler) continuation {
	next := continuation{Token: a.Token, Results: []result{}}
	for _, call := range a.Calls {
		r := handle(call)
		r.CallID = call.ID
		next.Results = append(next.Results, r)
	}
	return next
}

// A handler makes the result of a call.
type handler func(call) result

// echo returns the input of a call.
func echo(c call) result { return result{Result: c.Input} }

// value returns a handler that returns this JSON.
func value(raw string) handler {
	return func(call) result { return result{Result: json.RawMessage(raw)} }
}

// failure returns a handler of tools that fail.
func failure(message string) handler {
	return func(call) result { return result{IsError: true, Message: message} }
}

// run posts a program and answers its calls until it ends. It returns how it ended
// and how many calls each round had.
func (c client) run(t testing.TB, p program, handle handler) (answer, []int) {
	t.Helper()
	var batches []int
	a := c.post(t, p)
	for a.Status == "tool_call_required" {
		batches = append(batches, len(a.Calls))
		a = c.post(t, a.answers(handle))
	}
	return a, batches
}

// completes checks that the program completed and printed this.
func (a answer) completes(t testing.TB, stdout string) {
	t.Helper()
	if a.code != http.StatusOK || a.Status != "completed" || a.Error != "" {
		t.Errorf("got %v, want it completed", a)
		return
	}
	if a.Stdout != stdout {
		t.Errorf("stdout = %q, want %q (stderr %q)", a.Stdout, stdout, a.Stderr)
	}
}

// fails checks that the request failed with this code and error.
func (a answer) fails(t testing.TB, code int, text string) {
	t.Helper()
	if a.code != code || a.Error != text {
		t.Errorf("got %v, want %d and the error %q", a, code, text)
	}
	if a.Status != "error" {
		t.Errorf("status = %q, want %q", a.Status, "error")
	}
}
