package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"fermata/engine/tools/schema"
)

// A purpose says whether a schema is for requests or for answers. Requests do not have readOnly members, and
// answers do not have writeOnly members.
type purpose string

const (
	request purpose = "request"
	answer  purpose = "answer"
)

// A bundle collects the schemas of one tool. It writes JSON Schema 2020-12: each reference leads to a
// member of $defs.
type bundle struct {
	tree    map[string]any
	old     bool // the document is OpenAPI 3.0
	purpose purpose
	// levels is how many references may follow each other. A schema that is deeper allows everything.
	levels int

	defs    map[string]any
	names   map[string]string // names in $defs, by reference
	dropped map[string]bool   // patterns that RE2 does not support
	cut     bool
	nodes   int
}

// bundleNodes is the maximum number of nodes that are converted for one schema.
const bundleNodes = 50_000

var (
	errLarge = errors.New("is too large")
	errRef   = errors.New("has a $ref to something that is not there")
)

// resolve returns the value to which a reference leads.
func resolve(tree map[string]any, ref string) (any, error) {
	fragment, err := url.PathUnescape(strings.TrimPrefix(ref, "#"))
	if err != nil || fragment != "" && fragment[0] != '/' {
		return nil, errRef
	}
	var v any = tree
	for _, token := range strings.Split(fragment, "/")[1:] {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch at := v.(type) {
		case map[string]any:
			next, found := at[token]
			if !found {
				return nil, errRef
			}
			v = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil, errRef
			}
			v = at[i]
		default:
			return nil, errRef
		}
	}
	return v, nil
}

// follow resolves a schema that is nothing but a reference, as often as needed.
func follow(tree map[string]any, v any) (map[string]any, error) {
	for range 32 {
		s, ok := v.(map[string]any)
		if !ok {
			return nil, nil
		}
		ref, ok := s["$ref"].(string)
		if !ok {
			return s, nil
		}
		next, err := resolve(tree, ref)
		if err != nil {
			return nil, err
		}
		v = next
	}
	return nil, errRef
}

// convert returns a schema of the document as JSON Schema.
func (b *bundle) convert(v any, level int) (any, error) {
	if b.nodes++; b.nodes > bundleNodes {
		return nil, errLarge
	}
	s, ok := v.(map[string]any)
	if !ok {
		if v, ok := v.(bool); ok {
			return v, nil
		}
		return map[string]any{}, nil
	}
	out := map[string]any{}
	if ref, ok := s["$ref"].(string); ok {
		target, err := b.reference(ref, level)
		if err != nil {
			return nil, err
		}
		if b.old || len(s) == 1 {
			return target, nil
		}
		maps.Copy(out, target)
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if err := b.keyword(out, keyword, s[keyword], level); err != nil {
			return nil, err
		}
	}
	b.hideMembers(out, s)
	if b.old {
		modernize(out, s)
	}
	return out, nil
}

// reference returns a schema that refers to a member of $defs, which is made if it is new.
func (b *bundle) reference(ref string, level int) (map[string]any, error) {
	if level >= b.levels {
		b.cut = true
		return map[string]any{}, nil
	}
	name, known := b.names[ref]
	if !known {
		target, err := resolve(b.tree, ref)
		if err != nil {
			return nil, err
		}
		name = b.defName(ref)
		b.names[ref] = name
		b.defs[name] = true // References within the schema find this entry.
		if b.defs[name], err = b.convert(target, level+1); err != nil {
			return nil, err
		}
	}
	return map[string]any{"$ref": "#/$defs/" + name}, nil
}

// defName returns a unique name in $defs for a reference.
func (b *bundle) defName(ref string) string {
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	name := strings.Trim(others.ReplaceAllString(last, "_"), "_")
	if name == "" || len(name) > maxName {
		name = "schema"
	}
	unique := name
	for i := 2; ; i++ {
		if _, taken := b.defs[unique]; !taken {
			return unique
		}
		unique = fmt.Sprintf("%s_%d", name, i)
	}
}

// keyword converts one keyword.
func (b *bundle) keyword(out map[string]any, keyword string, v any, level int) error {
	switch keyword {
	case "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedProperties",
		"unevaluatedItems", "additionalItems":
		if list, ok := v.([]any); ok && keyword == "items" {
			return b.list(out, "prefixItems", list, level)
		}
		converted, err := b.convert(v, level)
		out[keyword] = converted
		return err
	case "properties", "patternProperties", "dependentSchemas":
		members, _ := v.(map[string]any)
		converted := make(map[string]any, len(members))
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if keyword == "patternProperties" && !b.pattern(name) {
				continue
			}
			member, err := b.convert(members[name], level)
			if err != nil {
				return err
			}
			converted[name] = member
		}
		out[keyword] = converted
	case "allOf", "anyOf", "oneOf", "prefixItems":
		list, _ := v.([]any)
		return b.list(out, keyword, list, level)
	case "pattern":
		if text, ok := v.(string); ok && b.pattern(text) {
			out[keyword] = text
		}
	case "description", "title":
		if text, ok := v.(string); ok {
			out[keyword] = cutText(text, 1000)
		}
	case "required":
		if _, ok := v.([]any); ok { // In 3.0 some documents have a bool, as for parameters.
			out[keyword] = v
		}
	case "type", "enum", "const", "format", "default", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minContains", "maxContains", "minProperties",
		"maxProperties", "dependentRequired", "contentEncoding", "contentMediaType":
		if v != nil || keyword == "const" || keyword == "default" {
			out[keyword] = v
		}
	}
	return nil
}

// list converts a list of schemas.
func (b *bundle) list(out map[string]any, keyword string, list []any, level int) error {
	converted := make([]any, 0, len(list))
	for _, element := range list {
		one, err := b.convert(element, level)
		if err != nil {
			return err
		}
		converted = append(converted, one)
	}
	if len(converted) > 0 {
		out[keyword] = converted
	}
	return nil
}

// pattern reports whether a pattern can be kept.
func (b *bundle) pattern(text string) bool {
	if schema.CheckPattern(text) == nil {
		return true
	}
	b.dropped[text] = true
	return false
}

// hideMembers removes the properties that are not for the purpose.
func (b *bundle) hideMembers(out, s map[string]any) {
	properties, _ := out["properties"].(map[string]any)
	from, _ := s["properties"].(map[string]any)
	flag := "readOnly"
	if b.purpose == answer {
		flag = "writeOnly"
	}
	for name := range properties {
		member, err := follow(b.tree, from[name])
		if hidden, _ := member[flag].(bool); err == nil && hidden {
			delete(properties, name)
			if required, ok := out["required"].([]any); ok {
				out["required"] = slices.DeleteFunc(slices.Clone(required), func(v any) bool { return v == name })
			}
		}
	}
}

// modernize converts the keywords that only OpenAPI 3.0 has to those of JSON Schema 2020-12.
func modernize(out, s map[string]any) {
	for bound, exclusive := range map[string]string{"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"} {
		if flag, ok := out[exclusive].(bool); ok {
			delete(out, exclusive)
			if limit, found := out[bound]; flag && found {
				out[exclusive] = limit
				delete(out, bound)
			}
		}
	}
	if nullable, _ := s["nullable"].(bool); !nullable {
		return
	}
	if enum, ok := out["enum"].([]any); ok && !slices.Contains(enum, any(nil)) {
		out["enum"] = append(slices.Clone(enum), nil)
	}
	if kind, ok := out["type"].(string); ok {
		out["type"] = []any{kind, "null"}
		return
	}
	rest := maps.Clone(out)
	if len(rest) == 0 {
		return
	}
	clear(out)
	for _, keyword := range []string{"title", "description", "default"} {
		if v, found := rest[keyword]; found {
			out[keyword] = v
			delete(rest, keyword)
		}
	}
	out["anyOf"] = []any{rest, map[string]any{"type": "null"}}
}

// cutText truncates a text to a number of bytes.
func cutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}

// written makes a schema with build, first with all levels of references and then with fewer and fewer, and
// returns the first one that is small enough.
func (r *reader) written(p purpose, build func(b *bundle) (any, error)) (json.RawMessage, *bundle, error) {
	last := errLarge
	for _, levels := range []int{24, 8, 5, 3, 2, 1, 0} {
		b := &bundle{
			tree: r.tree, old: strings.HasPrefix(r.spec.OpenAPI, "3.0"), purpose: p, levels: levels,
			defs: map[string]any{}, names: map[string]string{}, dropped: map[string]bool{},
		}
		root, err := build(b)
		if errors.Is(err, errLarge) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if object, ok := root.(map[string]any); ok && len(b.defs) > 0 {
			object["$defs"] = b.defs
		}
		raw, err := json.Marshal(root)
		if err != nil {
			return nil, nil, err
		}
		if _, err = schema.Compile(raw); err == nil {
			return raw, b, nil
		}
		last = err
	}
	return nil, nil, last
}
