package stubs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Names that a shell function cannot have, or must not have.
var (
	// shellKeywords are keywords and declarations. LibreChat's client renames them too.
	shellKeywords = strings.Fields("if then else elif fi case esac for while until do done in function select time coproc " +
		"declare typeset local readonly export unset")
	// shellBuiltins are builtins that scripts need.
	shellBuiltins = strings.Fields("return exit break continue shift alias unalias source echo printf read cd pwd kill trap wait " +
		"eval exec jobs bg fg set let test true false")
	// shellRuntime are the names that the generated functions need themselves.
	shellRuntime = strings.Fields("builtin __fermata_call")
	// shellHarmless are builtins that may be replaced, since only the script's own text
	// relies on them. A tool with such a name gets a function of this name as well: it is
	// the name that the client uses.
	shellHarmless = strings.Fields("alias unalias echo printf read cd pwd kill jobs bg fg let")
)

// BashIdentifier returns the name of the shell function of the tool called name. It is
// "tool" if the name holds no character that is allowed.
func BashIdentifier(name string) string {
	return cmp.Or(shellName(strip(strings.ReplaceAll(name, ".", "_"))), "tool")
}

// shellName returns a name that does not take away what scripts or the generated functions need.
func shellName(id string) string {
	switch {
	case slices.Contains(shellKeywords, id), slices.Contains(shellBuiltins, id), slices.Contains(shellRuntime, id),
		strings.HasPrefix(strings.ToLower(id), "_ptc_"):
		return id + "_tool"
	}
	return id
}

// A BashCollisionError means that two tools would have the same shell function.
type BashCollisionError struct{ CollisionError }

func (e *BashCollisionError) Error() string {
	return "Bash tool names " + strconv.Quote(e.First) + " and " + strconv.Quote(e.Second) +
		" normalize to the same function identifier " + strconv.Quote(e.Identifier) + "; rename one to avoid collision"
}

// Bash returns shell source that defines a function for every tool. Of the client's text it
// contains only identifiers: a function names its tool by the index in tools. As in Python, a tool with letters beyond
// ASCII has a second function whose name keeps them, or only that one if nothing else is left of its name.
func Bash(tools []Tool) (string, error) {
	var source strings.Builder
	index := make(map[string]int, len(tools))
	for i, t := range tools {
		id := bashFirst(t.Name)
		if j, ok := index[id]; ok && tools[j].Name != t.Name {
			return "", &BashCollisionError{CollisionError{First: tools[j].Name, Second: t.Name, Identifier: id}}
		}
		index[id] = i
		define(&source, id, strconv.Itoa(i))
		if plain := strings.TrimSuffix(id, "_tool"); plain != id && plain == strip(t.Name) && slices.Contains(shellHarmless, plain) {
			define(&source, plain, strconv.Itoa(i))
		}
	}
	for i, t := range tools {
		if isASCII(t.Name) {
			continue
		}
		second := shellName(letters(t.Name))
		if second == bashFirst(t.Name) {
			second = BashIdentifier(t.Name)
		}
		if j, taken := index[second]; second != "" && (!taken || tools[j].Name == t.Name) {
			index[second] = i
			define(&source, second, strconv.Itoa(i))
		}
	}
	return source.String(), nil
}

// bashFirst returns the name of the shell function of a tool that has no other tool's name.
func bashFirst(name string) string {
	if strip(strings.ReplaceAll(name, ".", "_")) != "" {
		return BashIdentifier(name)
	}
	return cmp.Or(shellName(letters(name)), "tool")
}

// Required returns the names of the arguments that calls of a tool must have.
func Required(t Tool) []string {
	var r reader
	properties, _ := r.parameters(withoutReferences(t.Parameters))
	var names []string
	for _, p := range properties {
		if p.required {
			names = append(names, p.name)
		}
	}
	return names
}

// define writes the function id of a tool, which is an index or a method of a toolset.
func define(source *strings.Builder, id, tool string) {
	source.WriteString(id + "() { __fermata_call " + tool + ` "$@"; }` + "\n")
}
