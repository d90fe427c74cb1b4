package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

const Programmatic = "/exec/programmatic"

// A Client talks to a server with a key, or with a token of LibreChat in its place.
type Client struct {
	URL, Key string
}

// Authorize adds the credentials to a request.
func (c Client) Authorize(r *http.Request) {
	switch {
	case strings.Count(c.Key, ".") == 2:
		r.Header.Set("Authorization", "Bearer "+c.Key)
	case c.Key != "":
		r.Header.Set("X-API-Key", c.Key)
	}
}

// Alice is the principal of most tests.
func (s *Server) Alice() Client { return Client{s.URL, "key-a"} }

// Bob is another.
func (s *Server) Bob() Client { return Client{s.URL, "key-b"} }

// A Program is an initial request.
type Program struct {
	Code    string    `json:"code"`
	Tools   []Tool    `json:"tools,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Timeout int       `json:"timeout,omitempty"`
	Files   []FileRef `json:"files,omitempty"`
	Lang    string    `json:"lang,omitempty"`
}

type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Tools returns tools with these names.
func Tools(names ...string) []Tool {
	list := make([]Tool, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

// Py takes the tabs off a program that is indented as the Go code around it.
func Py(code string) string {
	code = strings.TrimRight(strings.TrimPrefix(code, "\n"), "\t")
	margin := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimPrefix(line, margin))
	}
	return b.String()
}

// A Continuation is a request that goes on.
type Continuation struct {
	Token   string   `json:"continuation_token"`
	Results []Result `json:"tool_results"`
}

type Result struct {
	CallID  string          `json:"call_id"`
	Result  json.RawMessage `json:"result,omitempty"`
	IsError bool            `json:"is_error"`
	Message string          `json:"error_message,omitempty"`
}

type Call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// CompactInput returns the input of a call without the spaces that it may have.
func (c Call) CompactInput() string { return Compact(string(c.Input)) }

// Compact takes the spaces out of JSON, or returns what is none as it is.
func Compact(raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return raw
	}
	return b.String()
}

// An Answer is what a server answers.
type Answer struct {
	HTTPStatus int         `json:"-"`
	Header     http.Header `json:"-"`
	Raw        string      `json:"-"`

	Status  string `json:"status"`
	Session string `json:"session_id"`
	Token   string `json:"continuation_token"`
	Calls   []Call `json:"tool_calls"`
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Error   string `json:"error"`

	leftFiles
}

// String shows an answer in a failure.
func (a Answer) String() string {
	raw := a.Raw
	if len(raw) > 3000 {
		raw = raw[:1500] + " … " + raw[len(raw)-1500:]
	}
	return fmt.Sprintf("%d %s", a.HTTPStatus, raw)
}

// Request sends a request and returns the answer. A []byte or string is the body as
// it is, all else is sent as JSON.
func (c Client) Request(ctx context.Context, method, path string, header http.Header, body any) (Answer, error) {
	var raw []byte
	switch b := body.(type) {
	case nil:
	case []byte:
		raw = b
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = Marshal(b); err != nil {
			return Answer{}, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(raw))
	if err != nil {
		return Answer{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	c.Authorize(r)
	maps.Copy(r.Header, header)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, err
	}
	a := Answer{HTTPStatus: response.StatusCode, Header: response.Header, Raw: string(text)}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("answer %v is not the JSON it should be: %w", a, err)
	}
	return a, nil
}

// Marshal is json.Marshal without escapes of HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Send posts to the programmatic endpoint.
func (c Client) Send(ctx context.Context, body any) (Answer, error) {
	return c.Request(ctx, http.MethodPost, Programmatic, nil, body)
}

// Post sends and expects an answer, of whatever kind.
func (c Client) Post(t testing.TB, body any) Answer {
	t.Helper()
	if p, ok := body.(Program); ok {
		needLibraries(t, p.Code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	a, err := c.Send(ctx, body)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Pause posts and expects a pause.
func (c Client) Pause(t testing.TB, body any) Answer {
	t.Helper()
	a := c.Post(t, body)
	if a.HTTPStatus != http.StatusOK || a.Status != "tool_call_required" || len(a.Calls) == 0 {
		t.Fatalf("got %v, want a pause", a)
	}
	return a
}

// Continue returns a continuation with each call's result.
func (a Answer) Continue(handle Handler) Continuation {
	next := Continuation{Token: a.Token, Results: []Result{}}
	for _, call := range a.Calls {
		r := handle(call)
		r.CallID = call.ID
		next.Results = append(next.Results, r)
	}
	return next
}

// A Handler makes the result of a call.
type Handler func(Call) Result

// Echo returns the input of a call.
func Echo(c Call) Result { return Result{Result: c.Input} }

// Value returns a handler that returns this JSON.
func Value(raw string) Handler {
	return func(Call) Result { return Result{Result: json.RawMessage(raw)} }
}

// Failure returns a handler of tools that fail.
func Failure(message string) Handler {
	return func(Call) Result { return Result{IsError: true, Message: message} }
}

// Run posts a program and answers its calls until it ends. It returns how it ended
// and how many calls each round had.
func (c Client) Run(t testing.TB, p Program, handle Handler) (Answer, []int) {
	t.Helper()
	var batches []int
	a := c.Post(t, p)
	for a.Status == "tool_call_required" {
		batches = append(batches, len(a.Calls))
		a = c.Post(t, a.Continue(handle))
	}
	return a, batches
}

// Completes checks that the program completed and printed this.
func (a Answer) Completes(t testing.TB, stdout string) {
	t.Helper()
	if a.HTTPStatus != http.StatusOK || a.Status != "completed" || a.Error != "" {
		t.Errorf("got %v, want it completed", a)
		return
	}
	if a.Stdout != stdout {
		t.Errorf("stdout = %q, want %q (stderr %q)", a.Stdout, stdout, a.Stderr)
	}
}

// Fails checks that the request failed with this code and error.
func (a Answer) Fails(t testing.TB, code int, text string) {
	t.Helper()
	if a.HTTPStatus != code || a.Error != text {
		t.Errorf("got %v, want %d and the error %q", a, code, text)
	}
	if a.Status != "error" {
		t.Errorf("status = %q, want %q", a.Status, "error")
	}
}

// CancelledText is the error of an execution that was cancelled, by its client or by a server
// that stops.
const CancelledText = "Programmatic execution request cancelled"

// AskOnce is a program that waits for the tool "ask" and prints what it gets.
var AskOnce = Program{Code: "print(await ask(n=1))\n", Tools: Tools("ask")}

// RequestJSON returns the JSON of a program that is otherwise good with these members.
func RequestJSON(members ...string) string {
	return `{"code":"print(1)",` + strings.Join(members, ",") + `}`
}

var IDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)
