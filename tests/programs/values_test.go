package programs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestArgumentValues checks what a client gets when a program passes a value to a tool.
func TestArgumentValues(t *testing.T) {
	const setUp = `
		import collections, dataclasses, datetime, decimal, enum, fractions, pathlib, uuid
		@dataclasses.dataclass
		class Point:
		    x: int
		    y: list
		class Color(enum.Enum):
		    RED = "red"
		class Level(enum.IntEnum):
		    HIGH = 3
		class Word(str, enum.Enum):
		    YES = "yes"
		Pair = collections.namedtuple("Pair", "a b")
		cycle = []
		cycle.append(cycle)
		await ask(x=%s)
	`
	cases := []struct{ expression, want string }{
		{`"text"`, `"text"`},
		{`"é\u2028😀\x00\\\""`, `"\u00e9\u2028\ud83d\ude00\u0000\\\""`},
		{`"\ud800"`, `"�"`},
		{`7`, `7`},
		{`2**64 + 1`, `18446744073709551617`},
		{`-10**40`, `-1` + strings.Repeat("0", 40)},
		{`1.0`, `1.0`},
		{`0.1`, `0.1`},
		{`1e300`, `1e+300`},
		{`True`, `true`},
		{`None`, `null`},
		{`[1, [2], {}]`, `[1, [2], {}]`},
		{`(1, 2)`, `[1, 2]`},
		{`Pair(1, 2)`, `[1, 2]`},
		{`{"b": 1, "a": 2}`, `{"b": 1, "a": 2}`},
		{`{1: "a", 1.5: "b", True: "c", None: "d"}`, `{"1": "c", "1.5": "b", "null": "d"}`},
		{`float("nan")`, `null`},
		{`[float("inf"), -float("inf"), 1]`, `[null, null, 1]`},
		{`Level.HIGH`, `3`},
		{`Word.YES`, `"yes"`},
		{`Color.RED`, `"red"`},
		{`datetime.datetime(2026, 1, 2, 3, 4, 5)`, `"2026-01-02T03:04:05"`},
		{`datetime.date(2026, 1, 2)`, `"2026-01-02"`},
		{`datetime.time(3, 4)`, `"03:04:00"`},
		{`decimal.Decimal("1.5")`, `1.5`},
		{`decimal.Decimal("3")`, `3`},
		{`decimal.Decimal("0.1000000000000000000001")`, `"0.1000000000000000000001"`},
		{`decimal.Decimal("NaN")`, `null`},
		{`uuid.UUID(int=1)`, `"00000000-0000-0000-0000-000000000001"`},
		{`pathlib.Path("/a/b")`, `"/a/b"`},
		{`Point(1, [2])`, `{"x": 1, "y": [2]}`},
		{`[Point(1, [Color.RED])]`, `[{"x": 1, "y": ["red"]}]`},
		{`np.int64(5)`, `5`},
		{`np.float32(0.5)`, `0.5`},
		{`np.float64("nan")`, `null`},
		{`np.bool_(True)`, `true`},
		{`np.str_("a")`, `"a"`},
		{`np.array([[1, 2], [3, 4]])`, `[[1, 2], [3, 4]]`},
		{`np.array([1.5, float("nan")])`, `[1.5, null]`},
		{`pd.Timestamp("2026-01-02")`, `"2026-01-02T00:00:00"`},
		{`pd.NaT`, `null`},
		{`pd.Series([1, 2])`, `[1, 2]`},
		{`pd.Series([4, 2], index=["Paris", "Rome"])`, `{"Paris": 4, "Rome": 2}`},
		{`pd.DataFrame({"city": ["a", "b", "a"], "n": [1, 2, 3]}).groupby("city").sum()`, `[{"city": "a", "n": 4}, {"city": "b", "n": 2}]`},
		{`pd.DataFrame({"city": ["a"], "n": [1]}).iloc[0]`, `{"city": "a", "n": 1}`},
		{`np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])`, `[{"a": 1, "b": 2.5}]`},
		{`np.datetime64("2026-01-02T03:04:05.000000006")`, `"2026-01-02T03:04:05.000000006"`},
		{`{np.int64(1): 2, datetime.date(2026, 1, 2): 3, Color.RED: 4}`, `{"1": 2, "2026-01-02": 3, "red": 4}`},
		{`pd.DataFrame({"a": [1, 2], "b": ["x", None]})`, `[{"a": 1, "b": "x"}, {"a": 2, "b": null}]`},
		{`pd.DataFrame({"a": [np.nan]}).iloc[0]["a"]`, `null`},
		{`collections.OrderedDict(b=1, a=2)`, `{"b": 1, "a": 2}`},
		{`collections.Counter("aab")`, `{"a": 2, "b": 1}`},
	}
	refused := []struct{ expression, want string }{
		{`b"x"`, "TypeError: ask() cannot send the argument x: Object of type bytes is not JSON serializable"},
		{`{1, 2}`, "TypeError: ask() cannot send the argument x: Object of type set is not JSON serializable"},
		{`1j`, "TypeError: ask() cannot send the argument x: Object of type complex is not JSON serializable"},
		{`print`, "TypeError: ask() cannot send the argument x: Object of type builtin_function_or_method is not JSON serializable"},
		{`(n for n in [])`, "TypeError: ask() cannot send the argument x: Object of type generator is not JSON serializable"},
		{`range(3)`, "TypeError: ask() cannot send the argument x: Object of type range is not JSON serializable"},
		{`object()`, "TypeError: ask() cannot send the argument x: Object of type object is not JSON serializable"},
		{`[b"x"]`, "TypeError: ask() cannot send the argument x: Object of type bytes is not JSON serializable"},
		{`ask()`, "TypeError: ask() cannot send the argument x: Object of type coroutine is not JSON serializable"},
		{`[ask()]`, "coroutine is not JSON serializable; write `await ask(...)`"},
		{`pd.Series([1, 2], index=["a", "a"])`, "ValueError: tool input has an object with the key 'a' twice"},
		{`{float("nan"): 3}`, "ValueError: ask() cannot send the argument x: keys must be str, int, float, bool or None, not nan"},
		{`{(1, 2): 3}`, "TypeError: ask() cannot send the argument x: keys must be str, int, float, bool or None, not tuple"},
		{`cycle`, "ValueError: Circular reference detected"},
		{`"x" * 6_000_000`, "ValueError: tool input is "},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		for _, tc := range cases {
			t.Run(tc.expression, func(t *testing.T) {
				t.Parallel()
				pause := c.Pause(t, harness.Program{Code: harness.Py(fmt.Sprintf(setUp, tc.expression)), Tools: harness.Tools("ask")})
				if got, want := pause.Calls[0].CompactInput(), harness.Compact(`{"x": `+tc.want+`}`); got != want {
					t.Errorf("input = %s, want %s", got, want)
				}
				if a := c.Post(t, pause.Continue(harness.Value("null"))); a.Status != "completed" {
					t.Errorf("got %v, want it completed", a)
				}
			})
		}
		for _, tc := range refused {
			t.Run(tc.expression, func(t *testing.T) {
				t.Parallel()
				code := strings.Replace(harness.Py(fmt.Sprintf(setUp, tc.expression)), "await ask(x=", "good = asyncio.create_task(ask(x='good'))\ntry:\n    await ask(x=", 1) + harness.Py(`
					except (TypeError, ValueError) as error:
					    print(f"{type(error).__name__}: {error}"[:150])
					print(await good)
				`)
				pause := c.Pause(t, harness.Program{Code: code, Tools: harness.Tools("ask")})
				if len(pause.Calls) != 1 || pause.Calls[0].CompactInput() != `{"x":"good"}` {
					t.Errorf("calls = %v, want the good one only", pause.Calls)
				}
				a := c.Post(t, pause.Continue(harness.Echo))
				if a.Status != "completed" {
					t.Fatalf("got %v, want it completed", a)
				}
				harness.Contains(t, "stdout", a.Stdout, tc.want, "\n{'x': 'good'}\n")
			})
		}
	})
}

// TestWaysToCall checks the ways to call a stub: by position, by keyword, with a dict.
func TestWaysToCall(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","default":3},"not-a-name":{},"self":{}},"required":["city"]}`)
	signature := "ask(city: str, days: int = 3, self: Any = None, *, not_a_name: Any = None, **extra)"
	cases := []struct{ name, call, want, refused string }{
		{"keywords", `ask(city="a", days=2)`, `{"city": "a", "days": 2}`, ""},
		{"keywords in another order", `ask(days=2, city="a")`, `{"days": 2, "city": "a"}`, ""},
		{"a default is not sent", `ask(city="a")`, `{"city": "a"}`, ""},
		{"None is sent", `ask(city="a", days=None)`, `{"city": "a", "days": null}`, ""},
		{"a further keyword", `ask("a", town="b")`, `{"city": "a", "town": "b"}`, ""},
		{"positions", `ask("a", 2)`, `{"city": "a", "days": 2}`, ""},
		{"position and keyword", `ask("a", days=2)`, `{"city": "a", "days": 2}`, ""},
		{"one dict", `ask({"city": "a", "not-a-name": 1})`, `{"city": "a", "not-a-name": 1}`, ""},
		{"a dict by keywords", `ask(**{"city": "a", "not-a-name": 1})`, `{"city": "a", "not-a-name": 1}`, ""},
		{"names of an implementation", `ask(city=0, self=1, name=2, tool_name=3, kwargs=4, input=5, args=6, invoke=7)`, `{"city": 0, "self": 1, "name": 2, "tool_name": 3, "kwargs": 4, "input": 5, "args": 6, "invoke": 7}`, ""},
		{"nothing", `ask()`, "", "ask() is missing the argument city; its signature is " + signature},
		{"another argument", `ask(town="a")`, "", "ask() is missing the argument city; its signature is " + signature},
		{"too many positions", `ask(1, 2, 3, 4, 5, 6)`, "", "ask() takes at most 3 arguments by position, but got 6; its signature is " + signature},
		{"twice", `ask("a", city="b")`, "", "ask() got the argument city twice, by position and by name; its signature is " + signature},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				p := harness.Program{
					Code:  "try:\n    await " + tc.call + "\nexcept TypeError as error:\n    print(error)\n",
					Tools: []harness.Tool{{Name: "ask", Parameters: schema}},
				}
				if tc.refused != "" {
					c.Post(t, p).Completes(t, tc.refused+"\n")
					return
				}
				if got, want := c.Pause(t, p).Calls[0].CompactInput(), harness.Compact(tc.want); got != want {
					t.Errorf("input = %s, want %s", got, want)
				}
			})
		}
		t.Run("the documentation of a stub", func(t *testing.T) {
			a := c.Post(t, harness.Program{
				Code: "print(get_weather.__name__)\nprint(get_weather.__doc__)\nhelp(get_weather)\nimport inspect\nprint(inspect.iscoroutinefunction(get_weather))",
				Tools: []harness.Tool{{
					Name: "get-weather", Description: "Current \"\"\" weather \\N{x} {0} %s",
					Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","description":"which city"}},"required":["city"]}`),
				}},
			})
			if a.Status != "completed" {
				t.Fatalf("got %v, want it completed", a)
			}
			harness.Contains(t, "stdout", a.Stdout, "get_weather\n", `Current """ weather \N{x} {0} %s`, "city", "which city", "get_weather(city: str", "True\n")
		})
	})
}

// TestResultValues checks what a program gets when a client sends a result.
func TestResultValues(t *testing.T) {
	cases := []struct{ name, result, expression string }{
		{"null", `null`, `None`},
		{"true", `true`, `True`},
		{"text", `"abc"`, `"abc"`},
		{"text of JSON stays text", `"{\"a\": 1}"`, `'{"a": 1}'`},
		{"integer", `7`, `7`},
		{"a large integer", `9007199254740993`, `9007199254740993`},
		{"a very large integer", strings.Repeat("7", 5000), `int("7" * 2500) * 10**2500 + int("7" * 2500)`},
		{"a float", `1.0`, `1.0`},
		{"an exponent", `1e2`, `100.0`},
		{"a small float", `0.1`, `0.1`},
		{"minus zero", `-0.0`, `-0.0`},
		{"beyond a float", `1e999`, `float("inf")`},
		{"list", `[1,[2,[]],{}]`, `[1, [2, []], {}]`},
		{"order of names", `{"b":1,"a":2}`, `{"b": 1, "a": 2}`},
		{"a name twice", `{"a":1,"a":2}`, `{"a": 2}`},
		{"spaces", " { \"a\" :\n [ 1 , 2 ] } ", `{"a": [1, 2]}`},
		{"half a surrogate pair", `"\ud800"`, `"\ufffd"`},
		{
			"many halves", `{"\ud800":["cut \ud83c","\ud83d\ude00","\\ud83c","\ude00\uD83D","\ud83d\ud83d\ude00","\uD83C\u0041",1.0,"\ufb01"]}`,
			`{"\ufffd": ["cut \ufffd", "\U0001f600", "\\ud83c", "\ufffd\ufffd", "\ufffd\U0001f600", "\ufffdA", 1.0, "\ufb01"]}`,
		},
		{"an emoji, escaped", `"\ud83d\ude00"`, `"\U0001f600"`},
		{"an emoji", `"😀"`, `"\U0001f600"`},
		{"NUL and others", `"\u0000\u001f\u007f\u2028"`, `"\x00\x1f\x7f\u2028"`},
		{"HTML", `"<a>&amp;\u003c"`, `"<a>&amp;<"`},
		{"an empty name", `{"":""}`, `{"": ""}`},
		{"error in the result", `{"error":"x","n":5}`, `{"error": "x", "n": 5}`},
	}
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				pause := c.Pause(t, harness.Program{Code: "import sys\nsys.set_int_max_str_digits(0)\nx, want = await ask(), " + tc.expression + "\nprint(x == want, type(x) is type(want), repr(x) == repr(want))", Tools: harness.Tools("ask")})
				// The result is sent as it is written above, byte for byte.
				a := c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","is_error":false,"result":`+tc.result+`}]}`)
				a.Completes(t, "True True True\n")
			})
		}
		t.Run("deep", func(t *testing.T) {
			const depth = 400
			pause := c.Pause(t, harness.Program{Code: "x, n = await ask(), 0\nwhile x:\n    x, n = x[0], n + 1\nprint(n)", Tools: harness.Tools("ask")})
			a := c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":`+strings.Repeat("[", depth+1)+strings.Repeat("]", depth+1)+`}]}`)
			a.Completes(t, fmt.Sprintln(depth))
		})
		t.Run("too deep", func(t *testing.T) {
			const depth = 200_000
			pause := c.Pause(t, harness.AskOnce)
			a := c.Post(t, `{"continuation_token":"`+pause.Token+`","tool_results":[{"call_id":"call_001","result":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}]}`)
			if a.HTTPStatus >= 500 || a.Status != "error" {
				t.Errorf("got %v, want a refusal or an error of the program", a)
			}
		})
		t.Run("large", func(t *testing.T) {
			pause := c.Pause(t, harness.Program{Code: "x = await ask()\nprint(len(x), x[:3], set(x))", Tools: harness.Tools("ask")})
			c.Post(t, pause.Continue(harness.Value(`"`+strings.Repeat("x", 4_900_000)+`"`))).Completes(t, "4900000 xxx {'x'}\n")
		})
	})
}

// TestToolInputsThatClientsRefuse checks that a call with input that clients cannot read raises
// an error that the program can catch.
func TestToolInputsThatClientsRefuse(t *testing.T) {
	cases := []harness.Case{
		{Name: "too deep", Tools: harness.Tools("ask"), Stdout: "tool input is nested deeper than 500 levels\n{}\n", Code: `
			x = []
			for _ in range(600): x = [x]
			try: await ask(x=x)
			except ValueError as error: print(error)
			print(await ask())
		`},
		{Name: "keys that become one", Tools: harness.Tools("ask"), Stdout: "tool input has an object with the key '1' twice\n{}\n", Code: `
			try: await ask(x=[{1: 1, "1": 2}])
			except ValueError as error: print(error)
			print(await ask())
		`},
		{Name: "too large", Tools: harness.Tools("ask"), Stdout: "tool input is 5000008 bytes of JSON, at most 5000000 are allowed\n{}\n", Code: `
			try: await ask(x="x" * 5_000_000)
			except ValueError as error: print(error)
			print(await ask())
		`},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) { harness.RunCases(t, harness.Serve(t, s, nil).Alice(), cases) })
}
