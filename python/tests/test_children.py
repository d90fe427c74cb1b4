"""Processes that a program starts afresh, and the program as a file."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from fermata import PLAIN, SCIENTIFIC, frames

_RUNNER = Path(frames.__file__).parents[1]

# In a process of its own, since this one has imported multiprocessing: runs a program in a worker.
_PARENT = """
import json, os, socket, sys
runner, kind, directory, code = sys.argv[1:]
sys.path.insert(0, runner)
from fermata import frames, libraries, worker
libraries._LIBRARIES = {}
ready = worker.preload(kind)
os.chdir(directory)
ours, theirs = socket.socketpair()
if (pid := os.fork()) == 0:
    ours.close()
    worker.run(theirs, ready)
theirs.close()
frames.receive(ours)
stubs = '@tool("ask", "ask", False)\\nasync def _(n: int = 0, **extra: Any) -> Any:\\n    ""\\n'
ours.sendall(frames.encode(frames.PROGRAM, json.dumps({"code": code, "stubs": stubs, "args": ["a"]}).encode()))
while (frame := frames.receive(ours)).kind == frames.CALLS:
    results = [{"n": call["n"], "value": call["input"]} for call in json.loads(frame.payload)]
    ours.sendall(frames.encode(frames.RESULTS, json.dumps(results).encode()))
ours.close()
os.waitpid(pid, 0)
"""


def run(code: str, directory: Path, kind: str = PLAIN) -> tuple[str, str]:
    """Return what a program prints. It leaves no file."""
    arguments = [sys.executable, "-I", "-c", _PARENT, _RUNNER, kind, directory, textwrap.dedent(code)]
    ended = subprocess.run(arguments, capture_output=True, text=True, timeout=60)
    assert list(directory.iterdir()) == []
    return ended.stdout, ended.stderr


POOLS = """
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    import sys as system

    print("imported as", __name__) if __name__ == "__mp_main__" and system.argv[1] == "b" else None

    class Pair:
        def __init__(self, n): self.n = n

    def square(n): return Pair(n * n)
    def name(n): return [__name__, os.path.basename(__file__), system.argv[1], math.pi > 3]

    if __name__ == "__main__":
        context = multiprocessing.get_context("METHOD")
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            print([each.n for each in pool.map(square, range(4))])
        with context.Pool(2) as pool:
            print([each.n for each in pool.map(square, range(3))])
        process = context.Process(target=square, args=[2])
        process.start()
        process.join()
        print(process.exitcode, os.listdir())
    """


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", [PLAIN, SCIENTIFIC])
@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("ending", ["", "\n    if len(os.environ) > 1: return 5\n    print('not reached')"])
def test_pools(tmp_path: Path, method: str, ending: str, kind: str) -> None:
    assert run(POOLS.replace("METHOD", method) + ending, tmp_path, kind) == ("[0, 1, 4, 9]\n[0, 1, 4]\n0 []\n", "")


@pytest.mark.timeout(60)
def test_default_method(tmp_path: Path) -> None:
    code = """
        from concurrent.futures import ProcessPoolExecutor
        import multiprocessing
        def square(n): return n * n
        def main():
            with ProcessPoolExecutor(2) as pool:
                print(list(pool.map(square, range(4))), multiprocessing.get_start_method())
        """
    default = "forkserver" if sys.version_info >= (3, 14) else "fork"
    guarded = f"{code}\n        if __name__ == '__main__': main()"
    assert run(guarded, tmp_path) == (f"[0, 1, 4, 9] {default}\n", "")
    # Nobody guards a program that awaits.
    awaits = f"{code}\n        print(await ask(n=1))\n        main()"
    assert run(awaits, tmp_path) == ("{'n': 1}\n[0, 1, 4, 9] fork\n", "")
    assert run(awaits, tmp_path, SCIENTIFIC) == ("{'n': 1}\n[0, 1, 4, 9] fork\n", "")


@pytest.mark.timeout(60)
def test_children_have_what_programs_have(tmp_path: Path) -> None:
    code = """
        import multiprocessing
        offset = 10
        def inner(n): return n + offset
        def work(n):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                return [*pool.map(inner, [n]), __name__, __file__, math.floor(2.5), repr(ToolExecutionError)]
        def fail(n): 1 / 0
        def call(n): return asyncio.run(ask(n=n))
        if __name__ == "__main__":
            with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                for f in fail, call:
                    try: pool.submit(f, 1).result()
                    except Exception as error: print(error, str(error.__cause__).count("/fermata/"))
            process = multiprocessing.get_context("spawn").Process(target=print, args=work(1))
            process.start()
            process.join()
        import concurrent.futures
        """
    code = code.replace("import multiprocessing\n", "import concurrent.futures, multiprocessing\n", 1)
    assert run(code, tmp_path) == (
        "division by zero 0\n"
        "tools can be called only in the program's own process; use threads in place of processes 0\n"
        f"11 __main__ {tmp_path}/program.py 2 <class 'ToolExecutionError'>\n",
        "",
    )


@pytest.mark.timeout(60)
def test_child_that_fails_to_import(tmp_path: Path) -> None:
    code = """
        import multiprocessing
        def f(): pass
        if __name__ == "__main__":
            process = multiprocessing.get_context("spawn").Process(target=f)
            process.start()
            process.join()
            print(process.exitcode)
        else:
            1 / 0
        """
    stdout, stderr = run(code, tmp_path)
    assert stdout == "1\n"
    assert stderr.startswith(
        'Traceback (most recent call last):\n  File "<program>", line 10, in <module>\n    1 / 0\n'
    )
    assert stderr.endswith("ZeroDivisionError: division by zero\n")


def test_program_is_a_file(tmp_path: Path) -> None:
    code = '''
        """What it is for."""
        import argparse, inspect
        from pathlib import Path
        class A:
            """About A."""
            n = 1
        def f(): pass
        print(Path(__file__).resolve().parent == Path.cwd(), Path(__file__).name, os.path.exists(__file__))
        print(inspect.getsource(A), inspect.getsource(f), inspect.getfile(A) == __file__)
        print(json.dumps([os.path.relpath(each) for each in sys.argv]), __spec__)
        parser = argparse.ArgumentParser()
        parser.add_argument("city")
        print(parser.format_usage(), parser.parse_args().city)
        '''
    assert run(code, tmp_path) == (
        'True program.py False\nclass A:\n    """About A."""\n    n = 1\n def f(): pass\n True\n'
        '["program.py", "a"] None\nusage: program.py [-h] city\n a\n',
        "",
    )
    assert json.loads(run("print(json.dumps(__file__))", tmp_path)[0]) == f"{tmp_path}/program.py"
