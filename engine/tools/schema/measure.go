package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A measure counts the parts of a compiled schema in the way in which a check walks through them.
type measure struct {
	nodes int
}

// A level is a schema on the way to the present one. inPlace is true if it describes the same value as the
// schema before it.
type level struct {
	schema  *jsonschema.Schema
	inPlace bool
}

// visit counts s and what it contains. A schema that contains itself is counted once on each way.
func (m *measure) visit(s *jsonschema.Schema, way []level) error {
	if m.nodes++; m.nodes > MaxNodes {
		return fmt.Errorf("the schema has more than %d parts, counted again for each reference to them", MaxNodes)
	}
	same := true
	for _, above := range slices.Backward(way) {
		if above.schema == s {
			if same {
				return errors.New("the schema has a part that refers to itself without end")
			}
			return nil
		}
		same = same && above.inPlace
	}
	return each(s, func(part *jsonschema.Schema, inPlace bool) error {
		if len(way) >= MaxSchemaDepth {
			return fmt.Errorf("the schema has more than %d levels", MaxSchemaDepth)
		}
		return m.visit(part, append(way, level{s, inPlace}))
	})
}

// each calls f with all parts of a schema. inPlace is true if a part describes the same value as the schema.
func each(s *jsonschema.Schema, f func(part *jsonschema.Schema, inPlace bool) error) error {
	var err error
	one := func(part *jsonschema.Schema, inPlace bool) {
		if part != nil && err == nil {
			err = f(part, inPlace)
		}
	}
	for _, part := range []*jsonschema.Schema{s.Ref, s.Not, s.If, s.Then, s.Else} {
		one(part, true)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, part := range list {
			one(part, true)
		}
	}
	for _, part := range s.DependentSchemas {
		one(part, true)
	}
	for _, dependency := range s.Dependencies {
		if part, ok := dependency.(*jsonschema.Schema); ok {
			one(part, true)
		}
	}
	for _, part := range s.Properties {
		one(part, false)
	}
	for _, part := range s.PatternProperties {
		one(part, false)
	}
	for _, part := range s.PrefixItems {
		one(part, false)
	}
	for _, part := range []*jsonschema.Schema{
		s.PropertyNames, s.Contains, s.Items2020, s.UnevaluatedProperties, s.UnevaluatedItems,
		schemaOf(s.AdditionalProperties), schemaOf(s.AdditionalItems), schemaOf(s.Items),
	} {
		one(part, false)
	}
	for _, part := range listOf(s.Items) {
		one(part, false)
	}
	return err
}

// schemaOf and listOf return the schema, or the list of schemas, of a keyword that may have either.
func schemaOf(v any) *jsonschema.Schema {
	s, _ := v.(*jsonschema.Schema)
	return s
}

func listOf(v any) []*jsonschema.Schema {
	list, _ := v.([]*jsonschema.Schema)
	return list
}
