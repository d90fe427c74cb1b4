package config

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// A value is a value in a file, with its place. It has a method for each kind of value that a file can have. If the
// value is wrong, its methods report a mistake and return the zero value.
type value struct {
	r    *reader
	node *yaml.Node
	file string
	path string
	// line is where the value begins, or the name of a member.
	line int
}

// wrong reports a mistake at the value.
func (v value) wrong(format string, args ...any) {
	v.r.wrong(v.file, v.line, v.path, format, args...)
}

// child returns the place of a member of a map.
func (v value) child(name string, node *yaml.Node) value {
	if plain := strings.ContainsFunc(name, func(r rune) bool {
		return r > unicode.MaxASCII || r != '_' && r != '-' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}); plain || name == "" {
		name = quote(name)
	}
	path := name
	if v.path != "" {
		path = v.path + "." + name
	}
	return value{r: v.r, node: node, file: v.file, path: path, line: node.Line}
}

// element returns the place of an element of a list.
func (v value) element(i int, node *yaml.Node) value {
	return value{r: v.r, node: node, file: v.file, path: v.path + "[" + strconv.Itoa(i) + "]", line: node.Line}
}

// kind names what the value is, for people.
func (v value) kind() string {
	switch v.node.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	default:
	}
	switch v.node.ShortTag() {
	case "!!null":
		return "empty"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	default:
		return "a text"
	}
}

// An entry is a member of a map.
type entry struct {
	name  string
	place value
}

// entries returns the members of a map in their order. It reports a name that occurs twice.
func (v value) entries(most int) []entry {
	if v.node.Kind != yaml.MappingNode {
		v.wrong("must be a map, not %s", v.kind())
		return nil
	}
	lines := map[string]int{}
	var entries []entry
	for i := 0; i+1 < len(v.node.Content); i += 2 {
		key := v.node.Content[i]
		place := v.child(key.Value, v.node.Content[i+1])
		place.line = key.Line
		if line, twice := lines[key.Value]; twice {
			v.r.wrong(v.file, key.Line, place.path, "is already in line %d; leave one of them out", line)
			continue
		}
		lines[key.Value] = key.Line
		entries = append(entries, entry{name: key.Value, place: place})
	}
	if len(entries) > most {
		v.wrong("has %d entries; at most %d are allowed", len(entries), most)
		return nil
	}
	return entries
}

// members are the members of a map that have known names.
type members struct {
	of    value
	found map[string]value
}

// members returns the members of a map and reports those whose names are not among known.
func (v value) members(known ...string) members {
	m := members{of: v, found: map[string]value{}}
	for _, e := range v.entries(maxNames) {
		if !slices.Contains(known, e.name) {
			text := hint(e.name, known)
			if text == "" {
				text = "; known are " + strings.Join(known, ", ")
			}
			e.place.wrong("is not known here%s", text)
			continue
		}
		m.found[e.name] = e.place
	}
	return m
}

// get returns an optional member.
func (m members) get(name string) (value, bool) {
	v, found := m.found[name]
	return v, found
}

// need returns a required member, and reports a mistake if the member is missing.
func (m members) need(name, remedy string) (value, bool) {
	v, found := m.found[name]
	if !found && m.of.node.Kind == yaml.MappingNode {
		m.of.wrong("%s is missing; %s", name, remedy)
	}
	return v, found
}

// list returns the elements of a list.
func (v value) list(most int) []value {
	if v.node.Kind != yaml.SequenceNode {
		v.wrong("must be a list, not %s", v.kind())
		return nil
	}
	if len(v.node.Content) > most {
		v.wrong("has %d entries; at most %d are allowed", len(v.node.Content), most)
		return nil
	}
	var elements []value
	for i, node := range v.node.Content {
		elements = append(elements, v.element(i, node))
	}
	return elements
}

// names returns a list of texts that are all different.
func (v value) names(most int) []string {
	names := []string{}
	for _, element := range v.list(most) {
		name, ok := element.text(maxTitle)
		if ok && slices.Contains(names, name) {
			element.wrong("%s is in the list twice; leave one of them out", quote(name))
			continue
		}
		if ok {
			names = append(names, name)
		}
	}
	return names
}

// text returns a text of one line that is not empty.
func (v value) text(most int) (string, bool) {
	text, ok := v.prose(most)
	if ok && strings.ContainsFunc(text, unicode.IsControl) {
		v.wrong("must not contain line ends or other control characters")
		return "", false
	}
	return text, ok
}

// prose returns a text that is not empty, in which line ends and tabs are allowed.
func (v value) prose(most int) (string, bool) {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() == "!!null" {
		v.wrong("must be a text, not %s", v.kind())
		return "", false
	}
	if tag := v.node.ShortTag(); tag == "!!bool" || tag == "!!int" || tag == "!!float" {
		v.wrong("must be a text; put quotes around it")
		return "", false
	}
	text := v.node.Value
	switch {
	case strings.TrimSpace(text) == "":
		v.wrong("must not be empty")
	case len(text) > most:
		v.wrong("has %d bytes; at most %d are allowed", len(text), most)
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		v.wrong("must not contain control characters")
	case !utf8.ValidString(text):
		v.wrong("must be UTF-8")
	default:
		return text, true
	}
	return "", false
}

// flag returns true or false.
func (v value) flag() bool {
	if v.node.Kind != yaml.ScalarNode || v.node.ShortTag() != "!!bool" {
		v.wrong("must be true or false")
		return false
	}
	return strings.EqualFold(v.node.Value, "true")
}

// integer returns a whole number.
func (v value) integer(least, most int64) int64 {
	if v.node.Kind == yaml.ScalarNode && v.node.ShortTag() == "!!int" {
		if n, ok := new(big.Int).SetString(v.node.Value, 10); ok && n.IsInt64() && least <= n.Int64() && n.Int64() <= most {
			return n.Int64()
		}
	}
	v.wrong("must be a whole number from %d to %d", least, most)
	return 0
}

// duration returns a time with a unit.
func (v value) duration(least, most time.Duration) time.Duration {
	if v.node.Kind == yaml.ScalarNode {
		if d, err := time.ParseDuration(v.node.Value); err == nil && least <= d && d <= most {
			return d
		}
	}
	v.wrong("must be a time from %v to %v with its unit, such as 30s", least, most)
	return 0
}

// oneOf returns one of some words.
func (v value) oneOf(words ...string) string {
	if v.node.Kind == yaml.ScalarNode && slices.Contains(words, v.node.Value) {
		return v.node.Value
	}
	text := ""
	if v.node.Kind == yaml.ScalarNode {
		text = hint(v.node.Value, words)
	}
	v.wrong("must be %s%s", orList(words), text)
	return ""
}

// plain reports everything in a document that is not a map, a list or a scalar, and returns whether there
// was nothing. It must be called before anything else reads the document.
func (v value) plain(depth int) bool {
	n := v.node
	switch {
	case depth > maxDepth:
		v.wrong("is nested more than %d deep", maxDepth)
		return false
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		v.wrong("anchors (&) and aliases (*) are not allowed; write the text out, or put quotes around it")
		return false
	case n.Style&yaml.TaggedStyle != 0:
		v.wrong("the tag %s is not allowed; leave it out", quote(n.Tag))
		return false
	}
	plain := true
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := value{r: v.r, node: n.Content[i], file: v.file, path: v.path, line: n.Content[i].Line}
			if !key.plainKey() {
				plain = false
				continue
			}
			plain = v.child(key.node.Value, n.Content[i+1]).plain(depth+1) && plain
		}
	case yaml.SequenceNode:
		for i, element := range n.Content {
			plain = v.element(i, element).plain(depth+1) && plain
		}
	default:
	}
	return plain
}

// plainKey reports a name that is no text, and returns whether it is one.
func (v value) plainKey() bool {
	n := v.node
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		v.wrong("anchors (&) and aliases (*) are not allowed; write the text out, or put quotes around it")
	case n.Kind != yaml.ScalarNode:
		v.wrong("has a name that is %s; names must be texts", v.kind())
	case n.ShortTag() == "!!merge":
		v.wrong("the merge key << is not allowed; write the members out")
	case n.ShortTag() != "!!str" && n.ShortTag() != "!!timestamp":
		v.wrong("the name %s is no text; put quotes around it", quote(n.Value))
	default:
		return true
	}
	return false
}

// sortedNames returns the names of a map, sorted.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// wrong reports a mistake.
func (r *reader) wrong(file string, line int, path, format string, args ...any) {
	r.mistakes = append(r.mistakes, &Mistake{File: file, Line: line, Path: path, Text: fmt.Sprintf(format, args...)})
}
