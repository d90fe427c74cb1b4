// Package host keeps the toolsets of a server: it opens the toolsets file, opens it anew when it
// changes, and decides for each principal which tools there are. Executions get a Grant, which keeps
// the tools with which they have started.
package host

import (
	"context"
	"log/slog"
	"net/netip"
	"os"
	"slices"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
	"fermata/engine/tools/source"
)

// Options say what to open.
type Options struct {
	// Path is the toolsets file, or a directory of them.
	Path string
	// Settings are those of the server about who may use toolsets.
	Settings policy.Settings
	// Log gets what goes wrong.
	Log *slog.Logger
	// Forbidden are addresses that no toolset connects to.
	Forbidden []netip.AddrPort
	// Version is the version of this server.
	Version string
	// MaxResult is how many bytes the result of a call may have; 0 means tools.DefaultMaxResult.
	MaxResult int64
}

// A Host keeps the toolsets of a server. It is safe for concurrent use.
type Host struct {
	tools  *tools.Tools
	policy *policy.Policy
	// sequential is that of the settings.
	sequential bool
}

// Open opens the toolsets. A mistake in the file is an error; a toolset that cannot be reached is none.
func Open(ctx context.Context, o Options) (*Host, error) {
	file, err := config.Read(o.Path, os.LookupEnv)
	if err != nil {
		return nil, err
	}
	h := &Host{sequential: o.Settings.Sequential, tools: tools.Open(ctx, tools.Options{File: file, Log: o.Log, Forbidden: o.Forbidden, Version: o.Version, MaxResult: o.MaxResult})}
	h.policy, _, err = policy.New(o.Settings, file, h.known())
	return h, err
}

// Close ends all connections and processes.
func (h *Host) Close(ctx context.Context) error { return h.tools.Close(ctx) }

// known returns which tools there are, for decisions.
func (h *Host) known() []policy.Toolset {
	var known []policy.Toolset
	for _, t := range h.tools.Toolsets() {
		k := policy.Toolset{Key: t.Key, Complete: t.State == tools.Ready}
		for _, tool := range t.Tools {
			k.Tools = append(k.Tools, tool.Name)
		}
		known = append(known, k)
	}
	return known
}

// A Grant is what one execution may use. Whoever has one calls Release at the end. It is safe for
// concurrent use.
type Grant struct {
	// Tools are the granted tools, in the order in which they were asked for.
	Tools []Tool
	// Sequential tells that there is one call at a time.
	Sequential bool
	// MaxCost bounds the costs of the execution. It is nil if there is no bound.
	MaxCost *int64

	host      *Host
	principal string
}

// A Tool is a granted tool, under the rules with which the execution has started.
type Tool struct {
	policy.Name
	// Approval is one of the constants of config, or empty.
	Approval   string
	Lane       string
	Cost       int64
	Idempotent bool
}

// Grant decides what a start is granted. It waits for toolsets that are coming up, for no longer than
// their timeout and ctx. The error is a *policy.UnknownError, a *policy.Refusal, a
// *policy.TooManyError, an *UnavailableError, or that of ctx.
func (h *Host) Grant(_ context.Context, principal string, s policy.Start) (*Grant, error) {
	granted, err := h.policy.Rights(principal).Start(s, h.known())
	if err != nil {
		return nil, err
	}
	g := &Grant{host: h, principal: principal, Sequential: granted.Sequential, MaxCost: granted.MaxCost}
	all := h.tools.Toolsets()
	for _, n := range granted.Tools {
		i := slices.IndexFunc(all, func(t tools.Toolset) bool { return t.Key == n.Toolset })
		for _, t := range all[i].Tools {
			if t.Name == n.Tool {
				g.Tools = append(g.Tools, Tool{n, t.Rules.Approval, t.Rules.Lane, t.Rules.Cost, t.Idempotent})
			}
		}
	}
	return g, nil
}

// Regrant returns the grant of an execution that another server has started: its tools are those
// that are there now.
func (h *Host) Regrant(principal string, granted []Tool, sequential bool, maxCost *int64) *Grant {
	return &Grant{host: h, principal: principal, Tools: granted, Sequential: sequential, MaxCost: maxCost}
}

// Toolsets returns the granted toolsets as they are, each with the granted tools that programs may
// call.
func (g *Grant) Toolsets() []tools.Toolset {
	var list []tools.Toolset
	for _, t := range g.host.tools.Toolsets() {
		t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(tool tools.Tool) bool {
			return !slices.ContainsFunc(g.Tools, func(n Tool) bool { return n.Toolset == t.Key && n.Tool == tool.Name })
		})
		if len(t.Tools) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// Approval returns who has to approve a call that is made now: the stricter of what was so at the
// start and what is so now. The error tells the program why the call may not be made any more.
func (g *Grant) Approval(t Tool) (approval string, err error) {
	if err := g.host.policy.Rights(g.principal).Tool(t.Name); err != nil {
		return "", &source.CallError{Message: err.Error()}
	}
	return t.Approval, nil
}

// Call makes a call. Its error is a *source.CallError.
func (g *Grant) Call(ctx context.Context, r tools.Request) (tools.Result, error) {
	r.Principal = g.principal
	return g.host.tools.Call(ctx, r)
}

// Release ends the use of the grant.
func (g *Grant) Release() {}

// Keys returns the keys of all toolsets.
func (h *Host) Keys() []string {
	var keys []string
	for _, t := range h.tools.Toolsets() {
		keys = append(keys, t.Key)
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
func (h *Host) Sequential() bool { return h.sequential }
