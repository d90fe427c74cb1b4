package host

import (
	"context"
	"slices"

	"fermata/engine/tools"
	"fermata/engine/tools/policy"
)

// Single decides whether a principal may make one call of a tool without a start. caller is one of the
// constants of config. It waits for a toolset that is being loaded, for no longer than its timeout, and until
// ctx ends. The error is a *policy.UnknownError, a *policy.Refusal, an *UnavailableError, or the error of ctx.
func (h *Host) Single(ctx context.Context, principal string, n policy.Name, caller string) (_ *Grant, err error) {
	g, release := h.now()
	grant := h.newGrant(g, release, principal, caller)
	defer func() {
		if err != nil {
			grant.Release()
		}
	}()
	if g.file.Toolset(n.Toolset) == nil {
		return nil, &policy.UnknownError{Asked: n.Toolset}
	}
	rights := g.policy.Rights(principal)
	if err := rights.Tool(n); err != nil { // It is checked first, so that the error does not tell whether the tool exists.
		return nil, err
	}
	g.await(ctx, rights, []string{n.String()})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t := g.toolset(n.Toolset)
	i := slices.IndexFunc(t.Tools, func(tool tools.Tool) bool { return tool.Name == n.Tool })
	switch {
	case i < 0 && t.State == tools.Ready:
		return nil, &policy.UnknownError{Asked: n.String(), Toolset: n.Toolset}
	case i < 0:
		return nil, unavailable(t)
	case !calls(caller, t.Tools[i]):
		return nil, &policy.Refusal{Toolset: n.Toolset, Tool: n.Tool, Rule: callerRule(caller)}
	}
	own, err := rights.Start(policy.Start{}, nil) // A start without toolsets, to get the limit on costs.
	if err != nil {
		return nil, err
	}
	grant.Tools, grant.MaxCost = []Tool{granting(n, t.Tools[i])}, own.MaxCost
	return grant, nil
}
