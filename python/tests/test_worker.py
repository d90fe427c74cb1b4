"""The worker: programs in a process, from the first frame to the last."""

from __future__ import annotations

import array
import fcntl
import gzip
import json
import os
import signal
import subprocess
import sys
import termios
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import Answer, Run, Runner, WorkerProcess, echo

from fermata import frames, worker

STUBS = """
@tool("get-weather", "get_weather", False)
async def _(city: str = None, **extra: Any) -> Any:
    "Current weather."
"""


@pytest.fixture(name="run")
def _run(worker_process: WorkerProcess) -> Runner:
    def run(code: str, answer: Answer = echo) -> Run:
        return worker_process.run({"code": textwrap.dedent(code), "stubs": STUBS}, answer)

    return run


@pytest.mark.parametrize(
    "statement", ["print('é', end='')", "sys.stdout.write('é')", "print('é', end='', file=sys.stderr)"]
)
def test_what_was_printed_has_left_before_the_calls(worker_process: WorkerProcess, run: Runner, statement: str) -> None:
    seen = []

    def answer(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        seen.append("".join(worker_process.printed()))
        return echo(batch)

    run(f"{statement}\nawait get_weather()", answer)
    assert seen == ["é"]


COMPLETE: dict[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "print": ("print('é')", "é\n"),
    "return": ("print(1)\nreturn 5", "1\n"),
    "sys.exit()": ("print(1)\nsys.exit()", "1\n"),
    "sys.exit(0)": ("sys.exit(0)", ""),
    "exit(False)": ("raise SystemExit(False)", ""),
    "output is not held back": ("sys.stdout.write('a')", "a"),
    "main": ("if __name__ == '__main__': print(sys.modules['__main__'].__dict__ is globals())", "True\n"),
    "asyncio.run": ("async def main():\n    print(await get_weather())\nasyncio.run(main())", "{}\n"),
    "names": (
        "print(datetime.date.min, json.dumps(1), re.sub('a', 'b', 'a'), math.pi > 3, os.sep)",
        "0001-01-01 1 b True /\n",
    ),
    "input": ("try: input()\nexcept EOFError: print('no input')", "no input\n"),
    "arguments": ("print(sys.argv == [__file__])", "True\n"),
    "module of the workspace": ("open('mine.py', 'w').write('x = 5')\nimport mine\nprint(mine.x)", "5\n"),
    "lone surrogate": ("print('\\ud800')", "\\ud800\n"),
    "pickle": ("import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)", "True\n"),
    "dataclass": ("import dataclasses\n@dataclasses.dataclass\nclass A:\n    x: 'int'\nprint(A(1))", "A(x=1)\n"),
    "type hints": (
        "import typing\nclass B: pass\nclass A:\n    x: 'B'\nprint(typing.get_type_hints(A))",
        "{'x': <class '__main__.B'>}\n",
    ),
    "child process": ("import subprocess\nsubprocess.run(['echo', 'x'])\nos.system('echo y')", "x\ny\n"),
    "long integer": ("print(len(str(10 ** 10_000)))", "10001\n"),
    "atexit": ("import atexit\nword = 'bye'\natexit.register(lambda: print(word))\nprint('hi')", "hi\nbye\n"),
    "stdout is closed": ("print(1)\nsys.stdout.close()", "1\n"),
    "stdout is another": ("import io\nsys.stdout = io.StringIO()\nprint(1)", ""),
    "stdout is None": ("sys.stdout = sys.stderr = None", ""),
    "exec": ("exec('y = 3')\nprint(y)", "3\n"),
}


def named(cases: dict[str, Any]) -> list[Any]:
    return [pytest.param(*case, id=name) for name, case in cases.items()]


@pytest.mark.parametrize(
    "code, stdout",
    named(COMPLETE),
)
def test_complete(run: Runner, code: str, stdout: str) -> None:
    got = run(code)
    assert (got.stdout, got.stderr) == (stdout, "")
    assert (got.done, got.status) == ({"exit": 0}, 0)


@pytest.mark.parametrize("mode", ["", "bash"])
def test_directories_are_made(worker_process: WorkerProcess, mode: str) -> None:
    code = (
        "cat <<< 5 > turn_1/files/x; cat turn_1/files/x" if mode else "open('turn_1/files/x', 'w').write('5')\nprint(5)"
    )
    program = {"code": code, "stubs": "" if mode else STUBS, "mode": mode, "directories": ["turn_1/files"]}
    got = worker_process.run(program, echo)
    assert (got.stdout, got.stderr, got.status) == ("5\n", "", 0)


@pytest.mark.parametrize("mode", ["", "bash"])
def test_files_that_are_too_many(worker_process: WorkerProcess, mode: str) -> None:
    code = (
        "mkdir -p a .b; touch a/{1..30} .b/{1..30} c"
        if mode
        else (
            "for d in 'a', '.b':\n    os.mkdir(d)\n    for n in range(30): open(f'{d}/{n}', 'w').close()\nopen('c', 'w').close()"
        )
    )
    program = {"code": code, "stubs": "" if mode else STUBS, "mode": mode, "output_files": 20}
    got = worker_process.run(program, echo)
    assert got.stderr == "Warning: 11 files are not kept: a program may leave at most 20 (FERMATA_OUTPUT_FILES)\n"
    assert got.done == {"exit": 0}


def test_files_that_are_not_too_many(worker_process: WorkerProcess) -> None:
    code = "for n in range(20): open(f'{n}', 'w').close()"
    got = worker_process.run({"code": code, "stubs": STUBS, "output_files": 20}, echo)
    assert (got.stderr, got.done) == ("", {"exit": 0})


def test_directories_that_cannot_be_made(worker_process: WorkerProcess, tmp_path: Path) -> None:
    """What the program was given has the name of the directory."""
    (tmp_path / "turn_1").write_text("x")
    got = worker_process.run({"code": "print(5)", "stubs": STUBS, "directories": ["turn_1/files"]}, echo)
    assert (got.stdout, got.stderr) == ("5\n", "")


EXIT: dict[str, tuple[str, int, str]] = {
    "code": ("sys.exit(3)", 3, ""),
    "negative code": ("sys.exit(-1)", 255, ""),
    "large code": ("sys.exit(2**70 + 5)", 5, ""),
    "message": ("sys.exit('msg')", 1, "msg\n"),
    "hostile message": ("class A:\n    def __str__(self): raise ValueError\nsys.exit(A())", 1, ""),
    "in a coroutine": ("async def f(): sys.exit(4)\nawait f()", 4, ""),
    "in a task": ("async def f(): sys.exit(4)\nawait asyncio.gather(f(), asyncio.sleep(60))", 4, ""),
    "after a call": ("await get_weather()\nsys.exit(4)", 4, ""),
}


@pytest.mark.parametrize("code, status, stderr", EXIT.values(), ids=EXIT.keys())
def test_exit(run: Runner, code: str, status: int, stderr: str) -> None:
    got = run(code)
    assert got.stderr == stderr
    assert (got.done, got.status) == ({"exit": status}, status)


def test_exit_without_a_word(run: Runner) -> None:
    got = run("print('printed')\nos._exit(7)")
    assert (got.done, got.status, got.stdout) == (None, 7, "printed\n")


def test_killed(run: Runner) -> None:
    got = run("os.kill(os.getpid(), 9)")
    assert (got.done, got.status) == (None, -9)


FAIL: dict[str, tuple[str, str]] = {
    "raise": ("1 / 0", "ZeroDivisionError: division by zero"),
    "syntax": ("x = = 1", "SyntaxError: invalid syntax"),
    "in a coroutine": (
        "async def f():\n    await asyncio.sleep(0)\n    1 / 0\nawait f()",
        "ZeroDivisionError: division by zero",
    ),
    "KeyboardInterrupt": ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    "KeyboardInterrupt in a task": (
        "async def f(): raise KeyboardInterrupt\nawait asyncio.gather(f())",
        "KeyboardInterrupt",
    ),
    "CancelledError": ("raise asyncio.CancelledError", "asyncio.exceptions.CancelledError"),
    "no such tool": ("await get_news()", "NameError: name 'get_news' is not defined"),
    "asyncio.run inside": (
        "async def f(): pass\nawait asyncio.sleep(0)\nc = f()\ntry:\n    asyncio.run(c)\nfinally:\n    c.close()",
        "RuntimeError: asyncio.run() cannot be called from a running event loop",
    ),
    "argument": (
        "await get_weather(city={1, 2})",
        "TypeError: get_weather() cannot send the argument city: Object of type set is not JSON serializable",
    ),
    "message from the program's names": (
        "class E(Exception):\n    def __str__(self): return json.dumps(self.args)\nraise E(1)",
        "E: [1]",
    ),
    "stderr is closed": ("sys.stderr.close()\n1 / 0", "ZeroDivisionError: division by zero"),
    "stderr is None": ("sys.stderr = None\n1 / 0", "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize(
    "code, error",
    named(FAIL),
)
def test_fail(run: Runner, code: str, error: str) -> None:
    got = run(code)
    assert got.done == {"exit": 1, "error": error, "memory": False}
    assert got.status == 1
    assert got.stderr.endswith(error + "\n")
    assert "/fermata/" not in got.stderr


def test_memory_error(run: Runner) -> None:
    got = run("raise MemoryError")
    assert got.done == {"exit": 1, "error": "MemoryError", "memory": True}


def test_stderr_descriptor_is_closed(run: Runner) -> None:
    got = run("os.close(2)\n1 / 0")
    assert got.done == {"exit": 1, "error": "ZeroDivisionError: division by zero", "memory": False}


def test_calls(run: Runner) -> None:
    got = run(
        """
        first = await get_weather(city="Paris")
        rest = await asyncio.gather(*(get_weather(n=n) for n in range(3)))
        print(first, rest)
    """
    )
    assert got.stdout == "{'city': 'Paris'} [{'n': 0}, {'n': 1}, {'n': 2}]\n"
    assert got.stderr == ""
    assert [[call["n"] for call in batch] for batch in got.batches] == [[1], [2, 3, 4]]
    assert got.batches[0] == [{"n": 1, "tool": "get-weather", "input": {"city": "Paris"}}]


def test_calls_from_threads_that_main_waits_for(run: Runner) -> None:
    got = run(
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor() as pool:
            print(sum(pool.map(lambda n: asyncio.run(get_weather(n=n))["n"], range(4))))
    """
    )
    assert got.stdout == "6\n", got.stderr
    assert sum(map(len, got.batches)) == 4


def failing(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"n": call["n"], "error": "no such city"} for call in batch]


def test_tool_error_that_is_caught(run: Runner) -> None:
    got = run(
        """
        for kind in (ToolExecutionError, RuntimeError):
            try:
                await get_weather()
            except kind as error:
                print(type(error).__name__, error)
        """,
        failing,
    )
    assert got.stdout == "ToolExecutionError no such city\n" * 2


def test_attributes_of_a_tool_error(run: Runner) -> None:
    about = iter([{"code": "E404", "where": "geo", "managed": True}, {"code": "E1"}, {}, None])

    def answer(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
        more = next(about)
        return [{"n": batch[0]["n"], "error": "no"} | ({} if more is None else {"about": more})]

    got = run(
        """
        for _ in range(4):
            try:
                await get_weather()
            except ToolExecutionError as error:
                print(error, error.code, error.where, error.managed)
        own = ToolExecutionError("mine")
        print(own, own.code, own.where, own.managed)
        """,
        answer,
    )
    assert got.stdout == (
        "no E404 geo True\nno E1 None False\nno None None False\nno None None False\nmine None None False\n"
    )


def test_tool_error_that_is_not_caught(run: Runner) -> None:
    got = run("x = 1\nawait get_weather(city='X')", failing)
    assert got.done is not None
    assert got.done["error"].endswith("ToolExecutionError: no such city")
    assert "line 2, in <module>\n    await get_weather(city='X')\n" in got.stderr
    assert got.stderr.endswith("ToolExecutionError: no such city\n")
    assert "/fermata/" not in got.stderr


def test_long_number_in_a_result(run: Runner) -> None:
    got = run(
        "print((await get_weather()) % 1000)",
        # json.dumps of this process has a limit, the worker must not.
        lambda batch: [{"n": 1, "value": 10**4000 * 10 + 7}],
    )
    assert got.stdout == "7\n"


def test_stub_that_is_not_awaited(run: Runner) -> None:
    got = run("get_weather(city='X')\nprint('on')")
    assert (got.done, got.stdout) == ({"exit": 0}, "on\n")
    assert got.stderr == "RuntimeWarning: the tool get_weather was not called: write `await get_weather(...)`\n"
    assert got.batches == []


def test_stub_that_is_kept_and_not_awaited(run: Runner) -> None:
    got = run("x = get_weather(city='X')")
    assert got.done == {"exit": 0}
    assert "the tool get_weather was not called" in got.stderr


def test_other_warnings(run: Runner) -> None:
    got = run("import warnings\nasync def f(): pass\nf()\nwarnings.warn('w')\nwarnings.warn('d', DeprecationWarning)")
    assert got.done == {"exit": 0}
    assert "coroutine 'f' was never awaited" in got.stderr
    assert "<program>:4: UserWarning: w" in got.stderr
    assert "DeprecationWarning" not in got.stderr.replace("warnings.warn('d', DeprecationWarning)", "")


def test_task_that_is_left_behind(run: Runner) -> None:
    got = run(
        """
        async def late():
            try:
                await asyncio.sleep(60)
            finally:
                print("cancelled")
            await get_weather()
        task = asyncio.create_task(late())
        other = asyncio.create_task(get_weather())
        await asyncio.sleep(0)
        print("end")
    """
    )
    assert (got.done, got.stdout, got.batches) == ({"exit": 0}, "end\ncancelled\n", [])


def test_threads_go_on_to_their_end(run: Runner) -> None:
    got = run(
        """
        import threading, time
        word = "end"
        def work():
            time.sleep(0.05)
            print(word, json.dumps(1))
        threading.Thread(target=work).start()
        print("main")
    """
    )
    assert (got.stdout, got.stderr) == ("main\nend 1\n", "")


# What is in out.txt when the program has ended. In each program the file hangs in a cycle, or in nothing else.
WRITTEN = {
    "no cycle": "f = open('out.txt', 'w')\nf.write('all')",
    "a bound method": """
        class Report:
            def __init__(self):
                self.file = open("out.txt", "w")
                self.add = self.write
            def write(self, text):
                self.file.write(text)
        Report().add("all")
        report = Report()
        report.add("all")
        """,
    "bytes": "class A: pass\na = A()\na.self = a\na.file = open('out.txt', 'wb')\na.file.write(b'all')",
    "read and write": "class A: pass\na = A()\na.self = a\na.file = open('out.txt', 'w+b')\na.file.write(b'all')",
    "a finalizer that writes": """
        class Log:
            def __init__(self):
                self.file = open("out.txt", "w")
                self.self = self
                self.file.write("a")
            def __del__(self):
                self.file.write("ll")
        log = Log()
        """,
    "gzip": """
        import atexit, gzip
        class A: pass
        a = A()
        a.self = a
        a.file = gzip.open("out.gz", "wt")
        a.file.write("all")
        atexit.register(print, "end")
        """,
    "a coroutine that exits": "async def f():\n    g = open('out.txt', 'w')\n    g.write('all')\n    sys.exit()\nawait f()",
    "a suspended generator": """
        import contextlib
        @contextlib.contextmanager
        def opened():
            with open("out.txt", "w") as file:
                yield file
                file.write(word)
        def generate():
            try:
                yield
            finally:
                open("out.txt", "w").write(word)
        word = "all"
        g = generate()
        next(g)
        """,
    "the standard output": "import io\nsys.stdout = open('out.txt', 'w')\nprint('all', end='')",
    "a thread that goes on": """
        import threading, time
        file = open("out.txt", "w")
        file.write("all")
        def work():
            while True:
                time.sleep(0.001)
                str(json)
        threading.Thread(target=work, daemon=True).start()
        """,
    "a part that is known elsewhere": "import copyreg\nf = open('out.txt', 'w')\nf.write('all')\ncopyreg.f = lambda: f",
    "multiprocessing": "import multiprocessing\nclass A: pass\na = A()\na.a = a\na.f = open('out.txt', 'w')\na.f.write('all')",
    "collector is off": "import gc\ngc.disable()\nclass A: pass\na = A()\na.a = a\na.f = open('out.txt', 'w')\na.f.write('all')",
}


@pytest.mark.parametrize("code", WRITTEN.values(), ids=WRITTEN.keys())
@pytest.mark.parametrize("ending", ["", "\nreturn 5", "\nawait asyncio.sleep(0)", "\nsys.exit()"])
def test_files_are_complete(run: Runner, tmp_path: Path, code: str, ending: str) -> None:
    got = run(textwrap.dedent(code) + ending)
    assert (got.stderr, got.status) == ("", 0)
    if (packed := tmp_path / "out.gz").exists():
        assert gzip.decompress(packed.read_bytes()) == b"all"
    else:
        assert (tmp_path / "out.txt").read_text() == "all"


@pytest.mark.parametrize("ending", ["", "\nreturn", "\nawait asyncio.sleep(0)", "\nsys.exit()", "\n1 / 0"])
@pytest.mark.parametrize("holder", ["t = Temp()", "t = Temp()\nt.self = t", "t = [Temp()]"])
def test_finalizers_see_their_names(run: Runner, holder: str, ending: str) -> None:
    code = """
        import shutil
        class Temp:
            def __del__(self):
                shutil.rmtree("nothing", ignore_errors=True)
                print("removed", os.sep, helper())
        def helper(): return json.dumps(word)
        word = "a"
        """
    got = run(textwrap.dedent(code) + holder + "\nprint('done')" + ending)
    assert got.stdout == 'done\nremoved / "a"\n'
    assert "Exception ignored" not in got.stderr


def test_pipe_that_nobody_reads(run: Runner) -> None:
    """To flush it would take for ever."""
    got = run("r, w = os.pipe()\nos.write(w, bytes(65536))\nf = open(w, 'w', closefd=False)\nf.write('x')\nos.f = f")
    assert (got.stderr, got.status) == ("", 0)


NEVER_AWAITED = {
    "at the end": ("async def f(): pass\nx = f()", ""),
    "in a cycle": ("async def f(): pass\nx = [f()]\nx.append(x)\ndel x", ""),
    "before an error": ("async def f(): pass\nx = f()\n1 / 0", "ZeroDivisionError: division by zero"),
    "in the error": ("async def f(): pass\ndef g(x): 1 / 0\ng(f())", "ZeroDivisionError: division by zero"),
    "in a second loop": (
        "async def f(): pass\nawait asyncio.sleep(0)\nasyncio.run(f())",
        "RuntimeError: asyncio.run() cannot be called from a running event loop",
    ),
}


@pytest.mark.parametrize("code, error", NEVER_AWAITED.values(), ids=NEVER_AWAITED.keys())
def test_never_awaited(run: Runner, code: str, error: str) -> None:
    got = run(code)
    assert (got.done or {}).get("error", "") == error
    assert "<program>:1: RuntimeWarning: coroutine 'f' was never awaited\n" in got.stderr
    assert got.stderr.splitlines()[-1].strip() == "async def f(): pass"
    assert str(Path(worker.__file__).parent) not in got.stderr


def test_daemons_are_left(run: Runner) -> None:
    got = run("import threading, time\nthreading.Thread(target=time.sleep, args=[60], daemon=True).start()\nprint(1)")
    assert (got.done, got.stdout) == ({"exit": 0}, "1\n")


def test_error_at_exit(run: Runner) -> None:
    got = run("import atexit\natexit.register(lambda: 1 / 0)")
    assert got.done == {"exit": 0}
    assert "ZeroDivisionError" in got.stderr


def test_output_is_in_order(run: Runner) -> None:
    got = run("print('a')\nos.system('echo b')\nprint('c', end='')\nos.write(1, b'd')\nsys.stdout.buffer.write(b'e')")
    assert got.stdout == "a\nb\ncde"


def test_ready_tells_the_version(worker_process: WorkerProcess) -> None:
    kind, payload = worker_process.receive()
    assert kind == frames.READY
    assert list(json.loads(payload)) == ["python", "pid"]


def test_no_program_comes(worker_process: WorkerProcess) -> None:
    worker_process.receive()
    worker_process.stream.shutdown(1)
    assert worker_process.wait() == 0


def test_frame_that_is_no_program(worker_process: WorkerProcess) -> None:
    worker_process.receive()
    worker_process.send(frames.RESULTS, [])
    assert worker_process.wait() == 1


def test_output_of_a_process_that_is_stopped_while_it_writes() -> None:
    size = 700_000
    ours, theirs = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(ours)
        worker._unbuffered(theirs).write("x" * size)
        os._exit(0)
    os.close(theirs)
    written = array.array("i", [0])
    while written[0] < 1 << 16:
        fcntl.ioctl(ours, termios.FIONREAD, written)
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    os.kill(pid, signal.SIGCONT)
    with os.fdopen(ours, "rb") as output:
        assert len(output.read()) == size
    os.waitpid(pid, 0)


def test_preload_names_what_hangs(tmp_path: Path) -> None:
    (tmp_path / "hanging.py").write_text("import time\ntime.sleep(2)\n", encoding="ascii")
    code = f"""
        import sys
        sys.path[:0] = {[str(Path(frames.__file__).parents[1]), str(tmp_path)]!r}
        from fermata import SCIENTIFIC, libraries
        libraries._HANGS, libraries._LIBRARIES = 0.2, {{"hanging": "hanging"}}
        libraries.preload(SCIENTIFIC)
    """
    ended = subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    assert f'File "{tmp_path}/hanging.py", line 2 in <module>' in ended.stderr
