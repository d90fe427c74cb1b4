"""How programs end: what still calls tools then, and what was forgotten."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
from conftest import Answer, Run, Runner, WorkerProcess, echo

STUBS = """
@tool("send-mail", "send_mail", False)
async def _(to: str = None, **extra: Any) -> Any:
    ""
@tool("release", "release", False)
async def _(x: int = 0, **extra: Any) -> Any:
    ""
"""
WAITED = (
    "RuntimeWarning: the tool {} was not called: a task that calls it was still waiting when the program ended; "
    "await it\n"
)
NOT_AWAITED = "RuntimeWarning: the tool {0} was not called: write `await {0}(...)`\n"


@pytest.fixture(name="run")
def _run(worker_process: WorkerProcess) -> Runner:
    def run(code: str, answer: Answer = echo) -> Run:
        return worker_process.run({"code": textwrap.dedent(code), "stubs": STUBS}, answer)

    return run


def forms(body: str) -> list[str]:
    """Return a program with top-level await, and one with asyncio.run, both with this body."""
    body = textwrap.dedent(body)
    return [body, f"async def main():\n{textwrap.indent(body, '    ')}\nasyncio.run(main())"]


def test_threads_that_call_when_the_program_fails(run: Runner) -> None:
    got = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(4)
        futures = [pool.submit(lambda i=i: asyncio.run(send_mail(to=str(i)))) for i in range(8)]
        for future in futures:
            print(future.result()["name"])
        """
    )
    assert got.done is not None and (got.done["error"], got.done["exit"]) == ("KeyError: 'name'", 1)
    assert sorted(call["input"]["to"] for batch in got.batches for call in batch) == list("01234567")


THREADS = {
    "asyncio.run": "print(asyncio.run(release(x=7)))",
    "its own loop": "loop = asyncio.new_event_loop(); print(loop.run_until_complete(release(x=7))); loop.close()",
}


@pytest.mark.parametrize("work", THREADS.values(), ids=THREADS.keys())
@pytest.mark.parametrize("before", ["", "await asyncio.sleep(0)\n"], ids=["plain", "await"])
def test_threads_that_call_after_the_main_part(run: Runner, before: str, work: str) -> None:
    got = run(
        f"""
{before}
import threading, time
def work():
    time.sleep(0.02)
    {work}
threading.Thread(target=work).start()
print("end")
"""
    )
    assert (got.stdout, got.stderr, got.done) == ("end\n{'x': 7}\n", "", {"exit": 0})


def test_daemon_threads_do_not_hold_up_the_end(run: Runner) -> None:
    got = run(
        """
        import threading, time
        ended = threading.Event()
        def work(run=asyncio.run, release=release, write=os.write, wake=ended.set):
            while True:
                try:
                    run(release())
                except RuntimeError as error:
                    write(1, f"{error}\\n".encode())
                    return wake()
        class Last:
            def __del__(self, ended=ended):
                ended.wait(5)
        last = Last()
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.01)
        """
    )
    assert got.stdout == "the program has ended; no tool can be called any more\n"


CLEAN_UP: dict[str, str] = {
    "a task": """
        async def worker():
            try: await asyncio.sleep(10)
            finally: print("cleanup", await release(x=1))
        t = asyncio.create_task(worker())
        await asyncio.sleep(0)
        print("end")
    """,
    "a generator": """
        async def numbers():
            try:
                yield 1
                yield 2
            finally: print("cleanup", await release(x=1))
        kept = asyncio.get_running_loop().kept = numbers()
        async for number in kept: break
        print("end")
    """,
    "atexit": """
        import atexit
        atexit.register(lambda: print("cleanup", asyncio.run(release(x=1))))
        await asyncio.sleep(0)
        print("end")
    """,
}


@pytest.mark.parametrize("form", [0, 1], ids=["await", "run"])
@pytest.mark.parametrize("body", CLEAN_UP.values(), ids=CLEAN_UP.keys())
def test_clean_up_calls_tools(run: Runner, body: str, form: int) -> None:
    got = run(forms(body)[form])
    assert (got.stdout, got.stderr, got.done) == ("end\ncleanup {'x': 1}\n", "", {"exit": 0})
    assert len(got.batches) == 1


def test_clean_up_of_a_program_without_await(run: Runner) -> None:
    got = run(
        """
        async def worker():
            try: await asyncio.sleep(10)
            finally: print("cleanup", await release(x=1))
        t = asyncio.create_task(worker())
        print("end")
        """
    )
    assert (got.stdout, got.stderr, got.done) == ("end\ncleanup {'x': 1}\n", "", {"exit": 0})


FORGOTTEN: dict[str, tuple[str, str]] = {
    "tasks": ("for to in 'ab': asyncio.create_task(send_mail(to=to))", WAITED.format("send_mail")),
    "ensure_future": ("asyncio.ensure_future(send_mail())", WAITED.format("send_mail")),
    "the last act": ("await asyncio.sleep(0)\nt = asyncio.create_task(send_mail())", WAITED.format("send_mail")),
    "gather": ("x = asyncio.gather(send_mail(to='a'), send_mail(to='b'))", WAITED.format("send_mail")),
    "inside of a function": (
        "async def notify():\n    await send_mail()\nt = asyncio.create_task(notify())\nawait asyncio.sleep(0)",
        WAITED.format("send_mail"),
    ),
    "two tools": (
        "a = asyncio.create_task(send_mail())\nawait asyncio.sleep(0)\nb = asyncio.create_task(release())",
        WAITED.format("send_mail") + WAITED.format("release"),
    ),
    "inside of a generator": (
        "async def g():\n    yield await send_mail()\nasync def notify():\n    async for x in g(): pass\n"
        "t = asyncio.create_task(notify())\nawait asyncio.sleep(0)",
        WAITED.format("send-mail"),
    ),
    "no task": ("for to in 'ab': send_mail(to=to)", NOT_AWAITED.format("send_mail")),
    "filters": ("import warnings\nwarnings.filterwarnings('ignore')\nsend_mail()", NOT_AWAITED.format("send_mail")),
}


@pytest.mark.parametrize("form", [0, 1], ids=["plain", "run"])
@pytest.mark.parametrize("body, stderr", FORGOTTEN.values(), ids=FORGOTTEN.keys())
def test_forgotten(run: Runner, body: str, stderr: str, form: int) -> None:
    got = run(forms(body)[form])
    assert (sorted(got.stderr.splitlines()), got.batches) == (sorted(stderr.splitlines()), [])
    assert got.done == {"exit": 0}


def test_a_loop_that_nobody_ends(run: Runner) -> None:
    got = run(
        """
        loop = asyncio.new_event_loop()
        async def main():
            global task
            task = asyncio.create_task(send_mail())
            await asyncio.sleep(0)
        loop.run_until_complete(main())
        """
    )
    assert got.stderr.startswith(WAITED.format("send-mail")) and got.batches == []
    assert "/fermata/" not in got.stderr


def test_what_was_sent_is_not_forgotten(run: Runner) -> None:
    """Nor is what the program itself has cancelled."""
    got = run(
        """
        first = asyncio.create_task(send_mail(to="a"))
        await release()
        other = asyncio.create_task(send_mail(to="b"))
        await asyncio.sleep(0)
        other.cancel()
        """
    )
    assert (got.stderr, len(got.batches)) == ("", 1)


COROUTINES: dict[str, tuple[str, str]] = {
    "kept": ("async def f(): pass\nx = f()", "<program>:1: RuntimeWarning: coroutine 'f' was never awaited"),
    "dropped": ("async def f(): pass\nf()\nx = 1", "<program>:2: RuntimeWarning: coroutine 'f' was never awaited"),
    "two loops": (
        "await asyncio.sleep(0)\nasync def f(): pass\nasyncio.run(f())",
        "<program>:2: RuntimeWarning: coroutine 'f' was never awaited",
    ),
    "after an error": (
        "def g():\n    x = f()\n    1 / 0\nasync def f(): pass\ng()",
        "<program>:4: RuntimeWarning: coroutine 'f' was never awaited",
    ),
}


@pytest.mark.parametrize("code, warning", COROUTINES.values(), ids=COROUTINES.keys())
def test_coroutines_of_the_program_that_are_not_awaited(run: Runner, code: str, warning: str) -> None:
    got = run(code)
    assert warning in got.stderr and "/fermata/" not in got.stderr
