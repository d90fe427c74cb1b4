"""What a program returns: its JSON, or its text."""

from __future__ import annotations

import collections
import enum
import json
import os
import time
from typing import Any

import pytest
from conftest import Run, WorkerProcess, echo

from fermata import returned
from fermata.program import Program, error_text


class Level(enum.IntEnum):
    HIGH = 3


class Hostile:
    def __repr__(self) -> str:
        raise SystemExit(1)


class HostileType(type):
    @property
    def __name__(cls) -> str:
        raise SystemExit(1)


class HostileThroughout(Hostile, metaclass=HostileType):
    pass


class HostileDict(dict[str, int]):
    def items(self) -> Any:
        raise SystemExit(1)


class Text(str):
    """A text whose own methods lie."""

    def __getitem__(self, key: Any) -> Any:
        raise ValueError

    def __len__(self) -> int:
        return -1


class Scalar:
    """What a scalar of numpy looks like."""

    ndim = 0

    def __init__(self, item: Any) -> None:
        self._item = item

    def item(self) -> Any:
        return self._item

    def __repr__(self) -> str:
        return "scalar"


Scalar.__module__ = "numpy"

CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(499):
    DEEP = [DEEP]

# Values that are JSON, with what a client reads.
PLAIN: dict[str, tuple[Any, Any]] = {
    "number": (3, 3),
    "fraction": (0.1, 0.1),
    "long number": (10**400, 10**400),
    "true": (True, True),
    "text": ("é\u2028\x00😀", "é\u2028\x00😀"),
    "empty text": ("", ""),
    "half a surrogate pair": ("a\ud800", "a\ufffd"),
    "both halves": ("\ud83d\ude00", "😀"),
    "list": ([1, None, [2.5]], [1, None, [2.5]]),
    "tuple": ((1, "a"), [1, "a"]),
    "empty": ({}, {}),
    "dict": ({"b": {"c": None}, "a": []}, {"b": {"c": None}, "a": []}),
    "keys that are numbers": ({2026: 1, True: 2, None: 3}, {"2026": 1, "true": 2, "null": 3}),
    "counter": (collections.Counter("aab"), {"a": 2, "b": 1}),
    "enum that is a number": (Level.HIGH, 3),
    "a text of another type": (Text("abc"), "abc"),
    "a scalar of numpy": ({"mean": Scalar(2.5)}, {"mean": 2.5}),
    "the deepest": (DEEP, DEEP),
}

# Values that are not, with their text.
TEXTS: dict[str, tuple[Any, str]] = {
    "NaN": (float("nan"), "nan"),
    "infinity in a list": ([1, float("inf")], "[1, inf]"),
    "set": ({1}, "{1}"),
    "bytes": (b"a", "b'a'"),
    "two keys that become one": ({1: 0, "1": 0}, "{1: 0, '1': 0}"),
    "key with a fraction": ({0.5: 1}, "{0.5: 1}"),
    "contains itself": (CYCLE, "[[...]]"),
    "too deep": ([DEEP], repr([DEEP])),
    "half a surrogate pair in a set": ({"\ud800"}, "{'\\ud800'}"),
    "hostile": (Hostile(), "<Hostile>"),
    "hostile throughout": (HostileThroughout(), "<HostileThroughout>"),
    "hostile in a list": ([Hostile()], "<list>"),
    "hostile dict": (HostileDict(a=1), "{'a': 1}"),
    "a scalar of numpy that is none": (Scalar([1]), "scalar"),
}


@pytest.mark.parametrize("value, want", PLAIN.values(), ids=PLAIN.keys())
def test_json(value: Any, want: Any) -> None:
    text = returned.encode(value)
    assert text is not None
    text.encode()
    got = json.loads(text)
    assert (got, type(got)) == (want, type(want))


@pytest.mark.parametrize("value, want", TEXTS.values(), ids=TEXTS.keys())
def test_text(value: Any, want: str) -> None:
    text = returned.encode(value)
    assert text is not None
    assert json.loads(text) == want


def test_nothing() -> None:
    async def waiting() -> None:
        """Is never awaited."""

    coroutine = waiting()
    assert (returned.encode(None), returned.encode(coroutine)) == (None, None)
    coroutine.close()


LARGE: dict[str, Any] = {
    "text": "é" * 1_000_000,
    "text of which each character takes six bytes": "\x00" * 100_000,
    "text in a dict": {"key": "x" * 1_000_000},
    "list": [list(range(100))] * 10_000,
    "text of something else": b"x" * 1_000_000,
}


@pytest.mark.parametrize("value", LARGE.values(), ids=LARGE.keys())
def test_large(value: Any) -> None:
    began = time.monotonic()
    text = returned.encode(value)
    assert time.monotonic() - began < 1
    assert text is not None
    assert returned.MAX - 12 < len(text.encode()) <= returned.MAX
    whole = json.dumps(value, separators=(",", ":")) if isinstance(value, (dict, list)) else str(value)
    got = json.loads(text)
    assert got.endswith("…") and whole.startswith(got[:-1])


def test_as_large_as_may_be() -> None:
    for value in ("x" * (returned.MAX - 2), ["x" * (returned.MAX - 4)]):
        assert returned.encode(value) == json.dumps(value)


# Programs, with the member of the report of their end.
PROGRAMS: dict[str, tuple[str, Any]] = {
    "return": ("return {'a': [1]}", {"a": [1]}),
    "return after a call": ("x = await get_weather(city='Paris')\nreturn x", {"city": "Paris"}),
    "last line": ("x = 2\nx + 1", 3),
    "last line after a call": ("x = await get_weather(city='Paris')\nx['city']", "Paris"),
    "last line that awaits": ("await get_weather(city='Paris')", {"city": "Paris"}),
    "last line of a program with a return": ("if False:\n    return 1\n'x'", "x"),
    "return wins": ("if True:\n    return 1\n'x'", 1),
    "last line of several": ("(\n  1 +\n  2\n)  # three\n\n", 3),
    "indented": ("    x = 1\n    x", 1),
    "a program with a loop of its own": ("async def main(): return 4\nasyncio.run(main())", 4),
    "a text alone": ("'doc'", "doc"),
    "an empty list": ("[]", []),
    "a name that is hidden": ("repr = str = len = None\nx = {1}\nx", "{1}"),
    "changed afterwards": ("x = []\ntry:\n    return x\nfinally:\n    x.append(1)", [1]),
    "nothing": ("x = 1", None),
    "None": ("None", None),
    "print": ("print('x')", None),
    "not the last line": ("5\nx = 1", None),
    "inside a block": ("if True:\n    5", None),
    "exit": ("import sys\nsys.exit(0)\n5", None),
    "a call that is not awaited": ("get_weather()", None),
    "a task": ("asyncio.ensure_future(asyncio.sleep(0))", None),
}


@pytest.mark.parametrize("code, want", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_programs(worker_process: WorkerProcess, code: str, want: Any) -> None:
    got = execute(worker_process, code, value=True)
    assert got.done == ({"exit": 0} if want is None else {"exit": 0, "value": want})


STUBS = """
@tool("get-weather", "get_weather", False)
async def _(city: str = "", **extra: Any) -> Any:
    ""
"""


def execute(process: WorkerProcess, code: str, **members: bool) -> Run:
    return process.run({"code": code, "stubs": STUBS, **members}, echo)


def test_nobody_asks(worker_process: WorkerProcess) -> None:
    code = "class A:\n    def __repr__(self): print('seen')\nA()"
    got = execute(worker_process, code)
    assert (got.done, got.stdout, got.stderr) == ({"exit": 0}, "", "")


def test_last_line_runs_once(worker_process: WorkerProcess) -> None:
    got = execute(worker_process, "seen = []\ndef f(): seen.append(1); print(len(seen)); return seen\nf()", value=True)
    assert (got.done, got.stdout) == ({"exit": 0, "value": [1]}, "1\n")


@pytest.mark.parametrize("source", ["1 / x", "[1,\n 1 / x]", "len(x)", "print(x, 1 / x)", "f()"])
def test_last_line_fails_as_always(source: str) -> None:
    def failure(valued: bool) -> str:
        try:
            Program(f"def f(): raise ValueError\nx = 0\n{source}", valued).start({})
        except Exception as error:
            return error_text(error, os.path.dirname(__file__))
        pytest.fail("it did not fail")

    assert failure(valued=True) == failure(valued=False)


@pytest.mark.parametrize("source", ["*[1]", "yield 1", "x = = 1"])
def test_last_line_that_is_no_python(worker_process: WorkerProcess, source: str) -> None:
    got = execute(worker_process, source, value=True)
    assert got.done is not None and got.done["error"].startswith("SyntaxError")


def test_last_line_that_is_not_awaited(worker_process: WorkerProcess) -> None:
    got = execute(worker_process, "async def main(): pass\nmain()", value=True)
    assert got.done == {"exit": 0}
    assert got.stderr.startswith("<program>:2: RuntimeWarning: coroutine 'main' was never awaited\n  main()\n")
