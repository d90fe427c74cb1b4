package programs

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestToolNames grants tools whose names could do harm, all of them to one program.
func TestToolNames(t *testing.T) {
	hostile := []string{
		"print", "json", "asyncio", "exec", "type", "_", "self", "len", "os", "__import__", "__builtins__", "__name__",
		"__debug__", "__init__", "__file__", "__annotations__", "名前", "...", "🙂", "x\"y", `x\n"""`, "for", "None", "123data", "tool\nname",
		"a\u00a0b", "search_mcp_my-server", "tool", "Any", "Literal", "invoke", "ToolExecutionError", "BaseException", "dumps", "stub",
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		grant := harness.Tools(hostile...)
		for i := range grant {
			grant[i].Description = "'''\"\"\"\\\n\x00\r\u2028{}%s" + grant[i].Name
			grant[i].Parameters = json.RawMessage(`{"type":"object","properties":{"a b":{},"class":{},"\"\"\"":{},"self":{"default":"\\\"'''"}}}`)
		}
		t.Run("a program that uses none", func(t *testing.T) {
			c.Post(t, harness.Program{Code: "import sys, math\nif __name__ == '__main__':\n    sys.stdout.write(str(math.floor(2.5)))", Tools: grant}).Completes(t, "2")
		})
		identifiers := map[string]string{
			"print": "print", "json": "json", "asyncio": "asyncio", "for_tool": "for", "None_tool": "None", "_123data": "123data",
			"tool_name": "tool\nname", "a_b": "a\u00a0b", "search_mcp_my_server": "search_mcp_my-server", "xy": `x"y`, "xn": `x\n"""`,
			"tool": "tool", "Any": "Any", "__import__": "__import__", "__init__": "__init__", "type": "type", "_": "_",
		}
		for identifier, name := range identifiers {
			t.Run(identifier, func(t *testing.T) {
				t.Parallel()
				pause := c.Pause(t, harness.Program{Code: "x = await " + identifier + "(n=1)\nimport sys\nsys.stdout.write(repr(x))", Tools: grant})
				if got := pause.Calls[0].Name; got != name {
					t.Errorf("name of the call = %q, want %q", got, name)
				}
				if identifier == "__import__" {
					return // The import statement of the program would call it, too.
				}
				c.Post(t, pause.Continue(harness.Echo)).Completes(t, "{'n': 1}")
			})
		}
	})
}

// TestToolsThatHideNames grants tools with the names of builtins and modules.
func TestToolsThatHideNames(t *testing.T) {
	warning := "Warning: the tool print hides Python's print; the tool is also called print_tool, and Python's print is builtins.print\n"
	cases := []harness.Case{
		{
			Name: "a builtin", Code: "for i in range(3):\n    print(n=i)", Tools: harness.Tools("print"),
			Stderr: []string{warning, "RuntimeWarning: the tool print was not called: write `await print(...)`\n"},
		},
		{Name: "by its own name", Code: "sys.stdout.write(repr(await print(n=1)))", Tools: harness.Tools("print"), Stdout: "{'n': 1}", Stderr: []string{warning}},
		{Name: "by its second name", Code: "import builtins\nbuiltins.print(await print_tool(n=1))", Tools: harness.Tools("print"), Stdout: "{'n': 1}\n"},
		{Name: "not used", Code: "sys.stdout.write('print')", Tools: harness.Tools("print", "open", "json"), Stdout: "print"},
		{
			Name: "the second name is another tool's", Code: "await print_tool(n=1)\nawait print(n=2)", Tools: harness.Tools("print", "print-tool"), Batches: []int{1, 1},
			Stderr: []string{"Warning: the tool print hides Python's print; Python's print is builtins.print\n"},
		},
		{
			Name: "a module", Code: "print(json.dumps(1))", Tools: harness.Tools("json"), Error: "AttributeError: 'function' object has no attribute 'dumps'",
			Stderr: []string{"Warning: the tool json hides the module json; the tool is also called json_tool, and `import json` brings the module back\n", "Traceback"},
		},
		{Name: "a module that the program imports", Code: "import json\nprint(json.dumps(await json_tool(n=1)))", Tools: harness.Tools("json"), Stdout: "{\"n\": 1}\n"},
		{Name: "a name that hides nothing has no second", Code: "await ask_tool()", Tools: harness.Tools("ask"), Error: "NameError: name 'ask_tool' is not defined", Stderr: []string{"NameError"}},
		{
			Name: "a traceback with every name taken", Code: "import builtins\ndef f():\n    raise builtins.ValueError('x')\nf()", Tools: harness.Tools(everyName...),
			Error: "ValueError: x", Stderr: []string{"Traceback (most recent call last):\n", "line 4, in <module>\n    f()\n", "line 3, in f\n    raise builtins.ValueError('x')\nValueError: x\n"},
		},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		harness.RunCases(t, harness.Serve(t, s, nil).Alice(), cases)
	})
}

// everyName has the names of what a program, or the runner, could look up.
var everyName = strings.Fields("abs all any ascii bool bytes callable chr dict dir eval exec exit filter float format frozenset getattr globals " +
	"hasattr hash id input int isinstance issubclass iter len list locals map max min next object open ord pow print property quit range repr " +
	"reversed round set setattr sorted str sum super tuple type vars zip BaseException Exception KeyError OSError RuntimeError SystemExit " +
	"TypeError ValueError ToolExecutionError asyncio collections datetime functools itertools json math os pathlib re sys np numpy pd pandas " +
	"plt matplotlib scipy sklearn traceback linecache warnings builtins fermata calls frames tools values worker program")

// TestCheckedArguments calls tools with arguments that they do not take.
func TestCheckedArguments(t *testing.T) {
	tools := []harness.Tool{
		{Name: "get_weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","default":3}},"required":["city"],"additionalProperties":false}`)},
		{Name: "open_ended", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{},"get-x":{},"class":{}},"required":["class"],"additionalProperties":{"type":"integer"}}`)},
		{Name: "odd", Parameters: json.RawMessage(`{"type":"object","properties":{"get-x":{},"class":{}},"required":["get-x"],"additionalProperties":false}`)},
		{Name: "ping", Parameters: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)},
	}
	const weather = "its signature is get_weather(city: str, days: int = 3)"
	refused := []struct{ call, want string }{
		{`get_weather()`, "get_weather() is missing the argument city; " + weather},
		{`get_weather(days=1)`, "get_weather() is missing the argument city; " + weather},
		{`get_weather({"days": 1})`, "get_weather() is missing the argument city; " + weather},
		{`get_weather(town="x")`, "get_weather() has no argument town; " + weather},
		{`get_weather(citty="x")`, "get_weather() has no argument citty; did you mean city? Its signature is get_weather(city: str, days: int = 3)"},
		{`get_weather("x", 1, 2)`, "get_weather() takes at most 2 arguments by position, but got 3; " + weather},
		{`get_weather("x", days={1})`, "get_weather() cannot send the argument days: Object of type set is not JSON serializable"},
		{`open_ended(a=1)`, "open_ended() is missing the argument class_; its signature is open_ended(a: Any = None, *, get_x: Any = None, class_: Any, **extra)"},
		{`odd(**{"class": 1})`, "odd() is missing the argument get_x; its signature is odd(*, get_x: Any, class_: Any = None)"},
		{`ping(1)`, "ping() takes no arguments by position, but got 1; its signature is ping()"},
		{`ping(a=1)`, "ping() has no argument a; its signature is ping()"},
	}
	taken := []struct{ call, want string }{
		{`get_weather("x")`, `{"city":"x"}`},
		{`open_ended(**{"class": 1}, b=2)`, `{"class":1,"b":2}`},
		{`open_ended({"class": 1, "get-x": 2, "b": 3})`, `{"class":1,"get-x":2,"b":3}`},
		{`odd(**{"get-x": 1, "class": 2})`, `{"get-x":1,"class":2}`},
		{`odd({"get-x": 1})`, `{"get-x":1}`},
		{`odd(get_x=1)`, `{"get-x":1}`},
		{`ping()`, `{}`},
		{`ping({})`, `{}`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range refused {
			t.Run(tc.call, func(t *testing.T) {
				t.Parallel()
				// The call fails where it is made, which is not where it would be awaited.
				a := c.Post(t, harness.Program{Code: "call = " + tc.call + "\nawait call", Tools: tools})
				if want := "TypeError: " + tc.want; a.Status != "error" || a.Error != want {
					t.Errorf("got %v, want the error %q", a, want)
				}
				want := "Traceback (most recent call last):\n  File \"<program>\", line 1, in <module>\n    call = " + tc.call + "\n"
				if !strings.HasPrefix(a.Stderr, want) || strings.Count(a.Stderr, "File ") != 1 {
					t.Errorf("stderr = %q, want no other frame than the program's line 1", a.Stderr)
				}
			})
		}
		for _, tc := range taken {
			t.Run(tc.call, func(t *testing.T) {
				t.Parallel()
				pause := c.Pause(t, harness.Program{Code: "await " + tc.call, Tools: tools})
				if got := pause.Calls[0].CompactInput(); got != tc.want {
					t.Errorf("input = %s, want %s", got, tc.want)
				}
			})
		}
	})
}
