// Package host keeps the toolsets of a server: it opens the toolsets file, opens it again when it changes,
// and decides which tools each principal may use. Executions get a Grant, which keeps the tools with which
// they have started.
package host

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// Options say what to open.
type Options struct {
	// Path is the toolsets file, or a directory of them.
	Path string
	// Package is the name of the package from which programs import toolsets.
	Package string
	// Settings are the settings of the server that say who may use toolsets.
	Settings policy.Settings
	// Log gets the failures.
	Log *slog.Logger
	// Forbidden are addresses to which no toolset may connect.
	Forbidden []netip.AddrPort
	// Version is the version of this server.
	Version string
	// Commands is mcptool.Options.Dir.
	Commands string
	// MaxResult is how many bytes the result of a call may have; 0 means tools.DefaultMaxResult.
	MaxResult int64
	// Known reports whether a client can be the principal with a name. If it is nil, all names are known.
	Known func(principal string) bool
	// Processes is how many processes of MCP servers may run; 0 means as many as usual.
	Processes int
	// Each value that Reread receives makes the host read the file again. It may be nil.
	Reread <-chan os.Signal
}

// A Host keeps the toolsets of a server. It is safe for concurrent use.
type Host struct {
	*generations
	stop     context.CancelFunc
	watching sync.WaitGroup
}

// generations are the toolsets as the file says them now, and as it said them before while somebody still uses those.
type generations struct {
	o     Options
	gates *tools.Gates

	mu      sync.Mutex
	current *generation
	open    map[*generation]bool // generations that are not closed
	closing sync.WaitGroup       // goroutines that close generations
}

// Open opens the toolsets. A mistake in the file is an error, but an unreachable toolset is not. Until Close,
// the host reads the file again when it changes.
func Open(ctx context.Context, o Options) (*Host, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Package = cmp.Or(o.Package, DefaultPackage)
	h := &Host{generations: &generations{o: o, gates: tools.NewGates(o.Processes), open: map[*generation]bool{}}}
	file, stamp, err := config.ReadStamped(o.Path, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	first, err := h.make(ctx, file)
	if err != nil {
		return nil, err
	}
	h.change(first)
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	h.stop = stop
	h.watching.Go(func() { h.watch(watching, stamp) })
	return h, nil
}

// DefaultPackage is the package from which programs import toolsets, unless a setting names another.
const DefaultPackage = "fermata_tools"

// Close ends all connections and processes.
func (h *Host) Close(ctx context.Context) error {
	h.stop()
	h.watching.Wait()
	return h.close(ctx)
}

// close closes all generations.
func (h *generations) close(ctx context.Context) error {
	h.mu.Lock()
	rest := slices.Collect(maps.Keys(h.open))
	clear(h.open)
	h.mu.Unlock()
	var problems []error
	for _, g := range rest {
		problems = append(problems, g.close(ctx))
	}
	h.closing.Wait() // Former generations may still be closing.
	return errors.Join(problems...)
}

// change makes a generation the present one.
func (h *generations) change(next *generation) {
	next.start()
	h.mu.Lock()
	former := h.current
	h.current, h.open[next] = next, true
	h.mu.Unlock()
	if former != nil {
		h.release(former)
	}
}

// now returns the present generation. The caller must call release when it does not need the generation any
// more.
func (h *generations) now() (g *generation, release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	g = h.current
	g.uses++
	return g, func() { h.release(g) }
}

// release ends one use of a generation, and closes the generation if this was the last use. The host itself
// uses the present generation.
func (h *generations) release(g *generation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if g.uses--; g.uses > 0 || !h.open[g] {
		return
	}
	delete(h.open, g)
	h.closing.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		defer cancel()
		if err := g.close(ctx); err != nil {
			h.o.Log.Warn("former toolsets do not close", "err", err)
		}
	})
}

// Keys returns the keys of all toolsets.
func (h *Host) Keys() []string {
	g, release := h.now()
	defer release()
	keys := make([]string, len(g.file.Toolsets))
	for i, t := range g.file.Toolsets {
		keys[i] = t.Key
	}
	return keys
}

// An UnavailableError is the error of a start that asks for a toolset whose tools are not known.
type UnavailableError struct {
	// Toolset is its key, and Reason why it is unavailable.
	Toolset, Reason string
}

// Error names the toolset and the reason.
func (e *UnavailableError) Error() string {
	return "the toolset " + e.Toolset + " is unavailable: " + e.Reason
}

// Sequential reports whether the server's settings make every execution sequential.
func (h *Host) Sequential() bool { return h.o.Settings.Sequential }
