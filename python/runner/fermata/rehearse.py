"""Rehearsal: does what programs do first, before the program arrives.

Code that has run once was adapted by the interpreter, has made its late imports, and has
filled its caches. A parent process rehearses once for all workers that are forked from it.
A worker that waits for its program rehearses once more, because the kernel copies a page of
the parent's memory when a forked process first writes to it, if only to count a reference.
For programs that use pandas that takes half of the time of their first statement.
"""

from __future__ import annotations

import functools
import select
import socket
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from fermata import calls, frames, loops, names, tools
from fermata.program import Program

# Runs a program: its code, its stubs, its calls and its namespace.
Run = Callable[[str, str, calls.Calls, dict[str, Any]], None]

# How often a parent process runs a small program: the interpreter has adapted its code by then.
_TIMES: Final = 16

# How long a new worker waits for its program before it rehearses steps that take longer, in
# seconds. A worker that was made for a request gets its program at once.
_WAIT: Final = 0.005

_PROGRAM: Final = """
async def both():
    return await asyncio.gather(rehearse(n=1), rehearse({"n": 2}))
print(end=str(await both())[:0])
"""
_STUB: Final = """
@tool("rehearse", "rehearse", False)
async def _(n: int = 0, **extra: Any) -> Any:
    ""
"""

# The first frame, column and group take longer than all that follow.
_PANDAS_FIRST: Final = tuple(
    compile(step, "rehearsal", "exec")
    for step in (
        'frame = pd.DataFrame({"name": ["a", "b", "a"], "n": [1, 2, 3]})',
        'frame["x"] = frame["n"] * 0.5',
        'frame.groupby("name").sum()',
    )
)
_PANDAS: Final = """
frame = pd.DataFrame([{"name": "a", "n": 1, "x": 0.5, "day": "2000-01-01"}, {"name": "b", "n": 2, "x": None}])
frame["day"] = pd.to_datetime(frame["day"])
frame["ratio"] = frame["x"] / frame["n"]
str(frame), str(frame.describe()), frame.to_dict("records"), frame.to_csv(), frame.to_json()
str(frame[frame["n"] > 1].sort_values("n", ascending=False).head())
str(frame.groupby("name")[["n", "x"]].sum().reset_index()), frame.groupby("name")["n"].agg(["mean", "sum"])
frame.merge(frame[["name", "n"]], on="name", how="left").fillna({"x": 0.0}).loc[0, "x"], frame["x"].mean()
array = np.array([[2.0, 1.0], [1.0, 3.0]])
str(array @ array.T), array.mean(axis=0), np.percentile(array, [25, 50]), np.linalg.solve(array, [1.0, 2.0])
"""


def in_parent(run: Run, times: int = _TIMES) -> None:
    """Run small programs in the process that workers are forked from."""
    for _ in range(times):
        _calls(run)
    if "pandas" in sys.modules:
        _pandas()


def while_idle(run: Run, stream: socket.socket, pending: calls.Calls) -> None:
    """Rehearse in a worker, step by step, until something arrives on its stream."""

    def call_tools() -> None:
        try:
            _calls(run)
        finally:
            loops.install(pending)

    steps: list[tuple[float, Callable[[], object]]] = [
        (0, functools.partial(tools.define, _STUB, pending.invoke)),
        (0, functools.partial(Program, _PROGRAM, valued=True)),
        (0, names.restore_builtins),
        (_WAIT, call_tools),
    ]
    if (pandas := sys.modules.get("pandas")) is not None:
        ready = {"pd": pandas}
        steps += [(0, functools.partial(exec, step, ready)) for step in _PANDAS_FIRST]
    for wait, step in steps:
        if select.select([stream], [], [], wait)[0]:
            return
        # If a release of a library does not support a step any more, the worker serves nevertheless.
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            step()


def _calls(run: Run) -> None:
    """Run a small program that calls tools, in the way in which the real one will be run."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(frames.encode(frames.RESULTS, b'[{"n":1,"value":{"n":1}},{"n":2,"value":[2.5,null]}]'))
        pending = calls.Calls(theirs)
        loops.install(pending)
        run(_PROGRAM, _STUB, pending, {})


def _pandas() -> None:
    """Do what programs do with pandas, which loads and initializes many parts only when they are first used."""
    names = {"pd": sys.modules["pandas"], "np": sys.modules["numpy"]}
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")
        for _ in range(2):
            exec(_PANDAS, dict(names))
