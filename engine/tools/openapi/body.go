package openapi

import (
	"errors"
	"maps"
	"slices"

	"fermata/engine/tools/httptool"
)

// wholeBody is the parameter of a body that is not an object of properties.
const wholeBody = "body"

// body adds the body of an operation: the properties of an object are parameters of the tool, and
// any other body is the parameter body.
func (r *reader) body(e endpoint, in *input) error {
	if e.operation.RequestBody == nil || e.operation.RequestBody.Value == nil {
		return nil
	}
	body := e.operation.RequestBody.Value
	media := jsonContent(body.Content)
	switch {
	case media == nil && body.Required:
		return errors.New("needs a body that is not JSON")
	case media == nil:
		if len(body.Content) > 0 {
			r.note("%s: its body is left out: it is not JSON", e)
		}
		return nil
	case e.method == "GET" || e.method == "HEAD":
		if body.Required {
			return errors.New("needs a body, which a " + e.method + " request does not have")
		}
		r.note("%s: its body is left out, since it is a %s request", e, e.method)
		return nil
	}
	whole := r.plain(media.Schema)
	object, err := r.flatten(whole, 0)
	if err != nil {
		return err
	}
	if object == nil {
		return in.add(wholeBody, httptool.InWhole, httptool.StyleRepeat, described(whole, body.Description), body.Required)
	}
	for _, name := range sortedKeys(object.properties) {
		required := body.Required && slices.Contains(object.required, any(name))
		if err := in.add(name, httptool.InBody, httptool.StyleRepeat, object.properties[name], required); err != nil {
			return err
		}
	}
	in.rest = object.rest
	return nil
}

// flatten returns the properties of an object, or nil if a schema is none, or says more than which
// properties there are. Those of allOf are taken together.
func (r *reader) flatten(v any, depth int) (*input, error) {
	if depth > 16 {
		return nil, errors.New("has a body that refers to itself without end")
	}
	s, err := follow(r.tree, v)
	if err != nil || s == nil {
		return nil, err
	}
	for keyword := range s {
		switch keyword {
		case "oneOf", "anyOf", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties",
			"dependentSchemas", "dependentRequired", "const", "enum", "unevaluatedProperties", "nullable":
			if s[keyword] != false {
				return nil, nil
			}
		}
	}
	if kind, found := s["type"]; found && kind != "object" {
		return nil, nil
	}
	object := newInput()
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		if member, err := follow(r.tree, property); err == nil && member["readOnly"] == true {
			continue
		}
		object.properties[name] = property
	}
	required, _ := s["required"].([]any)
	object.required = append(object.required, required...)
	switch rest := s["additionalProperties"].(type) {
	case bool:
		if rest {
			object.rest = map[string]any{}
		}
	case map[string]any:
		object.rest = rest
	}
	parts, _ := s["allOf"].([]any)
	for _, part := range parts {
		inner, err := r.flatten(part, depth+1)
		if err != nil || inner == nil {
			return nil, err
		}
		for name := range inner.properties {
			if _, twice := object.properties[name]; twice {
				return nil, nil
			}
		}
		maps.Copy(object.properties, inner.properties)
		object.required = append(object.required, inner.required...)
		if inner.rest != nil {
			object.rest = inner.rest
		}
	}
	if depth == 0 && len(object.properties) == 0 && object.rest == nil {
		return nil, nil
	}
	return object, nil
}
