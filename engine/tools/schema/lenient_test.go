package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestCompileLenient(t *testing.T) {
	for name, c := range map[string]struct{ schema, fits, misfits, left string }{
		"a pattern with a look-ahead": {
			`{"properties":{"n":{"type":"string","pattern":"^(?!a)b$"},"m":{"type":"integer"}}}`, `{"n":"a","m":1}`, `{"n":"a","m":"x"}`,
			`"properties.n.pattern", which is not a regular expression of RE2, which has no look-arounds and no back-references`,
		},
		"a name of properties with a look-ahead": {
			`{"patternProperties":{"^(?=a)":{"type":"integer"}},"additionalProperties":false,"properties":{"m":{"type":"integer"}}}`,
			`{"a":"x","m":1}`, `{"m":"x"}`, `"patternProperties.^(?=a)"`,
		},
		"a tuple of draft 7":    {`{"properties":{"p":{"items":[{"type":"string"},{"type":"number"}]}}}`, `{"p":["a",1]}`, `{"p":[1,"a"]}`, ""},
		"a bound of draft 4":    {`{"properties":{"n":{"minimum":0,"exclusiveMinimum":true}}}`, `{"n":1}`, `{"n":0}`, ""},
		"required is null":      {`{"properties":{"n":{"type":"integer"}},"required":null}`, `{"n":1}`, `{"n":"x"}`, `"required", which is not valid`},
		"a type that is none":   {`{"properties":{"n":{"type":"any"},"m":{"type":"integer"}},"additionalProperties":false}`, `{"n":{},"m":1}`, `{"m":"x"}`, `"properties.n.type"`},
		"a property, no schema": {`{"properties":{"n":"text","m":{"type":"integer"}},"additionalProperties":false}`, `{"n":1,"m":1}`, `{"m":"x"}`, `"properties.n"`},
		"a $schema of its own":  {`{"$schema":"https://example.com/mine","properties":{"m":{"type":"integer"}}}`, `{"m":1}`, `{"m":"x"}`, `"$schema", which is not known`},
		"a $dynamicRef":         {`{"properties":{"m":{"type":"integer"},"n":{"$dynamicRef":"#x"}}}`, `{"m":1,"n":2}`, `{"m":"x"}`, `"properties.n.$dynamicRef"`},
		"one of two":            {`{"properties":{"m":{"oneOf":[{"pattern":"^(?!a)"},{"const":"b"}]}},"required":["m"]}`, `{"m":"b"}`, `{}`, `"properties.m.oneOf.0.pattern"`},
		"not":                   {`{"properties":{"m":{"not":{"pattern":"^(?!a)"}}},"required":["m"]}`, `{"m":"a"}`, `{}`, `"properties.m.not.pattern"`},
		"then":                  {`{"properties":{"m":{"type":"integer"}},"if":{"properties":{"n":{"pattern":"^(?!a)"}}},"then":{"required":["o"]}}`, `{"n":"a"}`, `{"m":"x"}`, `"if.properties.n.pattern"`},
		"properties named so":   {`{"properties":{"not":{"type":"integer"},"if":{"pattern":"(?!a)"}},"required":["not"]}`, `{"not":1}`, `{"not":"x"}`, `"properties.if.pattern"`},
		"relative identifiers":  {`{"properties":{"m":{"$id":"T0","type":"object","properties":{"k":{"items":{"$ref":"T0"}}}}}}`, `{"m":{"k":[{}]}}`, `{"m":{"k":[1]}}`, ""},
		"nothing is wrong":      {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"m":{"type":"integer"}}}`, `{"m":1}`, `{"m":"x"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, left, err := CompileLenient(json.RawMessage(c.schema))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(left, "; "); (c.left == "") != (got == "") || !strings.HasPrefix(got, c.left) {
				t.Errorf("left out: %s; want %s", got, c.left)
			}
			if err := s.Check(json.RawMessage(c.fits)); err != nil {
				t.Errorf("%s is refused: %v", c.fits, err)
			}
			if err := s.Check(json.RawMessage(c.misfits)); err == nil {
				t.Errorf("%s is accepted", c.misfits)
			}
		})
	}
	for name, text := range map[string]string{
		"elsewhere": `{"$ref":"https://example.com/x"}`, "large": `{"title":"` + strings.Repeat("x", MaxSchema) + `"}`, "no schema": `[]`, "nowhere": `{"$ref":"#/definitions/x"}`,
	} {
		if _, _, err := CompileLenient(json.RawMessage(text)); err == nil {
			t.Errorf("%s: it compiles", name)
		}
	}
}
