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

// Programmatic is the path of programs that call tools.
const Programmatic = "/exec/programmatic"

// A Client sends requests to a server. Its key is an API key or a token of LibreChat.
type Client struct {
	URL, Key string
}

// Authorize adds the client's credentials to a request.
func (c Client) Authorize(r *http.Request) {
	switch {
	case strings.Count(c.Key, ".") == 2:
		r.Header.Set("Authorization", "Bearer "+c.Key)
	case c.Key != "":
		r.Header.Set("X-API-Key", c.Key)
	}
}

// Alice returns a client that is the principal alice, as in most tests.
func (s *Server) Alice() Client { return Client{s.URL, "key-a"} }

// Bob returns a client that is another principal, bob.
func (s *Server) Bob() Client { return Client{s.URL, "key-b"} }

// A Program is the request that starts an execution.
type Program struct {
	Code    string    `json:"code"`
	Tools   []Tool    `json:"tools,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Timeout int       `json:"timeout,omitempty"`
	Files   []FileRef `json:"files,omitempty"`
	Lang    string    `json:"lang,omitempty"`
	Labels  Labels    `json:"labels,omitempty"`
	Title   string    `json:"title,omitempty"`

	// Toolsets are those of the server that the program may call.
	Toolsets   []string `json:"toolsets,omitempty"`
	Sequential bool     `json:"sequential,omitempty"`
	MaxCost    *int     `json:"max_cost,omitempty"`
	Approvals  bool     `json:"approvals,omitempty"`

	Contract
}

// A Contract says which files a program must produce, and what its call is called in timelines.
type Contract struct {
	// Outputs are paths, or objects with members of their own.
	Outputs   []any          `json:"outputs,omitempty"`
	OnMissing string         `json:"on_missing,omitempty"`
	Timeline  map[string]any `json:"timeline,omitempty"`
}

// Labels are what a client marks an execution with.
type Labels map[string]string

// A Tool is a tool that a program may call.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Toolset     string          `json:"toolset,omitempty"`
	Class       string          `json:"class,omitempty"`
	Approval    string          `json:"approval,omitempty"`
	Envelope    bool            `json:"envelope,omitempty"`
}

// Tools returns tools with these names and nothing else.
func Tools(names ...string) []Tool {
	list := make([]Tool, len(names))
	for i, name := range names {
		list[i].Name = name
	}
	return list
}

// Py removes the indentation of a program that is indented with tabs, like the Go code around it.
func Py(code string) string {
	code = strings.TrimRight(strings.TrimPrefix(code, "\n"), "\t")
	margin := code[:len(code)-len(strings.TrimLeft(code, "\t"))]
	var b strings.Builder
	for line := range strings.Lines(code) {
		b.WriteString(strings.TrimPrefix(line, margin))
	}
	return b.String()
}

// A Continuation is the request that continues an execution with the results of its calls.
type Continuation struct {
	Token   string   `json:"continuation_token"`
	Results []Result `json:"tool_results"`
}

// A Result is the result of one call.
type Result struct {
	CallID  string          `json:"call_id"`
	Result  json.RawMessage `json:"result,omitempty"`
	IsError bool            `json:"is_error"`
	Message string          `json:"error_message,omitempty"`
	// Approve decides on a call that waits for approval, and Reason says why.
	Approve *bool  `json:"approve,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// A Call is a call of a tool, as the server passes it on to the client.
type Call struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// Toolset is that of the tool, and Approval is "required" if the call waits for approval.
	Toolset  string `json:"toolset"`
	Approval string `json:"approval"`
}

// CompactInput returns the input of a call without insignificant spaces.
func (c Call) CompactInput() string { return Compact(string(c.Input)) }

// Compact removes insignificant spaces from JSON. Text that is not JSON comes back unchanged.
func Compact(raw string) string {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(raw)); err != nil {
		return raw
	}
	return b.String()
}

// An Answer is the answer to a Program or a Continuation: a pause, the end, or an error. Raw is
// its body, byte for byte.
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
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	// RoundsLeft is how often the program may still pause.
	RoundsLeft int `json:"rounds_left"`
	// PartialStdout and PartialStderr are what a pause tells of the program's output.
	PartialStdout string `json:"partial_stdout"`
	PartialStderr string `json:"partial_stderr"`
	// Value is what the program has returned or left on its last line.
	Value json.RawMessage `json:"value"`
	// Outputs and Report tell what has become of the files of a Contract.
	Outputs []Judged `json:"outputs"`
	Report  *string  `json:"report"`

	LeftFiles
}

// A Judged is an output of a contract in an answer.
type Judged struct {
	Path  string `json:"path"`
	State string `json:"state"`
	ID    string `json:"id"`
	Size  int64  `json:"size"`
	Type  string `json:"mime"`
	Error string `json:"error"`
}

// String shows an answer in the message of a failed test.
func (a Answer) String() string {
	raw := a.Raw
	if len(raw) > 3000 {
		raw = raw[:1500] + " … " + raw[len(raw)-1500:]
	}
	return fmt.Sprintf("%d %s", a.HTTPStatus, raw)
}

// Request sends a request and returns the answer, whatever its status. A body that is a []byte or
// a string is sent unchanged, any other value as JSON.
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

// Marshal is json.Marshal without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

// Send posts a Program, a Continuation or the text of one.
func (c Client) Send(ctx context.Context, body any) (Answer, error) {
	return c.Request(ctx, http.MethodPost, Programmatic, nil, body)
}

// Post is Send for tests: it fails the test if there is no answer, and gives up after a minute.
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

// Pause is Post for a request that must be answered with a pause.
func (c Client) Pause(t testing.TB, body any) Answer {
	t.Helper()
	a := c.Post(t, body)
	if a.HTTPStatus != http.StatusOK || a.Status != "tool_call_required" || len(a.Calls) == 0 {
		t.Fatalf("got %v, want a pause", a)
	}
	return a
}

// Continue returns the continuation of a pause, with the result that handle returns for each call.
func (a Answer) Continue(handle Handler) Continuation {
	next := Continuation{Token: a.Token, Results: []Result{}}
	for _, call := range a.Calls {
		r := handle(call)
		r.CallID = call.ID
		next.Results = append(next.Results, r)
	}
	return next
}

// A Handler plays the client's tools: it returns the result of a call.
type Handler func(Call) Result

// Echo is a Handler that returns the input of the call.
func Echo(c Call) Result { return Result{Result: c.Input} }

// Value returns a Handler that returns this JSON for each call.
func Value(raw string) Handler {
	return func(Call) Result { return Result{Result: json.RawMessage(raw)} }
}

// Failure returns a Handler whose calls all fail with this message.
func Failure(message string) Handler {
	return func(Call) Result { return Result{IsError: true, Message: message} }
}

// Decision returns a Handler that approves all calls, or refuses them for a reason.
func Decision(approve bool, reason string) Handler {
	return func(Call) Result { return Result{Approve: &approve, Reason: reason} }
}

// Run starts a program and answers its calls until it ends. It returns the last answer and the
// number of calls in each round.
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

// Completes checks that the program completed, and that it printed stdout.
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

// Fails checks that the request failed with this HTTP status and error.
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

// AskOnce is a program that calls the tool "ask" once and prints the result.
var AskOnce = Program{Code: "print(await ask(n=1))\n", Tools: Tools("ask")}

// RequestJSON returns a valid request as JSON, with these members added.
func RequestJSON(members ...string) string {
	return `{"code":"print(1)",` + strings.Join(members, ",") + `}`
}

// IDForm is the form of the ids of sessions and files.
var IDForm = regexp.MustCompile(`^[A-Za-z0-9_-]{21}$`)
