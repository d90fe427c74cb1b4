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

// An input collects the parameters of an operation in the order in which the document declares them: those of
// the path and of the operation, then those of the body.
type input struct {
	parameters []httptool.Parameter
	properties []placed // the schemas of the parameters
	required   []any
	// media is the media type of the body, or empty.
	media string
	// rest is the schema of members with any name, or nil if there are none.
	rest *placed
}

// add adds a parameter that the endpoint gets under the name of the parameter. If the name is taken, the part of
// the request is added to it: the parameter id of a body becomes id_body.
func (in *input) add(p httptool.Parameter, schema placed, required bool) error {
	if len(in.parameters) >= maxParameters {
		return fmt.Errorf("has more than %d parameters", maxParameters)
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(in.parameters, func(other httptool.Parameter) bool { return other.Name == name })
	}
	if taken(p.Name) {
		p.Name, p.Sent = p.Name+"_"+string(p.In), p.Name
		if taken(p.Name) {
			return fmt.Errorf("has several parameters of the name %.100q", p.Sent)
		}
	}
	in.parameters = append(in.parameters, p)
	in.properties = append(in.properties, schema)
	if required {
		in.required = append(in.required, p.Name)
	}
	return nil
}

const maxParameters = 500

// schema returns the schema of the whole input.
func (in *input) schema(b *bundle) (any, error) {
	properties := &object{}
	for i, p := range in.parameters {
		converted, err := b.convert(in.properties[i], 0)
		if err != nil {
			return nil, fmt.Errorf("%.100q %w", p.Name, err)
		}
		properties.set(p.Name, converted)
	}
	out := newObject("type", "object", "properties", properties, "additionalProperties", false)
	if in.rest != nil {
		rest, err := b.convert(*in.rest, 0)
		if err != nil {
			return nil, err
		}
		out.set("additionalProperties", rest)
	}
	if len(in.required) > 0 {
		out.set("required", in.required)
	}
	return out, nil
}

// parts are the parts of a request that parameters can be in, in the order in which they keep their names.
var parts = []string{"path", "query", "header", "cookie"}

// A declared parameter is one of the lists of a document.
type declared struct {
	*object
	at *place
}

// parameters adds the parameters of the path, the query and the headers.
func (r *reader) parameters(e endpoint, in *input) error {
	var all []declared
	for _, from := range []placed{e.item.member("parameters"), e.operation.member("parameters")} {
		list, _ := from.value.([]any)
		for i, v := range list {
			p, at, err := follow(r.tree, placed{v, from.at.index(i)})
			if err != nil {
				return fmt.Errorf("has a parameter at %s that %w", from.at.index(i), err)
			}
			if p == nil {
				return fmt.Errorf("has a parameter that is no object, at %s", at)
			}
			same := func(other declared) bool {
				return other.text("in") == p.text("in") && other.text("name") == p.text("name")
			}
			if i := slices.IndexFunc(all, same); i >= 0 {
				all[i] = declared{p, at} // An operation says it again for itself.
			} else {
				all = append(all, declared{p, at})
			}
		}
	}
	// Names are given in the order of the parts of a request, and then the parameters get their own order again.
	order := map[string]int{}
	for i, p := range all {
		order[p.text("in")+" "+p.text("name")] = i
	}
	slices.SortStableFunc(all, func(a, b declared) int {
		return cmp.Compare(slices.Index(parts, a.text("in")), slices.Index(parts, b.text("in")))
	})
	for _, p := range all {
		if err := r.parameter(e, in, p); err != nil {
			return err
		}
	}
	in.sort(func(p httptool.Parameter) int { return order[string(p.In)+" "+cmp.Or(p.Sent, p.Name)] })
	return nil
}

// sort sorts the parameters.
func (in *input) sort(position func(p httptool.Parameter) int) {
	type pair struct {
		parameter httptool.Parameter
		property  placed
	}
	pairs := make([]pair, len(in.parameters))
	for i, p := range in.parameters {
		pairs[i] = pair{p, in.properties[i]}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(position(a.parameter), position(b.parameter)) })
	for i, p := range pairs {
		in.parameters[i], in.properties[i] = p.parameter, p.property
	}
}

// parameter adds one parameter, or leaves it out.
func (r *reader) parameter(e endpoint, in *input, p declared) error {
	name, part := p.text("name"), p.text("in")
	where, known := map[string]httptool.In{"path": httptool.InPath, "query": httptool.InQuery, "header": httptool.InHeader}[part]
	switch {
	case part == "cookie" || part == "header" && !httptool.HeaderAllowed(name):
		// The operator configures these, whether they are required or not.
		r.notes.add(e, fmt.Sprintf("the %s %.100q is no parameter of the tool; if it is needed, write it into headers", part, name), "")
		return nil
	case !known || name == "":
		return fmt.Errorf("has a parameter in %.50q, which is no part of a request, at %s", part, p.at)
	}
	required := p.get("required") == true || where == httptool.InPath
	style, schema, err := r.styled(p)
	if err != nil {
		if required {
			return fmt.Errorf("has the parameter %.100q, which %w", name, err)
		}
		r.notes.add(e, fmt.Sprintf("the parameter %.100q is left out: it %s", name, err), "")
		return nil
	}
	return in.add(httptool.Parameter{Name: name, In: where, Style: style}, describedAs(schema, p.text("description")), required)
}

// styled returns how a parameter is written, and its schema.
func (r *reader) styled(p declared) (httptool.Style, placed, error) {
	from := placed{p.object, p.at}
	if content := p.object.object("content"); content != nil && len(content.members) > 0 {
		media, name := mediaOf(from.member("content"), isJSON)
		if name == "" {
			return "", placed{}, errors.New("is neither plain nor JSON")
		}
		return httptool.StyleJSON, media.member("schema"), nil
	}
	schema := from.member("schema")
	isObject := isOfType(r, schema, "object")
	if p.text("in") == "query" {
		style, err := queryStyle(p.object, isObject)
		return style, schema, err
	}
	switch style := p.text("style"); {
	case style != "" && style != "simple":
		return "", placed{}, fmt.Errorf("has the style %.50q, which is not supported", style)
	case isObject && p.get("explode") == true:
		return httptool.StylePairs, schema, nil
	default:
		return httptool.StyleComma, schema, nil
	}
}

// queryStyle returns how a parameter of a query is written, or a property of a form.
func queryStyle(p *object, isObject bool) (httptool.Style, error) {
	style := p.text("style")
	explode := style == "" || style == "form"
	if flag, ok := p.get("explode").(bool); ok {
		explode = flag
	}
	switch {
	case style == "deepObject":
		return httptool.StyleDeep, nil
	case style == "" || style == "form":
		switch {
		case explode && isObject:
			return httptool.StyleSpread, nil
		case explode:
			return httptool.StyleRepeat, nil
		default:
			return httptool.StyleComma, nil
		}
	case isObject && explode:
		return "", fmt.Errorf("is an exploded object with the style %.50q, which is not supported", style)
	case explode && (style == "spaceDelimited" || style == "pipeDelimited"):
		return httptool.StyleRepeat, nil
	case style == "spaceDelimited":
		return httptool.StyleSpace, nil
	case style == "pipeDelimited":
		return httptool.StylePipe, nil
	default:
		return "", fmt.Errorf("has the style %.50q, which is not known", style)
	}
}

// isOfType reports whether a schema allows a type.
func isOfType(r *reader, schema placed, name string) bool {
	s, _, err := follow(r.tree, schema)
	if err != nil || s == nil {
		return false
	}
	switch kind := s.get("type").(type) {
	case string:
		return kind == name
	case []any:
		return slices.Contains(kind, any(name))
	}
	return s.object("properties") != nil && name == "object"
}

// describedAs returns a schema with the description of its parameter.
func describedAs(schema placed, text string) placed {
	if strings.TrimSpace(text) == "" {
		return schema
	}
	s, ok := schema.value.(*object)
	switch {
	case schema.value == nil:
		s = &object{}
	case !ok:
		return schema
	case s.find("$ref") >= 0:
		s = newObject("allOf", []any{s})
	}
	s = s.clone()
	s.set("description", text)
	return placed{s, schema.at}
}

// isJSON reports whether a media type is JSON.
func isJSON(media string) bool {
	return media == "application/json" || strings.HasSuffix(media, "+json") || media == "text/json"
}

// mediaOf returns the content with the media type application/json, or else the first one whose media type fits,
// in the order of their names, and its name. The name is empty if there is none.
func mediaOf(content placed, fits func(media string) bool) (found placed, name string) {
	contents, _ := content.value.(*object)
	for _, candidate := range sortedNames(contents) {
		media, _, err := mime.ParseMediaType(candidate)
		if err != nil || !fits(media) || name != "" && media != "application/json" {
			continue
		}
		found, name = content.member(candidate), candidate
	}
	return found, name
}
