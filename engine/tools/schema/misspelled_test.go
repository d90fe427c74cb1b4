package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// TestMisspelledArguments passes arguments that are like known ones to a schema that says nothing about others.
func TestMisspelledArguments(t *testing.T) {
	const tool = `{"type": "object", "required": ["path"], "properties": {
		"path": {"type": "string"}, "head": {"type": "integer"}, "excludePatterns": {"type": "array"}, "line": {}, "nested": {"properties": {"head": {}}}}}`
	for _, test := range []struct{ schema, input, want string }{
		{tool, `{"path":"a","head":1}`, ""},
		{tool, `{"path":"a","heads":1}`, `the input has no argument "heads"; did you mean "head"?`},
		{tool, `{"heads":1}`, `the input has no argument "heads"; did you mean "head"?`},
		{tool, `{"path":"a","exclude_patterns":[]}`, `the input has no argument "exclude_patterns"; did you mean "excludePatterns"?`},
		{tool, `{"PATH":"a"}`, `the input has no argument "PATH"; did you mean "path"?`},
		{tool, `{"path":"a","head":1,"heads":1}`, ""}, // What is like it is there as well.
		{tool, `{"path":"a","line2":1}`, ""},
		{tool, `{"path":"a","other":1}`, ""},
		{tool, `{"path":"a","nested":{"heads":1}}`, ""},
		{tool, `{"path":"a","nested":{"head":1},"` + strings.Repeat("-", 65) + `head":1}`, ""},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"head":{}}}}}`, `{"heads":1}`, `the input has no argument "heads"; did you mean "head"?`},
		{`{"properties":{"head":{},"tail":{}},"anyOf":[{"required":["head"]},{"required":["tail"]}]}`, `{"tail":1,"heads":1}`, `the input has no argument "heads"; did you mean "head"?`},
		{`{"properties":{"head":{}},"additionalProperties":true}`, `{"heads":1}`, ""},
		{`{"properties":{"head":{}},"additionalProperties":{"type":"integer"}}`, `{"heads":1}`, ""},
		{`{"properties":{"head":{}},"patternProperties":{"^h":{}}}`, `{"heads":1}`, ""},
		{`{"properties":{"head":{}},"unevaluatedProperties":true}`, `{"heads":1}`, ""},
		{`{"properties":{"head":{}},"allOf":[{"properties":{"heads":{}}}]}`, `{"heads":1}`, ""},
		{`{"properties":{"head":{}},"if":{"required":["x"]},"then":{"allOf":[{"properties":{"heads":{}}}]}}`, `{"heads":1}`, ""},
		{`{"type":"object"}`, `{"heads":1}`, ""},
	} {
		got := ""
		if err := compile(t, test.schema).Check(json.RawMessage(test.input)); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s with %s: %q, want %q", test.schema, test.input, got, test.want)
		}
	}
	s, left, err := CompileLenient(json.RawMessage(`{"properties":{"head":{}},"patternProperties":{"(?=h)":{}}}`))
	if err != nil || len(left) == 0 {
		t.Fatal(left, err)
	}
	if err := s.Check(json.RawMessage(`{"heads":1}`)); err != nil {
		t.Errorf("where the pattern for other names is left out: %v", err)
	}
}

// TestLikeness compares with what Python's difflib says.
func TestLikeness(t *testing.T) {
	for _, test := range []struct {
		one, other string
		want       float64
	}{
		{"heads", "head", 8. / 9},
		{"citty", "city", 8. / 9},
		{"exclude", "include", 0},
		{"startdate", "stratdate", 16. / 18},
		{"querystring", "query", 0},
		{"abcdefgh", "abxcdefgh", 16. / 17},
		{"line1", "line2", 0},
		{"line1s", "line2", 8. / 11},
	} {
		left := nameWork
		want := test.want
		if want < alike {
			want = 0
		}
		if got := likeness([]rune(test.one), []rune(test.other), &left); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s, %s: %v, want %v", test.one, test.other, got, want)
		}
	}
}

// TestMisspelledWork passes a large number of unknown arguments.
func TestMisspelledWork(t *testing.T) {
	var schema, input []string
	for i := range 500 {
		schema = append(schema, fmt.Sprintf(`"%s%04d":{}`, strings.Repeat("ab", 25), i))
	}
	for i := range 10_000 {
		input = append(input, fmt.Sprintf(`"%s%05d":1`, strings.Repeat("ba", 25), i))
	}
	s := compile(t, `{"properties":{`+strings.Join(schema, ",")+`}}`)
	began := time.Now()
	if err := s.Check(json.RawMessage(`{` + strings.Join(input, ",") + `}`)); err != nil && !strings.Contains(err.Error(), "did you mean") {
		t.Error(err)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
}
