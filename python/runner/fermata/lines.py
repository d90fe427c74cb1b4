"""Lines: finds the line of the program's own text on which a call is made."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from types import FrameType
from typing import Any, Final

from fermata.program import FILENAME

# The frames below this function of an event loop run the loop. They did not make the call.
_LOOP: Final = asyncio.Handle._run.__code__


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
            task._fermata_line = _line(sys._getframe(1))  # type: ignore[attr-defined]


def _line(frame: FrameType | None) -> int:
    while frame is not None and (code := frame.f_code) is not _LOOP:
        if code.co_filename == FILENAME:
            return frame.f_lineno or 0
        frame = frame.f_back
    return 0
