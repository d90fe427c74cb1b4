package schema

import "github.com/santhosh-tekuri/jsonschema/v6"

// unevaluated checks the members and elements that no other keyword of the schema, or of the schemas that it
// combines, has checked.
func (w *walk) unevaluated(s *jsonschema.Schema, v any) *Error {
	switch v := v.(type) {
	case *object:
		if s.UnevaluatedProperties == nil {
			return nil
		}
		for _, m := range v.members {
			if w.looksAt(s, v, m) {
				continue
			}
			if allowed := s.UnevaluatedProperties.Bool; allowed != nil && !*allowed && !w.over {
				return w.fail("has %s, which is not known", later(shown, m.name))
			}
			if failure := w.below(s.UnevaluatedProperties, m.value, step{name: m.name}); failure != nil {
				return failure
			}
		}
	case []any:
		if s.UnevaluatedItems == nil {
			return nil
		}
		for i, element := range v {
			if w.looksAtElement(s, v, i) {
				continue
			}
			if failure := w.below(s.UnevaluatedItems, element, step{index: i, list: true}); failure != nil {
				return failure
			}
		}
	}
	return nil
}

// inPlace returns the schemas that s applies to the same value and that the value matches.
func (w *walk) inPlace(s *jsonschema.Schema, v any) []*jsonschema.Schema {
	var parts []*jsonschema.Schema
	if !w.spend(len(s.AllOf)/enumWork + len(s.DependentSchemas)) {
		return nil
	}
	if s.Ref != nil {
		parts = append(parts, s.Ref)
	}
	parts = append(parts, s.AllOf...)
	for _, list := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		for _, part := range list {
			if w.fits(part, v) {
				parts = append(parts, part)
			}
		}
	}
	if s.If != nil {
		if w.fits(s.If, v) {
			parts = append(parts, s.If)
			if s.Then != nil {
				parts = append(parts, s.Then)
			}
		} else if s.Else != nil {
			parts = append(parts, s.Else)
		}
	}
	if o, ok := v.(*object); ok {
		for name, part := range s.DependentSchemas {
			if o.has(name) {
				parts = append(parts, part)
			}
		}
	}
	return parts
}

// looksAt reports whether s, or a schema that it applies to the same object, has a schema for a member.
func (w *walk) looksAt(s *jsonschema.Schema, o *object, m member) bool {
	if !w.spend(3) {
		return true
	}
	if _, found := s.Properties[m.name]; found || s.AdditionalProperties != nil {
		return true
	}
	for pattern := range s.PatternProperties {
		if w.matches(pattern, m.name) {
			return true
		}
	}
	for _, part := range w.inPlace(s, o) {
		if part.UnevaluatedProperties != nil || w.looksAt(part, o, m) {
			return true
		}
	}
	return false
}

// looksAtElement is like looksAt, for the elements of a list.
func (w *walk) looksAtElement(s *jsonschema.Schema, list []any, i int) bool {
	if !w.spend(3) {
		return true
	}
	if part, _ := elementSchema(s, i); part != nil || s.AdditionalItems != nil {
		return true
	}
	if s.DraftVersion >= 2020 && s.Contains != nil && w.fits(s.Contains, list[i]) {
		return true
	}
	for _, part := range w.inPlace(s, list) {
		if part.UnevaluatedItems != nil || w.looksAtElement(part, list, i) {
			return true
		}
	}
	return false
}
