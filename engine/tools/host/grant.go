package host

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
	"fermata/engine/tools/source"
)

// A Grant is what one execution may use. Its owner must call Release at the end. It is safe for concurrent
// use.
type Grant struct {
	// Tools are the granted tools, in the order in which they were asked for.
	Tools []Tool
	// Sequential means that only one call runs at a time.
	Sequential bool
	// MaxCost is how much the execution may cost. It is nil if there is no limit.
	MaxCost *int64

	host       *Host
	generation *generation
	release    func()
	principal  string
	caller     string
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

// newGrant returns a grant without tools that keeps a generation.
func (h *Host) newGrant(g *generation, release func(), principal, caller string) *Grant {
	return &Grant{host: h, generation: g, release: sync.OnceFunc(release), principal: principal, caller: caller}
}

// Grant decides what a start is granted. It waits for toolsets that are being loaded, for no longer than
// their timeout, and until ctx ends. The error is a *policy.UnknownError, a *policy.Refusal, a
// *policy.TooManyError, an *UnavailableError, or the error of ctx.
func (h *Host) Grant(ctx context.Context, principal string, s policy.Start) (_ *Grant, err error) {
	g, release := h.now()
	grant := h.newGrant(g, release, principal, config.CallerCode)
	defer func() {
		if err != nil {
			grant.Release()
		}
	}()
	rights := g.policy.Rights(principal)
	g.await(ctx, rights, s.Toolsets)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	granted, err := rights.Start(s, g.known(config.CallerCode))
	if err != nil {
		return nil, g.explain(err)
	}
	if len(granted.Waiting) > 0 {
		return nil, unavailable(g.toolset(granted.Waiting[0]))
	}
	grant.Sequential, grant.MaxCost = granted.Sequential, granted.MaxCost
	for _, n := range granted.Tools {
		for _, tool := range g.toolset(n.Toolset).Tools {
			if tool.Name == n.Tool {
				grant.Tools = append(grant.Tools, granting(n, tool))
			}
		}
	}
	return grant, nil
}

// explain replaces the error about an unknown tool by a better one, if the tool exists but programs may not
// call it, or if its toolset is unavailable.
func (g *generation) explain(err error) error {
	unknown, ok := err.(*policy.UnknownError) //nolint:errorlint // it has just been made
	if !ok || unknown.Toolset == "" {
		return err
	}
	t := g.toolset(unknown.Toolset)
	name := strings.TrimPrefix(unknown.Asked, t.Key+".")
	if slices.ContainsFunc(t.Tools, func(tool tools.Tool) bool { return tool.Name == name }) {
		return &policy.Refusal{Toolset: t.Key, Tool: name, Rule: callerRule(config.CallerCode)}
	}
	if unknown.Incomplete && t.State != tools.Ready {
		return unavailable(t)
	}
	return err
}

// callerRule returns the text of the rule by which a caller may not call a tool.
func callerRule(caller string) string {
	if caller == config.CallerCode {
		return "its callers do not include code, which is for calls that programs make"
	}
	return "its callers do not include direct, which is for calls that no program makes"
}

// unavailable returns the error about a toolset whose tools are not known.
func unavailable(t tools.Toolset) error {
	return &UnavailableError{t.Key, cmp.Or(t.Reason, "it has not come up in time")}
}

// granting returns a granted tool with its present rules.
func granting(n policy.Name, t tools.Tool) Tool {
	return Tool{n, t.Rules.Approval, t.Rules.Lane, t.Rules.Cost, t.Idempotent}
}

// Regrant returns the grant of an execution that another server has started, with the present generation.
func (h *Host) Regrant(principal string, granted []Tool, sequential bool, maxCost *int64) *Grant {
	g, release := h.now()
	grant := h.newGrant(g, release, principal, config.CallerCode)
	grant.Tools, grant.Sequential, grant.MaxCost = granted, sequential, maxCost
	return grant
}

// Toolsets returns the granted toolsets as they were at the start. Each has only those granted tools that
// programs may call.
func (g *Grant) Toolsets() []tools.Toolset {
	var list []tools.Toolset
	for _, t := range g.generation.tools.Toolsets() {
		t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(tool tools.Tool) bool {
			return !slices.ContainsFunc(g.Tools, func(n Tool) bool { return n.Toolset == t.Key && n.Tool == tool.Name })
		})
		if len(t.Tools) > 0 {
			list = append(list, t)
		}
	}
	return list
}

// Approval returns who has to approve a call that is made now. It is the stricter one of the rule at the
// start and the present rule. The error tells the program why the call may not be made any more.
func (g *Grant) Approval(t Tool) (approval string, err error) {
	now, release := g.host.now()
	defer release()
	if err := now.policy.Rights(g.principal).Tool(t.Name); err != nil {
		return "", &source.CallError{Message: err.Error()}
	}
	rules, found := now.rules(t.Name)
	if !found {
		return t.Approval, nil
	}
	if g.caller != "" && rules.Callers != nil && !slices.Contains(rules.Callers, g.caller) {
		refusal := &policy.Refusal{Toolset: t.Toolset, Tool: t.Tool, Rule: callerRule(g.caller)}
		return "", &source.CallError{Message: refusal.Error()}
	}
	return stricter(t.Approval, rules.Approval), nil
}

// Timeout returns how long a call of a toolset may take now.
func (g *Grant) Timeout(toolset string) time.Duration {
	now, release := g.host.now()
	defer release()
	for _, g := range []*generation{now, g.generation} {
		if described := g.file.Toolset(toolset); described != nil {
			return described.Timeout
		}
	}
	return config.DefaultTimeout
}

// DayCost returns what the principal may spend on one day according to the present policy, and the rule that
// says so. bounded is false if there is no limit.
func (g *Grant) DayCost() (most int64, rule string, bounded bool) {
	now, release := g.host.now()
	defer release()
	return now.policy.Rights(g.principal).DayCost()
}

// stricter returns the stricter one of two approvals: the one that fewer principals can give.
func stricter(a, b string) string {
	order := []string{"", config.ApprovalNever, config.ApprovalAlways, config.ApprovalOperator}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// Release ends the use of the grant.
func (g *Grant) Release() { g.release() }
