package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxLeftOut is how many keywords CompileLenient leaves out before it gives a schema up.
const maxLeftOut = 32

// CompileLenient compiles the schema of a tool that somebody else offers, so that nobody here can correct it.
// A keyword that Compile would refuse is left out, and the result names each. A schema that does not name
// its draft may be one of draft 7 or 4. It is an error if what is left cannot be compiled either.
func CompileLenient(raw json.RawMessage) (*Schema, []string, error) {
	document, err := read(raw)
	if err != nil {
		return nil, nil, err
	}
	var l leftOut
	l.prune(document, nil)
	drafts := []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4}
	root, _ := document.(map[string]any)
	if name, declared := root["$schema"]; declared {
		if isDraft(name) {
			drafts = drafts[:1]
		} else {
			delete(root, "$schema")
			l.add([]string{"$schema"}, "is not known")
		}
	}
	if len(l.notes) > 0 {
		soften(document, "")
	}
	for _, draft := range drafts {
		if s, err := compileAs(document, draft); err == nil {
			if len(l.notes) > 0 {
				s.names = nil // What is left out may have allowed other names.
			}
			return s, l.notes, nil
		}
	}
	for {
		soften(document, "")
		s, err := compileAs(document, jsonschema.Draft2020)
		if err == nil {
			s.names = nil
			return s, l.notes, nil
		}
		flaw, ok := errors.AsType[*flawError](err)
		if !ok || flaw.place == nil || len(l.notes) >= maxLeftOut || !l.remove(document, flaw.place) {
			return nil, nil, err
		}
	}
}

// isDraft reports whether this is the $schema of a draft that can be checked.
func isDraft(name any) bool {
	text, ok := name.(string)
	if !ok {
		return false
	}
	_, rest, ok := strings.Cut(strings.TrimSuffix(text, "#"), "://json-schema.org/")
	return ok && slices.Contains([]string{
		"draft-04/schema", "draft-06/schema", "draft-07/schema", "draft/2019-09/schema", "draft/2020-12/schema",
	}, rest)
}

// leftOut collects what CompileLenient leaves out.
type leftOut struct{ notes []string }

func (l *leftOut) add(place []string, why string) {
	l.notes = append(l.notes, fmt.Sprintf("%s, which %s", shown(strings.Join(place, ".")), why))
}

// prune leaves out the keywords that checkKeyword refuses.
func (l *leftOut) prune(document any, place []string) {
	switch v := document.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.pruneMember(v, name, append(slices.Clip(place), name))
		}
	case []any:
		for i, element := range v {
			l.prune(element, append(slices.Clip(place), strconv.Itoa(i)))
		}
	}
}

// pruneMember implements prune for one member of a schema, or of a map of schemas.
func (l *leftOut) pruneMember(schema map[string]any, name string, place []string) {
	switch value := schema[name].(type) {
	case string:
		if name == "pattern" && CheckPattern(value) != nil {
			delete(schema, name)
			l.add(place, CheckPattern(value).Error())
		}
		if name == "$dynamicRef" || name == "$recursiveRef" {
			delete(schema, name)
			l.add(place, "is not supported")
		}
	case map[string]any:
		if name == "patternProperties" {
			l.prunePatterns(schema, value, place)
		}
		if name != "const" && name != "default" && name != "example" {
			l.prune(value, place)
		}
	case []any:
		if name != "enum" && name != "examples" {
			l.prune(value, place)
		}
	}
}

// prunePatterns leaves out the patterns of patternProperties that cannot be compiled. Then nobody knows which
// members are additional ones.
func (l *leftOut) prunePatterns(schema, patterns map[string]any, place []string) {
	for _, pattern := range slices.Sorted(maps.Keys(patterns)) {
		if err := CheckPattern(pattern); err != nil {
			delete(patterns, pattern)
			delete(schema, "additionalProperties")
			l.add(append(slices.Clip(place), pattern), err.Error())
		}
	}
}

// remove removes the keyword at a place, or what stands around it if the place is an element of a list. A
// schema that is a property becomes one that allows everything. It returns false if there is no such place.
func (l *leftOut) remove(document any, place []string) bool {
	var holder map[string]any // the innermost object on the way, and which of its members the way takes
	var at int
	for i, name := range place {
		switch v := document.(type) {
		case map[string]any:
			holder, at, document = v, i, v[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(v) {
				return false
			}
			document = v[n]
		default:
			return false
		}
	}
	if holder == nil {
		return false
	}
	name := place[at]
	if _, there := holder[name]; !there {
		return false
	}
	if at > 0 && slices.Contains([]string{"properties", "$defs", "definitions", "dependentSchemas"}, place[at-1]) {
		holder[name] = true
	} else {
		delete(holder, name)
	}
	l.add(place[:at+1], "is not valid")
	return true
}

// soften removes what could refuse a right value once a part of the schema is left out: not, the condition of then
// and else, and that only one of several alternatives may fit. around is the name of the member that the value is.
func soften(document any, around string) {
	switch v := document.(type) {
	case map[string]any:
		byName := slices.Contains([]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"}, around)
		for name, value := range v {
			switch {
			case byName:
				soften(value, "")
			case slices.Contains([]string{"not", "if", "maxContains", "unevaluatedProperties", "unevaluatedItems"}, name):
				delete(v, name)
			case !slices.Contains([]string{"const", "enum", "default", "examples", "example"}, name):
				soften(value, name)
			}
		}
		if alternatives, ok := v["oneOf"].([]any); ok && !byName {
			delete(v, "oneOf")
			if _, taken := v["anyOf"]; !taken {
				v["anyOf"] = alternatives
			}
		}
	case []any:
		for _, element := range v {
			soften(element, "")
		}
	}
}
