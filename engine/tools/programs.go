package tools

import (
	"errors"
	"slices"

	"fermata/engine/tools/config"
	"fermata/stubs"
)

// ForPrograms returns the toolset in the form that programs import, with the tools that programs may call.
func (t Toolset) ForPrograms() stubs.Toolset {
	s := stubs.Toolset{Key: t.Key, Class: t.Class, Description: t.Description}
	for _, tool := range t.Tools {
		if callers := tool.Rules.Callers; callers == nil || slices.Contains(callers, config.CallerCode) {
			s.Tools = append(s.Tools, tool.stub())
		}
	}
	return s
}

// stub returns a tool in the form that programs import.
func (t Tool) stub() stubs.Tool {
	return stubs.Tool{Name: t.Name, Description: t.Description, Parameters: t.Input, Output: t.Output}
}

// checkMethods returns an error if two tools would be the same method in programs, and adds a note for each
// tool that programs cannot call.
func (t *toolset) checkMethods(tools []tool) error {
	named := make([]stubs.Tool, len(tools))
	for i, known := range tools {
		named[i] = stubs.Tool{Name: known.Name}
	}
	methods, err := stubs.Methods(named)
	if collision, ok := errors.AsType[*stubs.CollisionError](err); ok {
		return unusable(textOneMethod, quoted(collision.First), quoted(collision.Second), collision.Identifier)
	}
	for i, method := range methods {
		if method == "" {
			t.note("programs cannot call the tool " + quoted(tools[i].Name) + ": its name cannot be that of a method")
		}
	}
	return err
}
