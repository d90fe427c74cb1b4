package programs

import (
	"strings"
	"testing"

	"fermata/tests/harness"
)

// TestPythonEnvironment checks what a Python program finds around it: names, modules, directories
// and files.
func TestPythonEnvironment(t *testing.T) {
	cases := []harness.Case{
		{Name: "ready names", Code: `print(json.dumps([type(m).__name__ for m in (os, re, sys, math, datetime, asyncio, json)]))`, Stdout: `["module", "module", "module", "module", "module", "module", "module"]` + "\n"},
		{Name: "datetime is the module", Code: `print(datetime.datetime(2026, 1, 2).isoformat())`, Stdout: "2026-01-02T00:00:00\n"},
		{Name: "numpy and pandas", Code: `print(np.arange(3).sum(), pd.DataFrame({"a": [1, 2]})["a"].sum(), numpy is np, pandas is pd)`, Stdout: "3 3 True True\n"},
		{Name: "Excel files", Code: `pd.DataFrame({"a": [1, 2]}).to_excel("a.xlsx", index=False); print(pd.read_excel("a.xlsx")["a"].sum())`, Stdout: "3\n"},
		{Name: "working directory", Code: `print(os.getcwd(), os.path.expanduser("~"))`, Stdout: "/mnt/data /mnt/data\n"},
		{Name: "main guard", Code: "if __name__ == '__main__':\n    print('main')", Stdout: "main\n"},
		{Name: "the main module", Code: "x = 5\nimport __main__\nprint(__main__.x)", Stdout: "5\n"},
		{Name: "stdin is empty", Code: `print(repr(sys.stdin.read()))`, Stdout: "''\n"},
		{Name: "no arguments", Code: `print(sys.argv)`, Stdout: "['/mnt/data/program.py']\n"},
		{Name: "the program's own directory", Code: `print(pathlib.Path(__file__).resolve().parent, os.listdir())`, Stdout: "/mnt/data []\n"},
		{Name: "the source of a class", Code: "import inspect\nclass A:\n    n = 1\nprint(inspect.getsource(A), end='')", Stdout: "class A:\n    n = 1\n"},
		{Name: "a usage line", Code: "import argparse\nprint(argparse.ArgumentParser().format_usage(), end='')", Stdout: "usage: program.py [-h]\n"},
		{Name: "a finalizer", Code: "import shutil\nclass Temp:\n    def __del__(self):\n        shutil.rmtree('/tmp/none', ignore_errors=True)\n        print('removed', os.sep)\nt = Temp()\nprint('done')", Stdout: "done\nremoved /\n"},
		{Name: "a module beside the program", Code: "open('beside.py', 'w').write('x = 7')\nimport beside\nprint(beside.x)", Stdout: "7\n"},
		{Name: "pickle of a class", Code: "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))).__name__)", Stdout: "A\n"},
		{Name: "a process pool", Code: "from concurrent.futures import ProcessPoolExecutor\ndef square(n): return n * n\nif __name__ == '__main__':\n    with ProcessPoolExecutor(2) as pool: print(list(pool.map(square, range(4))))", Stdout: "[0, 1, 4, 9]\n"},
		{Name: "a spawned process pool", Code: startsAfresh("spawn"), Stdout: "[0, 1, 4, 9] 4 []\n", Timeout: 30_000},
		{Name: "a process pool of a fork server", Code: startsAfresh("forkserver"), Stdout: "[0, 1, 4, 9] 4 []\n", Timeout: 30_000},
		{Name: "a tool in a process", Code: "import multiprocessing\ndef f(n): return asyncio.run(ask(n=n))\nif __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n        try: pool.map(f, [1])\n        except RuntimeError as error: print(error)", Tools: harness.Tools("ask"), Stdout: "tools can be called only in the program's own process; use threads in place of processes\n", Timeout: 30_000},
		{Name: "many functions that C calls back", Code: "import ctypes\nkept = [ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1) for _ in range(1000)]\nprint(sum(f() for f in kept))", Stdout: "1000\n"},
		{Name: "output of child processes", Code: "import subprocess\nprint('a')\nsubprocess.run(['echo', 'b'])\nos.system('echo c')\nos.write(1, b'd\\n')", Stdout: "a\nb\nc\nd\n"},
		{Name: "output that is not UTF-8", Code: `os.write(1, b"a\xff\xfeb\xc3\xa9")`, Stdout: "a\ufffd\ufffdb\u00e9"},
		{Name: "not trimmed", Code: `print(" a ", end=" \n\n ")`, Stdout: " a  \n\n "},
		{Name: "a lone surrogate printed", Code: `print("\ud800")`, Stdout: "\\ud800\n"},
		{Name: "a plot", Code: "plt.plot([1, 2]); plt.show(); plt.savefig('a.png')\nprint(os.path.exists('a.png'))", Stdout: "True\n"},
		{Name: "annotations of a program that returns", Code: "x: int = 5\nprint(x)\nif x: return\nprint(6)", Stdout: "5\n"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		harness.RunCases(t, harness.Serve(t, s, s.Libraries()).Alice(), cases)
	})
}

// startsAfresh returns a program whose processes do not have its memory.
func startsAfresh(method string) string {
	return strings.ReplaceAll(`import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor

def square(x):
    return x * x

if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=mp.get_context("METHOD")) as pool:
        squares = list(pool.map(square, range(4)))
    with mp.get_context("METHOD").Pool(2) as pool:
        print(squares, pool.apply(square, [2]), os.listdir())
`, "METHOD", method)
}

// TestPythonSource runs programs with unusual source text.
func TestPythonSource(t *testing.T) {
	cases := []harness.Case{
		{Name: "only comments", Code: "# nothing\n# at all", Stdout: ""},
		{Name: "CRLF", Code: "x = 1\r\nif x:\r\n    print(await ask(n=x))\r\n", Tools: harness.Tools("ask"), Stdout: "{'n': 1}\n"},
		{Name: "a byte order mark", Code: "\ufeffprint(1)", Stdout: "1\n"},
		{Name: "a future import", Code: "from __future__ import annotations\ndef f(x: Nothing): return 1\nprint(f(1))", Stdout: "1\n"},
		{Name: "a future import and await", Code: "from __future__ import annotations\ndef f(x: Nothing): return 1\nprint(f(await ask()))", Tools: harness.Tools("ask"), Stdout: "1\n"},
		{Name: "import star", Code: "from math import *\nprint(floor(await ask(n=1) and 2.5))", Tools: harness.Tools("ask"), Stdout: "2\n"},
		{Name: "indented by tabs", Code: "\t\tif 1:\n\t\t\tprint(1)\n\t\tprint(2)", Stdout: "1\n2\n"},
		{Name: "indented, first line a comment at the margin", Code: "# note\n    print(1)\n    print(2)", Stdout: "1\n2\n"},
		{Name: "indented, strings at the margin", Code: "      text = '''a\nb\n        c'''\n      print(text)", Stdout: "a\nb\n        c\n"},
		{Name: "a string keeps its lines", Code: "def f():\n    return '''a\n  b\n\tc'''\nprint(f(), await ask() and 1)", Tools: harness.Tools("ask"), Stdout: "a\n  b\n\tc 1\n", Answer: harness.Value("1")},
		{Name: "a top-level return", Code: "print(1)\nif True:\n    return 5\nprint(2)", Stdout: "1\n"},
		{Name: "a top-level return and await", Code: "if await ask(n=1):\n    print(1)\n    return\nprint(2)", Tools: harness.Tools("ask"), Stdout: "1\n"},
		{Name: "functions see the names of a program that returns", Code: "x = 1\ndef f():\n    global x\n    x += 1\n    return x\nprint(f(), x)\nreturn", Stdout: "2 2\n"},
		{Name: "async for and async with", Code: "import contextlib\nasync def g():\n    yield 1\nasync for x in g(): print(x)\nasync with contextlib.AsyncExitStack(): print(2)", Stdout: "1\n2\n"},
		{Name: "an async comprehension", Code: "print([await ask(n=n) for n in range(2)])", Tools: harness.Tools("ask"), Stdout: "[{'n': 0}, {'n': 1}]\n"},
		{Name: "await in a lambda's default", Code: "f = lambda x=await ask(n=1): x\nprint(f())", Tools: harness.Tools("ask"), Stdout: "{'n': 1}\n"},
		{Name: "the source is there to be looked at", Code: "import inspect\ndef f():\n    return 1\nprint(inspect.getsource(f))", Stdout: "def f():\n    return 1\n\n"},
		{Name: "names beyond ASCII", Code: "größe = '😀'\nprint(größe)", Stdout: "😀\n"},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		harness.RunCases(t, c, cases)
		t.Run("a NUL", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: "print(1)\x00"})
			if a.HTTPStatus != 200 || a.Status != "error" || !strings.HasPrefix(a.Error, "SyntaxError: ") && !strings.HasPrefix(a.Error, "ValueError: ") {
				t.Errorf("got %v, want a SyntaxError or ValueError", a)
			}
		})
		t.Run("half a surrogate pair", func(t *testing.T) {
			a := c.Post(t, `{"code":"print(1) # \ud800"}`)
			if a.HTTPStatus != 200 || a.Status == "" {
				t.Errorf("got %v, want a completed or a failed program", a)
			}
		})
		t.Run("very deep source", func(t *testing.T) {
			a := c.Post(t, harness.Program{Code: strings.Repeat("(", 20_000) + strings.Repeat(")", 20_000)})
			if a.HTTPStatus != 200 || a.Status != "error" {
				t.Errorf("got %v, want a failed program", a)
			}
		})
		t.Run("a long program", func(t *testing.T) {
			c.Post(t, harness.Program{Code: strings.Repeat("x = 1\n", 100_000) + "print(x)"}).Completes(t, "1\n")
		})
	})
}

// TestExits ends programs in every way and checks what the answer says.
func TestExits(t *testing.T) {
	cases := []harness.Case{
		{Name: "the end", Code: "x = 1", Stdout: ""},
		{Name: "sys.exit()", Code: "print(1)\nsys.exit()\nprint(2)", Stdout: "1\n"},
		{Name: "sys.exit(0)", Code: "print(1, end='')\nsys.exit(0)", Stdout: "1"},
		{Name: "exit()", Code: "print(1)\nexit()", Stdout: "1\n"},
		{Name: "sys.exit(3)", Code: "print(1)\nsys.exit(3)", Stdout: "1\n", Error: "Sandbox exited with code 3"},
		{Name: "sys.exit after a call", Code: "await ask()\nsys.exit(4)", Tools: harness.Tools("ask"), Error: "Sandbox exited with code 4"},
		{Name: "sys.exit(text)", Code: "sys.exit('no luck')", Error: "Sandbox exited with code 1", Stderr: []string{"no luck\n"}},
		{Name: "SystemExit in a task", Code: "async def f(): sys.exit(5)\nawait asyncio.gather(f())", Error: "Sandbox exited with code 5"},
		{Name: "KeyboardInterrupt in a task", Code: "async def f(): raise KeyboardInterrupt\nawait asyncio.gather(f())", Error: "KeyboardInterrupt", Stderr: []string{"line 1, in f", "KeyboardInterrupt"}},
		{Name: "os._exit(7)", Code: "print(1)\nos._exit(7)", Stdout: "1\n", Error: "Sandbox exited with code 7"},
		{Name: "os._exit(0)", Code: "print(1)\nos._exit(0)", Stdout: "1\n"},
		{Name: "killed by itself", Code: "print(1)\nos.kill(os.getpid(), 9)", Stdout: "1\n", Error: "Sandbox exited with code -9"},
		{Name: "a segmentation fault", Code: "print(1)\nimport ctypes\nctypes.string_at(0)", Stdout: "1\n", Error: "Sandbox exited with code -11"},
		{Name: "abort", Code: "print(1)\nos.abort()", Stdout: "1\n", Error: "Sandbox exited with code -6"},
		{Name: "ZeroDivisionError", Code: "print('before')\n\n1/0", Stdout: "before\n", Error: "ZeroDivisionError: division by zero", Stderr: []string{"Traceback (most recent call last):\n", "line 3", "1/0", "ZeroDivisionError: division by zero\n"}},
		{Name: "an error without a text", Code: "raise ValueError", Error: "ValueError", Stderr: []string{"line 1", "ValueError\n"}},
		{Name: "an error of two lines", Code: "raise ValueError('a\\nb')", Error: "ValueError: a\nb", Stderr: []string{"ValueError: a\nb\n"}},
		{Name: "an error of the program's own", Code: "class Mine(Exception): pass\nraise Mine('x')", Error: "Mine: x", Stderr: []string{"line 2", "Mine: x\n"}},
		{Name: "a SyntaxError", Code: "x = 1\nx = = 2", Error: "SyntaxError: invalid syntax", Stderr: []string{"line 2", "x = = 2", "SyntaxError: invalid syntax"}},
		{Name: "a SyntaxError in an indented program", Code: "    x = 1\n    x = = 2", Error: "SyntaxError: invalid syntax", Stderr: []string{"line 2", "x = = 2", "SyntaxError: invalid syntax"}},
		{Name: "an IndentationError", Code: "print(1)\n    print(2)", Error: "IndentationError: unexpected indent", Stderr: []string{"line 2", "IndentationError: unexpected indent"}},
		{Name: "an unknown name", Code: "print(nothing)", Error: "NameError: name 'nothing' is not defined", Stderr: []string{"line 1", "NameError"}},
		{Name: "a tool that was not granted", Code: "await forbidden()", Tools: harness.Tools("ask"), Error: "NameError: name 'forbidden' is not defined", Stderr: []string{"NameError"}},
		{Name: "in an indented program", Code: "      x = 1\n\n      1/0", Error: "ZeroDivisionError: division by zero", Stderr: []string{"line 3", "1/0", "ZeroDivisionError"}},
		{Name: "in a function after a call", Code: "async def f():\n    await ask()\n    return {}['x']\nawait f()", Tools: harness.Tools("ask"), Error: "KeyError: 'x'", Stderr: []string{"line 4", "await f()", "line 3, in f", "KeyError: 'x'"}},
		{Name: "with a cause", Code: "try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e", Error: "ValueError: x", Stderr: []string{"ZeroDivisionError", "direct cause", "ValueError: x"}},
		{Name: "RecursionError", Code: "def f(): f()\nf()", Error: "RecursionError: maximum recursion depth exceeded", Stderr: []string{"RecursionError"}},
		{Name: "an un-awaited stub", Code: "ask(n=1)\nprint('end')", Tools: harness.Tools("ask"), Stdout: "end\n", Stderr: []string{"ask", "await"}},
		{Name: "an un-awaited stub in a coroutine", Code: "async def f():\n    x = ask(n=1)\nawait f()\nprint('end')", Tools: harness.Tools("ask"), Stdout: "end\n", Stderr: []string{"ask", "await"}},
		{Name: "a warning", Code: "import warnings\nwarnings.warn('careful')", Stderr: []string{"UserWarning: careful"}},
		{Name: "stderr of the program", Code: "print('a', file=sys.stderr)\nos.system('echo b >&2')", Stderr: []string{"a\nb\n"}},
		{Name: "atexit", Code: "import atexit\natexit.register(print, 'bye')\nprint('end')", Stdout: "end\nbye\n"},
		{Name: "finally", Code: "try:\n    sys.exit(2)\nfinally:\n    print('finally')", Stdout: "finally\n", Error: "Sandbox exited with code 2"},
		{Name: "a thread is waited for", Code: "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()\nprint('main')", Stdout: "main\nthread\n"},
		{Name: "a daemon thread is not waited for", Code: "import threading, time\nthreading.Thread(target=lambda: (time.sleep(30), print('thread')), daemon=True).start()\nprint('main')", Stdout: "main\n"},
		{Name: "a child that stays is not waited for", Code: "import subprocess\nsubprocess.Popen(['sleep', '60'])\nprint('main')", Stdout: "main\n"},
		{Name: "a daemon process with stdout open", Code: "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        import time\n        time.sleep(60)\n    os._exit(0)\nos.wait()\nprint('main')", Stdout: "main\n"},
		{Name: "stdout is closed", Code: "print(1)\nsys.stdout.close()\nos.close(1)", Stdout: "1\n"},
		{Name: "stdout is replaced", Code: "import io\nprint(1)\nsys.stdout = io.StringIO()\nprint(2)\nsys.__stdout__.write('3\\n')", Stdout: "1\n3\n"},
		{Name: "an error whose text raises", Code: "class E(Exception):\n    def __str__(self): raise ValueError('x')\nraise E()", Error: "E: <exception str() failed>", Stderr: []string{"E: <exception str() failed>"}},
		{Name: "an error whose text needs names of the program", Code: "prefix = 'my '\nclass E(Exception):\n    def __str__(self): return prefix + json.dumps(self.args)\nraise E(1)", Error: "E: my [1]", Stderr: []string{"E: my [1]"}},
		{Name: "an error whose text exits", Code: "class E(Exception):\n    def __str__(self):\n        import os\n        os._exit(9)\nraise E()", Error: "Sandbox exited with code 9"},
		{Name: "stderr is gone", Code: "sys.stderr = None\n1/0", Error: "ZeroDivisionError: division by zero", Stderr: []string{"ZeroDivisionError"}},
		{Name: "excepthook", Code: "sys.excepthook = lambda *a: print('hook')\n1/0", Error: "ZeroDivisionError: division by zero", Stdout: "hook\n"},
	}
	cases = withAnyStderr(cases)
	harness.OverSetups(t, harness.EachSandbox|harness.GVisor, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		harness.RunCases(t, c, cases)
		t.Run("tracebacks have the user's frames only", func(t *testing.T) {
			for _, code := range []string{
				"def f():\n    1/0\nf()",
				"async def f():\n    await ask()\n    1/0\nawait asyncio.gather(f())",
				"await ask(object())",
				"await ask(x={1})",
				"import asyncio\nasync def main():\n    await bad()\nasyncio.run(main())",
				"x = = 1",
			} {
				a, _ := c.Run(t, harness.Program{Code: code, Tools: harness.Tools("ask", "bad")}, func(c harness.Call) harness.Result {
					if c.Name == "bad" {
						return harness.Failure("no")(c)
					}
					return harness.Echo(c)
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
			a := c.Post(t, harness.Program{Code: "raise ValueError('x' * 30_000_000)"})
			if a.HTTPStatus != 200 || !strings.HasPrefix(a.Error, "ValueError: xxx") || len(a.Raw) > 5<<20 {
				t.Errorf("got %v of %d bytes, want a ValueError cut short", a, len(a.Raw))
			}
		})
	})
}

// TestFreshInterpreter checks that a program finds nothing that an earlier one has left behind.
func TestFreshInterpreter(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, nil).Alice()
		c.Post(t, harness.Program{Code: harness.Py(`
			import builtins, json
			builtins.left = 1
			json.left = 1
			os.environ["LEFT"] = "1"
			for place in ("/mnt/data", "/tmp", "/dev/shm"):
			    open(place + "/left", "w").write("1")
			print("done")
		`)}).Completes(t, "done\n")
		for range 5 {
			c.Post(t, harness.Program{Code: harness.Py(`
				import builtins, json
				print(hasattr(builtins, "left"), hasattr(json, "left"), "LEFT" in os.environ)
				print([os.listdir(place) for place in ("/mnt/data", "/tmp", "/dev/shm")])
			`)}).Completes(t, "False False False\n[[], [], []]\n")
		}
	})
}

// TestRandomNumbers checks that programs do not share random numbers, though they are forked from
// one parent.
func TestRandomNumbers(t *testing.T) {
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		c := harness.Serve(t, s, s.Libraries()).Alice()
		seen := map[string]string{}
		for range 6 {
			a := c.Post(t, harness.Program{Code: harness.Py(`
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

// withAnyStderr allows cases that fail to write anything to stderr, unless they say what.
func withAnyStderr(cases []harness.Case) []harness.Case {
	for i := range cases {
		if cases[i].Error != "" && cases[i].Stderr == nil {
			cases[i].Stderr = []string{""}
		}
	}
	return cases
}

// TestHints runs programs that fail with errors that lead to a wrong next step, and checks the line that stderr has besides.
func TestHints(t *testing.T) {
	cases := []harness.Case{
		{Name: "await in a plain function", Code: "def main():\n    return await ask(n=1)", Tools: harness.Tools("ask"), Error: "SyntaxError: 'await' outside async function", Stderr: []string{"File \"<program>\", line 2\n    return await ask(n=1)\n           ^^^^^", "Hint: a plain function cannot await: write `async def main`, and `await main()`"}},
		{Name: "no network", Code: "import urllib.request\nurllib.request.urlopen('http://example.com')", Error: "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>", Stderr: []string{"Hint: there is no network in the sandbox"}},
		{Name: "no such library", Code: "import no_such_library", Error: "ModuleNotFoundError: No module named 'no_such_library'", Stderr: []string{"Hint: nothing can be installed in the sandbox"}},
		{Name: "too many threads", Code: "import threading\ne = threading.Event()\nfor n in range(200): threading.Thread(target=e.wait, daemon=True).start()", Error: "RuntimeError: can't start new thread", Stderr: []string{"Hint: a program has at most ", "processes and threads (FERMATA_PIDS)"}},
		{Name: "a group of errors", Code: "async with asyncio.TaskGroup() as group:\n    group.create_task(ask(n=1))\n    group.create_task(ask(n=2))", Tools: harness.Tools("ask"), Answer: harness.Failure("broke"), Error: "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions): ToolExecutionError: broke", Stderr: []string{"line 2, in <module>", "ToolExecutionError: broke", "line 3, in <module>"}},
		{Name: "another error", Code: "1 / 0", Error: "ZeroDivisionError: division by zero", Stderr: []string{"ZeroDivisionError: division by zero\n"}},
	}
	harness.OverSetups(t, harness.EachSandbox, func(t *testing.T, s harness.Setup) {
		harness.RunCases(t, harness.Serve(t, s, nil).Alice(), cases)
	})
}
