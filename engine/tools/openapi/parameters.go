package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"fermata/engine/tools/httptool"
)

// An input collects the parameters of an operation. If two parameters have the same name, the part of the
// request is added to the name of the second one: the parameters id of the path and id of the body become id
// and id_body. The order is path, query, header, body.
type input struct {
	parameters []httptool.Parameter
	properties map[string]any // schemas as the document has them
	required   []any
	// rest is the schema of members with any name, or nil if there are none.
	rest any
}

func newInput() *input { return &input{properties: map[string]any{}} }

// add adds a parameter.
func (in *input) add(sent string, where httptool.In, style httptool.Style, schema any, required bool) error {
	if len(in.parameters) >= maxParameters {
		return fmt.Errorf("has more than %d parameters", maxParameters)
	}
	name := sent
	for _, candidate := range []string{sent, sent + "_" + string(where)} {
		name = candidate
		if _, taken := in.properties[name]; !taken {
			break
		}
	}
	if _, taken := in.properties[name]; taken {
		return fmt.Errorf("has several parameters of the name %.100q", sent)
	}
	p := httptool.Parameter{Name: name, In: where, Style: style}
	if name != sent {
		p.Sent = sent
	}
	in.parameters = append(in.parameters, p)
	in.properties[name] = schema
	if required {
		in.required = append(in.required, name)
	}
	return nil
}

const maxParameters = 500

// schema returns the schema of the whole input.
func (in *input) schema(b *bundle) (any, error) {
	properties := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(in.properties)) {
		converted, err := b.convert(in.properties[name], 0)
		if err != nil {
			return nil, fmt.Errorf("%.100q %w", name, err)
		}
		properties[name] = converted
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if in.rest != nil {
		rest, err := b.convert(in.rest, 0)
		if err != nil {
			return nil, err
		}
		out["additionalProperties"] = rest
	}
	if len(in.required) > 0 {
		out["required"] = in.required
	}
	return out, nil
}

// plain returns a schema in the form that it has in the document, given its form in the library.
func (r *reader) plain(s *openapi3.SchemaRef) any {
	if s == nil {
		return map[string]any{}
	}
	if s.Ref != "" && strings.HasPrefix(r.spec.OpenAPI, "3.0") {
		return map[string]any{"$ref": s.Ref}
	}
	raw, err := json.Marshal(s)
	if err != nil {
		return map[string]any{}
	}
	var b builder
	v, err := b.json(raw)
	if err != nil {
		return map[string]any{}
	}
	return v
}

// parameters adds the parameters of the path, the query and the headers.
func (r *reader) parameters(e endpoint, in *input) error {
	merged := map[string]*openapi3.Parameter{}
	for _, list := range []openapi3.Parameters{e.item.Parameters, e.operation.Parameters} {
		for _, ref := range list {
			if ref == nil || ref.Value == nil {
				return errors.New("has a parameter that is not there")
			}
			merged[ref.Value.In+" "+ref.Value.Name] = ref.Value
		}
	}
	order := []string{"path", "query", "header", "cookie"}
	all := slices.SortedFunc(maps.Values(merged), func(a, b *openapi3.Parameter) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.In), slices.Index(order, b.In)), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range all {
		if err := r.parameter(e, in, p); err != nil {
			return err
		}
	}
	return nil
}

// parameter adds one parameter, or leaves it out.
func (r *reader) parameter(e endpoint, in *input, p *openapi3.Parameter) error {
	where, known := map[string]httptool.In{"path": httptool.InPath, "query": httptool.InQuery, "header": httptool.InHeader}[p.In]
	switch {
	case p.In == "cookie" || p.In == "header" && !httptool.HeaderAllowed(p.Name):
		// The operator configures these, whether they are required or not.
		r.note("%s: the %s %.100q is no parameter of the tool; if it is needed, write it into headers", e, p.In, p.Name)
		return nil
	case !known || p.Name == "":
		return fmt.Errorf("has a parameter in %.50q, which is no part of a request", p.In)
	}
	style, schema, err := r.styled(p)
	if err != nil {
		if p.Required || where == httptool.InPath {
			return fmt.Errorf("has the parameter %.100q, which %w", p.Name, err)
		}
		r.note("%s: the parameter %.100q is left out: it %s", e, p.Name, err)
		return nil
	}
	return in.add(p.Name, where, style, described(schema, p.Description), p.Required || where == httptool.InPath)
}

// styled returns how a parameter is written, and its schema.
func (r *reader) styled(p *openapi3.Parameter) (httptool.Style, any, error) {
	if len(p.Content) > 0 {
		media := jsonContent(p.Content)
		if media == nil {
			return "", nil, errors.New("is neither plain nor JSON")
		}
		return httptool.StyleJSON, r.plain(media.Schema), nil
	}
	schema := r.plain(p.Schema)
	isObject := r.hasType(schema, "object")
	explode := p.Style == "" || p.Style == "form"
	if p.Explode != nil {
		explode = *p.Explode
	}
	switch style := p.Style; {
	case p.In != "query" && (style == "" || style == "simple"):
		if isObject {
			return "", nil, errors.New("is an object outside of the query and the body")
		}
		return httptool.StyleComma, schema, nil
	case p.In != "query":
		return "", nil, fmt.Errorf("has the style %.50q, which is not supported", style)
	case style == "deepObject":
		return httptool.StyleDeep, schema, nil
	case style == "" || style == "form":
		switch {
		case explode && isObject:
			return httptool.StyleSpread, schema, nil
		case explode:
			return httptool.StyleRepeat, schema, nil
		case isObject:
			return "", nil, errors.New("is an object that is not exploded, which is not supported")
		default:
			return httptool.StyleComma, schema, nil
		}
	case isObject:
		return "", nil, fmt.Errorf("is an object with the style %.50q, which is not supported", style)
	case explode && (style == "spaceDelimited" || style == "pipeDelimited"):
		return httptool.StyleRepeat, schema, nil
	case style == "spaceDelimited":
		return httptool.StyleSpace, schema, nil
	case style == "pipeDelimited":
		return httptool.StylePipe, schema, nil
	default:
		return "", nil, fmt.Errorf("has the style %.50q, which is not known", style)
	}
}

// hasType reports whether a schema allows a type.
func (r *reader) hasType(schema any, name string) bool {
	s, err := follow(r.tree, schema)
	if err != nil || s == nil {
		return false
	}
	switch kind := s["type"].(type) {
	case string:
		return kind == name
	case []any:
		return slices.Contains(kind, any(name))
	}
	_, properties := s["properties"].(map[string]any)
	return properties && name == "object"
}

// described returns a schema with the description of its parameter.
func described(schema any, text string) any {
	s, ok := schema.(map[string]any)
	if !ok || strings.TrimSpace(text) == "" {
		return schema
	}
	if _, isRef := s["$ref"]; isRef {
		return map[string]any{"allOf": []any{s}, "description": text}
	}
	s = maps.Clone(s)
	s["description"] = text
	return s
}

// jsonContent returns the JSON content among several contents, or nil.
func jsonContent(content openapi3.Content) *openapi3.MediaType {
	for _, name := range sortedKeys(content) {
		media, _, err := mime.ParseMediaType(name)
		if err == nil && content[name] != nil && (media == "application/json" || strings.HasSuffix(media, "+json")) {
			return content[name]
		}
	}
	return nil
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
