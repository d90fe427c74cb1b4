"""Programs that do not await at their top level, and the event loop around them."""

from __future__ import annotations

import time
from textwrap import dedent
from typing import Any

import pytest
from conftest import WorkerProcess, echo

from fermata.program import Program

STUBS = '@tool("t", "t", False)\nasync def _(**extra: Any) -> Any: ""\n'


def run(worker_process: WorkerProcess, code: str) -> Any:
    return worker_process.run({"code": dedent(code), "stubs": STUBS}, echo)


@pytest.mark.parametrize(
    "code, stdout",
    [
        ("print(asyncio.get_running_loop() is asyncio.get_event_loop())", "True\n"),
        ("asyncio.get_running_loop().create_future(); asyncio.Event(); asyncio.gather(); print(1)", "1\n"),
        (
            """
            async def work():
                print("begun")
                try:
                    await asyncio.sleep(60)
                except asyncio.CancelledError:
                    print("cancelled")
            asyncio.create_task(work())
            print("end")
            """,
            "end\nbegun\ncancelled\n",
        ),
        ("asyncio.get_running_loop().call_soon(print, 'soon'); print('end')", "end\nsoon\n"),
        ("asyncio.get_running_loop().call_later(60, print, 'late'); print('end')", "end\n"),
        (
            """
            import signal
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("interrupted")
            """,
            "interrupted\n",
        ),
        (
            # Another process is not inside the loop.
            """
            pid = os.fork()
            if pid == 0:
                try:
                    asyncio.get_running_loop()
                except RuntimeError:
                    os._exit(7)
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            """,
            "7\n",
        ),
        (
            """
            import threading
            def look():
                try:
                    asyncio.get_running_loop()
                except RuntimeError as error:
                    print(error)
            thread = threading.Thread(target=look)
            thread.start()
            thread.join()
            """,
            "no running event loop\n",
        ),
        ("if True:\n    asyncio.get_running_loop()\n    print('returns')\n    return", "returns\n"),
    ],
)
def test_inside_a_loop(worker_process: WorkerProcess, code: str, stdout: str) -> None:
    result = run(worker_process, code)
    assert (result.stdout, result.stderr, result.batches) == (stdout, "", [])
    assert result.done == {"exit": 0}


OWN_LOOPS = [
    "print(asyncio.run(t(n=1)))",
    "if __name__ == '__main__':\n    asyncio.run(asyncio.wait_for(t(n=1), 5))\n    print({'n': 1})",
    "with asyncio.Runner() as runner: print(runner.run(t(n=1)))",
    "import asyncio as a\nprint(a.run(t(n=1)))",
    "import asyncio.runners as r\nprint(r.run(t(n=1)))",
    "from asyncio import run as go\nprint(go(t(n=1)))",
    "from asyncio import *\nprint(run(t(n=1)))",
    "from asyncio.runners import run\nprint(run(t(n=1)))",
    "print(asyncio.new_event_loop().run_until_complete(t(n=1)))",
    """
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(t(n=1))
    task.add_done_callback(lambda task: loop.stop())
    loop.run_forever()
    print(task.result())
    """,
    """
    import threading
    thread = threading.Thread(target=lambda: print(asyncio.run(t(n=1))))
    thread.start()
    thread.join()
    """,
    """
    import unittest
    class Test(unittest.IsolatedAsyncioTestCase):
        async def test(self):
            print(await t(n=1))
    unittest.TextTestRunner(stream=open(os.devnull, "w")).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test))
    """,
]


@pytest.mark.parametrize("code", OWN_LOOPS)
def test_loops_of_their_own(worker_process: WorkerProcess, code: str) -> None:
    result = run(worker_process, code)
    assert (result.stdout, len(result.batches)) == ("{'n': 1}\n", 1), result.stderr


@pytest.mark.parametrize(
    "code, starts",
    [
        ("print(1)", False),
        ("import subprocess\nsubprocess.run(['true'])", False),
        ("import subprocess, asyncio\nsubprocess.run(['true'])\nasyncio.create_task", False),
        ("runner.run(); asyncio = 5", False),
        ("print('asyncio.run(main())')", False),
        ("def f():\n  class C:\n    def g(self): return asyncio.run(h())", True),
        ("import anyio\nanyio.run(main)", True),
        ("import uvloop as u\nu.run(main())", True),
        ("from trio import run", True),
        ("from trio import sleep", False),
        ("from . import run", False),
    ],
)
def test_programs_that_start_a_loop(code: str, starts: bool) -> None:
    assert Program(code).starts_loop == starts


def test_large_program_is_walked_through_in_time() -> None:
    source = "import asyncio\n" + "x = " + "+".join(["1"] * 900) + "\n" + "y = [a.b.c(d) for d in e]\n" * 5_000
    began = time.monotonic()
    assert not Program(source).starts_loop
    assert time.monotonic() - began < 10
