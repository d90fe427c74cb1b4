package core

import "slices"

// Traits are what a request says of one of its own tools beyond the definition.
type Traits struct {
	// Toolset is the key under which programs may import the tool, and Class the name of the class;
	// both may be empty.
	Toolset, Class string
	// Approval is true if each call needs approval.
	Approval bool
	// Envelope is true if results are envelopes {ok, error, ret}.
	Envelope bool
}

// Granted is what the record of an execution keeps of its mandate.
type Granted struct {
	Tools      []GrantedTool     `json:"tools,omitempty"`
	Traits     map[string]Traits `json:"traits,omitempty"`
	Sequential bool              `json:"sequential,omitempty"`
	MaxCost    *int64            `json:"max_cost,omitempty"`
	Approvals  bool              `json:"approvals,omitempty"`
}

// A GrantedTool is a host.Tool in the form of the record.
type GrantedTool struct {
	Toolset    string `json:"toolset"`
	Tool       string `json:"tool"`
	Approval   string `json:"approval,omitempty"`
	Lane       string `json:"lane,omitempty"`
	Cost       int64  `json:"cost,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`
}

// Toolsets returns the names of the toolsets that the server runs for the program.
func (g Granted) Toolsets() (keys []string) {
	for _, t := range g.Tools {
		if !slices.Contains(keys, t.Toolset) {
			keys = append(keys, t.Toolset)
		}
	}
	return keys
}

// Names returns the names of the tools that the program may call, those of its client first.
func (g Granted) Names(own []string) []string {
	if len(g.Tools) == 0 {
		return own
	}
	names := slices.Clone(own)
	for _, t := range g.Tools {
		if !slices.Contains(names, t.Tool) {
			names = append(names, t.Tool)
		}
	}
	return names
}

// find returns the granted tool of a toolset.
func (g Granted) find(toolset, tool string) (GrantedTool, bool) {
	if toolset == "" {
		return GrantedTool{}, false
	}
	i := slices.IndexFunc(g.Tools, func(t GrantedTool) bool { return t.Toolset == toolset && t.Tool == tool })
	if i < 0 {
		return GrantedTool{}, false
	}
	return g.Tools[i], true
}

// owns reports whether a tool of the client belongs to a toolset of the client.
func (g Granted) owns(toolset, tool string) bool {
	return g.Traits[tool].Toolset == toolset
}

// traits returns the traits of a client's tool.
func (g Granted) traits(tool string) Traits { return g.Traits[tool] }
