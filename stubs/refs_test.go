package stubs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestWithoutReferences(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"none", `{"properties":{"a":{}} }`, `{"properties":{"a":{}} }`},
		{"of a property", `{"$defs":{"A":{"type":"string"}},"properties":{"b":{},"a":{"$ref":"#/$defs/A"}}}`, `{"properties":{"b":{},"a":{"type":"string"}}}`},
		{"older name", `{"definitions":{"A":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/A"}}}`, `{"properties":{"a":{"type":"string"}}}`},
		{"of the whole", `{"$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}}`, `{"type":"string"}`},
		{"own members win", `{"$defs":{"A":{"description":"x","type":"string"}},"items":{"$ref":"#/$defs/A","description":"y"}}`, `{"items":{"description":"y","type":"string"}}`},
		{"of a reference", `{"$defs":{"A":{"$ref":"#/$defs/B"},"B":{"type":"null"}},"anyOf":[{"$ref":"#/$defs/A"},true]}`, `{"anyOf":[{"type":"null"},true]}`},
		{"allOf with one schema", `{"$defs":{"A":{"type":"null"}},"items":{"allOf":[{"$ref":"#/$defs/A"}]}}`, `{"items":{"type":"null"}}`},
		{"escaped", `{"$defs":{"a/b~c":{"type":"null"}},"items":{"$ref":"#/$defs/a~1b~0c"}}`, `{"items":{"type":"null"}}`},
		{"to what is not there", `{"items":{"$ref":"#/$defs/A"},"type":"array"}`, `{"items":{"$ref":"#/$defs/A"},"type":"array"}`},
		{"to elsewhere", `{"items":{"$ref":"file:///etc/passwd"}}`, `{"items":{"$ref":"file:///etc/passwd"}}`},
		{"to itself", `{"$defs":{"A":{"$ref":"#/$defs/A"}},"items":{"$ref":"#/$defs/A"}}`, `{"items":{"$ref":"#/$defs/A"}}`},
		{"not in values", `{"$defs":{"A":{}},"default":{"$ref":"#/$defs/A"},"enum":[{"$ref":"#/$defs/A"}]}`, `{"default":{"$ref":"#/$defs/A"},"enum":[{"$ref":"#/$defs/A"}]}`},
		{"a parameter of that name", `{"$defs":{"A":{}},"properties":{"$ref":{"type":"string"},"items":{"$ref":"#/$defs/A"}}}`, `{"properties":{"$ref":{"type":"string"},"items":{}}}`},
		{"two members of one name", `{"$defs":{"A":{}},"items":{"$ref":"#/$defs/A","a":1,"a":2}}`, `{"$defs":{"A":{}},"items":{"$ref":"#/$defs/A","a":1,"a":2}}`},
		{"not JSON", `{"$ref":`, `{"$ref":`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(withoutReferences(json.RawMessage(c.schema))); got != c.want {
				t.Errorf("schema %s, want %s", got, c.want)
			}
		})
	}
}

// TestReferencesAreBounded has definitions that double at each level, and one that contains itself.
func TestReferencesAreBounded(t *testing.T) {
	var definitions []string
	for i := range 30 {
		branch := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		definitions = append(definitions, fmt.Sprintf(`"d%d":{"anyOf":[%s]}`, i, strings.TrimSuffix(strings.Repeat(branch+",", 50), ",")))
	}
	schema := `{"$defs":{` + strings.Join(definitions, ",") + `},"properties":{"a":{"$ref":"#/$defs/d0"}}}`
	if got := string(withoutReferences(json.RawMessage(schema))); got != schema {
		t.Errorf("%d bytes, want the schema as it is", len(got))
	}
	tree := `{"$defs":{"T":{"type":"object","properties":{"l":{"$ref":"#/$defs/T"},"r":{"$ref":"#/$defs/T"}}}},"$ref":"#/$defs/T"}`
	if got := withoutReferences(json.RawMessage(tree)); len(got) > 64<<10 || !json.Valid(got) {
		t.Errorf("%d bytes of a tree", len(got))
	}
	deep := `{"$defs":{},"x":{"$ref":""},"items":` + strings.Repeat(`{"items":`, 5000) + `{}` + strings.Repeat(`}`, 5001)
	if got := withoutReferences(json.RawMessage(deep)); !json.Valid(got) {
		t.Error("a deep schema is no longer JSON")
	}
}
