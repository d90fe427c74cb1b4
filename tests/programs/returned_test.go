package programs

import (
	"encoding/json"
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestReturnedValues checks what a client gets of what a program returns or leaves on its last line.
func TestReturnedValues(t *testing.T) {
	cases := []struct{ name, code, want string }{
		{"return", `return {"a": [1, 2.50, None, True, "é"]}`, `{"a":[1,2.5,null,true,"é"]}`},
		{"return in a function's place", "for n in range(9):\n    if n == 3:\n        return n", `3`},
		{"the last line", "x = 2\nx + 1", `3`},
		{"a result", `await ask(n=1)`, `{"n":1}`},
		{"after a result", "x = await ask(n=1)\nx['n']", `1`},
		{"a tuple", `return "a", 1`, `["a",1]`},
		{"digits", `10 ** 30`, `1` + strings.Repeat("0", 30)},
		{"an empty text", `""`, `""`},
		{"half a surrogate pair", `"\ud800"`, `"` + "\uFFFD" + `"`},
		{"no JSON", `{1, 2}`, `"{1, 2}"`},
		{"NaN", `[float("nan")]`, `"[nan]"`},
		{"hostile", "class A:\n    def __repr__(self): raise SystemExit(3)\nA()", `"<A>"`},
		{"None", `None`, ``},
		{"nothing", `x = 1`, ``},
		{"print", `print(end="")`, ``},
		{"sys.exit", "sys.exit()\n5", ``},
		{"os._exit", "os._exit(0)\n5", ``},
		{"a call that is not awaited", `ask(n=1)`, ``},
		{"dates", "from datetime import datetime, date\nday = datetime.strptime('2026-01-02', '%Y-%m-%d')\nreturn [day.year, day.strftime('%d'), f'{day:%m}']", `[2026,"02","01"]`},
		{"dates in functions", "import time\nf = lambda text: time.strptime(text, '%Y').tm_year\ndef g(text): return f(text)\nreturn g('2026')", `2026`},
		{"pickles", "import pickle\nclass A: n = 3\nreturn pickle.loads(pickle.dumps([A()]))[0].n", `3`},
		{"builtins", "return 'print' in dir(__builtins__)", `true`},
		{"a future import", "'About.'\nfrom __future__ import annotations\nx: nothing = 21\nreturn [x, __doc__, __annotations__]", `[21,"About.",{"x":"nothing"}]`},
		{"import *", "from math import *\nreturn floor(2.5)", `2`},
		{"exec", "exec('y = 5')\nreturn y", `5`},
		{"locals", "name = 'Ada'\nreturn '{name}'.format(**locals()) + vars()['name']", `"AdaAda"`},
		{"clean-up", "try:\n    for n in range(3):\n        with open('/dev/null') as f:\n            return n\nexcept BaseException:\n    return 'caught'\nfinally:\n    assert f.closed", `0`},
		{"clean-up that overrides", "for n in range(3):\n    try:\n        return 1\n    finally:\n        break\nreturn 2", `2`},
	}
	libraries := []struct{ name, code, want string }{
		{"a mean", `{"mean": pd.DataFrame({"a": [1, 2]})["a"].mean(), "n": np.int64(2)}`, `{"mean":1.5,"n":2}`},
		{"a large frame", `pd.DataFrame({"a": np.zeros(5_000_000)})`, ``},
		{"deviations", `return [float(np.array([2, 4]).std()), float(np.var([2, 4])), int(np.prod([2, 4])), int(np.ptp([2, 4]))]`, `[1.0,1.0,8,2]`},
		{"dates of a frame", "import datetime\nframe = pd.DataFrame({'a': ['2026']})\nreturn int(frame['a'].apply(lambda a: datetime.datetime.strptime(a, '%Y').year)[0])", `2026`},
		{"a small frame", `pd.DataFrame({"a": [1]})`, `"   a\n0  1"`},
	}
	if harness.HasLibraries() {
		cases = append(cases, libraries...)
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		for _, tc := range cases {
			t.Run(tc.name, func(t *testing.T) {
				t.Parallel()
				a, _ := c.Run(t, harness.Program{Code: tc.code, Tools: harness.Tools("ask")}, harness.Echo)
				a.Completes(t, "")
				if tc.name == "a large frame" {
					harness.Contains(t, "value", string(a.Value), "[5000000 rows x 1 columns]")
					return
				}
				if string(a.Value) != tc.want || strings.Contains(a.Raw, `"value"`) != (tc.want != "") {
					t.Errorf("value = %q, want %q in %s", a.Value, tc.want, a.Raw)
				}
			})
		}
		t.Run("too large", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "return ['x' * 1000] * 1000"})
			a.Completes(t, "")
			var text string
			if err := json.Unmarshal(a.Value, &text); err != nil {
				t.Fatalf("value = %.100s: %v, want a text", a.Value, err)
			}
			if len(a.Value) > 64_000 || len(a.Value) < 63_900 || !strings.HasPrefix(text, `["xxx`) || !strings.HasSuffix(text, "…") {
				t.Errorf("value has %d bytes and is %.20q…%q, want the beginning of the list", len(a.Value), text, text[len(text)-10:])
			}
		})
		t.Run("a failure has none", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "import atexit\natexit.register(os._exit, 3)\n5"})
			a.Fails(t, 200, "Sandbox exited with code 3")
			if a.Value != nil {
				t.Errorf("value = %s, want none", a.Value)
			}
		})
		t.Run("a retry has the same", func(t *testing.T) {
			t.Parallel()
			pause := c.Pause(t, harness.Program{Code: "import random\nawait ask()\nrandom.random()", Tools: harness.Tools("ask")})
			continuation := pause.Continue(harness.Echo)
			first, second := c.Post(t, continuation), c.Post(t, continuation)
			if len(first.Value) == 0 || first.Raw != second.Raw {
				t.Errorf("got %v, then %v, want the same value twice", first, second)
			}
		})
		t.Run("bash has none", func(t *testing.T) {
			t.Parallel()
			a := c.Post(t, harness.Program{Code: "echo 5", Lang: "bash"})
			a.Completes(t, "5\n")
			if strings.Contains(a.Raw, `"value"`) {
				t.Errorf("got %s, want no value", a.Raw)
			}
		})
		t.Run("programs without tools are not asked", func(t *testing.T) {
			t.Parallel()
			a := c.Exec(t, nil, map[string]any{"lang": "python", "code": "class A:\n    def __repr__(self): print('seen')\nA()"})
			if a.Stdout != "" || strings.Contains(a.Raw, `"value"`) {
				t.Errorf("got %s, want neither output nor value", a.Raw)
			}
		})
	})
}
