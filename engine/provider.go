package engine

import (
	"context"
	"errors"
	"io"
)

// Errors of a Provider.
var (
	// ErrGone means that the sandbox is not there any more.
	ErrGone = errors.New("engine: sandbox is gone")
	// ErrOutOfMemory means that the sandbox as a whole has ended at its memory limit.
	ErrOutOfMemory = errors.New("engine: sandbox is out of memory")
	// ErrNoCapacity means that no sandbox could be had in time.
	ErrNoCapacity = errors.New("engine: no sandbox is free")
)

// A Sandbox is a sandbox that exists.
type Sandbox struct {
	// Ref is its provider's reference to it.
	Ref string
	// Server is the instance of the server that made it.
	Server string
}

// A Kind is what a sandbox has imported before its program comes. Programs find the same
// names in both kinds; in a plain sandbox the first use of a library imports it.
type Kind string

// The kinds of sandboxes.
const (
	// Plain sandboxes have imported no library.
	Plain Kind = "plain"
	// Scientific sandboxes have imported numpy, pandas, matplotlib, scipy and scikit-learn.
	Scientific Kind = "scientific"
)

// A Provider makes sandboxes and moves their bytes. It knows nothing of HTTP,
// tokens, rounds or frames. It is safe for concurrent use.
type Provider interface {
	// Create starts a sandbox of a kind and returns the reference that names it, here and
	// on a later server. The sandbox may still be starting: it speaks first on
	// its stream when it is ready. An error leaves nothing behind, unless there is a
	// reference with it: that is still to be destroyed.
	Create(ctx context.Context, kind Kind) (ref string, err error)

	// Attach opens the stream to the sandbox's supervisor. Closing the stream
	// leaves the sandbox as it is; a later Attach takes it over. It returns
	// ErrGone if there is no such sandbox. Where the sandbox as a whole runs out of
	// memory, rather than a process in it, a Read returns ErrOutOfMemory.
	Attach(ctx context.Context, ref string) (io.ReadWriteCloser, error)

	// Destroy ends the sandbox and returns when nothing of it is left. Destroying
	// what is gone is success.
	Destroy(ctx context.Context, ref string) error

	// List returns every sandbox of this installation that can be reached from
	// here, those of other servers too, living or dead.
	List(ctx context.Context) ([]Sandbox, error)

	// Close ends the provider. Sandboxes that were not destroyed stay, for a
	// later server to attach to, until their own deadline ends them.
	Close() error
}
