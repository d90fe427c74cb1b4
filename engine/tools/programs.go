package tools

import (
	"fmt"
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

// withMethods leaves out each tool that would be the same method in programs as a tool before it, and adds a note
// for it, and for each tool that programs cannot call. Two such tools that the file itself lists are an error, since
// whoever has written it can name them in another way.
func (t *toolset) withMethods(tools []tool) (kept []tool, err error) {
	first := map[string]string{} // the names of tools by their methods
	kept = slices.DeleteFunc(tools, func(known tool) bool {
		method := stubs.Method(known.Name)
		taken, twice := first[method]
		switch {
		case method == "":
			noteOf(t, "programs cannot call the tool "+quoted(known.Name)+": its name cannot be that of a method")
		case twice && t.described.HTTP != nil:
			err = unusable(textOwnMethod, quoted(taken), quoted(known.Name), method)
		case twice:
			warnOf(t, fmt.Sprintf(textOneMethod, quoted(known.Name), method, quoted(taken)))
			return true
		default:
			first[method] = known.Name
		}
		return false
	})
	return kept, err
}
