"""What a program sees of the runner when it looks at its errors itself: nothing."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Run, Runner, WorkerProcess

STUBS = """
@tool("fail", "fail", False)
async def _(x: int = 0) -> Any:
    ""
"""
SOURCE = '''
class Api:
    """An API."""
    @staticmethod
    @tool("fail", False)
    def fail(x: int = 0) -> Any:
        ""
    class aio:
        @staticmethod
        @tool("fail", False)
        async def fail(x: int = 0) -> Any:
            ""
'''
HEAD = f"""
from fermata_tools import _tool
from typing import Any
from functools import partial
tool = partial(_tool, "api")
{SOURCE}
"""


@pytest.fixture(name="run")
def _run(worker_process: WorkerProcess) -> Runner:
    def run(code: str) -> Run:
        toolset = {"key": "api", "class": "Api", "source": HEAD}
        return worker_process.run(
            {"code": code, "stubs": STUBS, "package": "fermata_tools", "toolsets": [toolset]},
            lambda batch: [{"n": call["n"], "error": "boom"} for call in batch],
        )

    return run


CALLS = {
    "plain tool": "await fail(x=1)",
    "wrong argument": "await fail(y=1)",
    "no JSON": "await fail(x={1})",
    "too deep": "x = []\nfor _ in range(600): x = [x]\nawait fail(x=x)",
    "itself": "x = []\nx.append(x)\nawait fail(x=x)",
    "not a number": "await fail(x=[float('nan'), {1}])",
    "method": "from fermata_tools.api import Api\nApi.fail(x=1)",
    "wrong argument of a method": "from fermata_tools.api import Api\nApi.fail(y=1)",
    "twin": "from fermata_tools.api import Api\nawait Api.aio.fail(x=1)",
    "another toolset": "from fermata_tools import other",
    "module of another toolset": "import fermata_tools.other",
    "gather": "await asyncio.gather(fail(x=1), fail(x=2))",
    "task": "await asyncio.create_task(fail(x=1))",
    "wait_for": "await asyncio.wait_for(fail(x=1), 5)",
    "thread": "await asyncio.to_thread(lambda: asyncio.run(fail(x=1)))",
    "no coroutine": "asyncio.create_task(5)",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_an_error_that_the_program_shows(run: Runner, call: str) -> None:
    lines = call.splitlines()
    body = "\n    ".join(lines)
    got = run(
        f"""import logging, sys, traceback
try:
    {body}
except Exception as error:
    caught = error
    traceback.print_exc()
    print(traceback.format_exc())
    logging.exception("failed")
    while error is not None:
        for frame in traceback.extract_tb(error.__traceback__): assert "fermata/" not in frame.filename, frame
        error = error.__context__
    if {call.startswith(("await fail", "x =", "from fermata_tools.api"))}:
        last = traceback.extract_tb(caught.__traceback__)[-1]
        assert (last.filename, last.lineno) == ("<program>", {2 + len(lines)}), last
    print("caught")
"""
    )
    assert got.stdout.endswith("caught\n"), got.stdout + got.stderr
    assert "fermata/" not in got.stdout + got.stderr and got.stderr.count("Traceback") >= 2
    assert got.done == {"exit": 0}


def test_the_program_behind_a_value(run: Runner) -> None:
    """The traceback shows the program's own methods that the runner has called."""
    got = run(
        """import dataclasses, traceback
@dataclasses.dataclass
class A:
    x: int = 1
    def __getattribute__(self, name):
        if name == "x": raise KeyError("mine")
        return object.__getattribute__(self, name)
try:
    await fail(x=A)
except TypeError as error: pass
a = object.__new__(A)
try:
    await fail(x=a)
except KeyError as error:
    print([(each.filename, each.lineno) for each in traceback.extract_tb(error.__traceback__)])
"""
    )
    assert got.stdout == "[('<program>', 13), ('<program>', 6)]\n", got.stdout + got.stderr


def test_results_of_gather(run: Runner) -> None:
    """An error of a task that has no line of the program has the line that made the task."""
    got = run(
        """import traceback
async def main():
    for error in await asyncio.gather(fail(x=1), fail(x=2), return_exceptions=True):
        last = traceback.extract_tb(error.__traceback__)[-1]
        print(last.filename, last.lineno, last.name, last.line)
        traceback.print_exception(error)
await main()
"""
    )
    line = "for error in await asyncio.gather(fail(x=1), fail(x=2), return_exceptions=True):"
    assert got.stdout == f"<program> 3 main {line}\n" * 2
    shown = f'  File "<program>", line 3, in main\n    {line}\nToolExecutionError: boom\n'
    assert got.stderr == f"Traceback (most recent call last):\n{shown}" * 2


def test_a_task_that_fails_unseen(run: Runner) -> None:
    got = run(
        """
t = asyncio.create_task(fail(x=1))
await asyncio.sleep(0.01)
print(t)
del t
"""
    )
    assert "Task exception was never retrieved" in got.stderr and 'File "<program>", line 2' in got.stderr
    assert "coro=<fail() done, defined at <tools>:1>" in got.stdout and "coro=<fail() done" in got.stderr
    assert "/fermata/" not in got.stdout + got.stderr


def test_callbacks_of_futures(run: Runner) -> None:
    got = run(
        """
import traceback
from concurrent.futures import ThreadPoolExecutor
def show(future):
    traceback.print_exception(future.exception())
with ThreadPoolExecutor() as pool:
    pool.submit(lambda: asyncio.run(fail(x=1))).add_done_callback(show)
"""
    )
    assert got.stderr.endswith("ToolExecutionError: boom\n") and "<program>" in got.stderr
    assert "/fermata/" not in got.stderr


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("total = 1\nprint(totl)", "NameError: name 'totl' is not defined. Did you mean: 'total'?"),
        (
            "class A:\n    size = 1\nA().sizes",
            "AttributeError: 'A' object has no attribute 'sizes'. Did you mean: 'size'?",
        ),
        ("q9", "NameError: name 'q9' is not defined"),
    ],
)
def test_a_name_that_is_nearly_right(run: Runner, code: str, error: str) -> None:
    ended = run(code)
    assert ended.done["error"] == error
    assert ended.stderr.endswith(f"\n{error}\n")


def test_the_hook_of_the_program_tells_its_error(run: Runner) -> None:
    code = """import sys
def hook(kind, error, tb):
    print(kind.__name__, error, tb.tb_lineno)
sys.excepthook = hook
1 / 0"""
    ended = run(code)
    assert (ended.stdout, ended.stderr) == ("ZeroDivisionError division by zero 5\n", "")
    assert ended.done["error"] == "ZeroDivisionError: division by zero"


def test_a_hook_that_fails(run: Runner) -> None:
    ended = run("import sys\nsys.excepthook = lambda *_: {}['x']\n1 / 0")
    begin, _, end = ended.stderr.partition("\nOriginal exception was:\n")
    assert begin.startswith("Error in sys.excepthook:\nTraceback") and begin.endswith("KeyError: 'x'\n")
    assert end.endswith("ZeroDivisionError: division by zero\n")
    assert "/fermata/" not in ended.stderr
