package policy

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"fermata/engine/tools/config"
)

// MaxGranted is how many tools an execution may be granted.
const MaxGranted = config.MaxTools

// A Refusal is the error of a decision: the principal may not use a toolset or a tool.
type Refusal struct { //nolint:errname // it is an answer, and not a fault
	Toolset string
	// Tool is empty if the toolset as a whole is refused.
	Tool string
	// Rule says which rule refuses the toolset or the tool, as a sentence without a full stop.
	Rule string
}

// Error names the toolset or tool, and the rule.
func (r *Refusal) Error() string {
	if r.Tool == "" {
		return fmt.Sprintf("the toolset %s may not be used: %s", config.Printable(r.Toolset), r.Rule)
	}
	return fmt.Sprintf("the tool %s may not be used: %s", config.Printable(r.Toolset+"."+r.Tool), r.Rule)
}

// An UnknownError is the error of a start that asks for a toolset or a tool that does not exist.
type UnknownError struct {
	// Asked is what was asked for.
	Asked string
	// Toolset is the toolset that has no such tool. It is empty if the toolset does not exist.
	Toolset string
	// Incomplete is true if not all tools of the toolset are known yet, so that it may turn out to have the
	// tool.
	Incomplete bool
}

// Error names the toolset or the tool that does not exist.
func (e *UnknownError) Error() string {
	if e.Toolset == "" {
		return fmt.Sprintf("there is no toolset %+q", e.Asked)
	}
	return fmt.Sprintf("the toolset %s has no tool %+q", e.Toolset, strings.TrimPrefix(e.Asked, e.Toolset+"."))
}

// A TooManyError is the error of a start that would be granted more than MaxGranted tools.
type TooManyError struct{ Count int }

// Error names the limit.
func (e *TooManyError) Error() string {
	return fmt.Sprintf("the toolsets have %d tools together, and a program is granted at most %d; ask for single tools", e.Count, MaxGranted)
}

// Rights are what one principal may use. They do not change when the toolsets file is read again.
type Rights struct {
	policy    *Policy
	principal string
	own       *own // nil if the principal has no policy
}

// Rights returns the rights of a principal.
func (p *Policy) Rights(principal string) Rights {
	return Rights{policy: p, principal: principal, own: p.principals[principal]}
}

// Tool returns nil if the principal may use a tool, or a *Refusal. It must be called before each call of the
// tool, and before the principal learns anything about the tool.
func (r Rights) Tool(n Name) error {
	if r.policy.block.has(n) {
		return &Refusal{n.Toolset, n.Tool, "FERMATA_TOOLSETS_BLOCK blocks it"}
	}
	if r.own != nil && r.own.block.has(n) {
		return &Refusal{n.Toolset, n.Tool, r.policyName() + " blocks it"}
	}
	if rule := r.off(); rule != "" {
		return &Refusal{n.Toolset, n.Tool, rule}
	}
	if r.policy.allow != nil && !r.policy.allow.has(n) {
		return &Refusal{n.Toolset, n.Tool, "FERMATA_TOOLSETS_ALLOW does not allow it"}
	}
	if r.own != nil && r.own.allow != nil && !r.own.allow.has(n) {
		return &Refusal{n.Toolset, n.Tool, r.policyName() + " does not allow it"}
	}
	return nil
}

// Toolset returns nil if the principal may use at least one tool of a toolset whose tools are not
// known, or a *Refusal.
func (r Rights) Toolset(key string) error {
	switch {
	case r.policy.block[key]:
		return &Refusal{Toolset: key, Rule: "FERMATA_TOOLSETS_BLOCK blocks it"}
	case r.own != nil && r.own.block[key]:
		return &Refusal{Toolset: key, Rule: r.policyName() + " blocks it"}
	}
	if rule := r.off(); rule != "" {
		return &Refusal{Toolset: key, Rule: rule}
	}
	switch {
	case r.policy.allow != nil && !r.policy.allow.touches(key):
		return &Refusal{Toolset: key, Rule: "FERMATA_TOOLSETS_ALLOW does not allow it"}
	case r.own != nil && r.own.allow != nil && !r.own.allow.touches(key):
		return &Refusal{Toolset: key, Rule: r.policyName() + " does not allow it"}
	}
	return nil
}

// off returns the rule by which the principal may use no toolset at all, or "".
func (r Rights) off() string {
	switch {
	case r.policy.settings.Mode == Off:
		return "FERMATA_TOOLSETS_MODE is off"
	case r.own != nil && r.own.off:
		return r.policyName() + " is off"
	case r.policy.settings.Mode == Partial && !r.policy.users[r.principal]:
		return "FERMATA_TOOLSETS_MODE is partial and FERMATA_TOOLSETS_USERS does not name the principal"
	case r.policy.settings.Rollout != nil && bucket(r.principal, r.policy.settings.Salt) >= *r.policy.settings.Rollout:
		return fmt.Sprintf("FERMATA_TOOLSETS_ROLLOUT is %d, and the principal is not among these percent", *r.policy.settings.Rollout)
	}
	return ""
}

// bucket returns one of 100 buckets for a principal: the SHA-256 of its ID and the salt as a number, modulo 100.
// It stays the same for as long as the salt does.
func bucket(principal, salt string) int {
	sum := sha256.Sum256([]byte(principal + salt))
	return int(new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(100)).Int64())
}

// policyName returns the name of the principal's own policy in refusals.
func (r Rights) policyName() string { return "the policy " + config.Printable(r.own.name) }

// A Start has the members of a start that matter to policies.
type Start struct {
	// Toolsets are names of toolsets and tools.
	Toolsets []string
	// Title is the title of the execution.
	Title      string
	Sequential bool
	// MaxCost is the limit that the client sets, or nil.
	MaxCost *int64
}

// A Grant is what an execution may use.
type Grant struct {
	// Tools are the tools that are granted, each once, in the order in which they were asked for.
	Tools []Name
	// Waiting are the toolsets that may be used, but whose tools are not known yet.
	Waiting []string
	// Sequential means that only one call runs at a time.
	Sequential bool
	// MaxCost is how much the execution may cost. It is nil if there is no limit.
	MaxCost *int64
}

// Start decides which tools an execution is granted. toolsets are the toolsets with the tools that programs
// may call. If the principal may use only some tools of a toolset, only these are granted. The error is an
// *UnknownError, a *Refusal or a *TooManyError.
func (r Rights) Start(s Start, toolsets []Toolset) (Grant, error) {
	g := Grant{Sequential: s.Sequential || r.policy.settings.Sequential, MaxCost: r.maxCost(s.MaxCost)}
	granted := map[Name]bool{}
	for _, asked := range s.Toolsets {
		found, complete, err := r.ask(asked, s.Title, toolsets)
		if err != nil {
			return Grant{}, err
		}
		if len(found) == 0 && !complete && !slices.Contains(g.Waiting, asked) {
			g.Waiting = append(g.Waiting, asked)
		}
		for _, n := range found {
			if !granted[n] {
				granted[n] = true
				g.Tools = append(g.Tools, n)
			}
		}
	}
	if len(g.Tools) > MaxGranted {
		return Grant{}, &TooManyError{Count: len(g.Tools)}
	}
	return g, nil
}

// ask returns the tools that are granted for one name. If complete is false, the toolset may have more tools.
func (r Rights) ask(asked, title string, toolsets []Toolset) (granted []Name, complete bool, err error) {
	key, tool, one := strings.Cut(asked, ".")
	i := slices.IndexFunc(toolsets, func(t Toolset) bool { return t.Key == key })
	if i < 0 {
		return nil, false, &UnknownError{Asked: asked}
	}
	t := toolsets[i]
	if one {
		n := Name{t.Key, tool}
		if err := r.Tool(n); err != nil { // It is checked first, so that the error does not tell whether the tool exists.
			return nil, false, err
		}
		if !slices.Contains(t.Tools, tool) {
			return nil, false, &UnknownError{Asked: asked, Toolset: t.Key, Incomplete: !t.Complete}
		}
		return []Name{n}, true, r.debug(t.Key, title)
	}
	if err := r.Toolset(t.Key); err != nil {
		return nil, false, err
	}
	var refused error
	for _, tool := range t.Tools {
		n := Name{t.Key, tool}
		if err := r.Tool(n); err == nil {
			granted = append(granted, n)
		} else if refused == nil {
			refused = err
		}
	}
	if len(granted) == 0 && t.Complete && refused != nil {
		return nil, false, refused
	}
	return granted, t.Complete, r.debug(t.Key, title)
}

// debug applies Settings.Debug. It is the last check, and made for starts only.
func (r Rights) debug(key, title string) error {
	title = strings.ToLower(title)
	switch {
	case r.policy.settings.Debug == OptIn && !strings.Contains(title, optInWord):
		return &Refusal{Toolset: key, Rule: "FERMATA_TOOLSETS_DEBUG is opt-in and the title does not contain " + optInWord}
	case r.policy.settings.Debug == OptOut && strings.Contains(title, optOutWord):
		return &Refusal{Toolset: key, Rule: "FERMATA_TOOLSETS_DEBUG is opt-out and the title contains " + optOutWord}
	}
	return nil
}

// DayCost returns what the principal may spend on one day, and the rule that says so. It is the smaller one of
// the limit for everyone and the limit of the principal's own policy. bounded is false if there is no limit.
func (r Rights) DayCost() (most int64, rule string, bounded bool) {
	if b := r.policy.settings.MaxDayCost; b != nil {
		most, rule, bounded = *b, "FERMATA_TOOLSETS_MAX_DAY_COST", true
	}
	if r.own != nil && r.own.maxDayCost != nil && (!bounded || *r.own.maxDayCost < most) {
		most, rule, bounded = *r.own.maxDayCost, "max_day_cost of "+r.policyName(), true
	}
	return most, rule, bounded
}

// maxCost returns the smaller one of the client's limit and the limit of the principal's policy.
func (r Rights) maxCost(asked *int64) *int64 {
	if r.own == nil || r.own.maxCost == nil || asked != nil && *asked < *r.own.maxCost {
		return asked
	}
	return r.own.maxCost
}
