"""Lines: where in its program a call was made."""

from __future__ import annotations

import pytest
from conftest import WorkerProcess, echo

STUBS = '@tool("t", "t", False)\nasync def _(**extra: Any) -> Any: ""\n'

LINES: dict[str, tuple[str, list[int]]] = {
    "awaited": ("await t()\n\nawait t()", [1, 3]),
    "over some lines": ("x = 1\nawait t(\n    n=x,\n)", [2]),
    "made and awaited": ("call = t()\nx = 1\nawait call", [3]),
    "in a function": ("async def f():\n    return await t()\n\nawait f()", [2]),
    "in functions side by side": (
        "async def f():\n    await t()\nasync def g():\n    await t()\nawait asyncio.gather(f(), g(), f())",
        [2, 4, 2],
    ),
    "gathered": ("x = 1\nawait asyncio.gather(t(), t())", [2, 2]),
    "gathered from a list": ("calls = [t() for _ in range(3)]\nawait asyncio.gather(*calls)", [2, 2, 2]),
    "tasks": ("a = asyncio.create_task(t())\nb = asyncio.ensure_future(t())\nawait a\nawait b", [1, 2]),
    "a group of tasks": ("async with asyncio.TaskGroup() as group:\n    x = 1\n    group.create_task(t())", [3]),
    "with a timeout": ("x = 1\nawait asyncio.wait_for(t(), 5)", [2]),
    "in code that is executed": (
        "names = {'t': t}\nexec('\\nasync def f(): await t()', names)\nawait names['f']()",
        [3],
    ),
    "a loop of its own": (
        "async def main():\n    await t()\n    await asyncio.gather(t())\n\nasyncio.run(main())",
        [2, 3],
    ),
    "handed to a loop": ("x = 1\nasyncio.run(t())", [2]),
    "in a thread": ("def f():\n    asyncio.run(t())\nawait asyncio.to_thread(f)", [2]),
    "indented": ("    x = 1\n    await t()", [2]),
    "with a return": ("x = 1\nawait t()\nreturn", [2]),
    "from a callback": (
        "async def f():\n    await t()\nasyncio.get_running_loop().call_soon(asyncio.ensure_future, f())\n"
        "await asyncio.sleep(0.01)",
        [2],
    ),
    "a stub from a callback": (
        "asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(t()))\nawait asyncio.sleep(0.5)",
        [1],
    ),
    "a stub from a callback that is not the program's": (
        "asyncio.get_running_loop().call_soon(asyncio.ensure_future, t())\nawait asyncio.sleep(0.01)",
        [],
    ),
    "tasks of another kind": (
        "class Task(asyncio.tasks._PyTask):\n    _fermata_line = property(lambda self: 1 / 0)\n"
        "asyncio.get_running_loop().set_task_factory(lambda loop, coro, **o: Task(coro, loop=loop, **o))\n"
        "await asyncio.gather(asyncio.sleep(0))\nawait t()",
        [5],
    ),
}


@pytest.mark.parametrize("code, lines", LINES.values(), ids=LINES.keys())
def test_lines(worker_process: WorkerProcess, code: str, lines: list[int]) -> None:
    run = worker_process.run({"code": code, "stubs": STUBS}, echo)
    assert run.stderr == "" and run.done == {"exit": 0}
    assert run.lines == lines
