package engine

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/journal"
	"fermata/engine/sandbox"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
)

// Options are what an Engine needs to know.
type Options struct {
	// Provider makes the sandboxes.
	Provider sandbox.Provider
	// Store keeps the records.
	Store continuation.Store
	// Signer makes the tokens.
	Signer *continuation.Signer
	// Log gets what goes wrong on the server's side.
	Log *slog.Logger
	// PauseTTL is how long a pause may last.
	PauseTTL time.Duration
	// ApprovalTTL, if it is set, is that of a pause in which a call waits for approval.
	ApprovalTTL time.Duration
	// KeepAnswers is how long the last answer of an ended execution is kept.
	KeepAnswers time.Duration
	// WallClock makes the run budget count the time of pauses, too.
	WallClock bool
	// MaxRounds and MaxCalls bound the pauses and the tool calls of an execution.
	MaxRounds, MaxCalls int
	// MaxResults bounds the size of all results of an execution, in bytes; 0 is no bound.
	MaxResults int64
	// Files keeps the files of executions; it is nil if executions have no files.
	// MaxInputSize bounds the room that the input files of one execution take in its
	// workspace, in bytes. Limits bound the files that a program leaves.
	Files        Files
	MaxInputSize int64
	// A principal that has MaxRunning executions on this server, running or waiting for a
	// sandbox, or MaxPaused paused ones, cannot start another one; 0 is no bound. An
	// execution that has started may always pause and go on, so a principal can come to have
	// more paused executions than MaxPaused.
	MaxRunning, MaxPaused int
	// MaxExecutions bounds the sum of running and paused executions in the same way.
	MaxExecutions int
	// MaxStored bounds the bytes that this server stores for one principal: the calls of
	// pauses, and answers; 0 is no bound. A pause that would exceed it ends the execution. An
	// answer that would exceed it is sent but not stored, so a retry does not get it.
	MaxStored int64
	// Limits are the limits of each sandbox, which the provider applies. They also bound what
	// the server reads from one.
	Limits sandbox.Limits
	// PoolSizes is how many idle sandboxes of each kind to keep ready. MaxSandboxes bounds all
	// sandboxes, idle and in use.
	PoolSizes    map[sandbox.Kind]int
	MaxSandboxes int
	// MaxIdle is how long a sandbox may be idle before a new one replaces it; 0 is for ever.
	// A Docker sandbox ends by itself if no server speaks to it for some time.
	MaxIdle time.Duration
	// QueueTimeout is how long a start waits for a sandbox.
	QueueTimeout time.Duration
	// KeepPaused makes Close leave paused executions to a later server instead of
	// ending them.
	KeepPaused bool
	// Instance names this server process; the provider marks sandboxes with it. The part
	// before the first dot names the server: it stays the same when the server is started
	// again, and only one process at a time has it.
	Instance string
	// Exclusive is true if no other server can reach this server's sandboxes.
	Exclusive bool
	// Registry, Address and Peers let servers that share the store find each other. Address
	// is where the others reach this server. Without a Registry there are no others.
	Registry continuation.Registry
	Address  string
	Peers    Peers
	// Journal says how journals are kept, and Words, if it is set, has the words for them.
	Journal journal.Options
	Words   Words
	// Toolsets are the tools that the server itself runs; nil if there are none. Package is the name
	// of the package from which programs import them.
	Toolsets Toolsets
	Package  string
	// ToolConcurrency bounds the calls that the server runs at the same time for one execution.
	ToolConcurrency int
	// Used, if set, is called after each successful call of a tool that the server has run.
	Used func(principal, toolset string, cost int64)
	// Waited, if set, is called with the time that each start waited for a sandbox, whether
	// it got one or not; Made, if set, with the time that it took to make each sandbox.
	Waited, Made func(time.Duration)
}

// Peers are the other servers that share a store with this one. A server does not hand over
// a request that was handed over to it.
type Peers interface {
	// Resume hands r over to the server at address.
	Resume(ctx context.Context, address string, r Resume) (core.Outcome, error)
	// Cancel hands c over to the server at address.
	Cancel(ctx context.Context, address string, c Cancel) (Cancelling, error)
	// CancelSession asks the server at address to cancel the executions that it has of a session, and
	// returns what became of each, by its id.
	CancelSession(ctx context.Context, address string, c CancelSession) (map[string]Cancelling, error)
	// Approve asks the server at address to decide on a call.
	Approve(ctx context.Context, address string, a Approval) error
}

// Words put into words for journals what answers tell.
type Words interface {
	// End returns the text that tells why an execution has not completed, and what answers add to
	// the program's stderr. contract is that of the start.
	End(contract string, o core.Outcome) (text, added string)
	// File returns the entry of a file in answers, as JSON.
	File(f core.OutputFile) json.RawMessage
}

// Toolsets are the tools that the server itself runs.
type Toolsets interface {
	// Grant decides what a start of a principal may use.
	Grant(ctx context.Context, principal string, s policy.Start) (*host.Grant, error)
	// Sequential reports whether every execution is sequential.
	Sequential() bool
	// Single decides whether a principal may make one call of a tool without a program. The grant has
	// this tool alone.
	Single(ctx context.Context, principal string, n policy.Name, caller string) (*host.Grant, error)
	// Regrant returns the grant of an execution that another server has started.
	Regrant(principal string, granted []host.Tool, sequential bool, maxCost *int64) *host.Grant
}
