"""Toolsets: programs that import the classes of their tools, in a worker."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from conftest import Answer, Run, Runner, WorkerProcess, echo

from fermata import shell
from fermata.tools import Tool

SOURCE = (Path(__file__).parents[2] / "stubs/testdata/toolsets/weather.py.golden").read_text()
STUBS = """
@tool("get-local", "get_local", False)
async def _(city: str = None, **extra: Any) -> Any:
    "The local weather."
"""
TOOLSETS = [
    {"key": "weather", "class": "Weather", "source": SOURCE},
    {"key": "github", "class": "GitHub", "source": "this is not Python"},
]
IMPORT = "from fermata_tools.weather import Weather\n"


@pytest.fixture(name="run")
def _run(worker_process: WorkerProcess) -> Runner:
    def run(code: str, answer: Answer = echo, imports: str = IMPORT) -> Run:
        program = {"code": imports + textwrap.dedent(code), "stubs": STUBS, "package": "fermata_tools"}
        return worker_process.run(program | {"toolsets": TOOLSETS}, answer)

    return run


def names(got: Run) -> list[list[tuple[str, str]]]:
    """Return the toolset and the tool of each call, by batch."""
    return [[(call.get("toolset", ""), call["tool"]) for call in batch] for batch in got.batches]


def sizes(got: Run) -> list[int]:
    return [len(batch) for batch in got.batches]


def last(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer the last call only."""
    return echo(batch[-1:])


def test_a_call(run: Runner) -> None:
    got = run("print(Weather.get_current('Paris', **{'user-id': 1}))")
    input = {"city": "Paris", "user-id": 1}
    assert got.batches == [[{"n": 1, "toolset": "weather", "tool": "get-current", "input": input}]]
    assert (got.stdout, got.stderr, got.lines, got.done) == (f"{input}\n", "", [2], {"exit": 0})


BLOCKING = {
    "at the top level": ("for i in range(3): Weather.list(n=i)", [1, 1, 1]),
    "after an await": ("await get_local()\nWeather.list()\nawait get_local()", [1, 1, 1]),
    "in asyncio.run": ("async def main(): Weather.list(), Weather.list()\nasyncio.run(main())", [1, 1]),
    "in a coroutine": (
        "async def f(): return Weather.list(n=1)\n"
        "async def main(): return await asyncio.gather(f(), Weather.aio.list(n=2), get_local())\n"
        "asyncio.run(main())",
        # Nothing else of this thread runs while the coroutine blocks it.
        [1, 2],
    ),
    "in a pool": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool: assert len(list(pool.map(lambda n: Weather.list(n=n), range(5)))) == 5",
        [5],
    ),
    "of many threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(16) as pool: assert len(list(pool.map(lambda n: Weather.list(n=n), range(16)))) == 16",
        [16],
    ),
    "more than threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: assert len(list(pool.map(lambda n: Weather.list(n=n), range(8)))) == 8",
        [4, 4],
    ),
    "of plain threads": (
        "import threading\n"
        "all = [threading.Thread(target=Weather.list) for _ in range(5)]\n"
        "for each in all: each.start()\n"
        "for each in all: each.join()",
        [5],
    ),
    "beside awaited calls": (
        "await asyncio.gather(asyncio.to_thread(Weather.list), asyncio.to_thread(Weather.list), Weather.aio.list(),"
        " get_local())",
        [4],
    ),
}


@pytest.mark.parametrize("code, batches", BLOCKING.values(), ids=BLOCKING.keys())
def test_blocking(run: Runner, code: str, batches: list[int]) -> None:
    got = run(code)
    assert (sizes(got), got.stderr, got.done) == (batches, "", {"exit": 0})


def test_calls_of_both_kinds_are_one_batch(run: Runner) -> None:
    got = run("print(await asyncio.gather(Weather.aio.list(a=1), get_local(city='Oslo')))")
    assert names(got) == [[("weather", "list"), ("", "get-local")]]
    assert (got.stdout, got.lines) == ("[{'a': 1}, {'city': 'Oslo'}]\n", [2, 2])


PARTIAL = {
    "awaited": ("await asyncio.gather(*(Weather.aio.list(n=n) for n in range(4)))", [4, 3, 2, 1]),
    "blocking": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(4) as pool: list(pool.map(lambda n: Weather.list(n=n), range(4)))",
        [4, 3, 2, 1],
    ),
    "both": ("await asyncio.gather(asyncio.to_thread(Weather.list), Weather.aio.list(), get_local())", [3, 2, 1]),
}


@pytest.mark.parametrize("code, batches", PARTIAL.values(), ids=PARTIAL.keys())
def test_results_that_come_one_by_one(run: Runner, code: str, batches: list[int]) -> None:
    got = run(code, last)
    assert (sizes(got), got.stderr, got.done) == (batches, "", {"exit": 0})
    assert all(set(map(str, after)) <= set(map(str, before)) for before, after in zip(got.batches, got.batches[1:]))


def test_a_thread_goes_on_with_its_result_before_the_others_are_asked_for_again(run: Runner) -> None:
    got = run(
        """
        import time
        from concurrent.futures import ThreadPoolExecutor
        def work(n):
            Weather.list(n=n)
            time.sleep(0.005)
            Weather.list(again=n)
        with ThreadPoolExecutor(4) as pool: list(pool.map(work, range(4)))
        """,
        last,
    )
    assert (sizes(got), got.stderr) == ([4, 4, 3, 3, 2, 2, 1, 1], "")


def test_no_results_at_first(run: Runner) -> None:
    turns = iter(range(10))
    got = run("print(Weather.list(n=1))", lambda batch: echo(batch) if next(turns) == 3 else [])
    assert (sizes(got), got.stdout) == ([1, 1, 1, 1], "{'n': 1}\n")
    assert all(batch == got.batches[0] for batch in got.batches)


def _without_carets(text: str) -> str:
    """Return a traceback without the marks below the lines, which Python 3.13 and later add to more of them."""
    return "".join(line for line in text.splitlines(keepends=True) if not re.fullmatch(r"[ ~^]+\n", line))


def test_a_call_that_fails(run: Runner) -> None:
    got = run(
        """
        for call in (Weather.list, lambda: asyncio.run(Weather.aio.list())):
            try: call()
            except ToolExecutionError as error: print(error, error.code)
        Weather.list()
        """,
        lambda batch: [{"n": call["n"], "error": "no such city", "about": {"code": "E404"}} for call in batch],
    )
    assert got.stdout == "no such city E404\n" * 2
    assert got.done == {"error": "ToolExecutionError: no such city", "memory": False, "exit": 1}
    assert _without_carets(got.stderr) == textwrap.dedent(
        """\
        Traceback (most recent call last):
          File "<program>", line 6, in <module>
            Weather.list()
        ToolExecutionError: no such city
        """
    )


WRONG = {
    "missing": (
        "Weather.get_current('Paris')",
        "TypeError: Weather.get_current() is missing the argument user_id; its "
        "signature is Weather.get_current(city: str, units: Literal['c', 'f'] = 'c', *, user_id: int)",
    ),
    "unknown": (
        "await Weather.aio.get_current(town='Paris', **{'user-id': 1})",
        "TypeError: Weather.aio.get_current() has no argument town; its signature is "
        "Weather.aio.get_current(city: str, units: Literal['c', 'f'] = 'c', *, user_id: int)",
    ),
    "not JSON": (
        "Weather.list(tags={1})",
        "TypeError: Weather.list() cannot send the argument tags: Object of type set is not JSON serializable",
    ),
    "no tool": ("Weather.nothing()", "AttributeError: type object 'Weather' has no attribute 'nothing'"),
}


@pytest.mark.parametrize("code, error", WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments(run: Runner, code: str, error: str) -> None:
    got = run(code)
    assert (got.done or {})["error"] == error
    assert got.batches == [] and got.stderr.count("File ") == 1 and 'File "<program>", line 2' in got.stderr


def test_an_error_in_a_thread_is_told_without_our_frames(run: Runner) -> None:
    got = run(
        """
        import threading
        def work():
            Weather.list(tags={1})
        thread = threading.Thread(target=work, name="mine")
        thread.start()
        thread.join()
        """
    )
    assert _without_carets(got.stderr) == textwrap.dedent(
        """\
        Exception in thread mine:
        Traceback (most recent call last):
          File "<program>", line 5, in work
            Weather.list(tags={1})
        TypeError: Weather.list() cannot send the argument tags: Object of type set is not JSON serializable
        """
    )


IMPORTS = {
    "near": (
        "from fermata_tools.wether import Weather",
        "this program has no toolset 'wether'; did you mean `from fermata_tools.weather import Weather`? "
        "There is github, weather",
    ),
    "a class": (
        "from fermata_tools import GitHub",
        "this program has no toolset 'GitHub'; did you mean `from fermata_tools.github import GitHub`? "
        "There is github, weather",
    ),
    "far": ("import fermata_tools.zzz", "this program has no toolset 'zzz'; there is github, weather"),
    "long": (
        "import importlib; importlib.import_module('fermata_tools.' + 'z' * 1000)",
        f"this program has no toolset '{'z' * 64}'…; there is github, weather",
    ),
    "deeper": ("import fermata_tools.weather.current", "No module named 'fermata_tools.weather.current'"),
}


@pytest.mark.parametrize("code, error", IMPORTS.values(), ids=IMPORTS.keys())
def test_imports_of_what_is_not_there(run: Runner, code: str, error: str) -> None:
    got = run(f"try: {code}\nexcept ImportError as e: print(str(e).partition('; \\'fermata')[0])", imports="")
    assert (got.stdout, got.stderr) == (f"{error}\n", "")


def test_the_traceback_of_a_wrong_import_is_the_programs(run: Runner) -> None:
    got = run("import fermata_tools.zzz", imports="")
    assert got.stderr.count("File ") == 1
    assert (got.done or {})["error"] == "ImportError: this program has no toolset 'zzz'; there is github, weather"


EQUAL = {
    "from": "from fermata_tools import weather\nprint(weather.Weather.list())",
    "import": "import fermata_tools.weather as w\nprint(w.Weather.list())",
    "package": "import fermata_tools\nprint(fermata_tools.weather.Weather.list())",
    "star": "from fermata_tools.weather import *\nprint(Weather.list())",
    "once": f"{IMPORT}W = Weather\n{IMPORT}assert W is Weather\nprint(W().list())",
    "a file of the same name": f"open('fermata_tools.py', 'w').write('x')\n{IMPORT}print(Weather.list())",
}


@pytest.mark.parametrize("code", EQUAL.values(), ids=EQUAL.keys())
def test_ways_to_import(run: Runner, code: str) -> None:
    got = run(code, imports="")
    assert (got.stdout, got.stderr, sizes(got)) == ("{}\n", "", [1])


def test_other_modules_are_not_touched(run: Runner) -> None:
    got = run("try: import fermata_toolz\nexcept ModuleNotFoundError as e: print(e)\nimport colorsys", imports="")
    assert (got.stdout, got.stderr) == ("No module named 'fermata_toolz'\n", "")


def test_a_program_without_toolsets_has_no_package(worker_process: WorkerProcess) -> None:
    got = worker_process.run({"code": f"try:\n {IMPORT}except ImportError as e: print(e)", "stubs": STUBS}, echo)
    assert got.stdout == "No module named 'fermata_tools'\n"


def test_what_an_author_can_ask(run: Runner) -> None:
    got = run(
        """
        import inspect
        help(Weather)
        print(inspect.signature(Weather.get_current) == inspect.signature(Weather.aio.get_current))
        print(inspect.iscoroutinefunction(Weather.aio.list), inspect.iscoroutinefunction(Weather.list))
        print(inspect.getsource(Weather).startswith('class Weather:'), Weather.list, Weather.aio.list.__name__)
        """
    )
    for part in ("class Weather", "Current weather and forecasts.", "get_current(city: str, units: ", "user-id"):
        assert part in got.stdout
    assert "True\nTrue False\nTrue <function Weather.list at " in got.stdout and got.stderr == ""


def test_a_twin_that_nobody_awaits(run: Runner) -> None:
    got = run("Weather.aio.list()")
    assert got.stderr == (
        "RuntimeWarning: the tool Weather.aio.list was not called: write `await Weather.aio.list(...)`\n"
    )


FORKED = {
    "method": "Weather.list()",
    "twin": "asyncio.run(Weather.aio.list())",
    "plain tool": "asyncio.run(get_local())",
}


@pytest.mark.parametrize("call", FORKED.values(), ids=FORKED.keys())
def test_a_process_that_was_forked_cannot_call(run: Runner, call: str) -> None:
    got = run(
        f"""
        def work(n):
            try: {call}
            except RuntimeError as error: return str(error)
        def main():
            import multiprocessing
            from concurrent.futures import ProcessPoolExecutor
            with ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
                print(*pool.map(work, range(2)), sep="\\n")
        main()
        print(Weather.list(n=1))
        """
    )
    refusal = "tools can be called only in the program's own process; use threads in place of processes\n"
    assert (got.stdout, got.stderr) == (refusal * 2 + "{'n': 1}\n", "")


@pytest.mark.parametrize("when", ["after", "before"])
def test_a_thread_that_the_program_does_not_wait_for(run: Runner, when: str) -> None:
    """As the interpreter, the end of the program waits for it."""
    got = run(
        f"""
        import threading, time
        def late():
            if {when == 'after'}: time.sleep(0.2)
            print(Weather.list(n=1))
        threading.Thread(target=late).start()
        if {when == 'before'}: time.sleep(0.1)
        """
    )
    assert (got.stdout, got.done, len(got.batches)) == ("{'n': 1}\n", {"exit": 0}, 1)


def test_a_call_beside_a_thread_that_never_rests(run: Runner) -> None:
    got = run(
        """
        import threading
        stop = []
        def spin():
            while not stop: pass
        threading.Thread(target=spin).start()
        print(Weather.list(n=1))
        stop.append(1)
        """
    )
    assert (got.stdout, sizes(got)) == ("{'n': 1}\n", [1])


# Shell scripts.

FUNCTIONS = (
    'ask() { __fermata_call 0 "$@"; }\nweather_get_current() { __fermata_call weather.get_current "$@"; }\n'
    'forged() { __fermata_call weather.other "$@"; }\n'
)


@pytest.fixture(name="script")
def _script(worker_process: WorkerProcess) -> Runner:
    def run(code: str, answer: Answer = echo, tools: list[str] = ["ask"]) -> Run:
        toolsets = [{"key": "weather", "class": "Weather", "methods": {"get_current": "get-current"}}]
        program = {"mode": "bash", "code": code, "stubs": FUNCTIONS, "package": "fermata_tools", "toolsets": toolsets}
        return worker_process.run(program | {"tools": tools}, answer)

    return run


def test_functions_of_a_script(script: Runner) -> None:
    got = script('weather_get_current \'{"city": "Paris"}\' & wait; ask')
    assert names(got) == [[("weather", "get-current")], [("", "ask")]]
    assert (got.stdout, got.stderr) == ('{"city":"Paris"}\n{}\n', "")


def test_a_script_with_toolsets_only(script: Runner) -> None:
    got = script("weather_get_current > a & weather_get_current > b & wait; cat a b", tools=[])
    assert (names(got), got.stdout) == ([[("weather", "get-current")] * 2], "{}\n{}\n")


def test_a_function_without_a_tool(script: Runner) -> None:
    got = script("forged || printf %s $?")
    assert (got.batches, got.stdout) == ([], "1")


def test_wrong_input_of_a_function(script: Runner) -> None:
    got = script("weather_get_current 5 || printf %s $?")
    assert got.stderr == "tool input for weather.get-current must be a JSON object, got: 5\n"


def test_what_functions_call_their_tools() -> None:
    toolsets = [{"key": "a", "methods": {"b": "c.d"}}, {"key": "e"}]
    assert shell.known(["x", "y"], toolsets) == {"0": Tool("x"), "1": Tool("y"), "a.b": Tool("c.d", "a")}
