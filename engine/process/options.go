// Package process makes sandboxes out of nothing but Linux namespaces. It is the
// embedded default, for machines without Docker.
//
// A zygote, a small Python process, forks the first process of each sandbox into fresh
// namespaces. The zygote has a nursery for each kind of sandboxes: a child process that has
// imported what programs of that kind have ready, and forks the process that runs the
// program. The package starts the zygote, tells it the limits, and carries bytes; what is
// said on the streams is the engine's.
package process

import (
	"log/slog"
	"time"

	"fermata/engine/sandbox"
)

// Options are what a Provider needs to know. All sizes are in bytes.
type Options struct {
	// Dir is a directory of the provider's own. Two servers must not share it.
	Dir string
	// Server is this server's instance, which its sandboxes are marked with.
	Server string
	// Hide are directories that no sandbox may see, should they lie where it looks.
	Hide []string
	// Python is the interpreter, 3.11 or later, a path or a name to look up.
	Python string
	// Limits bound each sandbox.
	sandbox.Limits
	// Sandboxes is how many there may be at once, for each of which the server wants a
	// user of its own.
	Sandboxes int
	// CgroupsOptional has programs run where no cgroups limit what they use together.
	CgroupsOptional bool
	// Orphan is how long a sandbox outlives its server.
	Orphan time.Duration
	// Log gets what the zygote writes to its stderr.
	Log *slog.Logger
}
