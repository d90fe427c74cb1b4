package stubs

import (
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
	id := strip(strings.ReplaceAll(name, ".", "_"))
	switch {
	case id == "":
		return "tool"
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
// contains only identifiers: a function names its tool by the index in tools.
func Bash(tools []Tool) (string, error) {
	var source strings.Builder
	index := make(map[string]int, len(tools))
	for i, t := range tools {
		id := BashIdentifier(t.Name)
		if j, ok := index[id]; ok && tools[j].Name != t.Name {
			return "", &BashCollisionError{CollisionError{First: tools[j].Name, Second: t.Name, Identifier: id}}
		}
		index[id] = i
		define(&source, id, strconv.Itoa(i))
		if plain := strings.TrimSuffix(id, "_tool"); plain != id && plain == strip(t.Name) && slices.Contains(shellHarmless, plain) {
			define(&source, plain, strconv.Itoa(i))
		}
	}
	return source.String(), nil
}

// define writes the function id of a tool, which is an index or a method of a toolset.
func define(source *strings.Builder, id, tool string) {
	source.WriteString(id + "() { __fermata_call " + tool + ` "$@"; }` + "\n")
}
