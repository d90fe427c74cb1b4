// Package schema checks the inputs of tools against JSON Schemas, and brings inputs into their
// canonical form.
//
// Schemas come from OpenAPI documents and MCP servers, and are not trusted. So nothing is ever loaded for a
// schema, its size is limited when it is compiled, and each check has a budget of work. The package
// jsonschema compiles schemas of all drafts. Its own validation cannot be used, since it cannot be stopped:
// 1 kB of nested alternatives keeps it busy for seconds. So this package checks values against the schemas
// that jsonschema has compiled.
package schema

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The limits of a schema.
const (
	MaxSchema      = 64 << 10 // bytes
	MaxSchemaDepth = 32       // schemas within schemas, references included
	MaxNodes       = 10_000   // schemas, counted again for each reference to them
)

// location is the address of each schema while it is compiled, to which relative identifiers in it refer. It is
// never shown, and nothing is loaded from it.
const location = "https://tool.invalid/"

// A Schema checks inputs. It is safe for concurrent use.
type Schema struct {
	root *jsonschema.Schema
	// texts are the parameters that are sent as text.
	texts map[string]bool
	// names are the arguments, if an unknown one with a name like theirs is refused.
	names []name
}

// Compile compiles the schema of a tool's input or result. Without $schema it has the draft 2020-12. The
// keywords format and contentEncoding and the like are not checked, since they only inform the reader.
func Compile(raw json.RawMessage) (*Schema, error) {
	document, err := read(raw)
	if err != nil {
		return nil, err
	}
	if err := checkDocument(document); err != nil {
		return nil, err
	}
	return compileAs(document, jsonschema.Draft2020)
}

// read reads a schema within its limits.
func read(raw json.RawMessage) (any, error) {
	if len(raw) > MaxSchema {
		return nil, fmt.Errorf("the schema has %d bytes; at most %d are allowed", len(raw), MaxSchema)
	}
	if err := checkText(raw, MaxSchema); err != nil {
		return nil, errors.New(strings.Replace(err.Error(), "the input", "the schema", 1))
	}
	if _, err := parse(raw); err != nil {
		return nil, errors.New(strings.Replace(err.Error(), "the input", "the schema", 1))
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, errors.New("the schema is not strict JSON")
	}
	return document, nil
}

// compileAs compiles a schema. Without $schema it has the given draft.
func compileAs(document any, draft *jsonschema.Draft) (*Schema, error) {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(draft)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(location, document); err != nil {
		return nil, errors.New("the schema cannot be read")
	}
	root, err := c.Compile(location)
	if err != nil {
		return nil, &flawError{text: compileError(err).Error(), place: invalidPlace(err)}
	}
	if err := (&measure{}).visit(root, nil); err != nil {
		return nil, err
	}
	return &Schema{root: root, names: argumentNames(root)}, nil
}

// WithTexts returns the schema for a tool that sends some parameters as text, in the path or the query. For
// these parameters, a text that is a number, true or false is allowed where such a value is required.
func (s *Schema) WithTexts(names ...string) *Schema {
	texts := map[string]bool{}
	for _, name := range names {
		texts[name] = true
	}
	return &Schema{root: s.root, texts: texts, names: s.names}
}

// noLoader refuses to load anything to which a schema refers.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(string) (any, error) { return nil, errRemote }

var errRemote = errors.New("nothing is loaded")

// A flawError says why a schema does not compile.
type flawError struct {
	text  string
	place []string // where the schema breaks the rules of its draft, or nil
}

// Error returns the text.
func (e *flawError) Error() string { return e.text }

// compileError returns an error that says why a schema does not compile. The texts of the library are not
// used, since they contain addresses.
func compileError(err error) error {
	var (
		load   *jsonschema.LoadURLError
		regex  *jsonschema.InvalidRegexError
		meta   *jsonschema.SchemaValidationError
		anchor *jsonschema.AnchorNotFoundError
		ptr    *jsonschema.JSONPointerNotFoundError
	)
	switch {
	case errors.As(err, &load):
		return errors.New("the schema refers to something outside of itself ($ref or $schema), and nothing is loaded for a schema")
	case errors.As(err, &regex):
		return fmt.Errorf("the schema has a pattern that %w", regex.Err)
	case errors.As(err, &anchor), errors.As(err, &ptr):
		return errors.New("the schema has a $ref to something that is not in it")
	case errors.As(err, &meta):
		return fmt.Errorf("the schema is not valid%s", metaPlace(meta))
	default:
		return errors.New("the schema is not a valid JSON Schema")
	}
}

// metaPlace returns a text with the deepest place at which a schema is not valid.
func metaPlace(err *jsonschema.SchemaValidationError) string {
	place := invalidPlace(err)
	if place == nil {
		return ""
	}
	return " at " + shown(strings.Join(place, "."))
}

// invalidPlace returns the deepest place at which a schema breaks the rules of its draft, or nil.
func invalidPlace(err error) []string {
	var meta *jsonschema.SchemaValidationError
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &meta) || !errors.As(meta.Err, &invalid) {
		return nil
	}
	var places [][]string
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		if len(e.Causes) == 0 && len(e.InstanceLocation) > 0 {
			places = append(places, e.InstanceLocation)
		}
		for _, cause := range e.Causes {
			visit(cause)
		}
	}
	visit(invalid)
	if len(places) == 0 {
		return nil
	}
	// All alternatives of a rule fail. The one that was meant fails at the deepest place.
	text := func(place []string) string { return strings.Join(place, ".") }
	return slices.MaxFunc(places, func(a, b []string) int {
		return cmp.Or(cmp.Compare(len(text(a)), len(text(b))), cmp.Compare(text(b), text(a)))
	})
}

// checkDocument refuses keywords whose meaning depends on the way on which a check reaches them. It also
// refuses wrong patterns, since the library would not say what is wrong with them.
func checkDocument(document any) error {
	switch v := document.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if err := checkKeyword(name, v[name]); err != nil {
				return err
			}
		}
	case []any:
		for _, element := range v {
			if err := checkDocument(element); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeyword implements checkDocument for one member of a schema, or of a map of schemas.
func checkKeyword(name string, value any) error {
	text, isText := value.(string)
	var patterns []string
	switch name {
	case "$dynamicRef", "$recursiveRef":
		if isText {
			return fmt.Errorf("the schema uses %s, which is not supported; use $ref", name)
		}
	case "pattern":
		if isText {
			patterns = []string{text}
		}
	case "patternProperties":
		if members, ok := value.(map[string]any); ok {
			patterns = slices.Sorted(maps.Keys(members))
		}
	case "enum", "const", "default", "examples", "example":
		return nil
	}
	for _, pattern := range patterns {
		if err := CheckPattern(pattern); err != nil {
			return fmt.Errorf("the schema has a pattern that %w", err)
		}
	}
	return checkDocument(value)
}
