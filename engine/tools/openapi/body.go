package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"fermata/engine/tools/httptool"
)

// wholeBody is the parameter of a body that is not an object of properties.
const wholeBody = "body"

// bodies are the kinds of bodies that can be sent. The first one that an operation takes is sent.
var bodies = []func(media string) bool{isJSON, isForm, isMultipart, isAny, isText}

func isForm(media string) bool      { return media == httptool.MediaForm }
func isMultipart(media string) bool { return media == httptool.MediaMultipart }
func isAny(media string) bool       { return media == "*/*" || media == "application/*" }

// isText reports whether a program can write a body of a media type as a text.
func isText(media string) bool {
	return strings.HasPrefix(media, "text/") || strings.HasSuffix(media, "+xml") || slices.Contains([]string{
		"application/xml", "application/x-ndjson", "application/jsonl", "application/graphql", "application/yaml",
		"application/x-yaml", "application/sql", "application/octet-stream",
	}, media)
}

// body adds the body of an operation: the properties of an object are parameters of the tool, and any other body
// is the parameter body.
func (r *reader) body(e endpoint, in *input) error {
	body, at, err := follow(r.tree, e.operation.member("requestBody"))
	if err != nil {
		return fmt.Errorf("has a body at %s that %w", at, err)
	}
	content := placed{body, at}.member("content")
	if contents, _ := content.value.(*object); contents == nil || len(contents.members) == 0 {
		return nil
	}
	required := body.get("required") == true
	for _, fits := range bodies {
		media, name := mediaOf(content, fits)
		if name == "" {
			continue
		}
		schema, _, err := follow(r.tree, media.member("schema"))
		switch {
		case err == nil && isEmpty(schema):
			return nil
		case e.method == "GET" || e.method == "HEAD":
			if required {
				return errors.New("needs a body, which a " + e.method + " request does not have")
			}
			r.notes.add(e, "its body is left out, since it is a "+e.method+" request", "")
			return nil
		}
		if in.media = name; isAny(name) {
			in.media = "application/json"
		}
		return r.content(in, media, required, body.text("description"))
	}
	return errors.New("takes a body that is neither JSON nor a form nor a text")
}

// isEmpty reports whether a schema allows nothing but an object without members.
func isEmpty(schema *object) bool {
	properties := schema.object("properties")
	return schema.get("additionalProperties") == false && (properties == nil || len(properties.members) == 0) &&
		schema.find("allOf") < 0 && schema.find("anyOf") < 0 && schema.find("oneOf") < 0 && schema.find("patternProperties") < 0
}

// content adds the parameters of a body with a content.
func (r *reader) content(in *input, media placed, required bool, text string) error {
	kind, _, _ := mime.ParseMediaType(in.media)
	whole := media.member("schema")
	if isText(kind) && !isJSON(kind) {
		whole = placed{newObject("type", "string"), whole.at}
		return in.add(httptool.Parameter{Name: wholeBody, In: httptool.InWhole}, describedAs(whole, text), required)
	}
	flattened, err := r.flatten(whole, 0)
	if err != nil {
		return err
	}
	form := isForm(kind) || isMultipart(kind)
	if flattened == nil || len(in.parameters)+len(flattened.properties) > maxParameters {
		if form { // The members of any object can be sent.
			whole = placed{newObject("type", "object", "allOf", []any{cmp.Or[any](whole.value, newObject())}), whole.at}
		}
		return in.add(httptool.Parameter{Name: wholeBody, In: httptool.InWhole}, describedAs(whole, text), required)
	}
	for _, property := range flattened.properties {
		p := httptool.Parameter{Name: property.name, In: httptool.InBody}
		schema := property.schema
		if form {
			encoding, _ := media.member("encoding").member(p.Name).value.(*object)
			if err := r.encode(&p, &schema, encoding, kind); err != nil {
				return fmt.Errorf("has the property %.100q in its body, which %w", p.Name, err)
			}
		}
		if err := in.add(p, schema, required && slices.Contains(flattened.required, any(property.name))); err != nil {
			return err
		}
	}
	in.rest = flattened.rest
	return nil
}

// encode sets how a property of a form is written, and its schema if it is a file.
func (r *reader) encode(p *httptool.Parameter, schema *placed, encoding *object, kind string) error {
	media, _, _ := strings.Cut(encoding.text("contentType"), ",")
	if media, _, err := mime.ParseMediaType(media); err == nil && !strings.Contains(media, "*") {
		p.Media = media
	}
	switch {
	case isMultipart(kind):
		if describesFile(r, *schema, 0) {
			p.Style = httptool.StyleFile
			described, _, _ := follow(r.tree, *schema)
			*schema = describedAs(placed{fileSchema(), schema.at}, described.text("description"))
		} else if isJSON(p.Media) {
			p.Style = httptool.StyleJSON
		}
	case p.Media != "":
		if isJSON(p.Media) {
			p.Style = httptool.StyleJSON
		}
		p.Media = ""
	case encoding.text("style") != "" || encoding.get("explode") != nil:
		style, err := queryStyle(encoding, isOfType(r, *schema, "object"))
		if err != nil {
			return err
		}
		p.Style = style
	}
	return nil
}

// describesFile reports whether the schema of a part is that of a file, or of a list of files.
func describesFile(r *reader, v placed, depth int) bool {
	s, at, err := follow(r.tree, v)
	if err != nil || s == nil || depth > 1 {
		return false
	}
	media := s.text("contentMediaType")
	if s.text("format") == "binary" || media != "" && !isJSON(media) && s.text("contentEncoding") == "" {
		return true
	}
	return s.text("type") == "array" && describesFile(r, placed{s, at}.member("items"), depth+1)
}

// fileSchema is the schema of what a program gives for a file.
func fileSchema() *object {
	text := func(description string) *object { return newObject("type", "string", "description", description) }
	file := newObject("type", "object", "properties", newObject(
		"filename", text("name of the file"), "content", text("content, a text"), "base64", text("content in base64, instead of a text"),
	), "additionalProperties", false)
	one := []any{newObject("type", "string", "description", "content, a text"), file}
	return newObject("anyOf", append(one, newObject("type", "array", "items", newObject("anyOf", one))))
}

// A flat object has the properties of a schema that says no more than which properties there are.
type flat struct {
	properties []property
	required   []any
	rest       *placed // the schema of members with any name, or nil if there are none
}

type property struct {
	name   string
	schema placed
}

// flatten returns the properties of an object, or nil if a schema is none, or says more than which properties
// there are. Those of allOf are taken together.
func (r *reader) flatten(v placed, depth int) (*flat, error) {
	if depth > 16 {
		return nil, errors.New("has a body that refers to itself without end")
	}
	s, at, err := follow(r.tree, v)
	if err != nil || s == nil {
		return nil, nil //nolint:nilerr // the schema itself tells what is wrong
	}
	for _, m := range s.members {
		switch m.name {
		case "oneOf", "anyOf", "not", "if", "patternProperties", "propertyNames", "minProperties", "maxProperties",
			"dependentSchemas", "dependentRequired", "const", "enum", "unevaluatedProperties", "nullable":
			if m.value != false {
				return nil, nil
			}
		}
	}
	if kind := s.get("type"); kind != nil && kind != "object" {
		return nil, nil
	}
	all := &flat{required: s.list("required")}
	from := placed{s, at}
	if properties := s.object("properties"); properties != nil {
		for _, m := range properties.members {
			schema := from.member("properties").member(m.name)
			if member, _, err := follow(r.tree, schema); err == nil && member.get("readOnly") == true {
				continue
			}
			all.properties = append(all.properties, property{m.name, schema})
		}
	}
	if rest := from.member("additionalProperties"); rest.value == true || kind(rest.value) == "object" {
		all.rest = &rest
	}
	for i, part := range s.list("allOf") {
		inner, err := r.flatten(placed{part, at.at("allOf").index(i)}, depth+1)
		if err != nil || inner == nil {
			return nil, err
		}
		for _, p := range inner.properties {
			if slices.ContainsFunc(all.properties, func(other property) bool { return other.name == p.name }) {
				return nil, nil
			}
		}
		all.properties = append(all.properties, inner.properties...)
		all.required = append(slices.Clip(all.required), inner.required...)
		all.rest = cmp.Or(inner.rest, all.rest)
	}
	if depth == 0 && len(all.properties) == 0 && all.rest == nil {
		return nil, nil
	}
	return all, nil
}
