"""Lines: finds the line of the program's own text on which a call is made, also for its tracebacks."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any, Final

from fermata.program import FILENAME

# The frames below this function of an event loop run the loop. They did not make the call.
_LOOP: Final = asyncio.Handle._run.__code__
# The code of a generator. Before it runs, its frame refers to nothing, and shows only a file, a line and a name.
_GENERATOR: Final[CodeType] = compile("lambda: (yield)", FILENAME, "eval").co_consts[0]


def here() -> int:
    """Return the line of the program on which the caller was called or awaited, or 0 if it is not known."""
    if line := _line(sys._getframe(1)):
        return line
    # A stub that was passed to asyncio.gather or the like has no frame of the program below it, so
    # the line of its task is used. Without an event loop there is no task.
    task = asyncio.current_task() if asyncio._get_running_loop() else None
    return getattr(task, "_fermata_line", 0)


def note(task: asyncio.Task[Any], coroutine: Any) -> None:
    """Note on which line a new task is made, unless its code is the program's own and so has lines itself."""
    code = getattr(coroutine, "cr_code", None)
    if code is not None and code.co_filename != FILENAME:
        # The program may have tasks of its own kind.
        with suppress(AttributeError):
            if (frame := _frame(sys._getframe(1))) is not None:
                task._fermata_line = frame.f_lineno or 0  # type: ignore[attr-defined]
                task._fermata_name = frame.f_code.co_name  # type: ignore[attr-defined]


def frame() -> FrameType | None:
    """Return the innermost frame of the program that has called the caller, if there is one."""
    return _frame(sys._getframe(1))


def made() -> TracebackType | None:
    """Return a traceback with the line that made the current task, for an error of the coroutine that calls this.

    If a coroutine of the program awaits the caller, the traceback is empty, since Python adds that line by itself.
    """
    task = asyncio.current_task() if asyncio._get_running_loop() else None
    line = getattr(task, "_fermata_line", 0)
    if not line or _frame(sys._getframe(1)) is not None:
        return None
    code = _GENERATOR.replace(co_name=getattr(task, "_fermata_name", "<module>"), co_firstlineno=line)
    # Without an instruction there are no columns.
    return TracebackType(None, FunctionType(code, {})().gi_frame, -1, line)


def of_program(tb: TracebackType | None) -> TracebackType | None:
    """Return the part of a traceback that begins with code of the program: its methods, which the runner has called."""
    while tb is not None and tb.tb_frame.f_code.co_filename != FILENAME:
        tb = tb.tb_next
    return tb


def _line(frame: FrameType | None) -> int:
    frame = _frame(frame)
    return 0 if frame is None else frame.f_lineno or 0


def _frame(frame: FrameType | None) -> FrameType | None:
    """Return the innermost frame of the program, from this one on."""
    while frame is not None and (code := frame.f_code) is not _LOOP:
        if code.co_filename == FILENAME:
            return frame
        frame = frame.f_back
    return None
