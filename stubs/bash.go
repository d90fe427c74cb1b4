package stubs

import (
	"slices"
	"strconv"
	"strings"
)

// The names that a shell function cannot or must not have.
var (
	// shellKeywords are keywords and declarations, which LibreChat's client renames, too.
	shellKeywords = strings.Fields("if then else elif fi case esac for while until do done in function select time coproc " +
		"declare typeset local readonly export unset")
	// shellBuiltins are builtins that scripts need.
	shellBuiltins = strings.Fields("return exit break continue shift alias unalias source echo printf read cd pwd kill trap wait " +
		"eval exec jobs bg fg set let test true false")
	// shellRuntime are builtins that the functions themselves need, and their own name.
	shellRuntime = strings.Fields("builtin __fermata_call")
	// shellHarmless are builtins that nothing but a script's own text relies on. Where
	// a tool has such a name the client calls it by that.
	shellHarmless = strings.Fields("alias unalias echo printf read cd pwd kill jobs bg fg let")
)

// BashIdentifier returns the name of the shell function of a tool; "tool" if
// nothing is left of its own.
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

// A BashCollisionError says that two tools would have one shell function.
type BashCollisionError struct{ CollisionError }

func (e *BashCollisionError) Error() string {
	return "Bash tool names " + strconv.Quote(e.First) + " and " + strconv.Quote(e.Second) +
		" normalize to the same function identifier " + strconv.Quote(e.Identifier) + "; rename one to avoid collision"
}

// Bash returns shell source that defines a function for every tool. It holds
// nothing of the client's but identifiers: a function knows its tool by its place.
func Bash(tools []Tool) (string, error) {
	var source strings.Builder
	place := make(map[string]int, len(tools))
	for i, t := range tools {
		id := BashIdentifier(t.Name)
		if j, ok := place[id]; ok && tools[j].Name != t.Name {
			return "", &BashCollisionError{CollisionError{First: tools[j].Name, Second: t.Name, Identifier: id}}
		}
		place[id] = i
		define(&source, id, i)
		if plain := strings.TrimSuffix(id, "_tool"); plain != id && plain == strip(t.Name) && slices.Contains(shellHarmless, plain) {
			define(&source, plain, i)
		}
	}
	return source.String(), nil
}

func define(source *strings.Builder, id string, place int) {
	source.WriteString(id + "() { __fermata_call " + strconv.Itoa(place) + ` "$@"; }` + "\n")
}
