package stubs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

// compareGolden compares a text with a golden file, or writes the file.
func compareGolden(t *testing.T, golden, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got); run with -update if it should:\n%s", golden, diff)
	}
}

// TestPythonGolden compares the stubs of every testdata/*.json, which is a list of tools as
// a client sends it, with the .golden file beside it.
func TestPythonGolden(t *testing.T) {
	j := newJudge(t)
	inputs, err := filepath.Glob("testdata/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs (error %v)", err)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".json"), func(t *testing.T) {
			text, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			var tools []Tool // encoding/json matches field names in any case
			if err := json.Unmarshal(text, &tools); err != nil {
				t.Fatal(err)
			}
			got, err := Python(tools)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, strings.TrimSuffix(input, ".json")+".golden", got)
			stubs := j.judge(t, got)
			if len(stubs) != len(tools) {
				t.Fatalf("%d stubs for %d tools", len(stubs), len(tools))
			}
			for i, s := range stubs {
				checkStub(t, s, tools[i])
			}
		})
	}
}

// checkStub checks that name and description arrived unchanged.
func checkStub(t *testing.T, got stub, tool Tool) {
	t.Helper()
	if want := valid(tool.Name); got.Name != want {
		t.Errorf("name = %q, want %q", got.Name, want)
	}
	if want := identifierOf(tool.Name); got.Identifier != want {
		t.Errorf("identifier = %q, want %q", got.Identifier, want)
	}
	want := valid(tool.Description)
	if len(want) > maxDoc/2 { // it may have been cut off
		want = string([]rune(want)[:maxDoc/2/utf8.UTFMax])
	}
	if !strings.HasPrefix(got.Doc, want) {
		t.Errorf("docstring = %q, want it to begin with %q", got.Doc, want)
	}
}

// identifierOf returns the identifier of a tool among others with other names. A name without a character that Python
// allows is one nevertheless, which no program can write.
func identifierOf(name string) string {
	for _, identifier := range []string{Identifier(name), letterIdentifier(name)} {
		if identifier != "" {
			return identifier
		}
	}
	return valid(name)
}

// valid returns s with every byte that is not UTF-8 replaced.
func valid(s string) string { return string([]rune(s)) }

func TestPythonSignature(t *testing.T) {
	tests := []struct {
		name, parameters string
		want             string // without "**extra: Any) -> Any"
		objectFirst      bool
	}{
		{"nothing", ``, `(`, false},
		{"null", `null`, `(`, false},
		{"number", `17`, `(`, false},
		{"array", `[{"properties":{"a":{}}}]`, `(`, false},
		{"string properties", `{"properties":"a"}`, `(`, false},
		{"null properties", `{"properties":null}`, `(`, false},
		{"numeric type", `{"type":17,"properties":{"a":{}}}`, `(`, false},
		{"not an object", `{"type":"string","properties":{"a":{}}}`, `(`, false},
		{"reference to itself", `{"$ref":"#"}`, `(`, false},
		{"duplicate property", `{"properties":{"a":{},"a":{}}}`, `(`, false},
		{"duplicate property, escaped", `{"properties":{"a":{},"\u0061":{}}}`, `(`, false},
		{"duplicate keyword", `{"properties":{"a":{}},"properties":{"b":{}}}`, `(`, false},
		{"cut off", `{"properties":{"a":{}`, `(`, false},
		{"wrong bracket", `{"properties":{"a":{}]}`, `(`, false},
		{"a second value", `{"properties":{"a":{}}} {}`, `(`, false},
		{"not JSON", `{"properties":{a:{}}}`, `(`, false},
		{"too deep for JSON", strings.Repeat(`{"properties":`, 1e5) + strings.Repeat(`}`, 1e5), `(`, false},
		{"white space around", " {\"properties\" : {\"a\" : {} } }\n", `(a: Any = None, `, true},
		{"escaped keyword", `{"prop\u0065rties":{"\u0061":{"typ\u0065":"string"}}}`, `(a: str = None, `, false},

		{"order as sent", `{"properties":{"z":{},"a":{},"m":{}}}`, `(z: Any = None, a: Any = None, m: Any = None, `, true},
		{
			"required", `{"required":["c","a",7,"zz"],"properties":{"a":{"type":"string"},"b":{},"c":{}}}`,
			`(a: str, b: Any = None, *, c: Any, zz: Any, `, false,
		},
		{"required is no list", `{"required":"a","properties":{"a":{"type":"string"}}}`, `(a: str = None, `, false},
		{"required with a default", `{"required":["a"],"properties":{"a":{"default":1}}}`, `(a: Any = 1, `, true},
		{
			"not parameters", `{"properties":{"user-id":{},"from":{},"名前":{},"é":{},"":{},"1a":{},"__debug__":{},"a":{"type":"null"}}}`,
			`(名前: Any = None, é: Any = None, a: None = None, *, user_id: Any = None, from_: Any = None, _1a: Any = None, `, true,
		},
		{"like the stub's own", `{"properties":{"self":{},"tool":{},"_":{},"Any":{},"name":{}}}`, `(self: Any = None, tool: Any = None, _: Any = None, Any: Any = None, name: Any = None, `, true},

		{"boolean schema", `{"properties":{"a":true}}`, `(a: Any = None, `, true},
		{"null schema", `{"properties":{"a":null}}`, `(a: Any = None, `, true},
		{"numeric schema", `{"properties":{"a":17}}`, `(a: Any = None, `, true},
		{"type of a wrong type", `{"properties":{"a":{"type":17}}}`, `(a: Any = None, `, true},
		{"unknown type", `{"properties":{"a":{"type":"file"}}}`, `(a: Any = None, `, true},
		{"reference", `{"properties":{"a":{"$ref":"#/properties/a"}}}`, `(a: Any = None, `, true},
		{"all of", `{"properties":{"a":{"allOf":[{"type":"string"}]}}}`, `(a: Any = None, `, true},
		{"int", `{"properties":{"a":{"type":"integer"}}}`, `(a: int = None, `, false},
		{"float", `{"properties":{"a":{"type":"number"}}}`, `(a: float = None, `, false},
		{"bool", `{"properties":{"a":{"type":"boolean"}}}`, `(a: bool = None, `, false},
		{"object", `{"properties":{"a":{"type":"object"}}}`, `(a: dict[str, Any] = None, `, true},
		{"list", `{"properties":{"a":{"type":"array"}}}`, `(a: list[Any] = None, `, false},
		{"list of strings", `{"properties":{"a":{"type":"array","items":{"type":"string"}}}}`, `(a: list[str] = None, `, false},
		{"list of objects", `{"properties":{"a":{"type":"array","items":{"type":"object"}}}}`, `(a: list[dict[str, Any]] = None, `, false},
		{"tuple", `{"properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`, `(a: list[Any] = None, `, false},
		{
			"deep list", `{"properties":{"a":` + strings.Repeat(`{"type":"array","items":`, 1000) + `{}` + strings.Repeat(`}`, 1001) + `}`,
			`(a: list[list[list[Any]]] = None, `, false,
		},
		{"several types", `{"properties":{"a":{"type":["null","object","string",17]}}}`, `(a: str | dict[str, Any] | None = None, `, true},
		{"nullable", `{"properties":{"a":{"type":"string","nullable":true},"b":{"nullable":true}}}`, `(a: str | None = None, b: Any = None, `, false},
		{"any of", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":["string","null"]},{"type":"null"}]}}}`, `(a: str | None = None, `, false},
		{"any of with an object", `{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"object"}]}}}`, `(a: str | dict[str, Any] = None, `, true},
		{"any of with anything", `{"properties":{"a":{"anyOf":[{"type":"string"},{"$ref":"#"}]}}}`, `(a: Any = None, `, true},
		{"any of nothing", `{"properties":{"a":{"anyOf":[]}}}`, `(a: Any = None, `, true},
		{"any of nulls", `{"properties":{"a":{"anyOf":[{"type":"null"},{"type":"null"}]}}}`, `(a: None = None, `, false},
		{"any of too many", `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, maxAlternatives) + `{"type":"object"}]}}}`, `(a: Any = None, `, true},
		{"types within any of", `{"properties":{"a":{"type":"string","anyOf":[{"format":"date"},{"format":"time"}]}}}`, `(a: str = None, `, false},
		{"enum", `{"properties":{"a":{"enum":["x" , 1,true, null,-2.5e3]}}}`, `(a: Literal['x', 1, True, None, -2500.0] = None, `, false},
		{"const", `{"properties":{"a":{"const":"x"}}}`, `(a: Literal['x'] = None, `, false},
		{"const object", `{"properties":{"a":{"const":{"x":1}}}}`, `(a: Any = None, `, true},
		{"empty enum", `{"properties":{"a":{"type":"string","enum":[]}}}`, `(a: str = None, `, false},
		{"enum of a wrong type", `{"properties":{"a":{"type":"string","enum":"x"}}}`, `(a: str = None, `, false},
		{"enum of lists", `{"properties":{"a":{"enum":[[1],[2]]}}}`, `(a: Any = None, `, false},
		{"enum of objects", `{"properties":{"a":{"enum":[{}]}}}`, `(a: Any = None, `, true},
		{"long enum", `{"properties":{"a":{"type":"integer","enum":[1,2,3,4,5,6,7,8,9,10,11,12,13]}}}`, `(a: int = None, `, false},
		{"enum of a long value", `{"properties":{"a":{"type":"string","enum":["` + strings.Repeat("x", maxLiteral) + `"]}}}`, `(a: str = None, `, false},

		{"default string", `{"properties":{"a":{"default":"it's \"\\\n\ud83d\ude00"}}}`, `(a: Any = 'it\'s "\\\n😀', `, true},
		{"default values", `{"properties":{"a":{"default":{"x":[1,true,null,false,{}],"tnf":"[,:]"}}}}`, `(a: Any = {'x': [1, True, None, False, {}], 'tnf': '[,:]'}, `, true},
		{"default of no size", `{"properties":{"a":{"default":1e999},"b":{"default":-0}}}`, `(a: Any = inf, b: Any = 0, `, true},
		{"deep default", `{"properties":{"a":{"default":` + strings.Repeat(`[`, maxDefault/2) + strings.Repeat(`]`, maxDefault/2) + `}}}`, `(a: Any = ` + strings.Repeat(`[`, maxDefault/2) + strings.Repeat(`]`, maxDefault/2) + `, `, true},
		{"deep object default", `{"properties":{"a":{"default":` + strings.Repeat(`{"":`, 23) + `0` + strings.Repeat(`}`, 23) + `}}}`, `(a: Any = ` + strings.Repeat(`{'': `, 23) + `0` + strings.Repeat(`}`, 23) + `, `, true},
		{"large default", `{"properties":{"a":{"default":"` + strings.Repeat("x", maxDefault) + `"}}}`, `(a: Any = None, `, true},
		{"default of 5000 digits", `{"properties":{"a":{"default":1` + strings.Repeat("0", 5000) + `}}}`, `(a: Any = None, `, true},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judgeOne(t, j, Tool{Name: "f", Parameters: json.RawMessage(tt.parameters)})
			want := tt.want + "**extra: Any) -> Any"
			// Versions of Python differ in how they print the names of typing.
			if sig := strings.ReplaceAll(got.Signature, "typing.", ""); sig != want {
				t.Errorf("signature\n got %s\nwant %s", sig, want)
			}
			if got.ObjectFirst != tt.objectFirst {
				t.Errorf("object_first = %t, want %t", got.ObjectFirst, tt.objectFirst)
			}
		})
	}
}

// TestPythonArguments checks which arguments a stub requires, and whether it takes others than
// those of its schema.
func TestPythonArguments(t *testing.T) {
	tests := []struct {
		name, parameters string
		want             string
		others           map[string]bool
	}{
		{"silent", `{"properties":{"a":{}}}`, `(a: Any = None, **extra: Any)`, nil},
		{"false", `{"additionalProperties":false,"properties":{"a":{}},"required":["a"]}`, `(a: Any)`, nil},
		{"false and nothing else", `{"type":"object","properties":{},"additionalProperties":false}`, `()`, nil},
		{"false without properties", `{"additionalProperties":false}`, `()`, nil},
		{"true", `{"properties":{"a":{}},"additionalProperties":true}`, `(a: Any = None, **extra: Any)`, nil},
		{"a schema", `{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, `(a: Any = None, **extra: Any)`, nil},
		{"a text", `{"properties":{"a":{}},"additionalProperties":"false"}`, `(a: Any = None, **extra: Any)`, nil},
		{"false in a property", `{"properties":{"a":{"additionalProperties":false}}}`, `(a: Any = None, **extra: Any)`, nil},
		{"false, not an object", `{"type":"string","additionalProperties":false}`, `(**extra: Any)`, nil},
		{"false, cut off", `{"additionalProperties":false`, `(**extra: Any)`, nil},
		{"false, properties of a wrong type", `{"additionalProperties":false,"properties":[]}`, `(**extra: Any)`, nil},
		{"false, patterns", `{"additionalProperties":false,"patternProperties":{"^x-":{}}}`, `(**extra: Any)`, nil},
		{"false, a reference", `{"$ref":"#/$defs/a","additionalProperties":false}`, `(**extra: Any)`, nil},
		{"false, a branch with properties", `{"anyOf":[{"properties":{"b":{}}}],"additionalProperties":false}`, `(b: Any = None, **extra: Any)`, nil},
		{"false, a branch with a reference", `{"allOf":[{"$ref":"#/$defs/a"}],"additionalProperties":false}`, `(**extra: Any)`, nil},
		{
			"false, branches without properties", `{"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false,"properties":{"a":{},"b":{}}}`,
			`(a: Any = None, b: Any = None)`, nil,
		},
		{"names that are no identifiers", `{"properties":{"get-x":{},"class":{}},"required":["class"]}`, `(*, get_x: Any = None, class_: Any, **extra: Any)`, map[string]bool{"get-x": false, "class": true}},
		{
			"such names, nothing else", `{"properties":{"get-x":{},"a":{}},"required":["get-x","a"],"additionalProperties":false}`,
			`(a: Any, *, get_x: Any)`,
			map[string]bool{"get-x": true},
		},
		{"required and not declared", `{"required":["a","b-c"]}`, `(a: Any, *, b_c: Any, **extra: Any)`, map[string]bool{"b-c": true}},
		{"required and not allowed", `{"required":["a"],"additionalProperties":false}`, `()`, nil},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := judgeOne(t, j, Tool{Name: "f", Parameters: json.RawMessage(tt.parameters)})
			if sig, want := strings.ReplaceAll(got.Signature, "typing.", ""), tt.want+" -> Any"; sig != want {
				t.Errorf("signature\n got %s\nwant %s", sig, want)
			}
			if !maps.Equal(got.Others, tt.others) {
				t.Errorf("others = %v, want %v", got.Others, tt.others)
			}
			if want := !strings.Contains(tt.want, "**"); got.Closed != want {
				t.Errorf("closed = %t, want %t", got.Closed, want)
			}
		})
	}
}

func judgeOne(t *testing.T, j *judge, tool Tool) stub {
	t.Helper()
	source, err := Python([]Tool{tool})
	if err != nil {
		t.Fatal(err)
	}
	stubs := j.judge(t, source)
	if len(stubs) != 1 {
		t.Fatalf("%d stubs, want 1:\n%s", len(stubs), source)
	}
	return stubs[0]
}

func TestPythonKeepsEveryCharacter(t *testing.T) {
	text := "\x00\x1f ~\x7f\u0080\u00ff\u0100\ud7ff\ue000\uffff\U00010000\U0010ffff"
	got := judgeOne(t, newJudge(t), Tool{Name: "f" + text, Description: text})
	if got.Name != "f"+text || got.Doc != text {
		t.Errorf("name %+q and docstring %+q, want %+q in both", got.Name, got.Doc, text)
	}
}

func TestPythonLeavesOutLongValues(t *testing.T) {
	long := strings.Repeat("x", maxLiteral-10)
	var branches []string
	for i := range maxAlternatives {
		branches = append(branches, fmt.Sprintf(`{"const":"%d%s"}`, i, long))
	}
	tool := Tool{Name: "f", Parameters: json.RawMessage(`{"properties":{"a":{"anyOf":[` + strings.Join(branches, ",") + `]},` +
		`"b":{"enum":["` + strings.Repeat("x", maxDocEnum) + `"]}}}`)}
	got := judgeOne(t, newJudge(t), tool)
	if want := "(a: Any = None, b: Any = None, **extra: Any) -> Any"; strings.ReplaceAll(got.Signature, "typing.", "") != want {
		t.Errorf("signature = %s, want %s", got.Signature, want)
	}
	if want := "\nArgs:\n    a: string.\n    b: string."; got.Doc != want {
		t.Errorf("docstring = %q, want %q", got.Doc, want)
	}
}

func TestPythonManyProperties(t *testing.T) {
	var members []string
	for i := range 1000 {
		members = append(members, fmt.Sprintf(`"p%d":{"type":"string","description":"number %d"}`, i, i))
	}
	tool := Tool{Name: "f", Parameters: json.RawMessage(`{"required":["p999"],"additionalProperties":false,"properties":{` + strings.Join(members, ",") + `}}`)}
	got := judgeOne(t, newJudge(t), tool)
	if n := len(got.Parameters); n != maxProperties+1 || got.Parameters[n-2] != "p249" || got.Parameters[n-1] != "p999" {
		t.Errorf("%d parameters, the last %q; want %d up to p249, and the required p999", n, got.Parameters[n-1], maxProperties)
	}
	if got.Closed {
		t.Error("the stub takes nothing but its parameters, want it to take the properties that it does not show")
	}
}

func TestPythonExtraNeverCollides(t *testing.T) {
	tool := Tool{Name: "f", Parameters: json.RawMessage(`{"properties":{"extra":{},"extra_":{}}}`)}
	got := judgeOne(t, newJudge(t), tool)
	if want := "(extra: Any = None, extra_: Any = None, **extra__: Any) -> Any"; strings.ReplaceAll(got.Signature, "typing.", "") != want {
		t.Errorf("signature = %s, want %s", got.Signature, want)
	}
}

func TestPythonCutsTheDocstring(t *testing.T) {
	j := newJudge(t)
	for _, shift := range []string{"", "a", "ab"} {
		description := shift + strings.Repeat("名", maxDoc)
		got := judgeOne(t, j, Tool{Name: "f", Description: description}).Doc
		text, cut := strings.CutSuffix(got, docCut)
		if !cut || !strings.HasPrefix(description, text) || len(got) > maxDoc || len(got) < maxDoc-utf8.UTFMax {
			t.Errorf("docstring of %d bytes is not a description cut at %d", len(got), maxDoc)
		}
	}
	exact := strings.Repeat("x", maxDoc)
	if got := judgeOne(t, j, Tool{Name: "f", Description: exact}).Doc; got != exact {
		t.Errorf("docstring of %d bytes, want all the %d", len(got), len(exact))
	}
	long := strings.Repeat("aé", maxDoc)
	parameters, err := json.Marshal(map[string]any{"properties": map[string]any{"a": map[string]any{"description": long}}})
	if err != nil {
		t.Fatal(err)
	}
	got := judgeOne(t, j, Tool{Name: "f", Parameters: parameters}).Doc
	if len(got) > maxDoc || !strings.HasPrefix(got, "\nArgs:\n    a: aéaé") {
		t.Errorf("docstring of %d bytes: %.40q…", len(got), got)
	}
	junk := judgeOne(t, j, Tool{Name: "f", Description: strings.Repeat("\x80", 2*maxDoc)}).Doc
	if want := strings.Repeat("\ufffd", maxDoc-len(docCut)-utf8.UTFMax); !strings.HasPrefix(junk, want) {
		t.Errorf("docstring of bytes that are not UTF-8 has %d bytes", len(junk))
	}
}

func TestPythonNames(t *testing.T) {
	named := func(names ...string) (tools []Tool) {
		for i, n := range names {
			tools = append(tools, Tool{Name: n, Description: strconv.Itoa(i)})
		}
		return tools
	}
	tests := []struct {
		name  string
		tools []Tool
		want  []string // name, description
	}{
		{"none", nil, nil},
		{"no identifier", named("名前", "ok", "...", ""), []string{"名前 0", "ok 1", "... 2"}},
		{"the same name twice", named("a", "b", "a"), []string{"b 1", "a 2"}},
		{"builtins", named("print", "json", "__import__", "_", "tool", "Any", "Literal", "str", "__init__"), []string{
			"print 0", "json 1", "__import__ 2", "_ 3", "tool 4", "Any 5", "Literal 6", "str 7", "__init__ 8",
		}},
		{"the interpreter's own", named("__builtins__", "__debug__", "__name__", "__annotations__", "__spec__",
			"__package__", "__loader__", "__file__", "__path__", "__warningregistry__", "__cached__", "__annotate__",
			"__annotate_func__", "__conditional_annotations__", "__doc__", "last"), []string{"last 15"}},
	}
	j := newJudge(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source, err := Python(tt.tools)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, s := range j.judge(t, source) {
				got = append(got, s.Name+" "+s.Doc)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("stubs %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPythonCollision(t *testing.T) {
	tools := []Tool{{Name: "x"}, {Name: "a-b"}, {Name: "a-b"}, {Name: "a_b"}, {Name: "a b"}}
	source, err := Python(tools)
	var got *CollisionError
	if !errors.As(err, &got) {
		t.Fatalf("Python = %q, %v, want a CollisionError", source, err)
	}
	if want := (CollisionError{First: "a-b", Second: "a_b", Identifier: "a_b"}); *got != want {
		t.Errorf("collision = %+v, want %+v", *got, want)
	}
	if want := `Tool names "a-b" and "a_b" normalize to the same identifier "a_b"`; err.Error() != want {
		t.Errorf("error = %s, want %s", err, want)
	}
}

func FuzzPython(f *testing.F) {
	j := newJudge(f)
	for _, schema := range []string{
		``, `null`, `17`, `[]`, `{"type":17,"properties":{"a":true}}`, `{"properties":{"a":{},"a":{}}}`,
		`{"type":"object","properties":{"city":{"type":"string","description":"City."},"user-id":{"enum":["a",null,1e9]},
		 "from":{"default":{"a":[1,true,"\ud800"]}},"b":{"anyOf":[{"type":["null","string"]},{"const":"\"\"\""}]}},
		 "required":["city","b"]}`,
		`{"properties":{"a":{"type":"array","items":{"type":"array","items":{"nullable":true,"type":"integer"}},"default":[]}}}`,
		`{"additionalProperties":false,"properties":{"a-b":{},"c":{"default":1},"d":{}},"required":["d","a-b","e"]}`,
		`{"anyOf":[{"properties":{}}],"$ref":"#","patternProperties":{},"required":["","f","f"],"additionalProperties":false}`,
		`{"properties":{"extra":{"enum":[-1,"\\N{BULLET}"]},"\u0000":{"description":"\u2028\r\n.."}}}`,
	} {
		f.Add("get-weather", "Weather.", schema)
		f.Add("!", "No letter.", schema)
		f.Add("a\"b'\\", "\"\"\"\n\\N{BULLET}\x00\U0001F600\u2028\\", schema)
	}
	f.Fuzz(func(t *testing.T, name, description, schema string) {
		tool := Tool{Name: name, Description: description, Parameters: json.RawMessage(schema)}
		source, err := Python([]Tool{tool})
		if err != nil {
			t.Fatal(err)
		}
		stubs := j.judge(t, source)
		if id := identifierOf(name); id == "" || isModuleGlobal(id) {
			if len(stubs) != 0 {
				t.Fatalf("%q has a stub", name)
			}
			return
		}
		if len(stubs) != 1 {
			t.Fatalf("%d stubs for %q, want 1", len(stubs), name)
		}
		checkStub(t, stubs[0], tool)
	})
}

func BenchmarkPython(b *testing.B) {
	for _, n := range []int{3, 100} {
		b.Run(fmt.Sprintf("%d tools", n), func(b *testing.B) {
			tools := make([]Tool, n)
			for i := range tools {
				tools[i] = Tool{
					Name:        fmt.Sprintf("get-weather-%d", i),
					Description: "Current weather for a city, and the forecast for some days if they are asked for.",
					Parameters: json.RawMessage(`{"type":"object","properties":{` +
						`"city":{"type":"string","description":"City name, in English."},` +
						`"units":{"type":"string","enum":["c","f"],"default":"c","description":"The scale."},` +
						`"days":{"type":"integer","minimum":0,"maximum":14,"description":"Days of forecast."},` +
						`"fields":{"type":"array","items":{"type":"string"},"description":"What to return."}},` +
						`"required":["city"],"additionalProperties":false}`),
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Python(tools); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
