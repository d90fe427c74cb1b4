package stubs

import (
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// maxVariants is how many alternatives a union of objects may have whose properties become parameters.
const maxVariants = 32

// unite adds the properties of the alternatives of a union, if all alternatives are objects that declare some. A
// property is required if all alternatives require it. It returns which other arguments the tool takes.
func (r *reader) unite(union jsontext.Value, rest others) others {
	var sources []json.RawMessage
	if json.Unmarshal(union, &sources) != nil || len(sources) > maxVariants {
		return rest
	}
	own := len(r.properties)
	var added []property
	var variants []string
	with := map[string]int{} // how many alternatives require a property
	all := noOthers
	for _, source := range sources {
		branch := reader{deep: r.deep}
		properties, its := branch.parameters(source)
		if !branch.declared || len(properties) == 0 {
			return rest
		}
		variants = append(variants, shownVariant(properties))
		if its != noOthers && all != anyOthers {
			all = its
		}
		for _, p := range properties {
			if slices.ContainsFunc(r.properties[:own], func(o property) bool { return o.name == p.name }) {
				continue
			}
			if p.required {
				with[p.name]++
			}
			added = merge(added, p)
		}
	}
	for i := range added {
		added[i].required = with[added[i].name] == len(sources)
	}
	r.properties, r.variants = append(r.properties, added...), variants
	r.properties = r.properties[:min(len(r.properties), maxProperties)]
	if own == 0 && len(r.properties) < maxProperties {
		return all
	}
	return anyOthers
}

// merge adds a property of an alternative. If there is one with its name, that one then allows both schemas.
func merge(properties []property, p property) []property {
	i := slices.IndexFunc(properties, func(o property) bool { return o.name == p.name })
	if i < 0 {
		return append(properties, p)
	}
	known := &properties[i]
	switch {
	case known.enum != nil && p.enum != nil && known.anyOf == nil && p.anyOf == nil:
		// The names of the alternatives, usually.
		known.enum = slices.Concat(known.enum[:len(known.enum)-1], []byte{','}, p.enum[1:])
		known.members += p.members
		known.kinds, known.values = known.kinds|p.kinds, known.values|p.values
	case known.united:
		known.anyOf = append(known.anyOf, p.schema)
	default:
		first := known.schema
		known.schema, known.united = schema{description: first.description, anyOf: []schema{first, p.schema}}, true
	}
	known.preset = nil // which one is meant depends on the alternative
	return properties
}

// shownVariant returns an alternative of a union for people: its properties, with the value of those that can have
// only one, and those that are not required in brackets.
func shownVariant(properties []property) string {
	var text []byte
	for i := range properties {
		p := &properties[i]
		if i == maxKeys {
			text = append(text, ", ..."...)
			break
		}
		if i > 0 {
			text = append(text, ", "...)
		}
		if !p.required {
			text = append(text, '[')
		}
		text = appendName(text, p.name)
		if p.members == 1 && len(p.enum) <= maxDefault {
			value := appendLiteral(nil, p.enum, appendReadable)
			text = append(append(text, '='), value[1:len(value)-1]...)
		}
		if !p.required {
			text = append(text, ']')
		}
	}
	return string(text)
}
