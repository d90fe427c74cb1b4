"""The worker's side of whereabouts: it reports which line its program has reached.

The worker answers on its stream to the signals that fermata.asking sends. The C handler of
faulthandler answers with the stack of the main thread, even if a loop or C code keeps Python code
from running. A handler in Python answers with the line at which the program's coroutine awaits,
since a coroutine that waits is not on any stack.
"""

from __future__ import annotations

import asyncio
import faulthandler
import signal
import socket
from contextlib import suppress
from types import FrameType
from typing import Any

from fermata import asking
from fermata.program import FILENAME


def answer_on(stream: socket.socket) -> None:
    """Make this process, a worker, answer the supervisor on its stream."""

    def tell(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            stream.send((asking.AWAITS_AT % _awaiting()).encode(), socket.MSG_DONTWAIT)

    faulthandler.register(asking.STACK, stream, all_threads=False)
    signal.signal(asking.AWAITS, tell)


def _awaiting() -> int:
    """Return the line at which the oldest task of the program awaits, or 0 if there is none."""
    with suppress(Exception):  # the tasks belong to the program
        tasks = asyncio.all_tasks(asyncio.get_running_loop())
        for task in sorted(tasks, key=lambda task: (len(task.get_name()), task.get_name())):
            coroutine: Any = task.get_coro()
            line = 0
            while (frame := getattr(coroutine, "cr_frame", None)) is not None:
                if frame.f_code.co_filename == FILENAME:
                    line = frame.f_lineno or line
                coroutine = coroutine.cr_await
            if line:
                return line
    return 0
