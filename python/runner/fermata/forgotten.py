"""Forgotten calls: says on stderr which tools were not called because an ``await`` is missing."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, Final


_OWN_FILES: Final = os.path.dirname(__file__)


class Forgotten:
    """Says of each tool once that it was not called.

    ``call`` is the code of the coroutines that make calls. Each has the name of its tool.
    """

    def __init__(self, call: CodeType) -> None:
        self._call = call
        self._told: set[str] = set()

    def watch(self) -> None:
        """Handle the coroutines that are freed without having been awaited, whatever warnings the program filters."""
        vars(warnings)["_warn_unawaited_coroutine"] = self._never_awaited

    def left_waiting(self, tasks: Iterable[asyncio.Task[Any]], unsent: Mapping[int, str]) -> None:
        """Name the tools of tasks that wait although nothing will run them any more.

        ``unsent`` has the tools of the calls that were not sent, by the identities of their futures.
        """
        for task in tasks:
            coroutines = list(_chain(task))
            stub = next((each for each in coroutines if getattr(each, "cr_code", None) is self._call), None)
            if (name := unsent.get(id(getattr(task, "_fut_waiter", None)))) is not None:
                self.not_called(name if stub is None else stub.__qualname__)
            elif stub is not None and inspect.getcoroutinestate(stub) == inspect.CORO_CREATED:
                self.not_called(stub.__qualname__)

    def not_called(self, name: str) -> None:
        """Say that a call of a task was not made."""
        self._say(name, "a task that calls it was still waiting when the program ended; await it")

    def _never_awaited(self, coroutine: Any) -> None:
        """Warn of a coroutine as Python does, but never with a line of the runner."""
        if coroutine.cr_code is self._call:
            self._say(coroutine.__qualname__, f"write `await {coroutine.__qualname__}(...)`")
            return
        frame = sys._getframe(1)
        file, line = _place(coroutine, frame)
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        text = f"coroutine '{coroutine.__qualname__}' was never awaited"
        warnings.warn_explicit(text, RuntimeWarning, file, line, registry=registry, source=coroutine)

    def _say(self, name: str, why: str) -> None:
        if name in self._told:
            return
        self._told.add(name)
        with suppress(OSError):  # the program may have closed it
            os.write(2, f"RuntimeWarning: the tool {name} was not called: {why}\n".encode("utf-8", "replace"))


def _chain(task: asyncio.Task[Any]) -> Iterator[Any]:
    """Yield the coroutine of a task, and those that it awaits."""
    coroutine: Any = None
    with suppress(AttributeError):  # the program may have tasks of its own kind
        coroutine = task.get_coro()
    while coroutine is not None:
        yield coroutine
        coroutine = getattr(coroutine, "cr_await", None)


def _place(coroutine: Any, frame: FrameType) -> tuple[str, int]:
    """Return the file and the line that a warning of a coroutine names.

    It is where the coroutine was made if that is known, otherwise where it was freed. If the runner has freed it,
    it is where its function is defined.
    """
    if coroutine.cr_origin:
        file, line, _ = coroutine.cr_origin[0]
        return file, line
    if frame.f_code.co_filename.startswith(_OWN_FILES):
        return coroutine.cr_code.co_filename, coroutine.cr_code.co_firstlineno
    return frame.f_code.co_filename, frame.f_lineno or 0
