"""Whereabouts, the worker's side: it tells at which line its program stands.

The worker answers on its stream to the signals that fermata.asking sends. The interpreter's handler
of faulthandler answers with the stack of the main thread, also from a loop or from C code that lets
no Python run. A handler in Python answers with the line at which the program's coroutine awaits,
since a coroutine that waits is on no stack.
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
    """Have this process, a worker, answer on its stream to its supervisor."""

    def tell(number: int, frame: FrameType | None) -> None:
        with suppress(OSError):
            stream.send((asking.AWAITS_AT % _awaiting()).encode(), socket.MSG_DONTWAIT)

    faulthandler.register(asking.STACK, stream, all_threads=False)
    signal.signal(asking.AWAITS, tell)


def _awaiting() -> int:
    """Return the line at which the oldest task of the program awaits, or 0 if there is none."""
    with suppress(Exception):  # the tasks are the program's
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
