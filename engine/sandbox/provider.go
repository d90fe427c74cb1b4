// Package sandbox is what an engine knows of sandboxes: the contract of those who make
// them, the connection to one of them, which speaks verbs and yields events, and the pool
// that keeps some idle ahead of need.
//
// Everything that a sandbox sends is untrusted input.
package sandbox

import (
	"context"
	"errors"
	"io"
	"time"
)

var (
	// ErrGone means that the sandbox does not exist any more.
	ErrGone = errors.New("sandbox: the sandbox is gone")
	// ErrOutOfMemory means that the sandbox as a whole has ended at its memory limit.
	ErrOutOfMemory = errors.New("sandbox: out of memory")
	// ErrNoCapacity means that no sandbox was free in time.
	ErrNoCapacity = errors.New("sandbox: no sandbox is free")
	// ErrClosing means that the server is shutting down.
	ErrClosing = errors.New("sandbox: shutting down")
)

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

// Kinds are all of them.
var Kinds = []Kind{Plain, Scientific}

// A Sandbox is a sandbox that exists.
type Sandbox struct {
	// Ref is its provider's reference to it.
	Ref string
	// Server is the instance of the server that made it.
	Server string
}

// A Stream carries bytes between a server and the supervisor of a sandbox.
type Stream interface {
	io.ReadWriteCloser
	// SetWriteDeadline bounds the writes that follow. A write that has not ended by then
	// fails, and what was written of it is not known.
	SetWriteDeadline(deadline time.Time) error
}

// A Provider makes sandboxes and moves their bytes. It knows nothing of HTTP, tokens,
// rounds or frames. It is safe for concurrent use.
type Provider interface {
	// Create starts a sandbox of a kind and returns the reference that names it, on this
	// server and on a later one. The sandbox may still be starting: it answers on its stream
	// when it is ready. An error leaves nothing behind, unless a reference comes with the
	// error: that sandbox must still be destroyed.
	Create(ctx context.Context, kind Kind) (ref string, err error)

	// Attach opens the stream to the sandbox's supervisor. Closing the stream leaves the
	// sandbox as it is; a later Attach takes it over. Attach returns ErrGone if there is no
	// such sandbox. Where the sandbox as a whole runs out of memory, rather than a process
	// in it, a Read of the stream returns ErrOutOfMemory.
	Attach(ctx context.Context, ref string) (Stream, error)

	// Destroy ends the sandbox and returns when nothing of it is left. Destroying a
	// sandbox that is gone succeeds.
	Destroy(ctx context.Context, ref string) error

	// List returns every sandbox of this installation that can be reached from here, those
	// of other servers included, whether these live or not.
	List(ctx context.Context) ([]Sandbox, error)

	// Close ends the provider. Sandboxes that were not destroyed stay until their own
	// deadline ends them, so that a later server can attach to them.
	Close() error
}
