"""Tests of programs as users write them: how they are compiled, run, and how their errors are told."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import textwrap
import warnings
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from fermata import program
from fermata.program import Program, error_line, error_text

# The common directory of the runner and this file, whose frames are hidden in tracebacks.
OWN_FILES = os.path.commonpath([program.__file__, __file__])


def run(source: str) -> dict[str, Any]:
    """Run a program and return its namespace."""
    namespace: dict[str, Any] = {"__name__": "__main__", "asyncio": asyncio}
    compiled = Program(source)
    if compiled.awaits:
        asyncio.run(compiled.start(namespace))
    else:
        compiled.start(namespace)
    return namespace


def failure(source: str) -> BaseException:
    """Run a program that fails and return what it raises."""
    try:
        run(source)
    except BaseException as error:
        return error
    pytest.fail("the program did not fail")


def text_of(error: BaseException) -> str:
    return error_text(error, OWN_FILES)


def printed(source: str) -> list[str]:
    out = io.StringIO()
    with redirect_stdout(out):
        run(source)
    return out.getvalue().split()


# Every program leaves its answer in the name x. Each is run with and without a top-level
# return, because programs with one are compiled in another way.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "assignment": ("x = 1", 1),
    "main": ("x = __name__", "__main__"),
    "await": ("x = await asyncio.sleep(0, 5)", 5),
    "async for": (
        """
        async def numbers():
            for n in range(3):
                yield n
        x = 0
        async for n in numbers():
            x += n
        """,
        3,
    ),
    "async with": (
        """
        from contextlib import asynccontextmanager
        @asynccontextmanager
        async def five():
            yield 5
        async with five() as x:
            pass
        """,
        5,
    ),
    "async comprehension": (
        """
        async def numbers():
            yield 1
            yield 2
        x = [n async for n in numbers()]
        """,
        [1, 2],
    ),
    "await in a comprehension": ("x = [await asyncio.sleep(0, n) for n in range(2)]", [0, 1]),
    "function that uses a global": (
        """
        total = 1
        def add(n):
            global total
            total += n
            return total + offset
        offset = 10
        x = add(2)
        """,
        13,
    ),
    "function that calls itself": (
        """
        def f(n):
            return 1 if n == 0 else n * f(n - 1)
        x = f(5)
        """,
        120,
    ),
    "class that uses a global": (
        """
        base = 2
        class A:
            value = base
            def get(self):
                return self.value + base + len(A.__name__)
        x = A().get()
        """,
        5,
    ),
    "closures": (
        """
        def outer():
            n = 0
            def inner():
                nonlocal n
                n += 1
                return n
            return inner
        f = outer()
        f()
        x = f()
        """,
        2,
    ),
    "lambda that uses a global": ("n = 2\nf = lambda: n\nn = 3\nx = f()", 3),
    "annotations": (
        """
        y: int
        x: int = 1
        for i in range(2):
            x: "nonsense" = x + i
        (z): int = 3
        class A: pass
        A.b: int = 4
        x += z + A.b
        """,
        9,
    ),
    "walrus": ("if (x := 5) > 3: pass", 5),
    "walrus in a comprehension": ("y = [x := n for n in range(4)]", 3),
    "comprehension has its own variable": ("n = 7\ny = [n for n in range(3)]\nx = n", 7),
    "comprehension sees what is global": ("k = 2\nx = [k * n for n in range(3)]", [0, 2, 4]),
    "match": (
        """
        match {"a": [1, 2, 3]}:
            case {"a": [first, *rest], **others}:
                x = (first, rest, others)
        """,
        (1, [2, 3], {}),
    ),
    "import as": ("import os.path as p\nfrom json import dumps as d\nx = d(p.basename('a/b'))", '"b"'),
    "import of a package": ("import os.path\nx = os.path.sep", "/"),
    "del": (
        """
        y = 1
        del y
        try:
            y
        except NameError:
            x = "gone"
        """,
        "gone",
    ),
    "global": ("global x\nx = 1", 1),
    "with as, except as": (
        """
        import io
        with io.StringIO("a") as f:
            x = f.read()
        try:
            1 / 0
        except ZeroDivisionError as e:
            x += str(e)[0]
        """,
        "ad",
    ),
    "unpacking": ("(a, *b), c = (1, 2, 3), 4\nx = [a, b, c]", [1, [2, 3], 4]),
    "augmented": ("x = 1\nx += 1", 2),
    "globals()": ("y = 1\nglobals()['x'] = y + globals()['y']", 2),
    "eval": ("y = 1\nx = eval('y + 1')", 2),
    "triple-quoted": ("x = '''a\n    b\n\tc'''", "a\n    b\n\tc"),
    "continued line": ("x = 1 + \\\n    2", 3),
    "generator": ("def g():\n    yield 1\n    return 2\nx = list(g())", [1]),
    "asyncio.run": ("async def main():\n    return 4\nx = asyncio.run(main())", 4),
    "string with odd line ends": ("x = 'a\x0cb\u2028c\x85'", "a\x0cb\u2028c\x85"),
    "f-string": ("n = 3\nx = f'{n!r:>3}{n=}'", "  3n=3"),
    "future import": (
        """
        'What it is for.'
        # A comment.
        from __future__ import annotations, generator_stop
        def f(n: missing) -> missing: return __doc__
        x = f(1)
        """,
        "What it is for.",
    ),
    "import *": ("from math import *\nx = sqrt(16)", 4),
    "exec": ("exec('y = 5\\nfor i in range(3): pass')\nx = y + i", 7),
    "exec of a class": ("exec('class A: b = 3')\nx = A.b", 3),
    "locals() and vars()": ("name = 'Ada'\nx = '{name}'.format(**locals()) + vars()['name']", "AdaAda"),
    "locals() is globals()": ("x = locals() is globals() is vars()", True),
    "locals() that is written": ("locals()['y'] = 3\nx = y", 3),
    "__doc__": ("'About this.'\nx = __doc__", "About this."),
    "date from a text": ("from datetime import datetime\nx = datetime.strptime('2026-01-02', '%Y-%m-%d').year", 2026),
    "date to a text": ("import datetime as d\nx = d.date(2026, 1, 2).strftime('%Y')", "2026"),
    "date in an f-string": ("import datetime as d\nx = f'{d.date(2026, 1, 2):%Y}'", "2026"),
    "time from a text": ("import time\nx = time.strptime('2026', '%Y').tm_year", 2026),
    "date in a function": (
        """
        from datetime import datetime
        def year(text): return datetime.strptime(text, "%Y").year
        x = [year("2025"), (lambda text: datetime.strptime(text, "%Y").year)("2026")]
        """,
        [2025, 2026],
    ),
    "date in a method": (
        """
        from datetime import datetime
        class A:
            first = datetime.strptime("2025", "%Y").year
            def year(self): return datetime.strptime("2026", "%Y").year
        x = [A.first, A().year()]
        """,
        [2025, 2026],
    ),
    "pickle of a date": ("import datetime as d, pickle\nx = pickle.loads(pickle.dumps(d.date(2026, 1, 2))).year", 2026),
    "numpy": (
        """
        try:
            import numpy as np
            a = np.array([2, 4])
            x = [float(a.std()), float(a.var()), int(a.prod()), int(np.ptp(a))]
        except ImportError:
            x = [1, 1, 8, 2]
        """,
        [1, 1, 8, 2],
    ),
    "__builtins__": ("x = callable(getattr(__builtins__, 'print', None) or __builtins__['print'])", True),
}


@pytest.mark.parametrize("ending", ["", "\nreturn", "\nif True:\n    return 5\nx = 'went on'"])
@pytest.mark.parametrize("source, want", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_program(source: str, want: Any, ending: str) -> None:
    assert run(textwrap.dedent(source) + ending)["x"] == want


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="annotations of a module are made when they are asked for")
def test_annotations() -> None:
    assert run("x: int = 1\ny: str\nreturn")["__annotations__"] == {"x": int, "y": str}
    assert run("from __future__ import annotations\nx: int = 1\nreturn")["__annotations__"] == {"x": "int"}


@pytest.mark.parametrize("source", ["", "\n\n", "# only this", "   # only this", "pass", "   \n\t\n"])
def test_empty(source: str) -> None:
    run(source)


# Each program prints what the same text prints as the body of a function.
RETURNS = (
    "print(1)\nreturn\nprint(2)",
    "print(1)\nreturn 5",
    "return print(1), *[2]",
    "for n in range(5):\n    print(n)\n    if n == 1: return",
    "for n in range(5):\n    if n == 1: break\n    if n == 7: return\nelse:\n    print(1)\nprint(2)",
    "for n in range(5):\n    if n == 7: return\nelse:\n    print(1)\nprint(2)",
    "for n in range(5):\n    if n == 3: return\nelse:\n    print(1)\nprint(2)",
    "for n in range(2):\n    for m in range(2):\n        print(n, m)\n        if m: return\n    print(3)\nprint(4)",
    "for n in range(2):\n    for m in range(2):\n        print(n, m)\n        if n: return\n        break\nprint(4)",
    "for n in range(2):\n    for m in range(2): pass\n    else: return print(n)\nprint(4)",
    "n = 0\nwhile n < 3:\n    n += 1\n    if n == 2: continue\n    print(n)\nelse:\n    return print(8)\nprint(9)",
    "try:\n    return\nfinally:\n    print(2)",
    "try:\n    return print(1)\nexcept:\n    print(2)\nelse:\n    print(3)",
    "try:\n    return print(1)\nexcept BaseException:\n    print(2)\nprint(3)",
    "try:\n    1/0\nexcept:\n    return print(2)\nfinally:\n    print(3)\nprint(4)",
    "try:\n    1/0\nexcept ZeroDivisionError as e:\n    return print(e)\nprint(4)",
    "while True:\n    try:\n        return\n    finally:\n        break\nprint(5)",
    "for n in range(3):\n    try:\n        return\n    finally:\n        print(n)\n        continue\nprint(5)",
    "for n in range(2):\n    try:\n        return 1\n    finally:\n        if n: return print(2)\n        else: continue",
    "try:\n    return print(1)\nfinally:\n    return print(2)",
    "try:\n    try:\n        return\n    finally:\n        1/0\nexcept ZeroDivisionError:\n    print(1)\nprint(2)",
    "for n in range(2):\n    try:\n        try:\n            return\n        finally:\n            1/0\n"
    "    except ZeroDivisionError:\n        print(1)\nfor n in range(2):\n    if n > 2: return\n    print(n)\nprint(2)",
    "import contextlib\nfor n in range(2):\n    with contextlib.suppress(ZeroDivisionError):\n        try:\n"
    "            return\n        finally:\n            1/0\n    print(n)\nprint(9)",
    "import contextlib\nwith contextlib.closing(open('/dev/null')) as f:\n    for n in f: pass\n    return print(f.closed)",
    "import contextlib\nwith contextlib.ExitStack() as s:\n    s.callback(print, 2)\n    print(1)\n    return\nprint(3)",
    "match 5:\n    case 4: print(1)\n    case 5:\n        for n in range(2): return print(n)\nprint(4)",
    "if 0: print(0)\nelif 1:\n    while 1:\n        if 1: return print(2)\nelse: return\nprint(3)",
    "def f():\n    for n in range(3): return n\nprint(f())\nclass A:\n    for n in range(3): break\nprint(A.n)\nreturn",
    "for n in range(3):\n    class A:\n        for m in range(3): break\n    if n: return print(n, A.m)",
)


@pytest.mark.parametrize("source", RETURNS)
@pytest.mark.parametrize("ending", ["", "\nprint('end')"])
def test_return(source: str, ending: str) -> None:
    source += ending
    want = "def f():\n" + textwrap.indent(source, "    ") + "\nf()"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)  # of clean-up that overrides a return
        assert printed(source) == printed(want)


def test_return_with_await() -> None:
    assert printed("return\nawait asyncio.sleep(0)") == []
    assert printed("for n in range(5):\n    print(n)\n    if n == 1: return await asyncio.sleep(0)") == ["0", "1"]
    assert printed("async def f():\n    return 1\nprint(await f())") == ["1"]
    numbers = "async def f():\n    yield 1\n    yield 2\n"
    assert printed(numbers + "async for n in f():\n    print(n)\n    if n == 1: return\nprint(3)") == ["1"]
    assert printed(numbers + "async for n in f():\n    if n == 3: return\nelse: print(n)\nprint(3)") == ["2", "3"]
    assert printed("try:\n    return await asyncio.sleep(0)\nfinally:\n    print(await asyncio.sleep(0, 7))") == ["7"]


@pytest.mark.parametrize(
    "source, want",
    {
        "return {'a': 1}": {"a": 1},
        "return 1, 2": (1, 2),
        "return": None,
        "try:\n    return 1\nfinally:\n    x = 2": 1,
        "try:\n    return 1\nfinally:\n    return 2": 2,
        "for n in range(3):\n    try:\n        return n\n    finally:\n        continue\n7": 7,
        "for n in range(3):\n    try:\n        return n\n    finally:\n        break\n8": 8,
        "if False: return 1\n9": 9,
        "x = 1\nif x: return\n9": None,
        "return await asyncio.sleep(0, 5)": 5,
    }.items(),
)
def test_returned_value(source: str, want: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        compiled = Program(source, valued=True)
    started = compiled.start({"asyncio": asyncio})
    if compiled.awaits:
        asyncio.run(started)
    assert compiled.value == want


def test_return_leaves_no_name() -> None:
    names = run("for n in range(3):\n    if n: return")
    assert set(names) - {"__annotations__"} == {"__name__", "__builtins__", "asyncio", "n"}


def test_awaits() -> None:
    for source in (
        "await f()",
        "async for n in f(): pass",
        "async with f(): pass",
        "return await f()",
        "[n async for n in f()]",
    ):
        assert Program(source).awaits, source
    for source in ("", "return", "async def f():\n    await g()", "asyncio.run(f())", "return\nlambda: 1"):
        assert not Program(source).awaits, source


def test_indented_program() -> None:
    source = """
        # at the margin of the model's own code
        x = '''one
        two
    three'''
        def f():
            return await_me
        await_me = 5
        x = x, f()
    """
    assert run(source)["x"] == ("one\n        two\n    three", 5)
    assert run("\tx = 1\n\tif x:\n\t\tx = 2\n\treturn\n")["x"] == 2
    assert run("  x = 1\nx = 2\n")["x"] == 2, "what follows at the margin belongs to it"
    assert run("# first\n  x = await asyncio.sleep(0, 3)")["x"] == 3


def test_indented_program_has_its_own_line_numbers() -> None:
    error = failure("\n    x = 1\n    1 / 0\n")
    assert 'File "<program>", line 3, in <module>\n    1 / 0\n' in text_of(error)
    error = failure("    x = 1\n    x = = 2\n")
    assert isinstance(error, SyntaxError)
    assert error.lineno == 2
    assert 'File "<program>", line 2\n    x = = 2\n' in text_of(error)
    error = failure("    for n in ():\n    x = 2\n")
    assert error_line(error) == "IndentationError: expected an indented block after 'for' statement on line 1"


def test_wrong_indentation_stays_an_error() -> None:
    assert error_line(failure("x = 1\n  y = 2")) == "IndentationError: unexpected indent"
    assert error_line(failure("  x = 1\n    y = 2")) == "IndentationError: unexpected indent"


def test_source_text() -> None:
    assert run("x = '''a\r\nb'''\r\nif x:\r\n    x += 'c'\r\n")["x"] == "a\nbc"
    assert run("x = 1\rx = 2")["x"] == 2
    assert run("\ufeffx = 1")["x"] == 1
    assert run("# -*- coding: latin-1 -*-\nx = 'é'")["x"] == "é"
    assert run("from __future__ import annotations\nx: nonsense = 1")["x"] == 1


# The error of a source with a null character.
_NULL = SyntaxError if sys.version_info >= (3, 12) else ValueError


@pytest.mark.parametrize(
    "source, line",
    {
        "x = = 1": "SyntaxError: invalid syntax",
        "x = 'a": "SyntaxError: unterminated string literal (detected at line 1)",
        "break": "SyntaxError: 'break' outside loop",
        "return\nbreak": "SyntaxError: 'break' outside loop",
        "await f()\nreturn\nbreak": "SyntaxError: 'break' outside loop",
        "yield 1": "SyntaxError: 'yield' outside function",
        "print(1)\nyield 1\nreturn": "SyntaxError: 'yield' outside function",
        "await f()\nyield 1\nreturn": "SyntaxError: 'yield' outside function",
        "nonlocal x\nreturn": "SyntaxError: nonlocal declaration not allowed at module level",
        "def f():\n    await g()": "SyntaxError: 'await' outside async function",
        "return\ndef f():\n    await g()": "SyntaxError: 'await' outside async function",
        "x = 1\nx = \0": f"{_NULL.__name__}: source code string cannot contain null bytes",
        "from __future__ import nonsense": "SyntaxError: future feature nonsense is not defined",
    }.items(),
)
def test_does_not_compile(source: str, line: str) -> None:
    error = failure(source)
    assert error_line(error) == line
    text = text_of(error)
    assert text.endswith(line + "\n")
    assert "Traceback" not in text or isinstance(error, ValueError), "there is no call to tell of"
    assert "During handling" not in text


def test_lone_surrogate_in_the_source() -> None:
    assert error_line(failure("x = '\ud800'")).startswith("UnicodeEncodeError: ")


def test_too_deep() -> None:
    assert isinstance(failure("(" * 5000 + ")" * 5000), (SyntaxError, MemoryError, RecursionError))
    assert isinstance(failure("x = " + "-" * 100_000 + "1"), (SyntaxError, MemoryError, RecursionError))


def test_deep_but_legal() -> None:
    run("a = 1\nx = " + "+".join("a" * 900))
    run("a = 0\nif a: pass\n" + "elif a: pass\n" * 400 + "else: x = 1\nreturn")


def test_syntax_error_shows_the_line() -> None:
    text = text_of(failure("x = 1\ny = (2,\n"))
    assert text == "  File \"<program>\", line 2\n    y = (2,\n        ^\nSyntaxError: '(' was never closed\n"


@pytest.mark.parametrize(
    "source",
    [
        "def main():\n    w = await get_weather()",
        "x = 1\nbreak",
        "for n in ():\n    pass\nyield 1",
        "def f(a, a): pass",
        "class A:\n    return 1",
        "def f():\n    return [n async for n in g()]",
        "def f():\n    nonlocal x",
        "x = 1\ndef f():\n  x = 2\n  global x",
        "if 1:\n  continue",
        "f() = 1",
        "from __future__ import nonsense",
        "x = 1\nfrom __future__ import annotations",
        "def f():\n    from math import *",
    ],
)
@pytest.mark.parametrize("ending", ["", "\nx = 5", "\nif 1: return"])
def test_syntax_error_is_shown_as_that_of_a_file(source: str, ending: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(source + ending.replace("return", "pass"))
    ended = subprocess.run([sys.executable, "-I", file], capture_output=True, text=True)
    assert text_of(failure(source + ending)) == ended.stderr.replace(str(file), "<program>")


def test_syntax_error_marks_the_right_letters() -> None:
    error = failure('def main():\n    s = "日本é", await f()')
    assert text_of(error).splitlines()[1:3] == ['    s = "日本é", await f()', " " * 15 + "^" * 9]


def test_warning_is_given_once() -> None:
    for source in (
        "x = 1\nassert (x, 'y')",
        "x = 1\nassert (x, 'y')\nreturn",
        "await asyncio.sleep(0)\nx is 1\nreturn",
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            Program(source)
        assert [(str(w.category.__name__), w.filename, w.lineno) for w in caught] == [("SyntaxWarning", "<program>", 2)]


@pytest.mark.parametrize("ending", ["", "\nreturn"])
def test_traceback_shows_the_user_s_frames(ending: str) -> None:
    source = "def f(n):\n    return 1 / n\n\n\nawait asyncio.sleep(0)\nf(0)" + ending
    marks = "    ~^^^\n" if sys.version_info >= (3, 13) else ""
    assert text_of(failure(source)) == (
        "Traceback (most recent call last):\n"
        '  File "<program>", line 6, in <module>\n'
        f"    f(0)\n{marks}"
        '  File "<program>", line 2, in f\n'
        "    return 1 / n\n"
        "           ~~^~~\n"
        "ZeroDivisionError: division by zero\n"
    )


def test_traceback_quotes_the_right_lines() -> None:
    # In Python only line feeds and carriage returns end a line.
    source = "x = 'a\x0cb\u2028c\x1cd'\r\n# \x0b\r1 / 0  # here\n"
    assert "line 3, in <module>\n    1 / 0  # here\n" in text_of(failure(source))


def test_traceback_keeps_library_frames() -> None:
    text = text_of(failure("import json\njson.loads('{')"))
    assert "line 2, in <module>\n    json.loads('{')\n" in text
    assert "json/decoder.py" in text
    assert OWN_FILES not in text


def test_chained_errors() -> None:
    source = """
try:
    try:
        1 / 0
    except ZeroDivisionError:
        raise KeyError("k")
except KeyError as error:
    raise ValueError("v") from error
"""
    text = text_of(failure(source))
    assert text.index("ZeroDivisionError: division by zero") < text.index("During handling of the above exception")
    assert text.index("KeyError: 'k'") < text.index("The above exception was the direct cause")
    assert text.endswith("ValueError: v\n")
    assert OWN_FILES not in text


def test_chain_of_errors_of_any_length() -> None:
    source = """
error = None
for n in range(20_000):
    new = ValueError(n)
    new.__cause__ = error
    error = new
raise error
"""
    text = text_of(failure(source))
    assert text.endswith("ValueError: 19999\n")


def test_circular_causes() -> None:
    text = text_of(failure("a = ValueError('a')\nb = ValueError('b')\na.__cause__ = b\nb.__cause__ = a\nraise a"))
    assert text.endswith("ValueError: a\n")


def test_exception_group() -> None:
    source = """
async def fail(n):
    raise ValueError(n)
async with asyncio.TaskGroup() as group:
    group.create_task(fail(1))
    group.create_task(fail(2))
"""
    error = failure(source)
    assert error_line(error) == "ExceptionGroup: unhandled errors in a TaskGroup (2 sub-exceptions): ValueError: 1"
    text = text_of(error)
    assert "ValueError: 1" in text and "ValueError: 2" in text
    assert text.count("line 3, in fail") == 2
    assert OWN_FILES not in text


def test_line_of_a_group_in_a_group() -> None:
    error = failure(
        "raise ExceptionGroup('a', [ExceptionGroup('b', [KeyError('c'), ValueError('d')]), TypeError('e')])"
    )
    assert error_line(error) == "ExceptionGroup: a (2 sub-exceptions): KeyError: 'c'"


HOSTILE: dict[str, tuple[str, str]] = {
    "__str__ raises": (
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "E: <exception str() failed>",
    ),
    "__str__ exits": (
        "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E",
        "E: <exception str() failed>",
    ),
    "__str__ returns no text": (
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        "E: <exception str() failed>",
    ),
    "__class__ lies": ("class E(Exception):\n    __class__ = int\nraise E", "E"),
    "no message": ("raise ValueError", "ValueError"),
    "several lines": ("raise ValueError('a\\nb')", "ValueError: a\nb"),
    "tuple": ("raise KeyError('a', 1)", "KeyError: ('a', 1)"),
    "notes": ("e = ValueError('a')\ne.add_note('n')\nraise e", "ValueError: a\nn"),
    "notes that are none": ("e = ValueError('a')\ne.__notes__ = 5\nraise e", "ValueError: a\n5"),
    "error of the program's own": ("class My(Exception): pass\nraise My('m')", "My: m"),
    "syntax error of the program's own": ("eval('1 +')", "SyntaxError: invalid syntax"),
    "syntax error with odd parts": ("raise SyntaxError('a', ('f', 'x', 3, None))", "SyntaxError: a"),
    "exceptions of a group lie": (
        "class G(ExceptionGroup):\n    exceptions = 5\nraise G('g', [ValueError()])",
        "G",
    ),
    "lone surrogate": ("raise ValueError('\\ud800')", "ValueError: \ud800"),
}


@pytest.mark.parametrize("source, line", HOSTILE.values(), ids=HOSTILE.keys())
def test_error_line(source: str, line: str) -> None:
    error = failure(source)
    got = error_line(error)
    assert got == line or line.endswith(">") and got == line.partition(":")[0]
    text = text_of(error)
    assert type(error).__name__ in text


def test_huge_message() -> None:
    error = failure("raise ValueError('a' * 1_000_000 + 'the end')")
    line, text = error_line(error), text_of(error)
    assert len(line) < 4_200 and len(text) < 101_000
    assert line.startswith("ValueError: aaa") and line.endswith("the end")
    assert "characters left out" in line and "characters left out" in text
    assert text.startswith("Traceback") and text.endswith("the end\n")


def test_endless_recursion() -> None:
    text = text_of(failure("def f(): f()\nf()"))
    assert "Previous line repeated" in text
    assert text.endswith("RecursionError: maximum recursion depth exceeded\n")
