package host

import (
	"context"
	"slices"
	"strings"

	"fermata/engine/tools"
	"fermata/engine/tools/config"
	"fermata/engine/tools/policy"
)

// List returns the toolsets of which a principal may use something, as they are known now, in the order of
// the file. Each has the tools that the principal may use, for all callers.
func (h *Host) List(principal string) []tools.Toolset {
	g, release := h.now()
	defer release()
	rights := g.policy.Rights(principal)
	var list []tools.Toolset
	for _, t := range g.tools.Toolsets() {
		if rights.Toolset(t.Key) != nil {
			continue
		}
		known := len(t.Tools) > 0
		if t = permitted(rights, t); len(t.Tools) > 0 || !known {
			list = append(list, t)
		}
	}
	return list
}

// Find returns toolsets by name: the key of a toolset, or the key, a dot and the name of a tool. Without
// names it returns the same as List. It waits for toolsets that are being loaded, for no longer than the
// timeout of each, and until ctx ends. A toolset whose tools are not known because it is unavailable has no
// tools. The error is a *policy.UnknownError, a *policy.Refusal, or the error of ctx.
func (h *Host) Find(ctx context.Context, principal string, names []string) ([]tools.Toolset, error) {
	g, release := h.now()
	defer release()
	rights := g.policy.Rights(principal)
	if len(names) == 0 {
		for _, t := range h.List(principal) {
			names = append(names, t.Key)
		}
	}
	g.await(ctx, rights, names)
	all := g.tools.Toolsets()
	var found []tools.Toolset
	for _, name := range names {
		t, err := find(rights, all, name)
		if err != nil {
			return nil, err
		}
		if i := slices.IndexFunc(found, func(f tools.Toolset) bool { return f.Key == t.Key }); i >= 0 {
			found[i].Tools = united(found[i].Tools, t.Tools)
		} else {
			found = append(found, t)
		}
	}
	return found, ctx.Err()
}

// find returns the toolset that a name names, with the tools that may be used.
func find(rights policy.Rights, all []tools.Toolset, name string) (tools.Toolset, error) {
	key, tool, one := strings.Cut(name, ".")
	i := slices.IndexFunc(all, func(t tools.Toolset) bool { return t.Key == key })
	if i < 0 {
		return tools.Toolset{}, &policy.UnknownError{Asked: name}
	}
	t := all[i]
	if !one {
		if err := rights.Toolset(key); err != nil {
			return tools.Toolset{}, err
		}
		return permitted(rights, t), nil
	}
	if err := rights.Tool(policy.Name{Toolset: key, Tool: tool}); err != nil { // It is checked first, so that the error does not tell whether the tool exists.
		return tools.Toolset{}, err
	}
	t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(known tools.Tool) bool { return known.Name != tool })
	if len(t.Tools) == 0 {
		return tools.Toolset{}, &policy.UnknownError{Asked: name, Toolset: key, Incomplete: t.State != tools.Ready}
	}
	return t, nil
}

// permitted returns a toolset with those of its tools that may be used.
func permitted(rights policy.Rights, t tools.Toolset) tools.Toolset {
	t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(tool tools.Tool) bool {
		return rights.Tool(policy.Name{Toolset: t.Key, Tool: tool.Name}) != nil
	})
	return t
}

// united returns the tools of both lists, each once.
func united(a, b []tools.Tool) []tools.Tool {
	for _, t := range b {
		if !slices.ContainsFunc(a, func(other tools.Tool) bool { return other.Name == t.Name }) {
			a = append(a, t)
		}
	}
	return a
}

// calls reports whether a caller, which is one of the constants of config, may call a tool.
func calls(caller string, t tools.Tool) bool {
	return t.Rules.Callers == nil || slices.Contains(t.Rules.Callers, caller)
}

// forPrograms returns a toolset with those of its tools that programs may call.
func forPrograms(t tools.Toolset) tools.Toolset {
	t.Tools = slices.DeleteFunc(slices.Clone(t.Tools), func(tool tools.Tool) bool { return !calls(config.CallerCode, tool) })
	return t
}
