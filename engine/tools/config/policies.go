package config

import (
	"slices"
	"strings"
)

// readPolicies reads the policies of one file.
func (r *reader) readPolicies(v value) {
	for _, e := range v.entries(maxNames) {
		if _, ok := e.place.nameOf(e.name, "a policy"); !ok {
			continue
		}
		if first, twice := r.policies[e.name]; twice {
			e.place.wrong("the policy is already in %s:%d; leave one of them out", Printable(first.file), first.line)
			continue
		}
		r.policies[e.name] = e.place
		m := e.place.members("allow", "block", "mode", "max_cost", "max_day_cost")
		var p Policy
		if v, found := m.get("allow"); found {
			p.Allow = v.names(maxNames)
		}
		if v, found := m.get("block"); found {
			p.Block = v.names(maxNames)
		}
		if v, found := m.get("mode"); found {
			if v.node.Value == "partial" {
				v.wrong("must be on or off: partial is for FERMATA_TOOLSETS_MODE, and a policy has its principals")
			} else {
				p.Off = v.oneOf("on", "off") == "off"
			}
		}
		if v, found := m.get("max_cost"); found {
			most := v.integer(0, MaxCost)
			p.MaxCost = &most
		}
		if v, found := m.get("max_day_cost"); found {
			most := v.integer(0, MaxCost)
			p.MaxDayCost = &most
		}
		r.file.Policies[e.name] = p
	}
}

// readPrincipals reads which principal has which policy.
func (r *reader) readPrincipals(v value) {
	for _, e := range v.entries(maxNames) {
		name, ok := e.place.nameOf(e.name, "a principal")
		if !ok {
			continue
		}
		if first, twice := r.principals[name]; twice {
			e.place.wrong("the principal is already in %s:%d; leave one of them out", Printable(first.file), first.line)
			continue
		}
		r.principals[name] = e.place
		if policy, ok := e.place.text(maxText); ok {
			r.file.Principals[name] = policy
		}
	}
}

// nameOf checks the name of a policy or of a principal, as what says.
func (v value) nameOf(name, what string) (string, bool) {
	if name == "" || len(name) > maxPrincipal || strings.TrimSpace(name) != name || Printable(name) != name {
		v.wrong("the name of %s has 1 to %d bytes that can be seen, and no blanks around it", what, maxPrincipal)
		return "", false
	}
	return name, true
}

// checkNames reports names in policies and principals that do not exist. It must be called after all files
// have been read.
func (r *reader) checkNames() {
	for _, name := range sortedNames(r.policies) {
		place := r.policies[name]
		for _, list := range []string{"allow", "block"} {
			if node, found := find(place.node, list); found {
				for i, element := range node.Content {
					v := place.child(list, node).element(i, element)
					if problem := r.file.unknown(element.Value); problem != "" {
						v.wrong("%s", problem)
					}
				}
			}
		}
	}
	for _, name := range sortedNames(r.principals) {
		policy, known := r.file.Principals[name], sortedNames(r.policies)
		if policy != "" && !slices.Contains(known, policy) {
			r.principals[name].wrong("there is no policy %s%s", quote(policy), hint(policy, known))
		}
	}
}

// unknown says why a name in a policy does not exist, or returns "" if it may exist: the tools of an OpenAPI
// document or an MCP server are known here only if the file lists them.
func (f *File) unknown(name string) string {
	key, tool, one := strings.Cut(name, ".")
	t := f.Toolset(key)
	if t == nil {
		keys := make([]string, len(f.Toolsets))
		for i, t := range f.Toolsets {
			keys[i] = t.Key
		}
		return "there is no toolset " + quote(key) + hint(key, keys)
	}
	known, complete := t.Names()
	switch {
	case one && (tool == "" || strings.TrimSpace(tool) != tool):
		return "names no tool: write the toolset, or the toolset, a dot and the name of a tool"
	case one && complete && !slices.Contains(known, tool):
		return "the toolset " + key + " has no tool " + quote(tool) + hint(tool, known)
	}
	return ""
}

// Names returns the names of the tools that the file lists. If complete is false, the source may have others.
func (t Toolset) Names() (names []string, complete bool) {
	switch {
	case t.HTTP != nil:
		for _, tool := range t.HTTP.Tools {
			names = append(names, tool.Name)
		}
		return names, true
	case t.OpenAPI != nil:
		if t.OpenAPI.Only != nil {
			return t.OpenAPI.Only, true
		}
		return sortedNames(t.OpenAPI.Tools), false
	case t.MCP != nil:
		if t.MCP.Only != nil {
			return t.MCP.Only, true
		}
		return sortedNames(t.MCP.Tools), false
	}
	return nil, false
}

// Rules returns what the file says about a tool.
func (t Toolset) Rules(tool string) Rules {
	switch {
	case t.HTTP != nil:
		for _, h := range t.HTTP.Tools {
			if h.Name == tool {
				return h.Rules
			}
		}
	case t.OpenAPI != nil:
		return t.OpenAPI.Tools[tool]
	case t.MCP != nil:
		return t.MCP.Tools[tool]
	}
	return Rules{}
}
