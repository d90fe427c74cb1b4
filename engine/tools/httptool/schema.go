package httptool

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// object is what this package reads of a JSON Schema.
type object struct {
	Properties           json.RawMessage   `json:"properties"`
	AdditionalProperties json.RawMessage   `json:"additionalProperties"`
	AllOf                []json.RawMessage `json:"allOf"`
	AnyOf                []json.RawMessage `json:"anyOf"`
	OneOf                []json.RawMessage `json:"oneOf"`
}

// maxCombined is the number of levels of allOf, anyOf and oneOf that are followed.
const maxCombined = 8

// members returns the names of the properties that a schema declares, in their order, and whether it
// says that there may be others.
func members(schema json.RawMessage) (names []string, open bool) {
	return appendMembers(nil, schema, maxCombined)
}

func appendMembers(names []string, schema json.RawMessage, depth int) ([]string, bool) {
	var o object
	if depth == 0 || json.Unmarshal(schema, &o) != nil {
		return names, false
	}
	for _, m := range entries(o.Properties) {
		if !slices.Contains(names, m.name) {
			names = append(names, m.name)
		}
	}
	extra := bytes.TrimSpace(o.AdditionalProperties)
	open := len(extra) > 0 && string(extra) != "false"
	for _, part := range slices.Concat(o.AllOf, o.AnyOf, o.OneOf) {
		more, also := appendMembers(names, part, depth-1)
		names, open = more, open || also
	}
	return names, open
}

// an entry is a member of a JSON object.
type entry struct {
	name  string
	value json.RawMessage
}

// entries returns the members of a JSON object in their order. It returns none for other values.
func entries(raw json.RawMessage) []entry {
	if len(raw) == 0 || jsontext.Value(raw).Kind() != jsontext.KindBeginObject {
		return nil
	}
	d := jsontext.NewDecoder(bytes.NewReader(raw), jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return nil
	}
	var list []entry
	for d.PeekKind() == jsontext.KindString {
		name, err := d.ReadToken()
		if err != nil {
			return nil
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		list = append(list, entry{key, bytes.Clone(value)})
	}
	return list
}

// elsewhere are the keywords by which a schema may allow properties that it does not declare itself.
var elsewhere = []string{
	"additionalProperties", "patternProperties", "unevaluatedProperties", "allOf", "anyOf", "oneOf", "if", "then", "else",
	"dependentSchemas", "dependencies", "$ref", "$dynamicRef", "$recursiveRef",
}

// closed returns a schema that says what is so of all tools: what it does not declare is not sent. Those who
// read it know then which arguments there are, and a misspelled one is refused with a hint.
func closed(schema json.RawMessage) json.RawMessage {
	text := bytes.TrimSpace(schema)
	all := entries(text)
	if len(text) == 0 || text[len(text)-1] != '}' || slices.ContainsFunc(all, func(m entry) bool { return slices.Contains(elsewhere, m.name) }) {
		return schema
	}
	comma := ","
	if len(all) == 0 {
		comma = ""
	}
	return slices.Concat(text[:len(text)-1], []byte(comma+`"additionalProperties":false}`))
}

// without returns a schema that neither declares nor requires some properties.
func without(schema json.RawMessage, hidden []string) json.RawMessage {
	if len(hidden) == 0 {
		return schema
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(schema, &all) != nil {
		return schema
	}
	var required []string
	if json.Unmarshal(all["required"], &required) == nil && len(required) > 0 {
		required = slices.DeleteFunc(required, func(name string) bool { return slices.Contains(hidden, name) })
		all["required"], _ = json.Marshal(required)
	}
	if properties := entries(all["properties"]); properties != nil {
		kept := []byte("{")
		for _, m := range properties {
			if slices.Contains(hidden, m.name) {
				continue
			}
			if len(kept) > 1 {
				kept = append(kept, ',')
			}
			name, err := json.Marshal(m.name)
			if err != nil {
				return schema
			}
			kept = append(append(append(kept, name...), ':'), m.value...)
		}
		all["properties"] = append(kept, '}')
	}
	out, err := json.Marshal(all)
	if err != nil {
		return schema
	}
	return out
}
