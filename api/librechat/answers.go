package librechat

import (
	"bytes"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/engine/core"
)

// encodeOutcome returns status and body for the outcome of a program with tools. prefix is that of
// the routes (see prefixOf). Equal outcomes have equal bytes, so that a retry gets the same answer.
func encodeOutcome(outcome core.Outcome, style api.ErrorStyle, prefix string) (status int, body []byte, err error) {
	if outcome.State == core.Paused {
		body, err = encodePause(outcome)
		return http.StatusOK, body, err
	}
	ended := endedAnswer{
		Status: "completed", SessionID: outcome.Session, Stdout: outcome.Stdout, Stderr: outcome.Stderr,
		Value: jsontext.Value(outcome.Value), Files: outputsOf(outcome.Files, prefix), leftovers: leftoversOf(outcome),
		verdict: verdictOf(outcome),
	}
	status = http.StatusOK
	if outcome.State != core.Completed {
		reply, err := api.ReplyTo(outcome, style)
		if err != nil {
			return 0, nil, err
		}
		status, ended.Status, ended.Error = reply.Status, "error", reply.Text
		ended.Reason, ended.Detail = api.WhyOf(outcome)
		if style == api.InlineErrors && status == http.StatusOK && outcome.Reason != core.RaisedError && !understood(reply.Text) {
			ended.Stderr = withEnding(ended.Stderr, reply.Text, ended.Detail)
		}
		if len(ended.Files) == 0 {
			ended.Files = nil
		}
	}
	body, err = api.Encode(ended)
	return status, body, err
}

// understood reports whether LibreChat's client tells the model this text of an answer with status 200. Of all
// other texts the model sees nothing but "Code execution failed." and what stands on stderr.
func understood(text string) bool {
	switch text {
	case "Time limit exceeded", "Out of memory", "stdout length exceeded", "stderr length exceeded", "Execution failed or timed out":
		return true
	}
	return strings.HasPrefix(text, "Sandbox exited with code ") || strings.HasPrefix(text, "Sandbox requested an unregistered tool: ")
}

// withEnding returns stderr with a last line that says how the program has ended.
func withEnding(stderr, text, detail string) string {
	if stderr != "" && !strings.HasSuffix(stderr, "\n") {
		stderr += "\n"
	}
	if detail != "" {
		text += ": " + detail
	}
	return stderr + strings.ReplaceAll(text, "\n", " ") + "\n"
}

// A pausedAnswer is the answer to a request that has left its execution paused.
type pausedAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"session_id"`
	Token     string `json:"continuation_token"`
	// RoundsLeft is how often the program may still pause after this pause.
	RoundsLeft *int `json:"rounds_left,omitempty"`
	// PartialStdout and PartialStderr are the ends of what the program has printed so far: the contract
	// has stdout and stderr at the end only.
	PartialStdout string `json:"partial_stdout,omitempty"`
	PartialStderr string `json:"partial_stderr,omitempty"`
	// Calls stay empty; encodePause inserts them.
	Calls []callHead `json:"tool_calls"`
}

// A callHead is a tool call without its input.
type callHead struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Toolset is that of the tool, if it has one, and Approval is required if the call waits for
	// approval.
	Toolset  string `json:"toolset,omitempty"`
	Approval string `json:"approval,omitempty"`
}

// encodePause encodes the answer to a pause. The inputs of calls go out as the program has
// written them, and may have 16 MiB together. So they are inserted by hand: the library
// would parse and reformat them, which takes almost three times as long and drops white space.
func encodePause(outcome core.Outcome) ([]byte, error) {
	body, err := api.Encode(pausedAnswer{
		Status: "tool_call_required", SessionID: outcome.Session, Token: outcome.Token, RoundsLeft: outcome.RoundsLeft,
		PartialStdout: outcome.Stdout, PartialStderr: outcome.Stderr,
	})
	if err != nil {
		return nil, err
	}
	body = bytes.TrimSuffix(body, []byte("]}"))
	for i, call := range outcome.Calls {
		head, err := api.Encode(callHead{call.ID, call.Name, call.Toolset, call.Approval})
		if err != nil {
			return nil, err
		}
		if i > 0 {
			body = append(body, ',')
		}
		body = append(append(body, bytes.TrimSuffix(head, []byte("}"))...), `,"input":`...)
		body = append(append(body, call.Input...), '}')
	}
	body = append(body, "]}"...)
	if !utf8.Valid(body) {
		body = bytes.ToValidUTF8(body, []byte(string(utf8.RuneError)))
	}
	return body, nil
}

// An endedAnswer is the answer to a request that has ended its execution.
type endedAnswer struct {
	Status    string `json:"status"`
	SessionID string `json:"session_id"`
	Error     string `json:"error,omitempty"`
	// Reason and Detail tell why the execution has not completed.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
	// Value is what the program has returned or left on its last line.
	Value jsontext.Value `json:"value,omitzero"`
	Files []output       `json:"files,omitzero"`
	leftovers
	verdict
}

// The leftovers tell what became of the other files of an execution.
type leftovers struct {
	Deleted    []string    `json:"deleted_files,omitempty"`
	Delivery   *delivery   `json:"artifact_delivery,omitzero"`
	Truncation *truncation `json:"artifact_truncation,omitzero"`
}

// A delivery tells that new files could not be kept.
type delivery struct {
	Code      string `json:"code"`
	Status    string `json:"status"`
	Attempted int    `json:"attempted"`
	Delivered int    `json:"delivered"`
	Failed    int    `json:"failed"`
}

// A truncation says which files were left out, and how many for each of
// engine.SkipReasons.
type truncation struct {
	Code    string      `json:"code"`
	Reasons skipReasons `json:"reasons"`
	Skipped []string    `json:"skipped"`
	Count   int         `json:"skipped_count"`
}

type skipReasons struct {
	MaxFiles   int `json:"max_files"`
	Depth      int `json:"depth"`
	Size       int `json:"size"`
	Path       int `json:"path"`
	Unreadable int `json:"unreadable"`
}

func leftoversOf(outcome core.Outcome) leftovers {
	l := leftovers{Deleted: outcome.Deleted}
	if failed := outcome.Undelivered; failed > 0 {
		delivered := 0
		for _, f := range outcome.Files {
			if !f.Inherited {
				delivered++
			}
		}
		l.Delivery = &delivery{"artifact_delivery_failed", "failed", delivered + failed, delivered, failed}
		if delivered > 0 {
			l.Delivery.Status = "partial"
		}
	}
	if skipped := outcome.Skipped; skipped.Count() > 0 {
		n := skipped.Reasons
		l.Truncation = &truncation{
			"artifact_truncated",
			skipReasons{n["max_files"], n["depth"], n["size"], n["path"], n["unreadable"]},
			skipped.Names, skipped.Count(),
		}
	}
	return l
}
