package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"fermata/api"
	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
)

// The limits of a result. Clients truncate results at some 25,000 tokens.
const (
	maxStdout    = 40_000
	maxStderr    = 10_000
	maxValue     = 20_000
	maxCallsTold = 50
	maxFilesTold = 50
	maxErrorText = 200
	// maxWaitingNamed is how many calls are named that wait for approval.
	maxWaitingNamed = 5
)

// A result is the result of run_program and of wait_for_program.
type result struct {
	Status string          `json:"status"`
	Stdout string          `json:"stdout"`
	Stderr string          `json:"stderr"`
	Value  json.RawMessage `json:"value,omitempty"`
	// Error says why the program has not completed.
	Error     string       `json:"error,omitempty"`
	Session   string       `json:"session"`
	Execution string       `json:"execution"`
	Files     []resultFile `json:"files"`
	Calls     []resultCall `json:"calls"`
	More      *leftOut     `json:"left_out,omitempty"`
}

// A resultFile is a file that a program has left.
type resultFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	Type string `json:"type,omitempty"`
}

// A resultCall is a tool call that a program has made.
type resultCall struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Status string `json:"status"`
	Error  string `json:"error,omitempty"`
	Took   *int64 `json:"took_ms,omitempty"`
	Cost   int64  `json:"cost,omitempty"`
}

// leftOut counts what a result leaves out.
type leftOut struct {
	Calls int    `json:"calls,omitempty"`
	Files int    `json:"files,omitempty"`
	Value string `json:"value,omitempty"`
}

// empty reports whether the result is complete.
func (m leftOut) empty() bool { return m == leftOut{} }

// result returns the result of an execution that has ended.
func (f *face) result(ctx context.Context, o core.Outcome) (*sdk.CallToolResult, error) {
	r := result{Status: statusOf(o), Stdout: o.Stdout, Stderr: o.Stderr, Value: o.Value, Session: o.Session, Execution: o.Execution, Files: []resultFile{}}
	if o.State != core.Completed {
		reply, err := api.ReplyTo(o, api.InlineErrors)
		if err != nil {
			return nil, err
		}
		r.Error = reply.Text
		if _, detail := api.WhyOf(o); detail != "" && detail != reply.Text {
			r.Error += ": " + detail
		}
	}
	for _, file := range o.Files {
		if !file.Inherited {
			r.Files = append(r.Files, resultFile{file.Name, file.Size, file.Type})
		}
	}
	if err := f.addCalls(ctx, &r); err != nil {
		return nil, err
	}
	return r.encode()
}

// statusOf returns the status of an execution. It is the same in all views.
func statusOf(o core.Outcome) string {
	if o.State == core.Failed {
		return journal.StatusError
	}
	return string(o.State)
}

// addCalls adds the calls from the journal.
func (f *face) addCalls(ctx context.Context, r *result) error {
	r.Calls = []resultCall{}
	x, err := f.o.History.Find(ctx, journal.Viewer{Principal: f.who.ID}, r.Execution)
	if errors.Is(err, continuation.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	summary, err := x.Summary(ctx)
	if err != nil {
		return err
	}
	if summary.Calls == 0 {
		return nil
	}
	records, _, err := x.Calls(ctx, 0, maxCallsTold)
	if err != nil && !errors.Is(err, continuation.ErrNotFound) {
		return err
	}
	for _, c := range records {
		r.Calls = append(r.Calls, resultCall{c.Call, toolName(c.Toolset, c.Tool), c.Status, shorten(c.Error, maxErrorText), c.Took, c.Cost})
	}
	r.left().Calls = summary.Calls - len(records)
	return nil
}

// left returns the counts of what r leaves out, which the caller may increase.
func (r *result) left() *leftOut {
	if r.More == nil {
		r.More = new(leftOut)
	}
	return r.More
}

// soFar returns the result of an execution so far, from its journal.
func (f *face) soFar(ctx context.Context, execution string) (*sdk.CallToolResult, error) {
	x, err := f.find(ctx, execution)
	if err != nil {
		return nil, err
	}
	d, err := x.Detail(ctx)
	if err != nil {
		return nil, err
	}
	r := result{Status: d.Status, Session: d.Session, Execution: execution, Error: d.Error, Files: []resultFile{}}
	if d.Stdout != nil && d.Stderr != nil {
		r.Stdout, r.Stderr = *d.Stdout, *d.Stderr
	}
	if d.Status == journal.StatusPaused {
		r.Error = waitingText(d)
	}
	for _, raw := range d.Files {
		var file struct {
			Name string `json:"name"`
			Size int64  `json:"size"`
		}
		if json.Unmarshal(raw, &file) == nil {
			r.Files = append(r.Files, resultFile{Path: file.Name, Size: file.Size})
		}
	}
	if err := f.addCalls(ctx, &r); err != nil {
		return nil, err
	}
	return r.encode()
}

// waitingText says what a paused execution waits for, and who can approve it.
func waitingText(d journal.Detail) string {
	var calls []string
	for _, w := range d.Waiting[:min(len(d.Waiting), maxWaitingNamed)] {
		calls = append(calls, fmt.Sprintf("%s (%s)", w.Call, toolName(w.Toolset, w.Tool)))
	}
	what := "a call"
	if len(calls) > 0 {
		what = strings.Join(calls, ", ")
	}
	return fmt.Sprintf("%s needs the approval of a person: in the console of the server (/console), or by "+
		`POST /executions/%s/approvals {"call": "call_001", "approve": true}. Then use wait_for_program`, what, d.ID)
}

// encode returns r, truncated to its limits, as text and as structured content.
func (r result) encode() (*sdk.CallToolResult, error) {
	r.Stdout, r.Stderr, r.Error = middle(r.Stdout, maxStdout), middle(r.Stderr, maxStderr), shorten(r.Error, maxStderr)
	if len(r.Value) > maxValue {
		r.left().Value = "it is larger than 20 KB: print the part that you need, or write it to a file"
		r.Value = nil
	}
	if n := len(r.Files) - maxFilesTold; n > 0 {
		r.left().Files = n
		r.Files = r.Files[:maxFilesTold]
	}
	if r.More != nil && r.More.empty() {
		r.More = nil
	}
	text, err := api.Encode(r)
	if err != nil {
		return nil, err
	}
	return &sdk.CallToolResult{
		Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, StructuredContent: json.RawMessage(text),
		IsError: r.Status != journal.StatusCompleted && r.Status != journal.StatusRunning,
	}, nil
}
