package librechat

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"fermata/api"
	"fermata/stubs"
)

// toolsOf returns the tools of a start. It does not check that they have names.
func toolsOf(list array[toolMembers], limit int) ([]stubs.Tool, error) {
	switch {
	case list.given() && list.kind != jsontext.KindBeginArray:
		return nil, errTools
	case list.count > limit:
		return nil, api.BadRequestf("Too many tools provided (%d). Maximum is %d.", list.count, limit)
	case list.strays:
		return nil, api.BadRequestf("tools[%d] must be an object", list.stray)
	}
	tools := make([]stubs.Tool, 0, len(list.entries))
	for i, members := range list.entries {
		tool, err := toolOf(fmt.Sprintf("tools[%d]", i), members)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, checkTwins(tools)
}

// refuseTools refuses tools where programs cannot call any.
func refuseTools(list array[toolMembers]) error {
	if list.given() && (list.kind != jsontext.KindBeginArray || list.count > 0) {
		return errExecTools
	}
	return nil
}

// toolOf returns a tool from its definition, in whichever shape it is written. place is where the
// definition stands in the request.
func toolOf(place string, m toolMembers) (t stubs.Tool, err error) {
	f := m.Function
	if f.kind != 0 && f.kind != jsontext.KindNull && f.kind != jsontext.KindBeginObject {
		return t, api.BadRequestf("%s.function must be an object", place)
	}
	t.Name, err = textOf("non-empty string", given(place, part{"name", m.Name}, part{"function.name", f.Name}))
	if err != nil {
		return t, err
	}
	t.Description, err = textOf("string", given(place, part{"description", m.Description}, part{"function.description", f.Description}))
	if err != nil {
		return t, err
	}
	t.Parameters, err = schemaOf(given(place,
		part{"parameters", m.Parameters}, part{"input_schema", m.InputSchema}, part{"inputSchema", m.MCPSchema}, part{"function.parameters", f.Parameters}))
	return t, err
}

// A part is a member of a tool's definition and its path.
type part struct {
	path  string
	value jsontext.Value
}

// given returns those of the parts that are there, with their paths in the request.
func given(place string, parts ...part) (list []part) {
	for _, p := range parts {
		if !isNull(p.value) {
			list = append(list, part{place + "." + p.path, p.value})
		}
	}
	return list
}

// textOf returns the text that all parts have, or "" if there are none. want is what each must be.
func textOf(want string, parts []part) (text string, err error) {
	for i, p := range parts {
		s, ok := unquote(p.value)
		switch {
		case !ok:
			return "", api.BadRequestf("%s must be a %s", p.path, want)
		case i > 0 && s != text:
			return "", api.BadRequestf("%s and %s differ", parts[0].path, p.path)
		}
		text = s
	}
	return text, nil
}

// schemaOf returns the schema that all parts have, or nil if there are none.
func schemaOf(parts []part) (schema json.RawMessage, err error) {
	for i, p := range parts {
		switch {
		case p.value.Kind() != jsontext.KindBeginObject:
			return nil, api.BadRequestf("%s must be an object, a JSON Schema", p.path)
		case i > 0 && !sameJSON(schema, json.RawMessage(p.value)):
			return nil, api.BadRequestf("%s and %s are different schemas for one tool", parts[0].path, p.path)
		}
		schema = json.RawMessage(p.value)
	}
	return schema, nil
}

// checkTwins refuses two definitions of one tool that differ: the program could have only one of them.
func checkTwins(tools []stubs.Tool) error {
	first := make(map[string]int, len(tools))
	for i, t := range tools {
		j, again := first[t.Name]
		if !again {
			first[t.Name] = i
			continue
		}
		if twin := tools[j]; t.Description != twin.Description || !sameJSON(t.Parameters, twin.Parameters) {
			return differ(j, i, t.Name)
		}
	}
	return nil
}

// differ refuses two definitions of one tool that are not the same.
func differ(i, j int, name string) error {
	return api.BadRequestf("tools[%d] and tools[%d] define the tool %q in different ways", i, j, name)
}

// maxCompared is the size in bytes up to which two schemas of different bytes are compared by what they
// mean, which takes much longer than reading them.
const maxCompared = 32 << 10

// sameJSON reports whether two JSON values, which may be nil, are equal. White space and the order of
// members make no difference, unless the values are large.
func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	if a == nil || b == nil || max(len(a), len(b)) > maxCompared {
		return false
	}
	x, y := jsontext.Value(bytes.Clone(a)), jsontext.Value(bytes.Clone(b))
	lenient := []jsontext.Options{jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)}
	return x.Canonicalize(lenient...) == nil && y.Canonicalize(lenient...) == nil && bytes.Equal(x, y)
}
