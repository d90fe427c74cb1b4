"""The libraries: programs find the same in both kinds, and a plain one imports nothing that it does not use."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fermata import PLAIN, SCIENTIFIC, frames

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(
        not all(map(importlib.util.find_spec, ("numpy", "pandas", "matplotlib"))), reason="the libraries are not here"
    ),
]

# In a process of its own, since this one is to import no library: forks a worker for each
# of the programs, and prints what each of them printed.
_PARENT = """
import json, os, socket, sys, tempfile
runner, kind, cache = sys.argv[1:]
sys.path.insert(0, runner)
os.environ.update(MPLBACKEND="Agg", MPLCONFIGDIR=cache)
from fermata import frames, libraries, worker
ready = worker.preload(kind)
ready.fonts["fontlist-nothing.json"] = b"{}"
for line in sys.stdin:
    program = json.loads(line)
    ours, theirs = socket.socketpair()
    outputs = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    directory = tempfile.mkdtemp(dir=cache)
    if (pid := os.fork()) == 0:
        ours.close()
        os.chdir(directory)
        for name, text in program["files"].items():
            with open(name, "w") as file:
                file.write(text)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, output in enumerate(outputs, 1):
            os.dup2(output.fileno(), number)
        worker.run(theirs, ready)
    theirs.close()
    frames.receive(ours)
    ours.sendall(frames.encode(frames.PROGRAM, json.dumps({"code": program["code"], "stubs": ""}).encode()))
    frames.receive(ours)
    ours.close()
    os.waitpid(pid, 0)
    texts = []
    for output in outputs:
        output.seek(0)
        texts.append(output.read().decode())
    print(json.dumps(texts), flush=True)
"""

RunAs = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module", name="run_as")
def _run_as(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunAs]:
    parents: dict[str, subprocess.Popen[str]] = {}
    for kind in (PLAIN, SCIENTIFIC):
        arguments = [sys.executable, "-I", "-c", _PARENT, _RUNNER, kind, tmp_path_factory.mktemp(kind)]
        parents[kind] = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run_as(kind: str, code: str, **files: str) -> tuple[str, str]:
        parent = parents[kind]
        assert parent.stdin is not None and parent.stdout is not None
        program = {"code": textwrap.dedent(code), "files": {f"{name}.py": text for name, text in files.items()}}
        parent.stdin.write(json.dumps(program) + "\n")
        parent.stdin.flush()
        stdout, stderr = json.loads(parent.stdout.readline())
        return stdout, stderr

    yield run_as
    for parent in parents.values():
        with parent:
            pass


_RUNNER = Path(frames.__file__).parents[1]

# What a program prints in both kinds.
SAME: dict[str, tuple[str, str]] = {
    "an array": ("print(np.arange(3).sum())", "3\n"),
    "two names": ("print(np is numpy, pd is pandas, np.pi > 3, np is numpy)", "True True True True\n"),
    "the import": ("import numpy\nprint(np is numpy)\nimport pandas as other\nprint(pd is other)", "True\nTrue\n"),
    "sys.modules": ("np.pi\nprint(np is sys.modules['numpy'], plt is matplotlib.pyplot)", "True True\n"),
    "sys.modules of plt": ("plt.figure\nprint(plt is sys.modules['matplotlib.pyplot'])", "True\n"),
    "a part": ("from numpy.linalg import norm\nprint(norm([3, 4]), np.linalg.norm is norm)", "5.0 True\n"),
    "a part by its name": ("import matplotlib.pyplot as other\nprint(plt is other)", "True\n"),
    "isinstance": ("x = np.ones(2)\nprint(isinstance(x, np.ndarray), isinstance(pd.Series(x), pd.Series))", "True True\n"),
    "a module": (
        "import types, inspect\nprint(isinstance(np, types.ModuleType), np.__class__, inspect.ismodule(pd), type(plt))",
        "True <class 'module'> True <class 'module'>\n",
    ),
    "the type after use": ("import types\nnp.pi\nprint(type(np) is types.ModuleType)", "True\n"),
    "names": ("print(np.__name__, pd.__name__, plt.__name__, scipy.__name__)", "numpy pandas matplotlib.pyplot scipy\n"),
    "repr": ("print(repr(np).startswith(\"<module 'numpy' from '\"))", "True\n"),
    "dir": ("print('array' in dir(np), 'array' in vars(numpy), hasattr(pd, 'no'), np.__spec__.name)", "True True False numpy\n"),
    "loader": ("import inspect\nprint(type(np.__loader__).__name__, vars(np.__loader__).keys() - {'name', 'path'})", "SourceFileLoader set()\n"),
    "source": ("import inspect\nprint(len(inspect.getsource(pd)) > 100)", "True\n"),
    "an attribute is set": ("np.mine = 5\nimport numpy\nprint(numpy.mine)\ndel np.mine\nprint(hasattr(np, 'mine'))", "5\nFalse\n"),
    "text of an attribute error": (
        "try: np.no\nexcept AttributeError as error: print(error)",
        "module 'numpy' has no attribute 'no'\n",
    ),
    "text of a type error": (
        "for f in (lambda: np + 1, lambda: np(), lambda: np[0]):\n    try: f()\n    except TypeError as error: print(error)",
        "unsupported operand type(s) for +: 'module' and 'int'\n'module' object is not callable\n'module' object is not subscriptable\n",
    ),
    "pickle": (
        "import pickle\nprint(pickle.loads(pickle.dumps(np.arange(2))))\ntry: pickle.dumps(np)\nexcept TypeError as error: print(error)",
        "[0 1]\ncannot pickle 'module' object\n",
    ),
    "reload": ("import importlib, warnings\nwarnings.simplefilter('ignore')\nprint(importlib.reload(matplotlib) is matplotlib)", "True\n"),
    "spec": ("import importlib.util\nprint(importlib.util.find_spec('numpy').name, np.pi > 3)", "numpy True\n"),
    "in a function": ("def f(): return np.sqrt(4)\nprint(f())", "2.0\n"),
    "by exec": ("exec('print(np.arange(2))', globals())", "[0 1]\n"),
    "from the main module": ("from __main__ import np as other\nprint(other is np)", "True\n"),
    "in a coroutine": ("async def f(): return pd.Series([1]).sum()\nprint(await asyncio.gather(f(), f()))", "[1, 1]\n"),
    "from many threads": (
        """
        from concurrent.futures import ThreadPoolExecutor
        from threading import Barrier
        barrier = Barrier(8)
        def use(n):
            barrier.wait()
            if n % 4 == 0:
                import pandas as other
                return other.Series([n]).sum() and other is pd
            return [np.arange, pd.Series, plt.plot, np.linalg.norm][n % 4] is not None
        with ThreadPoolExecutor(8) as pool:
            print(sum(map(bool, pool.map(use, range(1, 9)))))
        """,
        "8\n",
    ),
    "another name": ("np = 5\nprint(np, numpy.pi > 3)", "5 True\n"),
    "warnings are those that a program gets": (
        "import warnings\nwarnings.simplefilter('error')\nprint(pd.Series([1]).sum(), plt.plot is not None)", "1 True\n"
    ),
    "a plot": ("plt.plot([1, 2]); plt.savefig('a.png')\nprint(matplotlib.get_backend().lower(), os.path.exists('a.png'))", "agg True\n"),
    "lists of fonts are not to be found": (
        "plt.figure()\nprint([each for each in os.listdir(matplotlib.get_cachedir()) if 'nothing' in each])",
        "[]\n",
    ),
    "a part without an import": ("matplotlib.pyplot.plot([1])\nprint(plt is matplotlib.pyplot)", "True\n"),
    "a part of an import": ("import matplotlib\nprint(matplotlib.pyplot is plt, matplotlib.ticker.__name__)", "True matplotlib.ticker\n"),
}  # fmt: skip


@pytest.mark.parametrize("kind", [PLAIN, SCIENTIFIC])
@pytest.mark.parametrize("code, stdout", SAME.values(), ids=SAME.keys())
def test_same(run_as: RunAs, kind: str, code: str, stdout: str) -> None:
    assert run_as(kind, code) == (stdout, "")


@pytest.mark.parametrize("kind", [PLAIN, SCIENTIFIC])
def test_files_of_the_program_are_not_taken_for_libraries(run_as: RunAs, kind: str) -> None:
    own = {name: f"raise SystemExit('{name} of the program')" for name in ("numpy", "pandas", "six", "cycler", "pytz")}
    assert run_as(
        kind, "import mine\nprint(pd.Series([1]).sum(), plt.plot is not None, mine.x)", **own, mine="x = 5"
    ) == (
        "1 True 5\n",
        "",
    )


@pytest.mark.parametrize(
    "code",
    [
        "print(1)",
        "import json, csv, random, sqlite3",
        "for value in list(globals().values()): isinstance(value, dict), value == 1, bool(value), {id(value)}",
        "other = np, pd, plt",
        "import pickle\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\npickle.dumps(A(1))",
    ],
)
def test_a_plain_program_imports_no_library(run_as: RunAs, code: str) -> None:
    code += "\nassert not [name for name in sys.modules if name.partition('.')[0] in ('numpy', 'pandas', 'matplotlib')]"
    stdout, stderr = run_as(PLAIN, code)
    assert stderr == ""


def test_an_import_that_fails_is_tried_again(run_as: RunAs) -> None:
    stdout, stderr = run_as(
        PLAIN,
        """
        class Refuse:
            def find_spec(self, name, path=None, target=None):
                if name == "numpy.core":
                    raise MemoryError("no more")
        sys.meta_path.insert(0, Refuse())
        for _ in range(2):
            try:
                np.arange(3)
            except MemoryError as error:
                print(error, "numpy" in sys.modules)
        del sys.meta_path[0]
        for name in [name for name in sys.modules if name.startswith("numpy")]:
            del sys.modules[name]
        print(np.arange(3), np is sys.modules["numpy"])
        """,
    )
    assert (stdout, stderr) == ("no more False\nno more False\n[0 1 2] True\n", "")


def test_a_library_that_is_missing_has_no_name(tmp_path: Path) -> None:
    code = f"""
        import sys
        sys.path[:] = [{str(_RUNNER)!r}, *(each for each in sys.path if "packages" not in each)]
        from fermata import PLAIN, libraries
        print(sorted(libraries.preload(PLAIN).names))
    """
    ended = subprocess.run(
        [sys.executable, "-I", "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert "os" in ended.stdout and "np" not in ended.stdout


# Programs that draw, and the files that they leave.
DRAWN: dict[str, tuple[str, list[str]]] = {
    "left open": ("plt.plot([1, 2])", ["figure-1.png"]),
    "shown": ("plt.plot([1])\nplt.show()\nassert not plt.get_fignums()", ["figure-1.png"]),
    "shown and left open": ("plt.plot([1])\nplt.show()\nplt.plot([2])", ["figure-1.png", "figure-2.png"]),
    "saved": ("plt.plot([1])\nplt.savefig('a.png')", ["a.png"]),
    "saved by itself": (
        "figure, axes = plt.subplots()\naxes.plot([1])\nfigure.savefig('a.png')\nplt.show()",
        ["a.png"],
    ),
    "closed": ("plt.plot([1])\nplt.close()", []),
    "never drawn": ("plt.figure()\nplt.Figure", []),
    "drawn by pandas": ("plt.figure()\npd.DataFrame({'a': [1, 2]}).plot()", ["figure-1.png"]),
    "imported": ("from matplotlib.pyplot import *\nplot([1])\nshow()", ["figure-1.png"]),
    "paused": ("plt.plot([1])\nplt.pause(0.001)\nplt.pause(0.001)", ["figure-1.png"]),
    "another directory": ("plt.plot([1])\nos.mkdir('sub')\nos.chdir('sub')", ["figure-1.png", "sub"]),
    "another backend": ("plt.switch_backend('svg')\nplt.plot([1])\nplt.show()", ["figure-1.png"]),
    "another format": ("plt.rcParams['savefig.format'] = 'pdf'\nplt.plot([1])", ["figure-1.png"]),
}


@pytest.mark.parametrize("kind", [PLAIN, SCIENTIFIC])
@pytest.mark.parametrize("code, want", DRAWN.values(), ids=DRAWN.keys())
def test_figures(run_as: RunAs, kind: str, code: str, want: list[str]) -> None:
    first = "import atexit; home = os.getcwd(); atexit.register(lambda: print(*sorted(os.listdir(home))))\n"
    assert run_as(kind, first + code) == (" ".join(want) + "\n", "")
