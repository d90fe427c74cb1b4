package stubs

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPythonUnions checks tools whose input is one of several objects.
func TestPythonUnions(t *testing.T) {
	add := `{"type":"object","properties":{"op":{"const":"add"},"x":{"type":"number"}},"required":["op","x"],"additionalProperties":false}`
	del := `{"type":"object","properties":{"op":{"const":"del"},"id":{"type":"string"}},"required":["op"],"additionalProperties":false}`
	tests := []struct{ name, parameters, signature, doc string }{
		{
			"alternatives", `{"oneOf":[` + add + `,` + del + `]}`,
			`(op: Literal['add', 'del'], x: float = None, id: str = None)`,
			"\nArgs:\n    op: string, required, one of \"add\", \"del\".\n    x: number.\n    id: string.\n\n" +
				"Pass the arguments of one line:\n    op=\"add\", x\n    op=\"del\", [id]",
		},
		{
			"beside other properties", `{"properties":{"who":{"type":"string"}},"required":["who"],"anyOf":[` + add + `,` + del + `]}`,
			`(who: str, op: Literal['add', 'del'], x: float = None, id: str = None, **extra: Any)`,
			"\nArgs:\n    who: string, required.\n    op: string, required, one of \"add\", \"del\".\n    x: number.\n    id: string.\n\n" +
				"Pass the arguments of one line:\n    op=\"add\", x\n    op=\"del\", [id]",
		},
		{
			"one property with two types", `{"anyOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"type":"integer"}}},{"properties":{"a":{"type":"null"}}}]}`,
			`(a: str | int | None = None, **extra: Any)`,
			"\nArgs:\n    a: string or integer or null.\n\nPass the arguments of one line:\n    [a]\n    [a]\n    [a]",
		},
		{"an alternative that is no object", `{"oneOf":[` + add + `,{"type":"string"}]}`, `(**extra: Any)`, ""},
		{"too many", `{"oneOf":[` + strings.Repeat(add+",", maxVariants) + add + `]}`, `(**extra: Any)`, ""},
		{
			"a property that is a union", `{"properties":{"pet":{"oneOf":[{"properties":{"kind":{},"meow":{}}},{"properties":{"kind":{},"bark":{}}}]}}}`,
			`(pet: Any = None, **extra: Any)`, "\nArgs:\n    pet: any {kind, meow} or {kind, bark}.",
		},
		{
			"lists of a union", `{"properties":{"pets":{"type":"array","items":{"anyOf":[{"type":"object","properties":{"meow":{}}},{"type":"object","properties":{"bark":{}}}]}}}}`,
			`(pets: list[dict[str, Any]] = None, **extra: Any)`, "\nArgs:\n    pets: array of {meow} or {bark}.",
		},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judgeOne(t, j, Tool{Name: "f", Parameters: json.RawMessage(tt.parameters)})
			if sig, want := strings.ReplaceAll(got.Signature, "typing.", ""), tt.signature+" -> Any"; sig != want {
				t.Errorf("signature\n got %s\nwant %s", sig, want)
			}
			if got.Doc != tt.doc {
				t.Errorf("docstring\n got %q\nwant %q", got.Doc, tt.doc)
			}
		})
	}
}

// TestPythonReferences checks that references in the parameters of a client's tool are followed.
func TestPythonReferences(t *testing.T) {
	tests := []struct{ name, parameters, signature, doc string }{
		{
			"a root that is a reference", `{"$ref":"#/definitions/In","definitions":{"In":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}}}`,
			`(a: int)`, "\nArgs:\n    a: integer, required.",
		},
		{
			"definitions", `{"properties":{"at":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"object","properties":{"lat":{},"from":{}}}}}`,
			`(at: dict[str, Any] = None, **extra: Any)`, "\nArgs:\n    at: object {lat, \"from\"}.",
		},
		{
			"another property", `{"properties":{"a":{"type":"object","properties":{"x y":{"type":"integer"}}},"b":{"$ref":"#/properties/a/properties/x%20y"},"c":{"type":"array","items":{"$ref":"#/properties/a"}}}}`,
			`(a: dict[str, Any] = None, b: int = None, c: list[dict[str, Any]] = None, **extra: Any)`,
			"\nArgs:\n    a: object {\"x y\"}.\n    b: integer.\n    c: array of {\"x y\"}.",
		},
		{
			"an alternative", `{"properties":{"a":{"anyOf":[{"type":"boolean"},{"type":"null"}]},"b":{"$ref":"#/properties/a/anyOf/0"}}}`,
			`(a: bool | None = None, b: bool = None, **extra: Any)`, "\nArgs:\n    a: boolean or null.\n    b: boolean.",
		},
		{
			"an id", `{"properties":{"a":{"$id":"T0","type":"object","properties":{"kids":{"type":"array","items":{"$ref":"T0"}}}}}}`,
			`(a: dict[str, Any] = None, **extra: Any)`, "\nArgs:\n    a: object {kids}.",
		},
		{
			"nowhere", `{"properties":{"a":{"$ref":"#/properties/b"},"c":{"$ref":"#/a/0/b"},"d":{"$ref":"#/%zz"}}}`,
			`(a: Any = None, c: Any = None, d: Any = None, **extra: Any)`, "\nArgs:\n    a: any.\n    c: any.\n    d: any.",
		},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judgeOne(t, j, Tool{Name: "f", Parameters: json.RawMessage(tt.parameters)})
			if sig, want := strings.ReplaceAll(got.Signature, "typing.", ""), tt.signature+" -> Any"; sig != want {
				t.Errorf("signature\n got %s\nwant %s", sig, want)
			}
			if got.Doc != tt.doc {
				t.Errorf("docstring\n got %q\nwant %q", got.Doc, tt.doc)
			}
		})
	}
}
