package openapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"fermata/engine/tools/schema"
)

// wrongValue is why a keyword is left out that has a value of the wrong kind.
const wrongValue = "a keyword of a schema is left out: its value cannot be used"

// keyword sets a keyword that has no schemas, if its value is one that it can have. It returns false for all
// other keywords.
func (b *bundle) keyword(out *object, name string, v placed) bool {
	good := true
	switch name {
	case "type":
		good = isType(v.value)
	case "enum":
		list, ok := v.value.([]any)
		good = ok && len(list) > 0
	case "const", "default":
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		number, ok := v.value.(json.Number)
		if _, isFlag := v.value.(bool); isFlag && strings.HasPrefix(name, "exclusive") {
			return true
		}
		if good = ok; ok && name == "multipleOf" {
			value, err := strconv.ParseFloat(string(number), 64)
			good = err == nil && value > 0
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties":
		number, ok := v.value.(json.Number)
		good = ok && strings.Trim(string(number), "0123456789") == ""
	case "uniqueItems":
		_, good = v.value.(bool)
	case "required":
		names, ok := texts(v.value)
		if good = ok; ok {
			out.set(name, names)
			return true
		}
		if _, isFlag := v.value.(bool); isFlag { // In 3.0 some documents have a boolean, as for parameters.
			return true
		}
	case "dependentRequired":
		good = isDependencies(v)
	case "pattern":
		text, ok := v.value.(string)
		if good = ok; ok && !b.pattern(text, v.at) {
			return true
		}
	case "description", "title":
		text, ok := v.value.(string)
		if good = ok; ok {
			out.set(name, cutText(text, 1000))
			b.size += len(name) + min(len(text), 1000)
			return true
		}
	case "format", "contentEncoding", "contentMediaType":
		_, good = v.value.(string)
	default:
		return false
	}
	if good {
		out.set(name, v.value)
	} else if v.value != nil {
		b.drop(wrongValue, v.at.String())
	}
	return true
}

// isType reports whether a value is a type or a list of different types.
func isType(v any) bool {
	if text, ok := v.(string); ok {
		v = []any{text}
	}
	list, ok := v.([]any)
	for i, name := range list {
		if !slices.Contains([]any{"string", "number", "integer", "boolean", "array", "object", "null"}, name) || slices.Contains(list[:i], name) {
			return false
		}
	}
	return ok && len(list) > 0
}

// texts returns a list of texts, each of them once.
func texts(v any) ([]any, bool) {
	list, ok := v.([]any)
	if !ok {
		return nil, false
	}
	var out []any
	for _, element := range list {
		if _, ok := element.(string); !ok {
			return nil, false
		}
		if !slices.Contains(out, element) {
			out = append(out, element)
		}
	}
	return out, true
}

// isDependencies reports whether a value has a list of names for each name.
func isDependencies(v placed) bool {
	o, ok := v.value.(*object)
	if !ok {
		return false
	}
	for _, m := range o.members {
		names, ok := texts(o.get(m.name))
		if !ok || len(names) != len(o.list(m.name)) {
			return false
		}
	}
	return true
}

// A measure counts the parts of a schema in the way in which a check walks through them.
type measure struct {
	defs  *object
	nodes int
}

// A step is a schema on the way to the present one. inPlace is true if it describes the same value as the schema
// before it.
type step struct {
	schema  *object
	inPlace bool
}

// visit counts a schema and what it contains. A schema that contains itself is counted once on each way.
func (m *measure) visit(v any, way []step) error {
	s, _ := v.(*object)
	if m.nodes++; m.nodes > schema.MaxNodes {
		return errLarge
	}
	same := true
	for _, above := range slices.Backward(way) {
		if s != nil && above.schema == s {
			if same {
				return errEndless
			}
			return nil
		}
		same = same && above.inPlace
	}
	if s == nil {
		return nil
	}
	for _, part := range s.members {
		inPlace := true
		var inner []any
		switch part.name {
		case "$ref":
			ref, _ := part.value.(string)
			inner = []any{m.defs.get(strings.TrimPrefix(ref, "#/$defs/"))}
		case "not", "if", "then", "else":
			inner = []any{part.value}
		case "allOf", "anyOf", "oneOf":
			inner, _ = part.value.([]any)
		case "prefixItems":
			inPlace = false
			inner, _ = part.value.([]any)
		case "items", "additionalProperties", "contains", "propertyNames", "unevaluatedProperties", "unevaluatedItems":
			inPlace = false
			inner = []any{part.value}
		case "properties", "patternProperties", "dependentSchemas":
			inPlace = part.name == "dependentSchemas"
			members, _ := part.value.(*object)
			for _, member := range members.members {
				inner = append(inner, member.value)
			}
		}
		for _, one := range inner {
			if len(way) >= schema.MaxSchemaDepth {
				return errLarge
			}
			if err := m.visit(one, append(way, step{s, inPlace})); err != nil {
				return err
			}
		}
	}
	return nil
}
