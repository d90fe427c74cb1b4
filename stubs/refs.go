package stubs

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of the replacement of references. A schema that exceeds them is not changed.
const (
	maxExpanded = 256 << 10 // bytes of a schema without references
	maxHops     = 8         // references that lead to references
)

// withoutReferences returns a schema in which references to its own definitions are replaced by these
// definitions, as deep as a reader reads. It is needed since MCP servers and OpenAPI documents have schemas with
// "$ref". An allOf with one schema counts as a reference to it. If the schema has no references, or would become
// too large, it is returned as it is.
func withoutReferences(src json.RawMessage) json.RawMessage {
	if !bytes.Contains(src, []byte(`"$ref"`)) {
		return src
	}
	var root struct {
		Defs        map[string]json.RawMessage `json:"$defs"`
		Definitions map[string]json.RawMessage `json:"definitions"`
	}
	if json.Unmarshal(src, &root) != nil {
		return src
	}
	e := expander{definitions: map[string]json.RawMessage{}}
	for name, definition := range root.Defs {
		e.definitions["#/$defs/"+name] = definition
	}
	for name, definition := range root.Definitions {
		e.definitions["#/definitions/"+name] = definition
	}
	if e.schema(src, 0); e.failed {
		return src
	}
	return e.out
}

// An expander writes a schema without references.
type expander struct {
	definitions map[string]json.RawMessage // by the text of the references to them
	out         []byte
	failed      bool
}

// A member is a member of a JSON object.
type member struct {
	name  string
	value jsontext.Value
}

// members returns the members of an object, or nil for any other value.
func (e *expander) members(src json.RawMessage) []member {
	d := jsontext.NewDecoder(bytes.NewReader(src), jsontext.AllowInvalidUTF8(true))
	if d.PeekKind() != jsontext.KindBeginObject {
		return nil
	}
	_, err := d.ReadToken()
	members := []member{}
	for err == nil && d.PeekKind() != jsontext.KindEndObject {
		var name jsontext.Token
		if name, err = d.ReadToken(); err != nil {
			break
		}
		m := member{name: name.String()}
		m.value, err = d.ReadValue()
		m.value = m.value.Clone()
		members = append(members, m)
	}
	e.failed = e.failed || err != nil
	return members
}

// schema writes a schema.
func (e *expander) schema(src json.RawMessage, depth int) {
	members := e.members(src)
	if members == nil || depth > 2*maxDepth || e.failed || len(e.out)+len(src) > maxExpanded {
		e.failed = e.failed || len(e.out)+len(src) > maxExpanded
		e.out = append(e.out, src...)
		return
	}
	e.object(e.resolved(members), func(m member) {
		switch m.name {
		case "properties":
			e.object(e.members(json.RawMessage(m.value)), func(p member) { e.schema(json.RawMessage(p.value), depth+1) })
		case "items":
			e.schema(json.RawMessage(m.value), depth+1)
		case "anyOf", "oneOf":
			var branches []json.RawMessage
			if json.Unmarshal(m.value, &branches) != nil {
				e.out = append(e.out, m.value...)
				return
			}
			e.out = append(e.out, '[')
			for i, branch := range branches {
				if i > 0 {
					e.out = append(e.out, ',')
				}
				e.schema(branch, depth+1)
			}
			e.out = append(e.out, ']')
		default:
			e.out = append(e.out, m.value...)
		}
	})
}

// object writes an object with these members, whose values the function writes.
func (e *expander) object(members []member, value func(member)) {
	e.out = append(e.out, '{')
	for i, m := range members {
		if i > 0 {
			e.out = append(e.out, ',')
		}
		var err error
		if e.out, err = jsontext.AppendQuote(e.out, m.name); err != nil {
			e.failed = true
		}
		e.out = append(e.out, ':')
		value(m)
	}
	e.out = append(e.out, '}')
}

// resolved returns the members of a schema and of the schema to which it refers. The members of the schema itself
// take precedence. Definitions are left out.
func (e *expander) resolved(members []member) []member {
	for range maxHops {
		i := slices.IndexFunc(members, func(m member) bool { return e.target(m) != nil })
		if i < 0 {
			break
		}
		target := e.members(e.target(members[i]))
		members = slices.Delete(members, i, i+1)
		for _, m := range target {
			if !slices.ContainsFunc(members, func(own member) bool { return own.name == m.name }) {
				members = append(members, m)
			}
		}
	}
	return slices.DeleteFunc(members, func(m member) bool { return m.name == "$defs" || m.name == "definitions" })
}

// target returns the schema that the member refers to, or nil.
func (e *expander) target(m member) json.RawMessage {
	switch m.name {
	case "$ref":
		var reference string
		if json.Unmarshal(m.value, &reference) != nil {
			return nil
		}
		return e.definitions[strings.NewReplacer("~1", "/", "~0", "~").Replace(reference)]
	case "allOf":
		var schemas []json.RawMessage
		if json.Unmarshal(m.value, &schemas) != nil || len(schemas) != 1 {
			return nil
		}
		return schemas[0]
	}
	return nil
}
