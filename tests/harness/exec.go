package harness

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// ExecPath is the path of programs without tools.
const ExecPath = "/exec"

// An ExecRequest is a request to run a program without tools.
type ExecRequest struct {
	Lang    string    `json:"lang"`
	Code    string    `json:"code"`
	Args    []string  `json:"args,omitempty"`
	Session string    `json:"session_id,omitempty"`
	Timeout int       `json:"timeout,omitempty"`
	Files   []FileRef `json:"files,omitempty"`

	Contract
}

// An ExecAnswer is the answer to an ExecRequest. Word is its member "status", a short code for
// the way in which the program ended.
type ExecAnswer struct {
	Answer

	// Code means nothing in a refusal, whose member "code" is a word.
	Code     *exitCode       `json:"code"`
	Signal   *string         `json:"signal"`
	Message  *string         `json:"message"`
	Word     *string         `json:"status"`
	WallTime *int            `json:"wall_time"`
	Files    json.RawMessage `json:"files"`
}

// An exitCode is the exit code of a program.
type exitCode int

// UnmarshalJSON reads an exit code, and passes over the word that a refusal has in its place.
func (c *exitCode) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return nil
	}
	return json.Unmarshal(text, (*int)(c))
}

// Exec runs a program without tools. The body is an ExecRequest, or text that is sent unchanged.
func (c Client) Exec(t testing.TB, header http.Header, body any) ExecAnswer {
	t.Helper()
	if p, ok := body.(ExecRequest); ok {
		needLibraries(t, p.Code)
	}
	a, err := c.Request(t.Context(), http.MethodPost, ExecPath, header, body)
	if err != nil {
		t.Fatal(err)
	}
	e := ExecAnswer{}
	if err := json.Unmarshal([]byte(a.Raw), &e); err != nil {
		t.Fatalf("answer %v: %v", a, err)
	}
	e.Answer = a
	return e
}

// How summarizes how a program ended: its exit code, signal, status and message, with "-" for
// each that is null.
func (e ExecAnswer) How() string {
	text := func(s *string) string {
		if s == nil {
			return "-"
		}
		return *s
	}
	code := "-"
	if e.Code != nil {
		code = strconv.Itoa(int(*e.Code))
	}
	return strings.Join([]string{code, text(e.Signal), text(e.Word), text(e.Message)}, " ")
}
