package stubs

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A module describes the module of a toolset as Python sees it.
type module struct {
	Error   string   `json:"error"`
	Shape   string   `json:"shape"` // its syntax tree without the values of literals
	Class   string   `json:"class"`
	Doc     string   `json:"doc"`
	Help    string   `json:"help"`
	Methods []method `json:"methods"`
}

// A method is a method of a toolset's class.
type method struct {
	Toolset     string          `json:"toolset"`
	Name        string          `json:"name"`
	Method      string          `json:"method"`
	ObjectFirst bool            `json:"object_first"`
	Others      map[string]bool `json:"others"`
	Signature   string          `json:"signature"`
	Doc         string          `json:"doc"`
}

// judgeModule returns the module of a toolset as Python sees it.
func judgeModule(tb testing.TB, j *judge, t Toolset) module {
	tb.Helper()
	source, err := PythonModule(t)
	if err != nil {
		tb.Fatal(err)
	}
	var m module
	if j.ask(tb, source, &m); m.Error != "" {
		tb.Fatalf("Python refuses the module: %s\n%s", m.Error, source)
	}
	return m
}

// toolsetOf returns a toolset with these tools.
func toolsetOf(tools ...Tool) Toolset {
	return Toolset{Key: "weather", Class: "Weather", Description: "Weather of cities.", Tools: tools}
}

// TestToolsetGolden compares the modules, functions and documentation of every toolset in testdata
// with the golden files beside it.
func TestToolsetGolden(t *testing.T) {
	inputs, err := filepath.Glob("testdata/toolsets/*.json")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs (error %v)", err)
	}
	j := startJudge(t, "testdata/modules.py")
	for _, input := range inputs {
		text, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		var toolset Toolset
		if err := json.Unmarshal(text, &toolset); err != nil {
			t.Fatal(err)
		}
		judgeModule(t, j, toolset)
		for kind, generate := range map[string]func(Toolset) (string, error){
			"py": PythonModule,
			"sh": func(t Toolset) (string, error) { return BashModule(t) },
			"md": func(t Toolset) (string, error) { return Docs("fermata_tools", t) },
		} {
			got, err := generate(toolset)
			if err != nil {
				t.Fatal(err)
			}
			compareGolden(t, strings.TrimSuffix(input, "json")+kind+".golden", got)
		}
	}
}

func TestModuleMethods(t *testing.T) {
	j := startJudge(t, "testdata/modules.py")
	for _, c := range []struct {
		name string
		tool Tool
		want method
	}{
		{
			"parameters and result",
			Tool{
				Name: "get-current", Description: "Weather now.",
				Parameters: json.RawMessage(`{"properties":{"city":{"type":"string"},"n":{"default":3}},"required":["city"],"additionalProperties":false}`),
				Output:     json.RawMessage(`{"type":["object","null"],"properties":{"a":{"type":"string","description":"First."}},"required":["a"]}`),
			},
			method{Name: "get-current", Method: "get_current", Signature: "(city: str, n: Any = 3) -> dict[str, Any] | None", Doc: "Weather now.\n\nArgs:\n    city: string, required.\n    n: any, default 3.\n\nReturns a dict with:\n    a: First (string)."},
		},
		{
			"names that Python changes inside of classes",
			Tool{Name: "f", Parameters: json.RawMessage(`{"properties":{"__a":{},"__b__":{},"_c":{},"cls":{},"self":{}},"required":["__a"]}`)},
			method{
				Name: "f", Method: "f", ObjectFirst: true, Others: map[string]bool{"__a": true}, Signature: "(__b__: Any = None, _c: Any = None, cls: Any = None, self: Any = None, **extra: Any) -> Any",
				Doc: "Args:\n    \"__a\": any, required. Pass it as **{\"__a\": ...}.\n    __b__: any.\n    _c: any.\n    cls: any.\n    self: any.",
			},
		},
		{
			"a list of texts",
			Tool{Name: "f", Output: json.RawMessage(`{"type":"array","items":{"type":"string"}}`)},
			method{Name: "f", Method: "f", Signature: "(**extra: Any) -> list[str]"},
		},
		{
			"broken schemas",
			Tool{Name: "f", Parameters: json.RawMessage(`{"properties":{"a":{}`), Output: json.RawMessage(`{"type":"string"`)},
			method{Name: "f", Method: "f", Signature: "(**extra: Any) -> Any"},
		},
		{
			"a docstring of many lines",
			Tool{Name: "f", Description: "One.\n\n  Two.\n\"\"\"\\\n"},
			method{Name: "f", Method: "f", Signature: "(**extra: Any) -> Any", Doc: "One.\n\n  Two.\n\"\"\"\\"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := judgeModule(t, j, toolsetOf(c.tool))
			c.want.Toolset = "weather"
			if c.want.Others == nil {
				c.want.Others = map[string]bool{}
			}
			if diff := cmp.Diff([]method{c.want}, m.Methods); diff != "" {
				t.Errorf("methods (-want +got):\n%s", diff)
			}
		})
	}
}

// TestModuleHiddenTypes has tools with the names of all types that annotations use.
func TestModuleHiddenTypes(t *testing.T) {
	j := startJudge(t, "testdata/modules.py")
	schema := json.RawMessage(`{"properties":{"a":{"type":"array","items":{"type":"string"}},"b":{"enum":["list","str"]},"c":{"type":["integer","number","boolean","object"]}}}`)
	toolset := Toolset{Key: "any", Class: "Any"}
	for _, name := range []string{"list", "str", "int", "float", "bool", "dict", "Literal", "None_", "_list", "object"} {
		toolset.Tools = append(toolset.Tools, Tool{Name: name, Parameters: schema, Output: json.RawMessage(`{"type":"array"}`)})
	}
	for _, m := range judgeModule(t, j, toolset).Methods {
		if want := `(a: list[str] = None, b: Literal['list', 'str'] = None, c: int | float | bool | dict[str, Any] = None, **extra: Any) -> list[Any]`; m.Signature != want {
			t.Errorf("%s%s, want %s", m.Name, m.Signature, want)
		}
	}
}

func TestModuleHelp(t *testing.T) {
	m := judgeModule(t, startJudge(t, "testdata/modules.py"), toolsetOf(Tool{Name: "current", Description: "Weather now.", Parameters: json.RawMessage(`{"properties":{"city":{"type":"string"}},"required":["city"]}`)}))
	for _, want := range []string{"class Weather", "Weather of cities.", "current(city: str, **extra: ", "Weather now."} {
		if !strings.Contains(m.Help, want) {
			t.Errorf("help does not contain %q:\n%s", want, m.Help)
		}
	}
}

func TestModuleRefusals(t *testing.T) {
	for _, c := range []struct {
		toolset Toolset
		want    string
	}{
		{Toolset{Key: "a\nb", Class: "A"}, `the toolset's key "a\nb" is not the name of a module`},
		{Toolset{Key: "import", Class: "A"}, `the toolset's key "import" is not the name of a module`},
		{Toolset{Key: "a", Class: "A(B)"}, `the class "A(B)" of the toolset a is not the name of a class`},
		{Toolset{Key: "a", Class: "_tool"}, `the class "_tool" of the toolset a is not the name of a class`},
		{toolsetOf(Tool{Name: "a-b"}, Tool{Name: "a_b"}), `toolset weather: Tool names "a-b" and "a_b" normalize to the same identifier "a_b"`},
		{toolsetOf(Tool{Name: "a"}, Tool{Name: "a"}), `toolset weather: Tool names "a" and "a" normalize to the same identifier "a"`},
	} {
		for name, generate := range map[string]func(Toolset) (string, error){
			"python": PythonModule,
			"bash":   func(t Toolset) (string, error) { return BashModule(t) },
			"docs":   func(t Toolset) (string, error) { return Docs("fermata_tools", t) },
		} {
			if source, err := generate(c.toolset); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("%s: %q and the error %v, want %s", name, source, err, c.want)
			}
		}
	}
	var collision *CollisionError
	if _, err := PythonModule(toolsetOf(Tool{Name: "aio"}, Tool{Name: "aio_tool"})); !errors.As(err, &collision) || collision.Identifier != "aio_tool" {
		t.Errorf("error %v, want a CollisionError for aio_tool", err)
	}
}

func TestModuleIsBounded(t *testing.T) {
	var tools []Tool
	for i := range 500 {
		tools = append(tools, Tool{Name: fmt.Sprint("t", i), Description: strings.Repeat("x", maxDoc)})
	}
	_, err := PythonModule(toolsetOf(tools...))
	if want := "the source of the toolset weather would have more than 2097152 bytes; leave out tools, or shorten their schemas"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	m := judgeModule(t, startJudge(t, "testdata/modules.py"), Toolset{Key: "a", Class: "A", Description: strings.Repeat("x", 2*maxClassDoc)})
	if len(m.Doc) != maxClassDoc {
		t.Errorf("docstring of the class has %d bytes, want %d", len(m.Doc), maxClassDoc)
	}
}

// hostileTexts try to leave a literal, in Python or in a shell.
var hostileTexts = []string{
	`"`, `""`, `a"b`, `a""b`, `a"""b`, `"a"`, `\"`, `a\"b`, "a\n\"\n\"b", `"""`, `""" + exit() + """`, `\`, `\"""`, "\\\n", "\n\"\"\"\nimport os\n", "\r\n", "\x00", "{}", "{x!r}", "%s", "$(id)", "`id`", ";", "#", "${FERMATA_SECRET}",
	"${file:/etc/passwd}", "'", "\u2028", "\u202e", "\U000e0041", "\xff", "\ud7ff", `\N{BULLET}`, `\u0022`, "None", "ﬁ", "a\x1a",
}

// hostileToolset returns a toolset that has a text at each place where any text is allowed.
func hostileToolset(text string) Toolset {
	quoted, err := json.Marshal(text[:min(len(text), 60)])
	if err != nil {
		panic(err) // Strings can be encoded.
	}
	s := string(quoted)
	return Toolset{Key: "weather", Class: "Weather", Description: "d" + text, Tools: []Tool{{
		Name: "get", Description: text,
		Parameters: json.RawMessage(`{"description":` + s + `,"properties":{"a":{"description":` + s + `,"default":` + s + `,"enum":[` + s + `],"title":` + s + `},"b":{"const":` + s + `}},"required":["b"]}`),
		Output:     json.RawMessage(`{"type":"object","description":` + s + `,"properties":{"a":{"description":` + s + `}}}`),
	}}}
}

// TestT8HostileTexts checks that the texts of a toolset change nothing but literals, and arrive unchanged.
func TestT8HostileTexts(t *testing.T) {
	j := startJudge(t, "testdata/modules.py")
	want := judgeModule(t, j, hostileToolset("harmless"))
	for _, text := range hostileTexts {
		got := judgeModule(t, j, hostileToolset(text))
		if got.Shape != want.Shape {
			t.Errorf("the text %q changes the syntax tree", text)
		}
		if want := "d" + valid(text); !strings.HasPrefix(got.Doc, want) && !strings.Contains(text, "\n") {
			t.Errorf("docstring %q, want it to begin with %q", got.Doc, want)
		}
	}
}

// TestT8HostileNames checks that a module has the same form as all modules, whatever the names of its tools and
// parameters are.
func TestT8HostileNames(t *testing.T) {
	j := startJudge(t, "testdata/modules.py")
	names := append([]string{
		"__init__", "__new__", "__class__", "__doc__", "__getattr__", "__slots__", "__x", "_tool", "_list", "self", "cls", "aio", "mro", "print", "type", "staticmethod",
		"property", "import", "None", "True", "match", "async", "await", "lambda", "1st", "ａｉｏ", "ﬁ", "天気", "", "a.b", "a b", "Any", "Literal", "Weather", "list", "str",
		"ToolExecutionError", strings.Repeat("a", maxMethod), strings.Repeat("a", maxMethod+1),
	}, hostileTexts...)
	for _, name := range names {
		m := judgeModule(t, j, hostileNames(t, name))
		var methods []string
		for _, m := range m.Methods {
			methods = append(methods, m.Name+" "+m.Method)
		}
		var want []string
		if id := Method(name); id != "" {
			want = append(want, valid(name)+" "+id)
		}
		if want = append(want, "later later"); !slices.Equal(methods, want) {
			t.Errorf("methods %q, want %q", methods, want)
		}
	}
}

// hostileNames returns a toolset with a tool, and a parameter of it, of this name.
func hostileNames(tb testing.TB, name string) Toolset {
	quoted, err := json.Marshal(name)
	if err != nil {
		tb.Fatal(err)
	}
	s := string(quoted)
	schema := json.RawMessage(`{"properties":{` + s + `:{"type":"array","items":{"type":"string"}}},"required":[` + s + `]}`)
	return toolsetOf(Tool{Name: name, Parameters: schema, Output: schema}, Tool{Name: "later", Parameters: schema, Output: schema})
}

func FuzzModule(f *testing.F) {
	j := startJudge(f, "testdata/modules.py")
	for _, text := range hostileTexts {
		f.Add(text, text, `{"properties":{"a":{"enum":["x"]}}}`)
	}
	f.Add("list", "text", `{"type":"array","items":{"properties":{"__a":{"default":{"a":[1]}},"extra":{}},"required":["b"]}}`)
	f.Add("f", "text", `{"$defs":{"A":{"type":"object","properties":{"b c":{},"d":{"$ref":"#/$defs/A"}}}},"properties":{"a":{"allOf":[{"$ref":"#/$defs/A"}]}},"$ref":"#/$defs/A"}`)
	want := judgeModule(f, j, hostileToolset("harmless"))
	f.Fuzz(func(t *testing.T, text, name, schema string) {
		if got := judgeModule(t, j, hostileToolset(text)); got.Shape != want.Shape {
			t.Errorf("the text %q changes the syntax tree", text)
		}
		toolset := hostileNames(t, name)
		if Method(name) == "later" {
			return
		}
		toolset.Tools[0].Parameters, toolset.Tools[0].Output = json.RawMessage(schema), json.RawMessage(schema)
		judgeModule(t, j, toolset)
	})
}
