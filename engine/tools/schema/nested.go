package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object checks the keywords for objects.
func (w *walk) object(s *jsonschema.Schema, o *object) *Error {
	if missing, ok := w.missing(o, w.required(s)); ok {
		return w.fail("must have %s", later(shown, missing))
	}
	if s.MinProperties != nil && len(o.members) < *s.MinProperties {
		return w.fail("must have at least %s, not %d", count(*s.MinProperties, "member"), len(o.members))
	}
	if s.MaxProperties != nil && len(o.members) > *s.MaxProperties {
		return w.fail("must have at most %s, not %d", count(*s.MaxProperties, "member"), len(o.members))
	}
	var patterns []jsonschema.Regexp
	if len(s.PatternProperties) > 0 && len(o.members) > 0 {
		if !w.spend(10 * len(s.PatternProperties)) {
			return tooMuch()
		}
		patterns = sortedPatterns(s)
	}
	for _, m := range o.members {
		if failure := w.member(s, m, patterns); failure != nil {
			return failure
		}
	}
	return w.dependent(s, o)
}

// required returns the names of the members that an object must have: the required ones without a default, since a
// tool takes the default for a member that is left out. Where only yes or no matters, a default makes no
// difference, because it does not tell which alternative is meant.
func (w *walk) required(s *jsonschema.Schema) []string {
	if w.quiet > 0 || !slices.ContainsFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) }) {
		return s.Required
	}
	w.spend(len(s.Required))
	return slices.DeleteFunc(slices.Clone(s.Required), func(name string) bool { return hasDefault(s.Properties[name]) })
}

// hasDefault reports whether a property, or what it refers to, has a default.
func hasDefault(property *jsonschema.Schema) bool {
	for range maxReferences {
		if property == nil || property.Default != nil {
			break
		}
		property = property.Ref
	}
	return property != nil && property.Default != nil
}

// maxReferences is how many references that lead to references are followed to a default.
const maxReferences = 8

// missing returns the first of some names that an object does not have.
func (w *walk) missing(o *object, names []string) (string, bool) {
	if !w.spend(len(names)) {
		return "", false
	}
	for _, name := range names {
		if !o.has(name) {
			return name, true
		}
	}
	return "", false
}

// member checks one member of an object.
func (w *walk) member(s *jsonschema.Schema, m member, patterns []jsonschema.Regexp) *Error {
	if !w.spend(1) {
		return tooMuch()
	}
	at := step{name: m.name}
	if s.PropertyNames != nil && !w.fits(s.PropertyNames, m.name) {
		if w.over {
			return tooMuch()
		}
		return w.fail("has the member %s, whose name is not allowed", later(shown, m.name))
	}
	property, evaluated := s.Properties[m.name]
	if evaluated {
		if failure := w.below(property, m.value, at); failure != nil {
			return failure
		}
	}
	for _, pattern := range patterns {
		if w.matches(pattern, m.name) {
			evaluated = true
			if failure := w.below(s.PatternProperties[pattern], m.value, at); failure != nil {
				return failure
			}
		}
	}
	if evaluated || s.AdditionalProperties == nil {
		return nil
	}
	if allowed, ok := s.AdditionalProperties.(bool); ok {
		if !allowed {
			return w.fail("has %s, which is not known%s", later(shown, m.name), later(func(name string) string { return didYouMean(name, s.Properties) }, m.name))
		}
		return nil
	}
	return w.below(schemaOf(s.AdditionalProperties), m.value, at)
}

// sortedPatterns returns the patterns for names in an order that is always the same.
func sortedPatterns(s *jsonschema.Schema) []jsonschema.Regexp {
	patterns := make([]jsonschema.Regexp, 0, len(s.PatternProperties))
	for pattern := range s.PatternProperties {
		patterns = append(patterns, pattern)
	}
	slices.SortFunc(patterns, func(a, b jsonschema.Regexp) int {
		if a.String() < b.String() {
			return -1
		}
		return 1
	})
	return patterns
}

// dependent checks what an object must have because of other members.
func (w *walk) dependent(s *jsonschema.Schema, o *object) *Error {
	if !w.spend(len(s.DependentRequired) + len(s.DependentSchemas) + len(s.Dependencies)) {
		return tooMuch()
	}
	needs := func(name string, names []string) *Error {
		if missing, ok := w.missing(o, names); ok {
			return w.fail("must have %s, because it has %s", later(shown, missing), later(shown, name))
		}
		return nil
	}
	for name, names := range s.DependentRequired {
		if o.has(name) {
			if failure := needs(name, names); failure != nil {
				return failure
			}
		}
	}
	for name, part := range s.DependentSchemas {
		if o.has(name) {
			if failure := w.check(part, o); failure != nil {
				return failure
			}
		}
	}
	for name, dependency := range s.Dependencies {
		if !o.has(name) {
			continue
		}
		var failure *Error
		switch dependency := dependency.(type) {
		case []string:
			failure = needs(name, dependency)
		case *jsonschema.Schema:
			failure = w.check(dependency, o)
		}
		if failure != nil {
			return failure
		}
	}
	return nil
}

// list checks the keywords for lists.
func (w *walk) list(s *jsonschema.Schema, list []any) *Error {
	if s.MinItems != nil && len(list) < *s.MinItems {
		return w.fail("must have at least %s, not %d", count(*s.MinItems, "element"), len(list))
	}
	if s.MaxItems != nil && len(list) > *s.MaxItems {
		return w.fail("must have at most %s, not %d", count(*s.MaxItems, "element"), len(list))
	}
	for i, element := range list {
		part, allowed := elementSchema(s, i)
		if !allowed {
			return w.fail("must have at most %s, not %d", count(i, "element"), len(list))
		}
		if part == nil {
			break
		}
		if failure := w.below(part, element, step{index: i, list: true}); failure != nil {
			return failure
		}
	}
	if failure := w.contains(s, list); failure != nil {
		return failure
	}
	if s.UniqueItems {
		return w.unique(list)
	}
	return nil
}

// elementSchema returns the schema for the element i of a list. It returns nil if neither this element nor
// those after it have one. allowed is false if the list must not have an element i.
func elementSchema(s *jsonschema.Schema, i int) (part *jsonschema.Schema, allowed bool) {
	fixed, rest := s.PrefixItems, any(nil)
	if s.Items2020 != nil {
		rest = s.Items2020
	}
	if s.DraftVersion < 2020 {
		fixed, rest = listOf(s.Items), s.AdditionalItems
		if one := schemaOf(s.Items); one != nil {
			return one, true
		}
	}
	if i < len(fixed) {
		return fixed[i], true
	}
	if rest, ok := rest.(bool); ok {
		return nil, rest
	}
	part = schemaOf(rest)
	return part, part == nil || part.Bool == nil || *part.Bool
}

// contains checks that enough elements of a list fit a schema, and not too many.
func (w *walk) contains(s *jsonschema.Schema, list []any) *Error {
	if s.Contains == nil {
		return nil
	}
	fitting := 0
	for _, element := range list {
		if w.fits(s.Contains, element) {
			fitting++
		}
	}
	if w.over {
		return tooMuch()
	}
	least := 1
	if s.MinContains != nil {
		least = *s.MinContains
	}
	if fitting < least {
		return w.fail("must contain at least %s of a certain form, not %d", count(least, "element"), fitting)
	}
	if s.MaxContains != nil && fitting > *s.MaxContains {
		return w.fail("must contain at most %s of a certain form, not %d", count(*s.MaxContains, "element"), fitting)
	}
	return nil
}

// unique checks that no two elements are the same.
func (w *walk) unique(list []any) *Error {
	seen := make(map[string]int, len(list))
	for i, element := range list {
		key, ok := w.key(nil, element)
		ok = ok && w.spend(3)
		if !ok {
			return tooMuch()
		}
		if first, twice := seen[string(key)]; twice {
			return w.fail("must not have the same element twice, as in %d and %d", first, i)
		}
		seen[string(key)] = i
	}
	return nil
}

// key appends a text to dst that is the same for two values only if they are equal.
func (w *walk) key(dst []byte, v any) ([]byte, bool) {
	if !w.spend(1) {
		return dst, false
	}
	ok := true
	switch v := v.(type) {
	case nil:
		dst = append(dst, 'n')
	case bool:
		dst = strconv.AppendBool(dst, v)
	case string:
		ok = w.spend(len(v) / textWork)
		dst = append(strconv.AppendInt(append(dst, 's'), int64(len(v)), 10), ':')
		dst = append(dst, v...)
	case json.Number:
		if plain(v) && v != "-0" {
			return append(append(dst, '#'), v...), true
		}
		ok = w.spend(numberWork(v))
		dst = append(append(dst, '#'), rational(v).RatString()...)
	case []any:
		dst = append(strconv.AppendInt(append(dst, '['), int64(len(v)), 10), ':')
		for _, element := range v {
			if dst, ok = w.key(dst, element); !ok {
				return dst, false
			}
		}
	case *object:
		dst = append(strconv.AppendInt(append(dst, '{'), int64(len(v.members)), 10), ':')
		for _, m := range v.members {
			if dst, ok = w.key(dst, m.name); !ok {
				return dst, false
			}
			if dst, ok = w.key(dst, m.value); !ok {
				return dst, false
			}
		}
	}
	return dst, ok
}

// ratText returns a bound in the form in which people write numbers.
func ratText(r *big.Rat) string {
	if r.IsInt() {
		return r.RatString()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
