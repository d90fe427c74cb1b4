"""Waits with timeouts: they do not count pauses."""

from __future__ import annotations

import os
import signal
import textwrap
import threading
import time
from typing import Any

import pytest
from conftest import WorkerProcess, echo

from fermata import waits

STUBS = """
@tool("ask", "ask", False)
async def _(x: int = 0) -> Any:
    ""
"""
HEAD = """
import queue, signal, subprocess, threading, time
from concurrent import futures
def ask_in_thread(then=lambda got: None):
    thread = threading.Thread(target=lambda: then(asyncio.run(ask(x=1))))
    thread.start()
    return thread
event, box, condition = threading.Event(), queue.Queue(), threading.Condition()
"""
# Each prints what it has got within 0.1 s, which a pause of 0.3 s does not count.
EXTENDED = {
    "Future.result": """
        with futures.ThreadPoolExecutor() as pool:
            print(pool.submit(lambda: asyncio.run(ask(x=1))).result(timeout=0.1))
    """,
    "as_completed": """
        with futures.ThreadPoolExecutor() as pool:
            print([f.result() for f in futures.as_completed([pool.submit(lambda: asyncio.run(ask(x=1)))], 0.1)][0])
    """,
    "futures.wait": """
        with futures.ThreadPoolExecutor() as pool:
            done, left = futures.wait([pool.submit(lambda: asyncio.run(ask(x=1)))], 0.1)
            print(done.pop().result())
    """,
    "Queue.get": "ask_in_thread(box.put); print(box.get(timeout=0.1))",
    "Event.wait": "ask_in_thread(lambda got: event.set()); assert event.wait(0.1); print({'x': 1})",
    "Thread.join": "t = ask_in_thread(); t.join(0.1); assert not t.is_alive(); print({'x': 1})",
    "Condition.wait_for": """
        found = []
        def then(got):
            with condition: found.append(got); condition.notify()
        ask_in_thread(then)
        with condition: assert condition.wait_for(lambda: found, 0.1)
        print(*found)
    """,
    "Semaphore.acquire": """
        semaphore = threading.Semaphore(0)
        ask_in_thread(lambda got: semaphore.release())
        assert semaphore.acquire(timeout=0.1)
        print({'x': 1})
    """,
    "subprocess": """
        ask_in_thread(print)
        subprocess.run(["sleep", "0.4"], timeout=0.3)
    """,
    "alarm": "signal.setitimer(signal.ITIMER_REAL, 0.1); print(await ask(x=1)); assert signal.getitimer(signal.ITIMER_REAL)[0]",
}


@pytest.mark.parametrize("code", EXTENDED.values(), ids=EXTENDED.keys())
def test_a_pause_is_not_counted(worker_process: WorkerProcess, code: str) -> None:
    def slowly(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Stop the program, as a supervisor does, and answer later."""
        os.kill(worker_process.pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(worker_process.pid, signal.SIGCONT)
        return echo(batch)

    got = worker_process.run({"code": HEAD + textwrap.dedent(code), "stubs": STUBS}, slowly)
    assert (got.stdout, got.stderr) == ("{'x': 1}\n", "")


def test_timeouts_without_a_pause() -> None:
    condition, began = threading.Condition(), time.monotonic()
    with condition:
        assert not condition.wait(0.05)
        assert not condition.wait(0) and not condition.wait(-1)
        assert not condition._waiters  # type: ignore[attr-defined]
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive() and 0.1 <= time.monotonic() - began < 5
    ended.set()
    thread.join(5)
    assert not thread.is_alive()


def test_a_notification_comes_at_once() -> None:
    condition, seen = threading.Condition(), []

    def work() -> None:
        with condition:
            seen.append(condition.wait(9))

    thread = threading.Thread(target=work)
    thread.start()
    while not condition._waiters:  # type: ignore[attr-defined]
        time.sleep(0.001)
    with condition:
        condition.notify()
    thread.join(9)
    assert seen == [True]


def test_misuse_is_an_error_as_always() -> None:
    with pytest.raises(RuntimeError, match="un-acquired lock"):
        threading.Condition().wait(1)
    with pytest.raises(RuntimeError, match="cannot join current thread") as caught:
        threading.current_thread().join(1)
    assert not [entry for entry in caught.traceback if str(entry.path) == waits.__file__]
