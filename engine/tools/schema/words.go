package schema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A step leads from a value to one within it.
type step struct {
	name  string
	index int
	list  bool
}

// pathText returns a path as text, such as filter.tags[2], or ["a b"].x if a name is not simple.
func pathText(path []step) string {
	var b strings.Builder
	for _, s := range path {
		switch {
		case s.list:
			fmt.Fprintf(&b, "[%d]", s.index)
		case simple(s.name):
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(s.name)
		default:
			fmt.Fprintf(&b, "[%s]", shown(s.name))
		}
	}
	return b.String()
}

// simple reports whether a name needs no quotes in a path.
func simple(name string) bool {
	return name != "" && len(name) <= maxShown && strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '-' && r != '$' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	}) < 0
}

// maxShown is how many bytes of a text from an input or a schema an error shows.
const maxShown = 80

// shown returns a text in quotes, truncated. Everything but printable ASCII is escaped.
func shown(text string) string {
	if len(text) <= maxShown {
		return strconv.QuoteToASCII(text)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return strconv.QuoteToASCII(text[:cut]) + "…"
}

// kindOf names the kind of a value.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "true or false"
	case json.Number:
		if whole(v) {
			return "a whole number"
		}
		return "a number"
	case string:
		return "a text"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// typeOf returns the type of a value as a schema names it.
func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case json.Number:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// hasType reports whether a value has one of the types of a schema.
func hasType(s *jsonschema.Schema, v any) bool {
	var own jsonschema.Types
	own.Add(typeOf(v))
	if *s.Types&own != 0 {
		return true
	}
	var integer jsonschema.Types
	integer.Add("integer")
	n, ok := v.(json.Number)
	return ok && *s.Types&integer != 0 && whole(n)
}

// typesText names the types that a schema allows.
func typesText(types *jsonschema.Types) string {
	words := map[string]string{
		"null": "null", "boolean": "true or false", "number": "a number", "integer": "a whole number",
		"string": "a text", "array": "a list", "object": "an object",
	}
	var names []string
	for _, name := range types.ToStrings() {
		names = append(names, words[name])
	}
	return orList(names)
}

// valueText returns a value of a schema as text.
func valueText(v any) string {
	if text, ok := v.(string); ok {
		return shown(text)
	}
	raw, err := json.Marshal(v)
	if err != nil || len(raw) > maxShown {
		return "a certain value"
	}
	return string(raw)
}

// valuesText returns the allowed values as text. It names at most ten.
func valuesText(values []any) string {
	var texts []string
	for i, v := range values {
		if i == 10 {
			texts = append(texts, fmt.Sprintf("one of %d more", len(values)-i))
			break
		}
		texts = append(texts, valueText(v))
	}
	return orList(texts)
}

// orList joins words: a, b or c.
func orList(words []string) string {
	switch n := len(words); n {
	case 0:
		return "something else"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
}

// A text makes a part of the text of a failure. It is called only if somebody reads the failure.
type text func() string

func (t text) String() string { return t() }

// later returns a text that applies f to v when it is called.
func later[T any](f func(T) string, v T) text { return func() string { return f(v) } }

// count returns a number and a noun, in the plural if needed.
func count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// didYouMean proposes the known name that differs from a wrong one only in its case and its separators.
func didYouMean(name string, known map[string]*jsonschema.Schema) string {
	if len(name) > maxShown || len(known) > 1000 {
		return ""
	}
	best := ""
	for candidate := range known {
		if fold(candidate) == fold(name) && (best == "" || candidate < best) {
			best = candidate
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + shown(best) + "?"
}

// fold returns a name without case, _ and -.
func fold(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}
