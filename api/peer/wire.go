package peer

import (
	"encoding/json"
	"errors"
	"time"

	"fermata/continuation"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/outputs"
)

// Servers of one group exchange the types in this file, over these paths. Servers of different
// versions run side by side, so nothing here may change or go; members may be added, which an
// older server ignores. The files in testdata have examples.
const (
	resumePath  = "/internal/resume"
	cancelPath  = "/internal/cancel"
	approvePath = "/internal/approve"
)

// A resumeRequest hands a continuation over.
type resumeRequest struct {
	Principal string   `json:"Principal"`
	Token     string   `json:"Token"`
	Results   []result `json:"Results"`
	Request   string   `json:"Request"`
	RequestID string   `json:"RequestID"`
}

// A result is an engine.Result.
type result struct {
	CallID  string          `json:"CallID"`
	Value   json.RawMessage `json:"Value"`
	Failed  bool            `json:"Failed"`
	Message json.RawMessage `json:"Message"`
	Approve *bool           `json:"Approve,omitzero"`
	Reason  string          `json:"Reason,omitempty"`
	Given   bool            `json:"Given,omitzero"`
}

func resumeRequestOf(r engine.Resume) resumeRequest {
	return resumeRequest{r.Principal, r.Token, each(r.Results, func(r core.Result) result { return result(r) }), r.Request, r.RequestID}
}

func (r resumeRequest) resume() engine.Resume {
	return engine.Resume{
		Principal: r.Principal, Token: r.Token, Request: r.Request, RequestID: r.RequestID, HandedOver: true,
		Results: each(r.Results, func(r result) core.Result { return core.Result(r) }),
	}
}

// A cancelRequest passes a request to cancel on. It has one of RequestID, Execution and Session.
type cancelRequest struct {
	Principal string `json:"Principal"`
	RequestID string `json:"RequestID"`
	Execution string `json:"Execution,omitempty"`
	Session   string `json:"Session,omitempty"`
}

// An approveRequest passes an engine.Approval on.
type approveRequest struct {
	Principal string `json:"principal"`
	Operator  bool   `json:"operator,omitzero"`
	Execution string `json:"execution"`
	Call      string `json:"call"`
	Approve   bool   `json:"approve"`
	Reason    string `json:"reason,omitempty"`
}

// An answer is an outcome, the outcome of a request to cancel, or an error.
type answer struct {
	Outcome    *outcome          `json:"outcome,omitzero"`
	Cancelling engine.Cancelling `json:"cancelling,omitempty"`
	// Session tells what became of each execution of a session, by its id.
	Session map[string]engine.Cancelling `json:"session,omitempty"`
	// Error is a name of knownErrors, CallID the id of a ResultError, Size and Limit are
	// those of a ResultsError.
	Error  string `json:"error,omitempty"`
	CallID string `json:"call_id,omitempty"`
	Size   int64  `json:"size,omitzero"`
	Limit  int64  `json:"limit,omitzero"`
	// Reason and Detail are those of an ExpiredError. Beside a CallID, Detail is the problem of an
	// ApprovalError.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// An outcome is an engine.Outcome.
type outcome struct {
	State       core.State      `json:"state"`
	Session     string          `json:"session"`
	Token       string          `json:"token,omitempty"`
	Calls       []call          `json:"calls,omitempty"`
	RoundsLeft  *int            `json:"rounds_left,omitempty"`
	Stdout      string          `json:"stdout,omitempty"`
	Stderr      string          `json:"stderr,omitempty"`
	Reason      core.Reason     `json:"reason,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	Code        int             `json:"code,omitzero"`
	Value       json.RawMessage `json:"value,omitzero"`
	Nanoseconds int64           `json:"ran,omitzero"`
	Files       []outputFile    `json:"files,omitempty"`
	Deleted     []string        `json:"deleted,omitempty"`
	Skipped     *skipped        `json:"skipped,omitzero"`
	Undelivered int             `json:"undelivered,omitzero"`
	Outputs     []judged        `json:"outputs,omitempty"`
	Report      string          `json:"report,omitempty"`
	Include     bool            `json:"include,omitzero"`

	Step *step `json:"step,omitzero"`
}

// A call is an engine.Call.
type call struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`
	Toolset  string          `json:"toolset,omitempty"`
	Approval string          `json:"approval,omitempty"`
}

// An outputFile is an engine.OutputFile.
type outputFile struct {
	Session   string     `json:"session"`
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Size      int64      `json:"size,omitzero"`
	Type      string     `json:"type,omitempty"`
	Input     *inputFile `json:"input,omitzero"`
	Inherited bool       `json:"inherited,omitzero"`
}

// An inputFile is an engine.InputFile.
type inputFile struct {
	Session  string `json:"session"`
	ID       string `json:"id"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	Type     string `json:"type,omitempty"`
	ReadOnly bool   `json:"read_only,omitzero"`
	Kind     string `json:"kind,omitempty"`
	Resource string `json:"resource,omitempty"`
	Version  int    `json:"version,omitzero"`
}

// A judged is an outputs.Judged.
type judged struct {
	Path  string        `json:"path"`
	State outputs.State `json:"state"`
	ID    string        `json:"id,omitempty"`
	Size  int64         `json:"size,omitzero"`
	Type  string        `json:"mime,omitempty"`
	Error string        `json:"error,omitempty"`
}

// A skipped is an engine.Skipped.
type skipped struct {
	Reasons map[string]int `json:"reasons"`
	Names   []string       `json:"names"`
}

func outcomeOf(o core.Outcome) *outcome {
	w := &outcome{
		State: o.State, Session: o.Session, Token: o.Token, RoundsLeft: o.RoundsLeft, Stdout: o.Stdout, Stderr: o.Stderr,
		Reason: o.Reason, Detail: o.Detail, Code: o.Code, Value: o.Value, Nanoseconds: o.Ran.Nanoseconds(), Deleted: o.Deleted, Undelivered: o.Undelivered,
		Calls: each(o.Calls, func(c core.Call) call { return call(c) }),
		Files: each(o.Files, func(f core.OutputFile) outputFile {
			return outputFile{f.Session, f.ID, f.Name, f.Size, f.Type, (*inputFile)(f.Input), f.Inherited}
		}),
		Outputs: each(o.Outputs, func(j outputs.Judged) judged { return judged(j) }),
		Report:  o.Report, Include: o.Include,
	}
	w.Step = stepOf(o.Step)
	if o.Skipped.Reasons != nil || o.Skipped.Names != nil {
		w.Skipped = (*skipped)(&o.Skipped)
	}
	return w
}

func (w *outcome) outcome() core.Outcome {
	o := core.Outcome{
		State: w.State, Session: w.Session, Token: w.Token, RoundsLeft: w.RoundsLeft, Stdout: w.Stdout, Stderr: w.Stderr,
		Reason: w.Reason, Detail: w.Detail, Code: w.Code, Value: w.Value, Ran: time.Duration(w.Nanoseconds), Deleted: w.Deleted, Undelivered: w.Undelivered,
		Calls: each(w.Calls, func(c call) core.Call { return core.Call(c) }),
		Files: each(w.Files, func(f outputFile) core.OutputFile {
			return core.OutputFile{
				Session: f.Session, ID: f.ID, Name: f.Name, Size: f.Size, Type: f.Type, Input: (*core.InputFile)(f.Input), Inherited: f.Inherited,
			}
		}),
		Outputs: each(w.Outputs, func(j judged) outputs.Judged { return outputs.Judged(j) }),
		Report:  w.Report, Include: w.Include,
	}
	o.Step = w.Step.step()
	if w.Skipped != nil {
		o.Skipped = core.Skipped(*w.Skipped)
	}
	return o
}

// each converts the entries of a list. A nil list stays nil.
func each[A, B any](list []A, convert func(A) B) []B {
	if list == nil {
		return nil
	}
	converted := make([]B, len(list))
	for i, item := range list {
		converted[i] = convert(item)
	}
	return converted
}

// knownErrors are the errors that mean the same to both servers. An error has the name of the first
// entry that it wraps.
var knownErrors = []struct {
	name string
	err  error
}{
	{"token_expired", continuation.ErrTokenExpired},
	{"token", continuation.ErrToken},
	{"expired", core.ErrExpired},
	{"forbidden", engine.ErrForbidden},
	{"in_flight", engine.ErrInFlight},
	{"no_results", engine.ErrNoResults},
	{"no_approval", engine.ErrNoApproval},
	{"decided", engine.ErrDecided},
	{"request_in_use", engine.ErrRequestInUse},
	{"closing", engine.ErrClosing},
	{"unavailable", continuation.ErrUnavailable},
	{"owner_away", engine.ErrOwnerAway},
}

// refusal returns the answer for err, if the other server knows that error.
func refusal(err error) (answer, bool) {
	if wrong, ok := errors.AsType[*core.ResultError](err); ok {
		return answer{CallID: wrong.CallID}, true
	}
	if wrong, ok := errors.AsType[*core.ApprovalError](err); ok {
		return answer{CallID: wrong.CallID, Detail: wrong.Problem}, true
	}
	if large, ok := errors.AsType[*core.ResultsError](err); ok {
		return answer{Size: large.Size, Limit: large.Limit}, true
	}
	if over, ok := errors.AsType[*core.ExpiredError](err); ok {
		return answer{Error: "expired", Reason: over.Reason, Detail: over.Detail}, true
	}
	for _, known := range knownErrors {
		if errors.Is(err, known.err) {
			return answer{Error: known.name}, true
		}
	}
	return answer{}, false
}

// err returns the error in the answer, or nil if the answer has none that is known.
func (a answer) err() error {
	switch {
	case a.CallID != "" && a.Detail != "":
		return &core.ApprovalError{CallID: a.CallID, Problem: a.Detail}
	case a.CallID != "":
		return &core.ResultError{CallID: a.CallID}
	case a.Limit != 0:
		return &core.ResultsError{Size: a.Size, Limit: a.Limit}
	case a.Reason != "":
		return &core.ExpiredError{Reason: a.Reason, Detail: a.Detail}
	}
	for _, known := range knownErrors {
		if a.Error == known.name {
			return known.err
		}
	}
	return nil
}
