package host

import (
	"context"
	"errors"
	"slices"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// Single decides whether a principal may make one call of a tool without a start. caller is one of the
// constants of config. It waits for a toolset that is coming up, for no longer than its timeout and
// ctx. The error is a *policy.UnknownError, a *policy.Refusal, an *UnavailableError, or that of ctx.
func (h *Host) Single(ctx context.Context, principal string, n policy.Name, caller string) (*Grant, error) {
	if !slices.Contains(h.Keys(), n.Toolset) {
		return nil, &policy.UnknownError{Asked: n.Toolset}
	}
	rights := h.policy.Rights(principal)
	if err := rights.Tool(n); err != nil { // Who may not use it does not learn whether it is there.
		return nil, err
	}
	t, err := h.tools.Toolset(ctx, n.Toolset)
	if err != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	i := slices.IndexFunc(t.Tools, func(tool tools.Tool) bool { return tool.Name == n.Tool })
	switch {
	case i < 0 && t.State == tools.Ready:
		return nil, &policy.UnknownError{Asked: n.String(), Toolset: n.Toolset}
	case i < 0:
		return nil, &UnavailableError{n.Toolset, t.Reason}
	}
	tool := t.Tools[i]
	if callers := tool.Rules.Callers; callers != nil && !slices.Contains(callers, caller) {
		return nil, &policy.Refusal{Toolset: n.Toolset, Tool: n.Tool, Rule: callerRule(caller)}
	}
	own, err := rights.Start(policy.Start{}, nil) // It asks for nothing, and tells the bound on costs.
	if err != nil {
		return nil, err
	}
	return &Grant{
		Tools:   []Tool{{n, tool.Rules.Approval, tool.Rules.Lane, tool.Rules.Cost, tool.Idempotent}},
		MaxCost: own.MaxCost, host: h, principal: principal,
	}, nil
}

// callerRule says by which rule a caller may not call a tool.
func callerRule(caller string) string {
	if caller == config.CallerCode {
		return "its callers do not include code, which is for calls that programs make"
	}
	return "its callers do not include direct, which is for calls that no program makes"
}
