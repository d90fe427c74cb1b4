package stubs

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The limits of the replacement of references. A schema that exceeds them is not changed.
const (
	maxExpanded = 256 << 10 // bytes of a schema without references
	maxHops     = 8         // references that lead to references
	maxPointer  = 16        // steps of a JSON pointer
)

// withoutReferences returns a schema in which references to its own definitions are replaced by these
// definitions, as deep as a reader reads. It is needed since MCP servers and OpenAPI documents have schemas with
// "$ref". An allOf with one schema counts as a reference to it. If the schema has no references, or would become
// too large, it is returned as it is.
func withoutReferences(src json.RawMessage) json.RawMessage {
	if !bytes.Contains(src, []byte(`"$ref"`)) {
		return src
	}
	e := expander{nodes: map[string]map[string]json.RawMessage{"": {"": src}}}
	if e.schema(src, 0); e.failed {
		return src
	}
	return e.out
}

// An expander writes a schema without references.
type expander struct {
	// nodes are the members of objects and lists, by their JSON pointers: each is read once, however many
	// references lead through it.
	nodes  map[string]map[string]json.RawMessage
	out    []byte
	failed bool
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
		pointer, found := strings.CutPrefix(reference, "#/")
		pointer, err := url.PathUnescape(pointer)
		if !found || err != nil || strings.Count(pointer, "/") >= maxPointer {
			return nil
		}
		return e.at("/" + pointer)
	case "allOf":
		var schemas []json.RawMessage
		if json.Unmarshal(m.value, &schemas) != nil || len(schemas) != 1 {
			return nil
		}
		return schemas[0]
	}
	return nil
}

// at returns the value at a JSON pointer, or nil.
func (e *expander) at(pointer string) json.RawMessage {
	if pointer == "" {
		return e.nodes[""][""]
	}
	end := strings.LastIndexByte(pointer, '/')
	parent, name := pointer[:end], strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[end+1:])
	key := "/" + parent // so that the root is not the node without a name
	members, known := e.nodes[key]
	if !known {
		members = membersOf(e.at(parent))
		e.nodes[key] = members
	}
	return members[name]
}

// membersOf returns the members of an object, or those of a list by their indices.
func membersOf(value json.RawMessage) map[string]json.RawMessage {
	var members map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(value, &members) == nil || json.Unmarshal(value, &list) != nil {
		return members
	}
	members = map[string]json.RawMessage{}
	for i, each := range list {
		members[strconv.Itoa(i)] = each
	}
	return members
}
