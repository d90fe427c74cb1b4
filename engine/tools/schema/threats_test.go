package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// TestT7SchemasThatAreRefused shows that nothing is loaded for a schema, and that its size is limited.
func TestT7SchemasThatAreRefused(t *testing.T) {
	secret := t.TempDir() + "/secret.json"
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var doubled, chain strings.Builder
	doubled.WriteString(`{"$defs":{"d0":{"type":"string"}`)
	for i := 1; i < 15; i++ {
		fmt.Fprintf(&doubled, `,"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i-1, i-1)
	}
	doubled.WriteString(`},"$ref":"#/$defs/d14"}`)
	chain.WriteString(`{"$defs":{"d0":{"type":"string"}`)
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&chain, `,"d%d":{"$ref":"#/$defs/d%d"}`, i, i-1)
	}
	chain.WriteString(`},"$ref":"#/$defs/d39"}`)
	const outside = "the schema refers to something outside of itself ($ref or $schema), and nothing is loaded for a schema"
	for name, test := range map[string]struct{ schema, want string }{
		"file":              {`{"$ref":"file://` + secret + `"}`, outside},
		"file by $id":       {`{"$id":"file://` + secret + `x","$ref":"secret.json"}`, outside},
		"http":              {`{"properties":{"a":{"$ref":"http://127.0.0.1:1/x.json"}}}`, outside},
		"dialect":           {`{"$schema":"http://127.0.0.1:1/x.json"}`, outside},
		"relative":          {`{"$ref":"other.json#/a"}`, "the schema refers to something outside of itself ($ref or $schema), and nothing is loaded for a schema"},
		"nowhere":           {`{"$ref":"#/$defs/none"}`, "the schema has a $ref to something that is not in it"},
		"no anchor":         {`{"$ref":"#none"}`, "the schema has a $ref to something that is not in it"},
		"dynamic":           {`{"$dynamicRef":"#a"}`, "the schema uses $dynamicRef, which is not supported; use $ref"},
		"itself":            {`{"$ref":"#"}`, "the schema has a part that refers to itself without end"},
		"itself by two":     {`{"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"$ref":"#/$defs/a"}`, "the schema has a part that refers to itself without end"},
		"bytes":             {`{"description":"` + strings.Repeat("a", MaxSchema) + `"}`, "the schema has 65554 bytes; at most 65536 are allowed"},
		"expansion":         {doubled.String(), "the schema has more than 10000 parts, counted again for each reference to them"},
		"levels":            {strings.Repeat(`{"not":`, 40) + "true" + strings.Repeat("}", 40), "the schema has more than 32 levels"},
		"levels by $ref":    {chain.String(), "the schema has more than 32 levels"},
		"nesting":           {strings.Repeat(`{"not":`, 100) + "true" + strings.Repeat("}", 100), "the schema has more than 64 levels of objects and lists"},
		"look-ahead":        {`{"pattern":"^(?!a)"}`, "the schema has a pattern that is not a regular expression of RE2, which has no look-arounds and no back-references"},
		"back-reference":    {`{"pattern":"(a)\\1"}`, "the schema has a pattern that is not a regular expression of RE2, which has no look-arounds and no back-references"},
		"large pattern":     {`{"pattern":"` + strings.Repeat("a{1000}", 10) + `"}`, "the schema has a pattern that is too large once its repetitions are written out"},
		"nested repetition": {`{"pattern":"((a{100}){100}){100}"}`, "the schema has a pattern that is not a regular expression of RE2, which has no look-arounds and no back-references"},
		"long pattern":      {`{"patternProperties":{"` + strings.Repeat("a", 5000) + `":true}}`, "the schema has a pattern that has 5000 bytes; at most 4096 are allowed"},
		"not a schema":      {`{"properties":{"a":{"type":"text"}}}`, `the schema is not valid at "properties.a.type"`},
		"list":              {`[]`, "the schema is not valid"},
		"twins":             {`{"type":"object","type":"string"}`, "the schema is not strict JSON: two members of one object have the same name at type"},
		"bound":             {`{"minimum":1e999999999}`, "the schema has a number with an exponent beyond 400"},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			_, err := Compile(json.RawMessage(test.schema))
			if err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
