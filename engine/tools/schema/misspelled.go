package schema

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	// alike is how much a name must be like another one to be refused as a misspelled one, as for programs.
	alike = 0.8
	// maxAlike is the longest name that can be a misspelled one, in characters.
	maxAlike = 64
	// nameWork is how many pairs of characters are compared to find misspelled names in one input. The names
	// that are left then are not refused.
	nameWork = 1 << 20
)

// A name is the name of an argument of a tool.
type name struct {
	exact  string
	folded []rune // without case, _ and -
}

// argumentNames returns the names of the arguments of a tool whose schema lists its arguments and does not say
// whether there may be others, which mostly means that the tool ignores them. Otherwise it returns none.
func argumentNames(root *jsonschema.Schema) []name {
	root = described(root)
	if opens(root) || root.AdditionalProperties != nil {
		return nil
	}
	elsewhere := root.Ref != nil
	_ = each(root, func(part *jsonschema.Schema, inPlace bool) error {
		elsewhere = elsewhere || inPlace && (part.Ref != nil || len(part.Properties) > 0 || part.AdditionalProperties != nil || opens(part) || nested(part))
		return nil
	})
	if elsewhere {
		return nil
	}
	names := make([]name, 0, len(root.Properties))
	for exact := range root.Properties {
		names = append(names, name{exact, []rune(fold(exact))})
	}
	slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.exact, b.exact) })
	return names
}

// described returns the schema that lists the properties: the given one, or the one to which it only refers.
func described(s *jsonschema.Schema) *jsonschema.Schema {
	for s.Ref != nil && len(s.Properties) == 0 {
		s = s.Ref
	}
	return s
}

// opens reports whether a schema has a keyword for names that it does not list.
func opens(s *jsonschema.Schema) bool {
	return len(s.PatternProperties) > 0 || s.PropertyNames != nil || s.UnevaluatedProperties != nil
}

// nested reports whether a schema has parts that describe the same value.
func nested(s *jsonschema.Schema) bool {
	found := false
	_ = each(s, func(_ *jsonschema.Schema, inPlace bool) error {
		found = found || inPlace
		return nil
	})
	return found
}

// misspelled returns the failure for the first argument that is not in the schema and whose name is like that of
// one that the call does not have.
func (s *Schema) misspelled(w *walk, o *object) *Error {
	if len(s.names) == 0 {
		return nil
	}
	left := nameWork
	for _, m := range o.members {
		if utf8.RuneCountInString(m.name) > maxAlike || slices.ContainsFunc(s.names, func(n name) bool { return n.exact == m.name }) {
			continue
		}
		given := []rune(fold(m.name))
		best, found := 0.0, ""
		for _, n := range s.names {
			if left -= 1 + len(given); left < 0 {
				return nil
			}
			if near := likeness(given, n.folded, &left); near > best && !o.has(n.exact) {
				best, found = near, n.exact
			}
		}
		if found != "" {
			return w.fail("has no argument %s; did you mean %s?", later(shown, m.name), later(shown, found))
		}
	}
	return nil
}

// likeness returns how much two folded names are alike, from alike to 1, or 0 if that is less. Names that differ
// only in digits are different ones.
func likeness(one, other []rune, left *int) float64 {
	if slices.Equal(one, other) {
		return 1
	}
	all := float64(len(one) + len(other))
	if all == 0 || 2*float64(min(len(one), len(other)))/all < alike || slices.Equal(withoutDigits(one), withoutDigits(other)) {
		return 0
	}
	if ratio := 2 * float64(common(one, other, left)) / all; ratio >= alike {
		return ratio
	}
	return 0
}

// common returns how many characters two names have in common: those of the longest text that both contain (the
// first one, if there are several), and in the same way of what is before it in both, and behind it.
func common(one, other []rune, left *int) int {
	if *left -= len(one) * len(other); *left < 0 || len(one) == 0 || len(other) == 0 {
		return 0
	}
	size, endOne, endOther := 0, 0, 0
	ending := make([]int, len(other)+1) // how long the common text is that ends before each place of other
	for i, r := range one {
		before := 0
		for j, o := range other {
			longer := 0
			if r == o {
				longer = before + 1
			}
			before, ending[j+1] = ending[j+1], longer
			if longer > size {
				size, endOne, endOther = ending[j+1], i+1, j+1
			}
		}
	}
	if size == 0 {
		return 0
	}
	return common(one[:endOne-size], other[:endOther-size], left) + size + common(one[endOne:], other[endOther:], left)
}

// withoutDigits returns a name without its digits.
func withoutDigits(text []rune) []rune {
	return slices.DeleteFunc(slices.Clone(text), func(r rune) bool { return '0' <= r && r <= '9' })
}
