"""Names: tools that hide a name that a program finds ready, and the warnings about them."""

from __future__ import annotations

import builtins
import json
import keyword
import re
import textwrap
import types
from typing import Any

import pytest
from conftest import READY, Run, WorkerProcess, echo

from fermata import libraries, names
from fermata.program import Program

STUBS: dict[str, Any] = dict.fromkeys(["print", "json", "plt", "ToolExecutionError", "get_weather", "len", "len_tool"])
PYPLOT = types.ModuleType("matplotlib.pyplot")
MODULES = {"json": json, "plt": PYPLOT, "asyncio": types.ModuleType("asyncio")}

PRINT = "Warning: the tool print hides Python's print; the tool is also called print_tool, and Python's print is builtins.print\n"


def said(code: str) -> str:
    hidden = names.hidden(STUBS, MODULES)
    return names.warning(hidden, names.second(STUBS, hidden), MODULES, Program(code).code)


def test_hidden_and_second_names() -> None:
    hidden = names.hidden(STUBS, MODULES)
    assert hidden == ["print", "json", "plt", "ToolExecutionError", "len"]
    assert list(names.second(STUBS, hidden)) == ["print_tool", "json_tool", "plt_tool", "ToolExecutionError_tool"]


SAID: dict[str, tuple[str, str]] = {
    "a builtin": ("print(1)", PRINT),
    "in a function": ("def f():\n    return [print(x) for x in ()]", PRINT),
    "in a class": ("class A:\n    x = print", PRINT),
    "awaited": ("await print(x=1)", PRINT),
    "with a return": ("print(1)\nreturn", PRINT),
    "in a format": ("f'{print}'", PRINT),
    "a module": (
        "json.dumps(1)",
        "Warning: the tool json hides the module json; the tool is also called json_tool, and `import json` brings the module back\n",
    ),
    "a module by a short name": (
        "plt.show()",
        "Warning: the tool plt hides the module matplotlib.pyplot; the tool is also called plt_tool, "
        "and `import matplotlib.pyplot as plt` brings the module back\n",
    ),
    "the exception": (
        "try: pass\nexcept ToolExecutionError: pass",
        "Warning: the tool ToolExecutionError hides the exception of tools that fail; "
        "the tool is also called ToolExecutionError_tool, and that exception is a RuntimeError\n",
    ),
    "no second name": (
        "len([])",
        "Warning: the tool len hides Python's len; Python's len is builtins.len\n",
    ),
    "two": ("len(json.dumps(1))", said("json") + said("len")),
    "not used": ("get_weather(1)\nx = 1", ""),
    "in a comment and a text": ("# print\n'print'", ""),
    "an attribute": ("x.print()\nx.json = 1", ""),
    "an argument": ("f(print=1)\ndef g(print): return print", ""),
    "imported": ("import json\njson.dumps(1)", ""),
    "imported as": ("import matplotlib.pyplot as plt\nplt.show()", ""),
    "a function of the program": ("def print(): pass\nprint()", ""),
    "bound by a function": ("def f():\n    global print\n    print = 1\nf()\nprint", ""),
    "bound in a program that returns": ("print = 1\nprint\nreturn", ""),
    "bound in a class only": ("class A:\n    print = 1\nprint()", PRINT),
    "the second name": ("await print_tool()", ""),
    "builtins": ("import builtins\nbuiltins.print(1)", ""),
}


@pytest.mark.parametrize("code, want", SAID.values(), ids=SAID.keys())
def test_warning(code: str, want: str) -> None:
    assert said(code) == want


def test_module_without_a_second_name() -> None:
    stubs: dict[str, Any] = dict.fromkeys(["json", "json_tool", "plt", "plt_tool"])
    text = names.warning(list(MODULES), {}, MODULES, Program("json, plt").code)
    assert names.second(stubs, names.hidden(stubs, MODULES)) == {}
    assert text == (
        "Warning: the tool json hides the module json; `import json as json_module` brings the module back\n"
        "Warning: the tool plt hides the module matplotlib.pyplot; "
        "`import matplotlib.pyplot as plt_module` brings the module back\n"
    )


def test_warning_does_not_import_a_lazy_module() -> None:
    lazy = libraries.module("numpy.no_such_module")
    text = names.warning(["np"], {}, {"np": lazy}, Program("np").code)
    assert "`import numpy.no_such_module as np_module`" in text


# Every name that a tool can take and that the runner or its libraries could look up.
EVERY = [
    name
    for name in sorted({*vars(builtins), *READY.names, *dir(libraries), "ToolExecutionError", "Any", "tool", "self"})
    if name.isidentifier() and not keyword.iskeyword(name) and not (name.startswith("__") and name != "__import__")
]


@pytest.fixture(name="run_with_every_name")
def _run_with_every_name(worker_process: WorkerProcess) -> Any:
    stubs = "".join(
        f'@tool("{name}", "{name}", False)\nasync def _(**extra: Any) -> Any:\n    ""\n\n' for name in EVERY
    )

    def run(code: str) -> Run:
        return worker_process.run({"code": textwrap.dedent(code), "stubs": stubs, "value": True}, echo)

    return run


def test_output_does_not_depend_on_names_of_tools(run_with_every_name: Any) -> None:
    got = run_with_every_name(
        """
        x = await print_tool(n=1)
        import builtins
        builtins.print(x, await len_tool(), await gather_all())
        """.replace(
            "await gather_all()", "await asyncio(a=2)"
        )
    )
    assert got.stdout == "{'n': 1} {} {'a': 2}\n"
    assert got.done == {"exit": 0}
    assert got.stderr.startswith("Warning: the tool asyncio hides the module asyncio; ")


def test_errors_do_not_depend_on_names_of_tools(run_with_every_name: Any) -> None:
    got = run_with_every_name(
        """
        import builtins
        class Mine(builtins.Exception):
            def __str__(self):
                return "mine"
        def f():
            raise Mine
        try:
            1 / 0
        finally:
            f()
        """
    )
    assert got.done == {"exit": 1, "error": "Mine: mine", "memory": False}
    # Versions of Python differ in what they mark.
    assert re.sub(r"^ +[~^]+\n", "", got.stderr, flags=re.MULTILINE) == textwrap.dedent(
        """\
        Traceback (most recent call last):
          File "<program>", line 9, in <module>
            1 / 0
        ZeroDivisionError: division by zero

        During handling of the above exception, another exception occurred:

        Traceback (most recent call last):
          File "<program>", line 11, in <module>
            f()
          File "<program>", line 7, in f
            raise Mine
        Mine: mine
        """
    )


@pytest.mark.parametrize("last", ["x", "return x", "builtins.repr(x)"])
def test_values_do_not_depend_on_names_of_tools(run_with_every_name: Any, last: str) -> None:
    got = run_with_every_name(f"import builtins\nx = (await dict_tool(a=[1.5, 'é', None]))['a']\n{last}")
    value: Any = [1.5, "é", None]
    assert got.done == {"exit": 0, "value": repr(value) if "repr" in last else value}


def test_exits_and_warnings_do_not_depend_on_names_of_tools(run_with_every_name: Any) -> None:
    got = run_with_every_name("import sys\nprint()\nsys.exit('no luck')")
    assert (got.done, got.status) == ({"exit": 1}, 1)
    assert got.stderr.splitlines()[1:] == [
        "RuntimeWarning: the tool print was not called: write `await print(...)`",
        "no luck",
    ]


@pytest.mark.parametrize("name", ["print", "type", "str", "getattr", "dict", "open", "Exception"])
def test_program_that_takes_a_builtin_away(worker_process: WorkerProcess, name: str) -> None:
    got = worker_process.run({"code": f"import builtins\nbuiltins.{name} = None\n1 / 0", "stubs": ""}, echo)
    assert got.done is not None and got.done["exit"] == 1
    assert got.done["error"] == "ZeroDivisionError: division by zero"
    assert got.stderr.endswith("    1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n")


@pytest.mark.parametrize("name", ["print", "str", "getattr", "open"])
def test_program_that_takes_a_builtin_away_and_completes(worker_process: WorkerProcess, name: str) -> None:
    got = worker_process.run({"code": f"import builtins\nprint(1)\nbuiltins.{name} = None", "stubs": ""}, echo)
    assert (got.done, got.stdout) == ({"exit": 0}, "1\n")


def test_a_tool_whose_name_no_program_can_write_is_told(worker_process: WorkerProcess) -> None:
    stubs = '@tool("...", "...", False)\nasync def _(**extra: Any) -> Any:\n    ""\n'
    got = worker_process.run({"code": "print(await globals()['...'](a=1))", "stubs": stubs}, echo)
    assert got.stdout == "{'a': 1}\n"
    assert got.stderr == (
        "Warning: the name of the tool '...' has no character that Python allows in a name; "
        "call it as globals()['...'](...)\n"
    )
