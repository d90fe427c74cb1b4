// Package journal records what happens in an execution: an append-only, numbered list of events, from which
// every view is derived. A Writer makes the events of an execution that runs on this server. A History reads
// the events in a store. The package depends on neither sandboxes nor HTTP.
package journal

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// The types of events. Their texts are stored and on the wire, and must not change.
const (
	TypeStarted       = "execution.started"
	TypeOutput        = "output"
	TypeCallStarted   = "call.started"
	TypeCallCompleted = "call.completed"
	TypeCallFailed    = "call.failed"
	TypePaused        = "execution.paused"
	TypeResumed       = "execution.resumed"
	TypeFileStored    = "file.stored"
	TypeEnded         = "execution.ended"
	// The types of events about calls that need approval.
	TypeApprovalRequested = "approval.requested"
	TypeApprovalGiven     = "approval.given"
	TypeApprovalRefused   = "approval.refused"
	// TypeOutputJudged is about an output of a contract, and TypeArtifactStored about a file that a tool
	// has handed over.
	TypeOutputJudged   = "output.judged"
	TypeArtifactStored = "artifact.stored"
)

// A Head has the members of all events. The Writer sets it.
type Head struct {
	Seq  int64  `json:"seq"`
	Time Moment `json:"time"`
	Type string `json:"type"`
}

// A Moment is a time in the form that all answers have: RFC 3339 in UTC, with milliseconds.
type Moment time.Time

// momentForm is the form of a Moment.
const momentForm = "2006-01-02T15:04:05.000Z"

// MarshalText implements encoding.TextMarshaler.
func (m Moment) MarshalText() ([]byte, error) {
	return time.Time(m).UTC().AppendFormat(nil, momentForm), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (m *Moment) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	*m = Moment(t)
	return err
}

// Started is the first event. A call without a program has neither session nor language.
type Started struct {
	Head
	Execution string            `json:"execution"`
	Session   string            `json:"session,omitempty"`
	Language  string            `json:"language,omitempty"`
	Contract  string            `json:"contract"`
	Code      json.RawMessage   `json:"code,omitempty"`
	Tools     []string          `json:"tools,omitempty"`
	Toolsets  []string          `json:"toolsets,omitempty"`
	Timeout   int64             `json:"timeout_ms"`
	Title     string            `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Parent    string            `json:"parent_call_id,omitempty"`
	// Outputs and Timeline are the members of the request with these names, unchanged.
	Outputs  json.RawMessage `json:"outputs,omitempty"`
	Timeline json.RawMessage `json:"timeline,omitempty"`
}

// Output is text that the program has printed.
type Output struct {
	Head
	Stream string `json:"stream"`
	// Offset is the number of bytes of text before it in its stream.
	Offset int64  `json:"offset"`
	Text   string `json:"text"`
}

// callSpace is the UUID namespace of the records of calls. It must not change.
const callSpace = "9a0c6f0e-7f5e-4c37-8f2b-0b9d6b9f4a11"

// CallKey returns what tells a call of an execution from all other calls, for servers that take such keys.
func CallKey(execution, call string) string { return CallOfProgram + ":" + recordID(execution, call) }

func recordID(execution, call string) string {
	return uuid.NewSHA1(uuid.MustParse(callSpace), []byte(execution+"\x00"+call)).String()
}

// The types of records of calls. The name of a record begins with its type.
const (
	// CallOfProgram is a call that a program has made, here or elsewhere.
	CallOfProgram = "ptc"
	// CallAlone is a call that was made without a program, as far as this server knows.
	CallAlone = "standalone"
)

// RecordNameOf returns the name of the record of a call of the execution with this summary.
func (s Summary) RecordNameOf(call string) string {
	kind := CallOfProgram
	if s.Contract == ContractTool && s.Parent == "" {
		kind = CallAlone
	}
	return kind + cmp.Or(s.Mark, ":") + recordID(s.ID, call)
}

// ContractTool is the contract of a call that was made without a program. Lists of executions have such
// calls only if they are filtered by this contract.
const ContractTool = "tool"

// CallStarted tells of a tool call that the program has made.
type CallStarted struct {
	Head
	Call   string `json:"call"`
	Record string `json:"record"`
	Tool   string `json:"tool"`
	// Toolset is the key of the tool's toolset, or empty if it has none.
	Toolset string          `json:"toolset,omitempty"`
	Runner  string          `json:"runner"`
	Input   json.RawMessage `json:"input,omitempty"`
	// Line is the line of the program that made the call, according to the program, or 0 if it is unknown.
	Line int `json:"line,omitempty"`
}

// The runners of tools.
const (
	RunnerClient = "client"
	RunnerServer = "server"
)

// CallCompleted tells that a call has its result.
type CallCompleted struct {
	Head
	Call   string          `json:"call"`
	Record string          `json:"record"`
	Output json.RawMessage `json:"output,omitempty"`
	Took   int64           `json:"took_ms"`
	// Cost is what the call costs, in credits.
	Cost int64 `json:"cost,omitempty"`
}

// ApprovalRequested tells that a call waits for approval. It has the members of CallStarted. When the call
// begins, a CallStarted follows.
type ApprovalRequested struct{ CallStarted }

// ApprovalDecided tells who has approved or refused a call that needs approval. If the call was approved,
// Given is true and the type of the event is TypeApprovalGiven. Otherwise the type is TypeApprovalRefused.
type ApprovalDecided struct {
	Head
	Call   string `json:"call"`
	By     string `json:"by"`
	Reason string `json:"reason,omitempty"`
	Given  bool   `json:"-"`
}

// CallFailed tells that a call has failed.
type CallFailed struct {
	Head
	Call   string `json:"call"`
	Record string `json:"record"`
	Error  string `json:"error"`
	// Envelope is true if the tool has reported the failure in an envelope. Code and Where are the members
	// of the error in the envelope.
	Envelope bool   `json:"envelope,omitempty"`
	Code     string `json:"code,omitempty"`
	Where    string `json:"where,omitempty"`
	Took     int64  `json:"took_ms"`
}

// Paused tells that the execution waits for results.
type Paused struct {
	Head
	Round   int      `json:"round"`
	Waiting []string `json:"waiting"`
	Expires Moment   `json:"expires_at"`
}

// Resumed tells that a continuation has ended a pause.
type Resumed struct {
	Head
	Round  int   `json:"round"`
	Waited int64 `json:"waited_ms"`
}

// FileStored tells that a file that the program has left was stored. File is its entry in the answer.
type FileStored struct {
	Head
	File json.RawMessage `json:"file"`
}

// OutputJudged tells what has become of an output of the contract. Output is its entry in the answer.
type OutputJudged struct {
	Head
	Output json.RawMessage `json:"output"`
}

// ArtifactStored tells that a file that the result of a tool has handed over was stored. If it could not be
// stored, Error says why, and ID and Size are empty.
type ArtifactStored struct {
	Head
	Call string `json:"call"`
	// Path is the path of the file in the workspace. If the tool has named another path, Asked is that path.
	Path  string `json:"path"`
	Asked string `json:"asked,omitempty"`
	ID    string `json:"id,omitempty"`
	Size  int64  `json:"size,omitzero"`
	MIME  string `json:"mime,omitempty"`
	Error string `json:"error,omitempty"`
}

// The statuses of an execution in all views.
const (
	StatusRunning   = "running"
	StatusPaused    = "paused"
	StatusCompleted = "completed"
	StatusError     = "error"
	StatusTimedOut  = "timed_out"
	StatusCancelled = "cancelled"
	StatusExpired   = "expired"
)

// Ended is the last event.
type Ended struct {
	Head
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Detail says more about the reason. Only the summary keeps it.
	Detail string `json:"-"`
	Error  string `json:"error,omitempty"`
	// Raised is what the program has raised, if Error does not say it.
	Raised      string `json:"raised,omitempty"`
	ExitCode    *int   `json:"exit_code,omitempty"`
	Ran         int64  `json:"ran_ms"`
	Rounds      int    `json:"rounds"`
	Calls       int    `json:"calls"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	Truncated   bool   `json:"truncated,omitempty"`
}

// A Summary is what lists show of an execution, and the Content of a continuation.Summary. While the
// execution has not ended, what changes in it comes from its record.
type Summary struct {
	ID           string            `json:"id"`
	Session      string            `json:"session,omitempty"`
	Status       string            `json:"status"`
	Contract     string            `json:"contract"`
	Language     string            `json:"language,omitempty"`
	Title        string            `json:"title,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	Parent       string            `json:"parent_call_id,omitempty"`
	Created      Moment            `json:"created_at"`
	Ended        *Moment           `json:"ended_at,omitempty"`
	Rounds       int               `json:"rounds"`
	RoundLimit   int               `json:"round_limit"`
	Calls        int               `json:"calls"`
	Ran          int64             `json:"ran_ms"`
	Budget       int64             `json:"budget_ms"`
	PauseExpires *Moment           `json:"pause_expires_at,omitempty"`
	Error        string            `json:"error,omitempty"`
	Server       string            `json:"server,omitempty"`
	Principal    string            `json:"principal,omitempty"`
	// Tools are the names of the granted tools. Lists filter by them and do not show them.
	Tools []string `json:"tools,omitempty"`
	// Reason and Detail say why the execution has ended. Lists do not show them.
	Reason string `json:"reason,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Mode is the Mode of the journal. Lists do not show it.
	Mode Mode `json:"mode,omitempty"`
	// Mark stands in the names of records of calls between the type and the UUID. If it is empty, it is a colon.
	// Lists do not show it.
	Mark string `json:"mark,omitempty"`
}

// A Mode is how much a journal keeps. Its texts are stored and must not change.
type Mode string

// The modes.
const (
	// Full keeps everything.
	Full Mode = "full"
	// Calls keeps no values, no output and no code.
	Calls Mode = "calls"
	// Off keeps only the summary and no events.
	Off Mode = "off"
)
