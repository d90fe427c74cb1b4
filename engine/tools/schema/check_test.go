package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func compile(t *testing.T, raw string) *Schema {
	t.Helper()
	s, err := Compile(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("%.200s: %v", raw, err)
	}
	return s
}

// TestErrors shows the errors that a program gets for wrong inputs.
func TestErrors(t *testing.T) {
	const schema = `{
		"type": "object", "additionalProperties": false, "required": ["city"],
		"properties": {
			"city": {"type": "string", "minLength": 1, "maxLength": 5},
			"units": {"enum": ["metric", "imperial"]},
			"version": {"const": 2},
			"days": {"type": "integer", "minimum": 1, "maximum": 16},
			"ratio": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1.5, "multipleOf": 0.25},
			"code": {"type": "string", "pattern": "^[A-Z]{2}$"},
			"filter": {"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3, "uniqueItems": true}}},
			"pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false},
			"maybe": {"type": ["string", "null"]},
			"names": {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1, "maxProperties": 2},
			"has": {"contains": {"type": "null"}, "maxContains": 1},
			"any": {"anyOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "number"}}}}}]},
			"one": {"oneOf": [{"minimum": 1}, {"maximum": 5}]},
			"not": {"not": {"type": "string"}},
			"card": {"dependentRequired": {"number": ["expiry"]}},
			"if": {"if": {"properties": {"kind": {"const": "a"}}, "required": ["kind"]}, "then": {"required": ["a"]}, "else": {"required": ["b"]}},
			"a b": {"properties": {"userName": {"type": "integer"}}, "additionalProperties": false},
			"closed": {"allOf": [{"properties": {"x": true}}], "unevaluatedProperties": false}
		}}`
	s := compile(t, schema)
	for _, test := range []struct{ input, want string }{
		{`{"city":"Paris"}`, ""},
		{`{"city":"Paris","days":2.0,"ratio":0.75,"units":"metric","version":2e0,"code":"FR"}`, ""},
		{`{"city":"Paris","days":null,"filter":null}`, ""},
		{`[]`, "the input must be an object, not a list"},
		{`{}`, `the input must have "city"`},
		{`{"city":null}`, "city must be a text, not null"},
		{`{"City":"x","city":"x"}`, `the input has "City", which is not known; did you mean "city"?`},
		{`{"city":5}`, "city must be a text, not a whole number"},
		{`{"city":""}`, "city must have at least 1 character, not 0"},
		{`{"city":"London"}`, "city must have at most 5 characters, not 6"},
		{`{"city":"x","units":"kelvin"}`, `units must be "metric" or "imperial"`},
		{`{"city":"x","version":3}`, "version must be 2"},
		{`{"city":"x","days":"3"}`, "days must be a whole number, not a text"},
		{`{"city":"x","days":2.5}`, "days must be a whole number, not a number"},
		{`{"city":"x","days":0}`, "days must be at least 1"},
		{`{"city":"x","days":17}`, "days must be at most 16"},
		{`{"city":"x","ratio":0}`, "ratio must be more than 0"},
		{`{"city":"x","ratio":1.5}`, "ratio must be less than 1.5"},
		{`{"city":"x","ratio":0.3}`, "ratio must be a multiple of 0.25"},
		{`{"city":"x","code":"fr"}`, `code must match the pattern "^[A-Z]{2}$"`},
		{`{"city":"x","filter":{"tags":["a",1]}}`, "filter.tags[1] must be a text, not a whole number"},
		{`{"city":"x","filter":{"tags":[]}}`, "filter.tags must have at least 1 element, not 0"},
		{`{"city":"x","filter":{"tags":["a","b","c","d"]}}`, "filter.tags must have at most 3 elements, not 4"},
		{`{"city":"x","filter":{"tags":["a","b","a"]}}`, "filter.tags must not have the same element twice, as in 0 and 2"},
		{`{"city":"x","pair":["a",1,2]}`, "pair must have at most 2 elements, not 3"},
		{`{"city":"x","pair":["a","b"]}`, "pair[1] must be a number, not a text"},
		{`{"city":"x","maybe":true}`, "maybe must be null or a text, not true or false"},
		{`{"city":"x","names":{"long":1}}`, `names has the member "long", whose name is not allowed`},
		{`{"city":"x","names":{}}`, "names must have at least 1 member, not 0"},
		{`{"city":"x","names":{"a":1,"b":1,"c":1}}`, "names must have at most 2 members, not 3"},
		{`{"city":"x","has":[1]}`, "has must contain at least 1 element of a certain form, not 0"},
		{`{"city":"x","has":[null,null]}`, "has must contain at most 1 element of a certain form, not 2"},
		{`{"any":{"x":{"y":"1"}},"city":"x"}`, "any.x.y must be a number, not a text"},
		{`{"any":5,"city":"x"}`, "any fits none of 2 alternatives"},
		{`{"city":"x","one":3}`, "one must fit exactly one of 2 alternatives, and fits several"},
		{`{"city":"x","not":"x"}`, "not has a form that is excluded"},
		{`{"card":{"number":1},"city":"x"}`, `card must have "expiry", because it has "number"`},
		{`{"city":"x","if":{"kind":"a"}}`, `if must have "a"`},
		{`{"city":"x","if":{"kind":"b"}}`, `if must have "b"`},
		{`{"a b":{"user_name":1},"city":"x"}`, `["a b"] has "user_name", which is not known; did you mean "userName"?`},
		{`{"city":"x","closed":{"x":1,"y":2}}`, `closed has "y", which is not known`},
		{"{\"city\":\"x\",\"\u202e\\u0000\":1}", `the input has "\u202e\x00", which is not known`},
	} {
		input, err := Canonical(json.RawMessage(test.input))
		if err != nil {
			t.Fatalf("%s: %v", test.input, err)
		}
		got := ""
		if err := s.Check(input); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%s:\n got %q\nwant %q", test.input, got, test.want)
		}
	}
}

// TestTexts shows that a text is allowed for a number or boolean that is sent as text.
func TestTexts(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"id":{"type":"integer","minimum":1},"all":{"type":"boolean"},"name":{"type":"string"},"body":{"type":"integer"}}}`).WithTexts("id", "all", "name")
	for input, want := range map[string]string{
		`{"all":"true","id":"5","name":"7"}`: "",
		`{"id":"0"}`:                         "id must be at least 1",
		`{"id":"five"}`:                      "id must be a whole number, not a text",
		`{"id":" 5"}`:                        "id must be a whole number, not a text",
		`{"id":"5 6"}`:                       "id must be a whole number, not a text",
		`{"all":"yes"}`:                      "all must be true or false, not a text",
		`{"body":"5"}`:                       "body must be a whole number, not a text",
	} {
		got := ""
		if err := s.Check(json.RawMessage(input)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", input, got, want)
		}
	}
}

// TestDrafts shows that schemas of older drafts keep their meaning.
func TestDrafts(t *testing.T) {
	for _, test := range []struct {
		schema, input string
		fits          bool
	}{
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":1}`, false},
		{`{"$schema":"http://json-schema.org/draft-04/schema#","properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`, `{"a":2}`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",null]`, true},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}],"additionalItems":{"type":"null"}}`, `["a",1]`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/definitions/a","minLength":5}}}`, `{"x":"a"}`, true},
		{`{"$defs":{"a":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a","minLength":5}}}`, `{"x":"a"}`, false},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"c":{"required":["d"]}}}`, `{"a":1,"b":1,"c":1}`, false},
		{`{"items":[{"type":"string"}]}`, `[1]`, false},
	} {
		s, err := Compile(json.RawMessage(test.schema))
		if err != nil {
			if test.schema != `{"items":[{"type":"string"}]}` {
				t.Errorf("%s: %v", test.schema, err)
			}
			continue
		}
		if err := s.Check(json.RawMessage(test.input)); (err == nil) != test.fits {
			t.Errorf("%s of %s: %v", test.input, test.schema, err)
		}
	}
}

// TestAsTheLibrary compares the checks with those of the library, for many schemas and values.
func TestAsTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 11))
	compared, fitting := 0, 0
	for range 2_000 {
		made := randomSchema(random, 3)
		if root, ok := made.(map[string]any); ok && random.IntN(2) == 0 {
			root["$schema"] = "http://json-schema.org/draft-07/schema#"
			root["items"] = []any{randomSchema(random, 2)}
			root["additionalItems"] = randomSchema(random, 2)
			root["dependencies"] = map[string]any{"a": []string{"b"}, "b": randomSchema(random, 2)}
		}
		raw, err := json.Marshal(made)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := Compile(raw)
		if err != nil {
			if strings.Contains(err.Error(), "enum") { // In draft 7 no value may be in it twice.
				continue
			}
			t.Fatalf("%s: %v", raw, err)
		}
		for range 4 {
			input, err := json.Marshal(randomValue(random, 3))
			if err != nil {
				t.Fatal(err)
			}
			if input, err = Canonical(input); err != nil {
				t.Fatal(err)
			}
			theirs, err := jsonschema.UnmarshalJSON(strings.NewReader(string(input)))
			if err != nil {
				t.Fatal(err)
			}
			v, err := parse(input)
			if err != nil {
				t.Fatal(err)
			}
			got := (&walk{steps: 1 << 40}).check(ours.root, v) == nil
			quiet := (&walk{steps: 1 << 40}).fits(ours.root, v)
			want := ours.root.Validate(theirs) == nil
			if got != want || quiet != want {
				t.Fatalf("%s of %s: got %t and %t, the library says %t", input, raw, got, quiet, want)
			}
			if compared++; want {
				fitting++
			}
		}
	}
	if fitting < compared/10 || fitting > compared*9/10 {
		t.Errorf("%d of %d fit, so the comparison says little", fitting, compared)
	}
}

// randomSchema makes a random schema from all keywords that are checked.
func randomSchema(r *rand.Rand, depth int) any {
	if depth == 0 || r.IntN(12) == 0 {
		return []any{true, false, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, map[string]any{"const": 1}}[r.IntN(6)]
	}
	sub := func() any { return randomSchema(r, depth-1) }
	subs := func() any {
		list := []any{sub()}
		for r.IntN(2) == 0 {
			list = append(list, sub())
		}
		return list
	}
	name := func() string { return string(rune('a' + r.IntN(3))) }
	keywords := []func(s map[string]any){
		func(s map[string]any) {
			s["type"] = []string{"object", "array", "string", "number", "integer", "null", "boolean"}[r.IntN(7)]
		},
		func(s map[string]any) { s["properties"] = map[string]any{name(): sub(), name(): sub()} },
		func(s map[string]any) { s["additionalProperties"] = sub() },
		func(s map[string]any) { s["patternProperties"] = map[string]any{"^[ab]$": sub()} },
		func(s map[string]any) { s["propertyNames"] = map[string]any{"pattern": "^[ab]"} },
		func(s map[string]any) { s["required"] = []string{name()} },
		func(s map[string]any) { s["minProperties"] = r.IntN(3) },
		func(s map[string]any) { s["maxProperties"] = r.IntN(3) },
		func(s map[string]any) { s["dependentRequired"] = map[string]any{name(): []string{name()}} },
		func(s map[string]any) { s["dependentSchemas"] = map[string]any{name(): sub()} },
		func(s map[string]any) { s["unevaluatedProperties"] = sub() },
		func(s map[string]any) { s["items"] = sub() },
		func(s map[string]any) { s["prefixItems"] = subs() },
		func(s map[string]any) { s["contains"] = sub() },
		func(s map[string]any) {
			s["contains"], s["minContains"], s["maxContains"] = sub(), r.IntN(2), 1+r.IntN(2)
		},
		func(s map[string]any) { s["uniqueItems"] = true },
		func(s map[string]any) { s["unevaluatedItems"] = sub() },
		func(s map[string]any) { s["minItems"] = r.IntN(3) },
		func(s map[string]any) { s["maxItems"] = r.IntN(3) },
		func(s map[string]any) { s["allOf"] = subs() },
		func(s map[string]any) { s["anyOf"] = subs() },
		func(s map[string]any) { s["oneOf"] = subs() },
		func(s map[string]any) { s["not"] = sub() },
		func(s map[string]any) { s["if"], s["then"], s["else"] = sub(), sub(), sub() },
		func(s map[string]any) { s["enum"] = []any{randomValue(r, 1), randomValue(r, 1), 1, "a"} },
		func(s map[string]any) { s["const"] = randomValue(r, 1) },
		func(s map[string]any) { s["minimum"] = r.IntN(3) },
		func(s map[string]any) { s["exclusiveMaximum"] = 1.5 },
		func(s map[string]any) { s["multipleOf"] = 0.5 },
		func(s map[string]any) { s["minLength"] = 1 },
		func(s map[string]any) { s["pattern"] = "a" },
	}
	s := map[string]any{}
	for range 1 + r.IntN(3) {
		keywords[r.IntN(len(keywords))](s)
	}
	return s
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case n < 3 && depth > 0:
		o := map[string]any{}
		for range r.IntN(4) {
			o[string(rune('a'+r.IntN(4)))] = randomValue(r, depth-1)
		}
		return o
	case n < 6 && depth > 0:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	case n == 6:
		return nil
	case n == 7:
		return r.IntN(2) == 0
	case n == 8:
		return []string{"", "a", "ab", "1"}[r.IntN(4)]
	default:
		return []json.Number{"0", "1", "1.0", "2", "1.5", "0.3", "1e0", "-0", "10e-1", "2.50"}[r.IntN(10)]
	}
}

// TestUsefulSizes shows that large sensible inputs pass.
func TestUsefulSizes(t *testing.T) {
	rows := make([]string, 5_000)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"id":%d,"name":"person %d","email":"p%d@example.com","score":%d.5,"tags":["a","b"]}`, i, i, i, i)
	}
	s := compile(t, `{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["id","name"],
		"properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string","maxLength":100},"email":{"type":"string","pattern":"^[a-z0-9.]+@[a-z.]+$"},"score":{"type":"number","maximum":10000},"tags":{"type":"array","items":{"enum":["a","b"]}}}}},
		"document":{"type":"string","maxLength":1000000,"pattern":"^[a-z]"}}}`)
	for name, input := range map[string]string{
		"rows":     `{"rows":[` + strings.Join(rows, ",") + `]}`,
		"document": `{"document":"` + strings.Repeat("a", 900_000) + `"}`,
	} {
		if err := s.Check(json.RawMessage(input)); err != nil {
			t.Errorf("%s of %d bytes: %v", name, len(input), err)
		}
	}
}

// TestUnicodeEscapes shows that patterns may have the escapes of JavaScript.
func TestUnicodeEscapes(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		fits          bool
	}{
		{`^[\u0061-\u007a\u00e9]+$`, "aé", true},
		{`^[\u0061-\u007a\u00e9]+$`, "A", false},
		{`^\\u0061$`, `\u0061`, true},
		{`^\/\-\"$`, `/-"`, true},
	} {
		schema, _ := json.Marshal(map[string]string{"pattern": test.pattern})
		input, _ := json.Marshal(test.text)
		if err := compile(t, string(schema)).Check(input); (err == nil) != test.fits {
			t.Errorf("%s of %s: %v", test.text, test.pattern, err)
		}
	}
}
