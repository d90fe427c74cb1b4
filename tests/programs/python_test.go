package tests

import (
	"strings"
	"testing"
)

func TestEnvironment(t *testing.T) {
	cases := []programCase{
		{name: "ready names", code: `print(json.dumps([type(m).__name__ for m in (os, re, sys, math, datetime, asyncio, json)]))`, stdout: `["module", "module", "module", "module", "module", "module", "module"]` + "\n"},
		{name: "datetime is the module", code: `print(datetime.datetime(2026, 1, 2).isoformat())`, stdout: "2026-01-02T00:00:00\n"},
		{name: "numpy and pandas", code: `print(np.arange(3).sum(), pd.DataFrame({"a": [1, 2]})["a"].sum(), numpy is np, pandas is pd)`, stdout: "3 3 True True\n"},
		{name: "working directory", code: `print(os.getcwd(), os.path.expanduser("~"))`, stdout: "/mnt/data /mnt/data\n"},
		{name: "main guard", code: "if __name__ == '__main__':\n    print('main')", stdout: "main\n"},
		{name: "the main module", code: "x = 5\nimport __main__\nprint(__main__.x)", stdout: "5\n"},
		{name: "stdin is empty", code: `print(repr(sys.stdin.read()))`, stdout: "''\n"},
		{name: "no arguments", code: `print(sys.argv)`, stdout: "['']\n"},
		{name: "a module beside the program", code: "open('beside.py', 'w').write('x = 7')\nimport beside\nprint(beside.x)", stdout: "7\n"},
		{name: "pickle of a class", code: "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)", stdout: "A\n"},
		{name: "a process pool", code: "from concurrent.futures import ProcessPoolExecutor\ndef square(n): return n * n\nwith ProcessPoolExecutor(2) as pool: print(list(pool.map(square, range(4))))", stdout: "[0, 1, 4, 9]\n"},
		{name: "output of child processes", code: "import subprocess\nprint('a')\nsubprocess.run(['echo', 'b'])\nos.system('echo c')\nos.write(1, b'd\\n')", stdout: "a\nb\nc\nd\n"},
		{name: "output that is not UTF-8", code: `os.write(1, b"a\xff\xfeb\xc3\xa9")`, stdout: "a\ufffdb\u00e9"},
		{name: "not trimmed", code: `print(" a ", end=" \n\n ")`, stdout: " a  \n\n "},
		{name: "a lone surrogate printed", code: `print("\ud800")`, stdout: "\\ud800\n"},
		{name: "a plot", code: "plt.plot([1, 2]); plt.show(); plt.savefig('a.png')\nprint(os.path.exists('a.png'))", stdout: "True\n"},
		{name: "annotations of a program that returns", code: "x: int = 5\nprint(x)\nif x: return\nprint(6)", stdout: "5\n"},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) { runCases(t, serve(t, s, s.libraries()).alice(), cases) })
}

func TestSource(t *testing.T) {
	cases := []programCase{
		{name: "only comments", code: "# nothing\n# at all", stdout: ""},
		{name: "CRLF", code: "x = 1\r\nif x:\r\n    print(await ask(n=x))\r\n", tools: tools("ask"), stdout: "{'n': 1}\n"},
		{name: "a byte order mark", code: "\ufeffprint(1)", stdout: "1\n"},
		{name: "a future import", code: "from __future__ import annotations\ndef f(x: Nothing): return 1\nprint(f(1))", stdout: "1\n"},
		{name: "a future import and await", code: "from __future__ import annotations\ndef f(x: Nothing): return 1\nprint(f(await ask()))", tools: tools("ask"), stdout: "1\n"},
		{name: "import star", code: "from math import *\nprint(floor(await ask(n=1) and 2.5))", tools: tools("ask"), stdout: "2\n"},
		{name: "indented by tabs", code: "\t\tif 1:\n\t\t\tprint(1)\n\t\tprint(2)", stdout: "1\n2\n"},
		{name: "indented, first line a comment at the margin", code: "# note\n    print(1)\n    print(2)", stdout: "1\n2\n"},
		{name: "indented, strings at the margin", code: "      text = '''a\nb\n        c'''\n      print(text)", stdout: "a\nb\n        c\n"},
		{name: "a string keeps its lines", code: "def f():\n    return '''a\n  b\n\tc'''\nprint(f(), await ask() and 1)", tools: tools("ask"), stdout: "a\n  b\n\tc 1\n", answer: value("1")},
		{name: "a top-level return", code: "print(1)\nif True:\n    return 5\nprint(2)", stdout: "1\n"},
		{name: "a top-level return and await", code: "if await ask(n=1):\n    print(1)\n    return\nprint(2)", tools: tools("ask"), stdout: "1\n"},
		{name: "functions see the names of a program that returns", code: "x = 1\ndef f():\n    global x\n    x += 1\n    return x\nprint(f(), x)\nreturn", stdout: "2 2\n"},
		{name: "async for and async with", code: "import contextlib\nasync def g():\n    yield 1\nasync for x in g(): print(x)\nasync with contextlib.AsyncExitStack(): print(2)", stdout: "1\n2\n"},
		{name: "an async comprehension", code: "print([await ask(n=n) for n in range(2)])", tools: tools("ask"), stdout: "[{'n': 0}, {'n': 1}]\n"},
		{name: "await in a lambda's default", code: "f = lambda x=await ask(n=1): x\nprint(f())", tools: tools("ask"), stdout: "{'n': 1}\n"},
		{name: "the source is there to be looked at", code: "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))", stdout: "def f():\n    return 1\n\n"},
		{name: "names beyond ASCII", code: "größe = '😀'\nprint(größe)", stdout: "😀\n"},
	}
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		runCases(t, c, cases)
		t.Run("a NUL", func(t *testing.T) {
			a := c.post(t, program{Code: "print(1)\x00"})
			if a.code != 200 || a.Status != "error" || !strings.HasPrefix(a.Error, "SyntaxError: ") && !strings.HasPrefix(a.Error, "ValueError: ") {
				t.Errorf("got %v, want a SyntaxError or ValueError", a)
			}
		})
		t.Run("half a surrogate pair", func(t *testing.T) {
			a := c.post(t, `{"code":"print(1) # \ud800"}`)
			if a.code != 200 || a.Status == "" {
				t.Errorf("got %v, want a completed or a failed program", a)
			}
		})
		t.Run("very deep source", func(t *testing.T) {
			a := c.post(t, program{Code: strings.Repeat("(", 20_000) + strings.Repeat(")", 20_000)})
			if a.code != 200 || a.Status != "error" {
				t.Errorf("got %v, want a failed program", a)
			}
		})
		t.Run("a long program", func(t *testing.T) {
			c.post(t, program{Code: strings.Repeat("x = 1\n", 100_000) + "print(x)"}).completes(t, "1\n")
		})
	})
}

func TestExits(t *testing.T) {
	cases := []programCase{
		{name: "the end", code: "x = 1", stdout: ""},
		{name: "sys.exit()", code: "print(1)\nsys.exit()\nprint(2)", stdout: "1\n"},
		{name: "sys.exit(0)", code: "print(1, end='')\nsys.exit(0)", stdout: "1"},
		{name: "exit()", code: "print(1)\nexit()", stdout: "1\n"},
		{name: "sys.exit(3)", code: "print(1)\nsys.exit(3)", stdout: "1\n", error: "Sandbox exited with code 3"},
		{name: "sys.exit after a call", code: "await ask()\nsys.exit(4)", tools: tools("ask"), error: "Sandbox exited with code 4"},
		{name: "sys.exit(text)", code: "sys.exit('no luck')", error: "Sandbox exited with code 1", stderr: []string{"no luck\n"}},
		{name: "SystemExit in a task", code: "async def f(): sys.exit(5)\nawait asyncio.gather(f())", error: "Sandbox exited with code 5"},
		{name: "KeyboardInterrupt in a task", code: "async def f(): raise KeyboardInterrupt\nawait asyncio.gather(f())", error: "KeyboardInterrupt", stderr: []string{"line 1, in f", "KeyboardInterrupt"}},
		{name: "os._exit(7)", code: "print(1)\nos._exit(7)", stdout: "1\n", error: "Sandbox exited with code 7"},
		{name: "os._exit(0)", code: "print(1)\nos._exit(0)", stdout: "1\n"},
		{name: "killed by itself", code: "print(1)\nos.kill(os.getpid(), 9)", stdout: "1\n", error: "Sandbox exited with code -9"},
		{name: "a segmentation fault", code: "print(1)\nimport ctypes\nctypes.string_at(0)", stdout: "1\n", error: "Sandbox exited with code -11"},
		{name: "abort", code: "print(1)\nos.abort()", stdout: "1\n", error: "Sandbox exited with code -6"},
		{name: "ZeroDivisionError", code: "print('before')\n\n1/0", stdout: "before\n", error: "ZeroDivisionError: division by zero", stderr: []string{"Traceback (most recent call last):\n", "line 3", "1/0", "ZeroDivisionError: division by zero\n"}},
		{name: "an error without a text", code: "raise ValueError", error: "ValueError", stderr: []string{"line 1", "ValueError\n"}},
		{name: "an error of two lines", code: "raise ValueError('a\\nb')", error: "ValueError: a\nb", stderr: []string{"ValueError: a\nb\n"}},
		{name: "an error of the program's own", code: "class Mine(Exception): pass\nraise Mine('x')", error: "Mine: x", stderr: []string{"line 2", "Mine: x\n"}},
		{name: "a SyntaxError", code: "x = 1\nx = = 2", error: "SyntaxError: invalid syntax", stderr: []string{"line 2", "x = = 2", "SyntaxError: invalid syntax"}},
		{name: "a SyntaxError in an indented program", code: "    x = 1\n    x = = 2", error: "SyntaxError: invalid syntax", stderr: []string{"line 2", "x = = 2", "SyntaxError: invalid syntax"}},
		{name: "an IndentationError", code: "print(1)\n    print(2)", error: "IndentationError: unexpected indent", stderr: []string{"line 2", "IndentationError: unexpected indent"}},
		{name: "an unknown name", code: "print(nothing)", error: "NameError: name 'nothing' is not defined", stderr: []string{"line 1", "NameError"}},
		{name: "a tool that was not granted", code: "await other()", tools: tools("ask"), error: "NameError: name 'other' is not defined", stderr: []string{"NameError"}},
		{name: "in an indented program", code: "      x = 1\n\n      1/0", error: "ZeroDivisionError: division by zero", stderr: []string{"line 3", "1/0", "ZeroDivisionError"}},
		{name: "in a function after a call", code: "async def f():\n    await ask()\n    return {}['x']\nawait f()", tools: tools("ask"), error: "KeyError: 'x'", stderr: []string{"line 4", "await f()", "line 3, in f", "KeyError: 'x'"}},
		{name: "with a cause", code: "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e", error: "ValueError: x", stderr: []string{"ZeroDivisionError", "direct cause", "ValueError: x"}},
		{name: "RecursionError", code: "def f(): f()\nf()", error: "RecursionError: maximum recursion depth exceeded", stderr: []string{"RecursionError"}},
		{name: "an un-awaited stub", code: "ask(n=1)\nprint('end')", tools: tools("ask"), stdout: "end\n", stderr: []string{"ask", "await"}},
		{name: "an un-awaited stub in a coroutine", code: "async def f():\n    x = ask(n=1)\nawait f()\nprint('end')", tools: tools("ask"), stdout: "end\n", stderr: []string{"ask", "await"}},
		{name: "a warning", code: "import warnings\nwarnings.warn('careful')", stderr: []string{"UserWarning: careful"}},
		{name: "stderr of the program", code: "print('a', file=sys.stderr)\nos.system('echo b >&2')", stderr: []string{"a\nb\n"}},
		{name: "atexit", code: "import atexit\natexit.register(print, 'bye')\nprint('end')", stdout: "end\nbye\n"},
		{name: "finally", code: "try:\n    sys.exit(2)\nfinally:\n    print('finally')", stdout: "finally\n", error: "Sandbox exited with code 2"},
		{name: "a thread is waited for", code: "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')", stdout: "main\nthread\n"},
		{name: "a daemon is not", code: "import threading, time\nthreading.Thread(target=lambda: (time.sleep(30), print('thread')), daemon=True).start()\nprint('main')", stdout: "main\n"},
		{name: "a child that stays is not waited for", code: "import subprocess\nsubprocess.Popen(['sleep', '60'])\nprint('main')", stdout: "main\n"},
		{name: "a daemon process with stdout open", code: "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(60)\n    os._exit(0)\nos.wait()\nprint('main')", stdout: "main\n"},
		{name: "stdout is closed", code: "print(1)\nsys.stdout.close()\nos.close(1)", stdout: "1\n"},
		{name: "stdout is replaced", code: "import io\nprint(1)\nsys.stdout = io.StringIO()\nprint(2)\nsys.__stdout__.write('3\\n')", stdout: "1\n3\n"},
		{name: "an error whose text raises", code: "class E(Exception):\n    def __str__(self): raise ValueError('x')\nraise E()", error: "E: <exception str() failed>", stderr: []string{"E: <exception str() failed>"}},
		{name: "an error whose text needs names of the program", code: "prefix = 'my '\nclass E(Exception):\n    def __str__(self): return prefix + json.dumps(self.args)\nraise E(1)", error: "E: my [1]", stderr: []string{"E: my [1]"}},
		{name: "an error whose text exits", code: "class E(Exception):\n    def __str__(self):\n        import os\n        os._exit(9)\nraise E()", error: "Sandbox exited with code 9"},
		{name: "stderr is gone", code: "sys.stderr = None\n1/0", error: "ZeroDivisionError: division by zero", stderr: []string{"ZeroDivisionError"}},
		{name: "excepthook", code: "sys.excepthook = lambda *a: print('hook')\n1/0", error: "ZeroDivisionError: division by zero", stderr: []string{"ZeroDivisionError"}},
	}
	cases = withAnyStderr(cases)
	overSetups(t, eachEngine|onGVisor, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		runCases(t, c, cases)
		t.Run("tracebacks have the user's frames only", func(t *testing.T) {
			for _, code := range []string{
				"def f():\n    1/0\nf()",
				"async def f():\n    await ask()\n    1/0\nawait asyncio.gather(f())",
				"await ask(object())",
				"await ask(x={1})",
				"import asyncio\nasync def main():\n    await bad()\nasyncio.run(main())",
				"x = = 1",
			} {
				a, _ := c.run(t, program{Code: code, Tools: tools("ask", "bad")}, func(c call) result {
					if c.Name == "bad" {
						return failure("no")(c)
					}
					return echo(c)
				})
				if a.Status != "error" || a.Stderr == "" {
					t.Errorf("got %v, want an error with a traceback", a)
				}
				for _, frame := range []string{"/opt/fermata", "fermata/", "fermata."} {
					if strings.Contains(a.Stderr, frame) {
						t.Errorf("stderr of %q has %q in it: %s", code, frame, a.Stderr)
					}
				}
			}
		})
		t.Run("a long error is cut", func(t *testing.T) {
			a := c.post(t, program{Code: "raise ValueError('x' * 30_000_000)"})
			if a.code != 200 || !strings.HasPrefix(a.Error, "ValueError: xxx") || len(a.raw) > 5<<20 {
				t.Errorf("got %v of %d bytes, want a ValueError cut short", a, len(a.raw))
			}
		})
	})
}

// TestFreshInterpreter checks that nothing stays from one program to the next.
func TestFreshInterpreter(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, nil).alice()
		c.post(t, program{Code: py(`
			import builtins, json
			builtins.left = 1
			json.left = 1
			os.environ["LEFT"] = "1"
			for place in ("/mnt/data", "/tmp", "/dev/shm"):
			    open(place + "/left", "w").write("1")
			print("done")
		`)}).completes(t, "done\n")
		for range 5 {
			c.post(t, program{Code: py(`
				import builtins, json
				print(hasattr(builtins, "left"), hasattr(json, "left"), "LEFT" in os.environ)
				print([os.listdir(place) for place in ("/mnt/data", "/tmp", "/dev/shm")])
			`)}).completes(t, "False False False\n[[], [], []]\n")
		}
	})
}

// TestRandomNumbers checks that programs do not share the state of one parent.
func TestRandomNumbers(t *testing.T) {
	overSetups(t, eachEngine, func(t *testing.T, s setup) {
		c := serve(t, s, s.libraries()).alice()
		seen := map[string]string{}
		for range 6 {
			a := c.post(t, program{Code: py(`
				import random, secrets, tempfile, uuid
				print("random", random.random())
				print("numpy", np.random.rand())
				print("generator", np.random.default_rng().random())
				print("uuid", uuid.uuid4())
				print("secrets", secrets.token_hex())
				print("tempfile", tempfile.mktemp())
				print("hash", hash("a") if False else random.SystemRandom().random())
			`)})
			if a.Status != "completed" {
				t.Fatalf("got %v, want it completed", a)
			}
			for line := range strings.Lines(a.Stdout) {
				if source, ok := seen[line]; ok {
					t.Errorf("%q twice, in %s", line, source)
				}
				seen[line] = line
			}
		}
	})
}

// withAnyStderr lets cases that fail write anything to stderr, unless they say what.
func withAnyStderr(cases []programCase) []programCase {
	for i := range cases {
		if cases[i].error != "" && cases[i].stderr == nil {
			cases[i].stderr = []string{""}
		}
	}
	return cases
}
