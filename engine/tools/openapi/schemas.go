package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
// member of $defs. What it writes is valid, whatever the document has.
type bundle struct {
	tree    *object
	old     bool // the document is OpenAPI 3.0
	purpose purpose
	// levels is how many references may follow each other. A schema that is deeper allows everything.
	levels int

	defs    *object
	names   map[string]string // names in $defs, by reference
	dropped []dropped
	cut     bool
	nodes   int
	size    int // bytes that the written schema has at least
}

// A dropped part of a schema was left out for a reason.
type dropped struct{ text, where string }

var errLarge = errors.New("is too large")

// drop notes that something is left out.
func (b *bundle) drop(text, where string) {
	if d := (dropped{text, where}); !slices.Contains(b.dropped, d) {
		b.dropped = append(b.dropped, d)
	}
}

// convert returns a schema of the document as JSON Schema.
func (b *bundle) convert(v placed, level int) (any, error) {
	if b.nodes++; b.nodes > schema.MaxNodes || b.size > schema.MaxSchema {
		return nil, errLarge
	}
	s, ok := v.value.(*object)
	if !ok {
		if flag, ok := v.value.(bool); ok {
			return flag, nil
		}
		if v.value != nil {
			b.drop("a schema is left out: it is no object", v.at.String())
		}
		return &object{}, nil
	}
	out := &object{}
	if ref, ok := s.get("$ref").(string); ok {
		target, err := b.reference(ref, v.at, level)
		if err != nil {
			return nil, err
		}
		if b.old || len(s.members) == 1 {
			return target, nil
		}
		out = target
	}
	for _, m := range s.members {
		value := v.member(m.name)
		if !b.keyword(out, m.name, value) {
			if err := b.schemas(out, m.name, value, level); err != nil {
				return nil, err
			}
		}
	}
	if out.find("required") >= 0 {
		b.require(out, s)
	}
	modernize(out, s, b.old)
	return out, nil
}

// reference returns a schema that refers to a member of $defs, which is made if it is new.
func (b *bundle) reference(ref string, at *place, level int) (*object, error) {
	if level >= b.levels {
		b.cut = true
		return &object{}, nil
	}
	name, known := b.names[ref]
	if !known {
		target, err := resolve(b.tree, ref)
		if err != nil {
			if errors.Is(err, errOutside) {
				b.drop("a schema allows everything: its $ref "+errOutside.Error(), "")
			} else {
				b.drop("a schema allows everything: it "+err.Error(), at.String())
			}
			return &object{}, nil
		}
		name = b.defName(ref)
		b.names[ref] = name
		b.defs.set(name, true) // References within the schema find this entry.
		converted, err := b.convert(target, level+1)
		if err != nil {
			return nil, err
		}
		b.defs.set(name, converted)
	}
	return newObject("$ref", "#/$defs/"+name), nil
}

// defName returns a unique name in $defs for a reference.
func (b *bundle) defName(ref string) string {
	last := ref[strings.LastIndexByte(ref, '/')+1:]
	name := strings.Trim(others.ReplaceAllString(last, "_"), "_")
	if name == "" || len(name) > maxName {
		name = "schema"
	}
	unique := name
	for i := 2; b.defs.find(unique) >= 0; i++ {
		unique = fmt.Sprintf("%s_%d", name, i)
	}
	return unique
}

// schemas converts a keyword that has schemas. All other keywords are left out.
func (b *bundle) schemas(out *object, keyword string, v placed, level int) error {
	switch keyword {
	case "items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedProperties",
		"unevaluatedItems":
		if list, ok := v.value.([]any); ok && keyword == "items" {
			return b.list(out, "prefixItems", list, v.at, level)
		}
		converted, err := b.convert(v, level)
		out.set(keyword, converted)
		return err
	case "properties", "patternProperties", "dependentSchemas":
		members, ok := v.value.(*object)
		if !ok {
			b.drop(wrongValue, v.at.String())
			return nil
		}
		converted := &object{}
		for _, m := range members.members {
			if keyword == "properties" && b.hides(v.member(m.name)) || keyword == "patternProperties" && !b.pattern(m.name, v.at.at(m.name)) {
				continue
			}
			b.size += len(m.name) + len(`"":{},`)
			member, err := b.convert(v.member(m.name), level)
			if err != nil {
				return err
			}
			converted.set(m.name, member)
		}
		out.set(keyword, converted)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		list, ok := v.value.([]any)
		if !ok {
			b.drop(wrongValue, v.at.String())
		}
		return b.list(out, keyword, list, v.at, level)
	}
	return nil
}

// list converts a list of schemas.
func (b *bundle) list(out *object, keyword string, list []any, at *place, level int) error {
	converted := make([]any, 0, len(list))
	for i, element := range list {
		one, err := b.convert(placed{element, at.index(i)}, level)
		if err != nil {
			return err
		}
		converted = append(converted, one)
	}
	if len(converted) > 0 {
		out.set(keyword, converted)
	}
	return nil
}

// pattern reports whether a pattern can be kept.
func (b *bundle) pattern(text string, at *place) bool {
	if schema.CheckPattern(text) == nil {
		return true
	}
	b.drop("a pattern is left out: it is not one of RE2", fmt.Sprintf("%.100q at %s", text, at))
	return false
}

// hides reports whether a property is not for the purpose.
func (b *bundle) hides(property placed) bool {
	member, _, err := follow(b.tree, property)
	flag := "readOnly"
	if b.purpose == answer {
		flag = "writeOnly"
	}
	return err == nil && member.get(flag) == true
}

// require removes hidden properties from those that are required.
func (b *bundle) require(out, s *object) {
	properties := placed{s.get("properties"), nil}
	required := slices.DeleteFunc(slices.Clone(out.list("required")), func(name any) bool {
		text, _ := name.(string)
		return b.hides(properties.member(text))
	})
	out.set("required", required)
	if len(required) == 0 {
		out.remove("required")
	}
}

// modernize converts the keywords that only OpenAPI 3.0 has to those of JSON Schema 2020-12. Documents of later
// versions have the exclusive bounds of 3.0, too, and they can mean only one thing.
func modernize(out, s *object, old bool) {
	for _, bound := range [][2]string{{"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}} {
		if limit := out.get(bound[0]); s.get(bound[1]) == true && limit != nil {
			out.set(bound[1], limit)
			out.remove(bound[0])
		}
	}
	if s.get("nullable") != true || !old {
		return
	}
	if enum := out.list("enum"); enum != nil && !slices.Contains(enum, any(nil)) {
		out.set("enum", append(slices.Clone(enum), nil))
	}
	if kind, ok := out.get("type").(string); ok {
		out.set("type", []any{kind, "null"})
		return
	}
	rest := out.clone()
	if len(rest.members) == 0 {
		return
	}
	*out = object{}
	for _, keyword := range []string{"title", "description", "default"} {
		if v := rest.get(keyword); v != nil {
			out.set(keyword, v)
			rest.remove(keyword)
		}
	}
	out.set("anyOf", []any{rest, newObject("type", "null")})
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
		b := &bundle{tree: r.tree, old: r.old, purpose: p, levels: levels, defs: &object{}, names: map[string]string{}}
		root, err := build(b)
		if errors.Is(err, errLarge) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if last = (&measure{defs: b.defs}).visit(root, nil); last != nil {
			continue
		}
		if root, ok := root.(*object); ok && len(b.defs.members) > 0 {
			root.set("$defs", b.defs)
		}
		raw := appendJSON(nil, root)
		if len(raw) <= schema.MaxSchema {
			return raw, b, nil
		}
		last = errLarge
	}
	return nil, nil, last
}
