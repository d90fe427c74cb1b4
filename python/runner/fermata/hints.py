"""Hints: one more line on stderr for errors that lead the author of a program to a wrong next step.

This module is imported only when a program has failed.
"""

from __future__ import annotations

import ast
import errno
import importlib.util
import os
import re
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from fermata import program

# The most errors of a chain, or of groups, that are looked at.
_MAX: Final = 100

# Libraries that programs often look for, by the names by which they are imported.
_LIBRARIES: Final = (
    "PIL", "bs4", "cv2", "docx", "duckdb", "httpx", "jinja2", "lxml", "matplotlib", "networkx", "nltk", "numpy", "openpyxl",
    "pandas", "plotly", "polars", "pptx", "pyarrow", "pypdf", "reportlab", "requests", "scipy", "seaborn", "sklearn",
    "statsmodels", "sympy", "tabulate", "torch", "xlsxwriter", "yaml",
)  # fmt: skip

_UNREACHABLE: Final = (errno.ENETUNREACH, errno.EHOSTUNREACH)
_NO_NETWORK: Final = re.compile(
    "Temporary failure in name resolution|Name or service not known|Network is unreachable|Failed to resolve"
)
_INSTALLER: Final = re.compile(r"\b(?:pip3?|conda)\b")
_INSTALL: Final = re.compile(r"\b(?:pip3?|conda|apt|apt-get|npm)\b.{0,40}\binstall\b", re.DOTALL)
_DOWNLOAD: Final = re.compile(r"\b(?:curl|wget|git\s+clone)\b")


def of(error: BaseException, source: str) -> str:
    """Return the lines for an error that has ended a Python program, or an empty text."""
    for each in _all(error):
        for hint in (_network, _library, _processes, _loop):
            with suppress(BaseException):  # the methods of the error belong to the program
                if text := hint(each):
                    return f"Hint: {text}\n"
    with suppress(BaseException):
        if isinstance(error, SyntaxError) and error.filename == program.FILENAME and (text := _await(error, source)):
            return f"Hint: {text}\n"
    return ""


def of_script(source: str) -> str:
    """Return the lines for a shell script that has failed, or an empty text."""
    if _INSTALL.search(source):
        return f"Hint: {_nothing_to_install()}\n"
    return f"Hint: {_NETWORK}\n" if _DOWNLOAD.search(source) else ""


def _all(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, those that have led to it, and the first one of each group."""
    pending: list[BaseException | None] = [error]
    seen: set[int] = set()
    while pending and len(seen) < _MAX:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            pending += BaseExceptionGroup.exceptions.__get__(each)[:1]
        pending += (each.__context__, each.__cause__)


_NETWORK: Final = "there is no network in the sandbox; the program's tools are the only way out"


def _network(error: BaseException) -> str:
    lost = isinstance(error, socket.gaierror) or isinstance(error, OSError) and error.errno in _UNREACHABLE
    return _NETWORK if lost or isinstance(error, OSError) and _NO_NETWORK.search(str(error)) else ""


def _library(error: BaseException) -> str:
    missing = isinstance(error, ModuleNotFoundError) or isinstance(error, ImportError) and _INSTALLER.search(str(error))
    command = str(error.cmd) if isinstance(error, subprocess.CalledProcessError) else ""
    return _nothing_to_install() if missing or _INSTALL.search(command) else ""


def _nothing_to_install() -> str:
    found = []
    for name in _LIBRARIES:
        with suppress(ImportError, ValueError):
            if importlib.util.find_spec(name) is not None:
                found.append(name)
    there = f"; besides the standard library there is {', '.join(found)}" if found else ""
    return f"nothing can be installed in the sandbox{there}"


def _processes(error: BaseException) -> str:
    full = isinstance(error, RuntimeError) and "can't start new thread" in str(error)
    if not full and not isinstance(error, BlockingIOError):
        return ""
    if not full and error.__traceback__ is not None and "fork" not in _last_function(error):
        return ""
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    number = f"{most} " if most != resource.RLIM_INFINITY else ""
    return f"a program has at most {number}processes and threads (FERMATA_PIDS)"


def _last_function(error: BaseException) -> str:
    tb = error.__traceback__
    while tb is not None and tb.tb_next is not None:
        tb = tb.tb_next
    return tb.tb_frame.f_code.co_name if tb is not None else ""


def _loop(error: BaseException) -> str:
    if isinstance(error, RuntimeError) and "no running event loop" in str(error) and "trio" in sys.modules:
        return "tools are called from asyncio: use asyncio in place of trio"
    return ""


def _await(error: SyntaxError, source: str) -> str:
    """Return the hint for an await in a function that is not async."""
    if error.lineno is None or not re.match(
        r"'(?:await|async for|async with)' outside|asynchronous comprehension", error.msg
    ):
        return ""
    name = "f"
    for node in ast.walk(program.parse(source)):
        # The innermost function comes last.
        if isinstance(node, ast.FunctionDef) and node.lineno <= error.lineno <= (node.end_lineno or 0):
            name = node.name
    return f"a plain function cannot await: write `async def {name}`, and `await {name}()` where it is called"
