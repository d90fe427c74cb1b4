package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRequiredWithADefault leaves out members that are required and have a default.
func TestRequiredWithADefault(t *testing.T) {
	const schema = `{
		"type": "object", "required": ["scale", "path", "size"], "$defs": {"size": {"type": "integer", "default": 3}},
		"properties": {
			"path": {"type": "string"}, "scale": {"enum": ["css", "device"], "default": "css"}, "size": {"$ref": "#/$defs/size"},
			"nested": {"type": "object", "required": ["a", "b"], "properties": {"a": {"default": null}, "b": {}}},
			"one": {"oneOf": [{"required": ["a"]}, {"required": ["a", "b"], "properties": {"b": {"default": 1}}}]}
		}
	}`
	s := compile(t, schema)
	for input, want := range map[string]string{
		`{"path":"x"}`:                           "",
		`{"path":"x","scale":"device","size":1}`: "",
		`{"path":"x","nested":{"b":1}}`:          "",
		`{"path":"x","one":{"a":1}}`:             "",
		`{}`:                                     "path",
		`{"path":"x","nested":{}}`:               "b",
		`{"path":"x","scale":"large"}`:           "scale",
		`{"path":"x","one":{"b":1}}`:             "one",
	} {
		err := s.Check(json.RawMessage(input))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
}
