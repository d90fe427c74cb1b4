package librechat

import (
	"context"
	"io"

	"fermata/api"
	"fermata/api/timelines"
	"fermata/engine"
	"fermata/engine/core"
	"fermata/engine/files"
	"fermata/engine/journal"
)

const (
	execPath         = "/exec"
	programmaticPath = "/exec/programmatic"
	cancelPath       = programmaticPath + "/cancel"
	// versionPrefix stands before a second form of each route.
	versionPrefix = "/v1"
)

// Options are the settings of the contract.
type Options struct {
	// Executions run the programs.
	Executions Executions
	// Files keep the files of sessions. Without them there are no routes for files.
	Files Files
	// Errors is the style of errors.
	Errors api.ErrorStyle
	// Limits bound a request.
	Limits Limits
	// UploadMemory is how many bytes the store of files holds in memory during an upload. They
	// count like the bytes of a body.
	UploadMemory int64
	// History and Readers are what live answers need: events, and the bound on streams. Without a
	// History there are no live answers.
	History *journal.History
	Readers *api.Readers
	// Timelines, if they are set, make the timelines that answers carry.
	Timelines *timelines.Maker
	// Keys, if it is set, returns the keys of the toolsets that the server runs.
	Keys func() []string
	// NoTimelines is true if the journals of executions do not keep everything of which timelines are
	// made.
	NoTimelines bool
}

// Executions run programs; *engine.Engine implements it. Start and Resume may take as long as the
// longest run budget, and end early when ctx is cancelled.
type Executions interface {
	runner
	canceller
}

type runner interface {
	// Start runs a program until it pauses or ends.
	Start(ctx context.Context, s engine.Start) (core.Outcome, error)
	// Resume continues a paused execution until it pauses again or ends.
	Resume(ctx context.Context, r engine.Resume) (core.Outcome, error)
	// ExecutionOf returns the id of the execution that a token continues, or "" if the token is not
	// genuine.
	ExecutionOf(token string) string
}

type canceller interface {
	// Cancel ends an execution, or refuses the request that it names if that comes later.
	Cancel(ctx context.Context, c engine.Cancel) (engine.Cancelling, error)
	// CancelSession ends all executions of a session, and returns how many it has cancelled.
	CancelSession(ctx context.Context, c engine.CancelSession) (cancelled int, state engine.Cancelling, err error)
}

// Files keep the files of sessions; *files.Store implements it.
type Files interface {
	inputs
	fileStore
	uploadStore
}

// inputs find the input files of programs.
type inputs interface {
	// Inputs returns the files that references name.
	Inputs(ctx context.Context, references []files.Reference) ([]core.InputFile, error)
	// SessionInputs returns the files of a session.
	SessionInputs(ctx context.Context, owner files.Owner, session string) ([]core.InputFile, error)
	// Staging returns what stores the contents of a request when its program is about to begin.
	Staging(owner files.Owner, session string, references []files.Reference, contents map[int][]byte) *files.Staging
	// Foreign reports whether a session belongs to another owner.
	Foreign(ctx context.Context, owner files.Owner, session string) (bool, error)
}

// A fileStore lists, sends and deletes files.
type fileStore interface {
	List(ctx context.Context, owner files.Owner, session string) ([]files.File, error)
	Stat(ctx context.Context, owner files.Owner, session, id string) (files.File, error)
	// Content opens a part of the contents of a file that List or Stat has described.
	Content(ctx context.Context, f files.File, from, to int64) (io.ReadCloser, error)
	Delete(ctx context.Context, owner files.Owner, session, id string) error
}

// An uploadStore stores new files.
type uploadStore interface {
	Put(ctx context.Context, n files.New) (files.File, error)
	Foreign(ctx context.Context, owner files.Owner, session string) (bool, error)
	Delete(ctx context.Context, owner files.Owner, session, id string) error
}
