"""Hints: what is told about errors that lead to a wrong next step."""

from __future__ import annotations

import resource

import pytest

from fermata import hints
from fermata.program import Program

_NETWORK = "Hint: there is no network in the sandbox; the program's tools are the only way out\n"


def hint(source: str) -> str:
    try:
        Program(source).start({})
    except BaseException as error:
        return hints.of(error, source)
    pytest.fail("the program did not fail")


AWAITS = {
    "def f():\n    return await g()": "f",
    "def outer():\n    def inner():\n        await g()\n    return inner": "inner",
    "  class A:\n    def get(self):\n      async with g(): pass": "get",
    "def f():\n    return [n async for n in g()]": "f",
    "def f():\n    async for n in g(): pass": "f",
    "async def f():\n    def g():\n        await h()": "g",
}


@pytest.mark.parametrize("source, name", AWAITS.items())
def test_await_in_a_plain_function(source: str, name: str) -> None:
    want = f"Hint: a plain function cannot await: write `async def {name}`, and `await {name}()` where it is called\n"
    assert hint(source) == want


@pytest.mark.parametrize(
    "source",
    [
        "import socket\nsocket.gethostbyname('nowhere.invalid')",
        "import socket\ntry: raise socket.gaierror(-3, 'x')\nexcept OSError as e: raise ValueError('no data') from e",
        "import errno\nraise ExceptionGroup('a', [OSError(errno.ENETUNREACH, 'b')])",
        "import urllib.error\nraise urllib.error.URLError('[Errno -3] Temporary failure in name resolution')",
    ],
)
def test_network(source: str) -> None:
    assert hint(source) == _NETWORK


@pytest.mark.parametrize(
    "source",
    [
        "import there_is_no_such_library",
        "raise ImportError(\"Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.\")",
        "import subprocess\nraise subprocess.CalledProcessError(1, ['python3', '-m', 'pip', 'install', 'x'])",
    ],
)
def test_libraries(source: str) -> None:
    assert hint(source).startswith("Hint: nothing can be installed in the sandbox")
    assert hint(source).count("\n") == 1


def test_libraries_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "_LIBRARIES", ("json", "no_such_library", "csv"))
    text = "Hint: nothing can be installed in the sandbox; besides the standard library there is json, csv\n"
    assert hint("import no_such_library") == text


def test_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    text = "Hint: a program has at most 64 processes and threads (FERMATA_PIDS)\n"
    assert hint('raise RuntimeError("can\'t start new thread")') == text
    assert hint("def _fork_exec(): raise BlockingIOError(11, 'Resource temporarily unavailable')\n_fork_exec()") == text
    assert hint("raise BlockingIOError(11, 'Resource temporarily unavailable')") == ""


@pytest.mark.parametrize(
    "source",
    [
        "1 / 0",
        "x = = 1",
        "break",
        "raise ImportError('cannot import name x')",
        "raise RuntimeError('no running event loop')",
        "raise OSError(2, 'No such file')",
        "class E(OSError):\n    def __str__(self): raise SystemExit\nraise E",
        "class G(ExceptionGroup):\n    exceptions = 5\nraise G('g', [ValueError()])",
        "a = ValueError('a')\na.__cause__ = a\nraise a",
    ],
)
def test_nothing_to_say(source: str) -> None:
    assert hint(source) == ""


def test_scripts() -> None:
    assert hints.of_script("pip install polars && python3 x.py").startswith("Hint: nothing can be installed")
    assert hints.of_script("python3 -m pip -q install x").startswith("Hint: nothing can be installed")
    assert hints.of_script("curl -s https://example.com") == _NETWORK
    assert hints.of_script("false") == ""
