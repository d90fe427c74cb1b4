package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"fermata/continuation"
	"fermata/engine/core"
	"fermata/engine/sandbox"
	"fermata/engine/tools/host"
	"fermata/engine/tools/policy"
	"fermata/stubs"
)

// A mandate is what a program may call beyond the plain tools of its client, and under which rules.
type mandate struct {
	core.Granted
	// grant makes the calls of the server's tools; nil if there are none, or if this server has no
	// toolsets.
	grant *host.Grant
}

// granted returns a tool in the form of the record.
func granted(t host.Tool) core.GrantedTool {
	return core.GrantedTool{Toolset: t.Toolset, Tool: t.Tool, Approval: t.Approval, Lane: t.Lane, Cost: t.Cost, Idempotent: t.Idempotent}
}

// toolOf returns a granted tool as toolsets have it.
func toolOf(t core.GrantedTool) host.Tool {
	return host.Tool{Name: policy.Name{Toolset: t.Toolset, Tool: t.Tool}, Approval: t.Approval, Lane: t.Lane, Cost: t.Cost, Idempotent: t.Idempotent}
}

// mandate returns the mandate of a start. It is empty if the program may call nothing but plain tools of its client.
// The caller must release it.
func (m *common) mandate(ctx context.Context, s Start) (*mandate, error) {
	if len(s.Toolsets) == 0 && len(s.Traits) == 0 && !s.Sequential && s.MaxCost == nil && !s.Approvals {
		if m.o.Toolsets == nil || !m.o.Toolsets.Sequential() {
			return &mandate{}, nil
		}
	}
	d := &mandate{Granted: core.Granted{Traits: s.Traits, Sequential: s.Sequential, MaxCost: s.MaxCost, Approvals: s.Approvals}}
	if m.o.Toolsets == nil {
		if len(s.Toolsets) > 0 {
			return nil, &policy.UnknownError{Asked: s.Toolsets[0]}
		}
		return d, nil
	}
	grant, err := m.o.Toolsets.Grant(ctx, s.Principal, policy.Start{Toolsets: s.Toolsets, Title: s.Title, Sequential: s.Sequential, MaxCost: s.MaxCost})
	if err != nil {
		return nil, err
	}
	d.grant, d.Sequential, d.MaxCost = grant, grant.Sequential, grant.MaxCost
	for _, t := range grant.Tools {
		d.Tools = append(d.Tools, granted(t))
	}
	return d, nil
}

// inherited returns the mandate of an execution that another server has started.
func (m *common) inherited(r continuation.Record) (*mandate, error) {
	d := new(mandate)
	if len(r.Granted) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(r.Granted, &d.Granted); err != nil {
		return nil, fmt.Errorf("read what execution %s may call: %w", r.ID, err)
	}
	if m.o.Toolsets != nil && len(d.Tools) > 0 {
		list := make([]host.Tool, len(d.Tools))
		for i, t := range d.Tools {
			list[i] = toolOf(t)
		}
		d.grant = m.o.Toolsets.Regrant(r.Principal, list, d.Sequential, d.MaxCost)
	}
	return d, nil
}

// approval returns who has to approve calls of a tool now.
func (d *mandate) approval(t core.GrantedTool) (string, error) {
	if d.grant == nil {
		return "", errNoToolsets
	}
	return d.grant.Approval(toolOf(t))
}

// release ends the use of the mandate.
func (d *mandate) release() {
	if d.grant != nil {
		d.grant.Release()
	}
}

// encode returns what the record keeps, which is nothing for an empty mandate.
func (d *mandate) encode() (json.RawMessage, error) {
	if len(d.Tools) == 0 && len(d.Traits) == 0 && !d.Sequential && d.MaxCost == nil && !d.Approvals {
		return nil, nil
	}
	text, err := json.Marshal(d.Granted)
	if err != nil {
		return nil, fmt.Errorf("encode what an execution may call: %w", err)
	}
	return text, nil
}

// A ModuleError says why the client's own tools cannot be imported in the form for which the start asks.
type ModuleError struct{ Err error }

func (e *ModuleError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ModuleError) Unwrap() error { return e.Err }

// own returns the toolsets to which the client's own tools belong.
func (s Start) own() ([]stubs.Toolset, error) {
	byKey := map[string]*stubs.Toolset{}
	for _, t := range s.Tools {
		traits := s.Traits[t.Name]
		if traits.Toolset == "" {
			continue
		}
		set := byKey[traits.Toolset]
		if set == nil {
			set = &stubs.Toolset{Key: traits.Toolset}
			byKey[traits.Toolset] = set
		}
		switch {
		case set.Class == "":
			set.Class = traits.Class
		case traits.Class != "" && traits.Class != set.Class:
			return nil, &ModuleError{fmt.Errorf("tools of the toolset %q have the classes %q and %q", set.Key, set.Class, traits.Class)}
		}
		set.Tools = append(set.Tools, t)
	}
	list := make([]stubs.Toolset, 0, len(byKey))
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		set := *byKey[key]
		if set.Class == "" {
			set.Class = stubs.ClassName("", key)
		}
		list = append(list, set)
	}
	return list, nil
}

// modules adds to a program the toolsets that it can import.
func (s Start) modules(p *sandbox.Program, d *mandate) error {
	sets, err := s.own()
	if err != nil {
		return err
	}
	if d.grant != nil {
		for _, t := range d.grant.Toolsets() {
			if set := t.ForPrograms(); len(set.Tools) > 0 {
				sets = append(sets, set)
			}
		}
	}
	for _, set := range sets {
		module := sandbox.Module{Key: set.Key, Class: set.Class}
		if s.Mode == Bash {
			module.Methods, err = methodsOf(set)
		} else {
			module.Source, err = stubs.PythonModule(set)
		}
		if err != nil {
			return &ModuleError{err}
		}
		p.Toolsets = append(p.Toolsets, module)
	}
	if s.Mode != Bash || len(sets) == 0 {
		return nil
	}
	functions, err := stubs.BashModule(sets...)
	if err != nil {
		return &ModuleError{err}
	}
	p.Stubs += functions
	return nil
}

// methodsOf returns the names of the tools of a toolset by the names of their methods.
func methodsOf(set stubs.Toolset) (map[string]string, error) {
	methods, err := stubs.Methods(set.Tools)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for i, method := range methods {
		if method != "" {
			names[method] = set.Tools[i].Name
		}
	}
	return names, nil
}

// errNoToolsets is the error of a call of the server's tools after a server without toolsets has taken over
// the execution.
var errNoToolsets = errors.New("this server has no toolsets")
