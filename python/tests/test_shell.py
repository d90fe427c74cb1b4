"""Tests of shell scripts: tools as functions, pauses, and how scripts end."""

from __future__ import annotations

import asyncio
import json
import os
import textwrap
from typing import Any

import pytest
from conftest import Answer, Run, Runner, WorkerProcess, echo

from fermata import shell, values

# The functions that the server's package stubs generates for the tools below.
FUNCTIONS = "".join(
    f'{name}() {{ __fermata_call {place} "$@"; }}\n'
    for place, name in enumerate(("ask", "get_weather", "echo", "read"))
)
TOOLS = ["ask", "get-weather", "echo", "read"]


def failing(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"n": call["n"], "error": "no such city"} for call in batch]


@pytest.fixture(name="run")
def _run(worker_process: WorkerProcess) -> Runner:
    def run(code: str, answer: Answer = echo, tools: list[str] = TOOLS, args: list[str] | None = None) -> Run:
        program = {"mode": "bash", "code": textwrap.dedent(code), "stubs": FUNCTIONS, "tools": tools}
        return worker_process.run(program | ({"args": args} if args else {}), answer)

    return run


COMPLETE: dict[str, tuple[str, str]] = {
    "nothing": ("", ""),
    "print": ("printf 'é\\n'", "é\n"),
    "a call": ('ask \'{"city":"Paris"}\'', '{"city":"Paris"}\n'),
    "no argument": ("ask", "{}\n"),
    "an empty argument": ("ask ''", "{}\n"),
    "white space": ('ask \' { "a" : [ 1, "x  y" ] } \'', '{"a":[1,"x  y"]}\n'),
    "in a variable": ("x=$(ask '{\"n\":1}'); printf '%s' \"$x\"", '{"n":1}'),
    "in a pipe": ("ask '{\"n\":1}' | tr n m", '{"m":1}\n'),
    "in a child": ('bash -c \'ask "{\\"n\\":2}"\'', '{"n":2}\n'),
    "in a condition": ("if ask >/dev/null; then printf yes; fi", "yes"),
    "guard of the client": (': &\nwait "$!"\nset -u\nask', "{}\n"),
    "strict": ("set -euo pipefail\nIFS=x\nask", "{}\n"),
    "status": ("ask >/dev/null\nprintf %s $?", "0"),
    "the name of a builtin": ("read '{\"n\":1}'\necho '{\"n\":2}'", '{"n":1}\n{"n":2}\n'),
    "standard input": ("cat; printf end", "end"),
    "name of the script": ('[[ ${BASH_SOURCE[0]} == "$0" ]] && printf main', "main"),
    "no newline in a backslash": ("printf '%s' '\\n'", "\\n"),
}


@pytest.mark.parametrize("code, stdout", COMPLETE.values(), ids=COMPLETE.keys())
def test_complete(run: Runner, code: str, stdout: str) -> None:
    got = run(code)
    assert (got.stdout, got.stderr) == (stdout, "")
    assert got.done == {"exit": 0}


LINES: dict[str, tuple[str, list[int]]] = {
    "each on its own": ("ask\n\nask", [1, 3]),
    "in a function": ("f() {\n  ask\n}\nf", [2]),
    "in a pipe and in a variable": ("\nx=$(ask | cat)", [2]),
    "in the background": ("ask &\nask &\nwait", [1, 2]),
    "in another script": ("bash -c 'ask'", []),
    "in a file": ("printf '\\n\\nask' > /tmp/lines.$$\n. /tmp/lines.$$\nrm /tmp/lines.$$", []),
    "forged": ("exec 9<>/dev/tcp/127.0.0.1/$__FERMATA_PORT; printf '0\\0-7\\0{}\\0' >&9; builtin read -r -u 9", [-7]),
}


@pytest.mark.parametrize("code, lines", LINES.values(), ids=LINES.keys())
def test_lines_of_calls(run: Runner, code: str, lines: list[int]) -> None:
    assert sorted(run(code).lines) == lines


EXIT: dict[str, tuple[str, int, str]] = {
    "exit": ("exit 3", 3, ""),
    "the last command": ("ask >/dev/null\nfalse", 1, ""),
    "errexit": ("set -e\nfalse\nprintf no", 1, ""),
    "no such command": ("nosuch", 127, "line 1: nosuch: command not found"),
    "syntax": ("if", 2, "syntax error"),
    "signal": ("kill -9 $$", -9, ""),
    "unbound": ('set -u\nprintf "$x"', 1, "x: unbound variable"),
}


@pytest.mark.parametrize("code, status, stderr", EXIT.values(), ids=EXIT.keys())
def test_exit(run: Runner, code: str, status: int, stderr: str) -> None:
    got = run(code)
    assert got.done == {"exit": status}
    assert stderr in got.stderr and got.stdout == ""


PARALLEL = {
    "two": ("ask & get_weather & wait", [2]),
    "twenty": ('for n in {1..20}; do ask "{\\"n\\":$n}" & done; wait', [20]),
    "in braces": ("{ x=$(ask); } & { y=$(ask); } & wait", [2]),
    "in pipes": ("ask | cat | cat & ask | cat & wait", [2]),
    "chains": ("{ ask; ask; } & { ask; ask; } & wait", [2, 2]),
    "one after the other": ("ask; ask; ask", [1, 1, 1]),
    "beside one that sleeps": ("sleep 0.3 & ask & wait", [1]),
    "children": ("bash -c ask & bash -c 'sleep 0; ask' & wait", [2]),
    "xargs": ("printf '1\\n2\\n3\\n' | xargs -P 3 -I{} bash -c 'ask \"{\\\"n\\\":{}}\"'", [3]),
}


@pytest.mark.parametrize("code, batches", PARALLEL.values(), ids=PARALLEL.keys())
def test_parallel(run: Runner, code: str, batches: list[int]) -> None:
    got = run(code)
    assert [len(batch) for batch in got.batches] == batches, got
    assert (got.done, got.stderr) == ({"exit": 0}, "")
    assert len(got.stdout.splitlines()) in (sum(batches), 0)


def test_a_call_beside_one_that_never_rests(run: Runner) -> None:
    got = run("while :; do :; done & ask; kill $!")
    assert (got.stdout, len(got.batches)) == ("{}\n", 1)


def test_the_calls(run: Runner) -> None:
    got = run('get_weather \'{"x":1.10,"y":12345678901234567890}\'')
    assert got.batches == [[{"n": 1, "tool": "get-weather", "input": {"x": 1.1, "y": 12345678901234567890}}]]


ERRORS = {
    "caught": ("ask || printf caught", '{"error":"no such city"}\ncaught', 0),
    "status": ("ask >/dev/null; printf $?", "1", 0),
    "not caught": ("set -e\nask >/dev/null\nprintf no", "", 1),
    "parsed": ("x=$(ask); printf '%s' \"${x:2:5}\"", "error", 0),
}


@pytest.mark.parametrize("code, stdout, status", ERRORS.values(), ids=ERRORS.keys())
def test_tool_error(run: Runner, code: str, stdout: str, status: int) -> None:
    got = run(code, failing)
    assert (got.stdout, got.stderr, got.done) == (stdout, "no such city\n", {"exit": status})


def test_missing_arguments(worker_process: WorkerProcess) -> None:
    program = {
        "mode": "bash",
        "stubs": FUNCTIONS,
        "tools": TOOLS,
        "required": [["city", "from"]] + [None] * (len(TOOLS) - 1),
    }
    got = worker_process.run(
        program | {"code": 'printf \'{"city": 1}\' | ask || ask \'{"city": 1, "from": null}\''}, echo
    )
    assert got.stdout == '{"city":1,"from":null}\n'
    assert got.stderr == (
        "ask is missing the arguments city, from: pass the input as a JSON object in one argument, "
        'such as \'{"city": ..., "from": ...}\'; standard input is not read\n'
    )


@pytest.mark.parametrize(
    "input", ["text", "[1]", "{", '"x"', "NaN", '{"x":NaN}', '{"x":01}', "{'x':1}", "{}{}", "[" * 100_000]
)
def test_input_that_is_no_object(run: Runner, input: str) -> None:
    got = run(f"ask {shell_quoted(input)} || printf %s $?")
    assert (got.stdout, got.batches) == ("1", [])
    assert got.stderr == f"tool input for ask must be a JSON object, got: {input[:200]}\n"


def shell_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def test_input_that_is_too_large(run: Runner) -> None:
    got = run(f'x=$(printf "%{values.MAX_INPUT}s"); ask "{{\\"x\\":\\"$x\\"}}" || printf $?; ask')
    assert (got.stdout, len(got.batches)) == ("1{}\n", 1)
    assert got.stderr == f"tool input for ask is larger than {values.MAX_INPUT} bytes\n"


@pytest.mark.parametrize(
    "input, message",
    [
        ('{"x":1,"x":2}', "has an object with the key 'x' twice"),
        ('{"x":' + "[" * 500 + "]" * 500 + "}", "is nested deeper than 500 levels"),
    ],
)
def test_input_that_clients_refuse(run: Runner, input: str, message: str) -> None:
    got = run(f"ask {shell_quoted(input)} || printf %s $?")
    assert (got.stdout, got.stderr, got.batches) == ("1", f"tool input {message}\n", [])


def test_large_input_and_result(run: Runner) -> None:
    got = run('x=$(printf "%1000000s" | tr " " x); ask "{\\"x\\":\\"$x\\"}" | wc -c')
    assert (got.stdout, got.stderr) == ("1000009\n", "")


def test_hostile_values(run: Runner) -> None:
    value = {"a": "'\"\\\n$(exit)`exit`%s\0é\u2028\ud800", "b": [1.5, None, True]}
    got = run("ask", lambda batch: [{"n": 1, "value": value}])
    assert json.loads(got.stdout) == value
    assert got.stdout.count("\n") == 1


def test_hostile_messages(run: Runner) -> None:
    message = "%s \\n 'x' \"y\"\nsecond\0third"
    got = run("ask", lambda batch: [{"n": 1, "error": message}])
    assert got.stderr == "%s \\n 'x' \"y\"\nsecondthird\n"
    assert json.loads(got.stdout) == {"error": message}


def test_missing_results_are_asked_for_again(run: Runner) -> None:
    got = run(
        "ask '{\"n\":1}' & ask '{\"n\":2}' & ask '{\"n\":3}' & wait",
        lambda batch: [{"n": batch[-1]["n"], "value": 0}],
    )
    assert [len(batch) for batch in got.batches] == [3, 2, 1]
    assert got.stdout == "0\n0\n0\n"


def test_a_call_that_was_killed_is_not_made(run: Runner) -> None:
    got = run("ask '{\"n\":1}' & kill -9 $!; wait $! 2>/dev/null; ask '{\"n\":2}' >/dev/null; printf on")
    assert got.stdout == "on"
    assert [call["input"] for batch in got.batches for call in batch] == [{"n": 2}]


def test_a_call_that_the_script_does_not_wait_for(run: Runner) -> None:
    got = run("ask >/dev/null & sleep 0.2; printf end", lambda batch: [])
    # The result of the call never came.
    assert (got.done, got.stdout) == ({"exit": 0}, "end")
    assert "Traceback" not in got.stderr and "Exception" not in got.stderr


def test_arguments(run: Runner) -> None:
    got = run('printf "%s|" "$#" "$@"', args=["a b", "", "-c", "é"])
    assert got.stdout == "4|a b||-c|é|"


def test_a_script_without_tools_has_nothing_of_ours(run: Runner) -> None:
    got = run("compgen -A function; compgen -e | grep -i fermata; compgen -e | grep BASH_ENV; printf end", tools=[])
    # The script has the environment of the tests.
    ours = [name for name in got.stdout.split() if name not in os.environ]
    assert ours == ["end"]


def test_large_script(run: Runner) -> None:
    got = run("# " + "x" * 300_000 + "\nprintf end")
    assert got.stdout == "end"


RESULTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "one": ('[{"n":1,"value":1.10}]', [{"n": 1, "value": "1.10"}]),
    "several": (
        '[{"n":1,"value":{"a":[]}},{"n":22,"error":"x\\n"},{"n":3,"error":null}]',
        [{"n": 1, "value": '{"a":[]}'}, {"n": 22, "error": "x\n"}, {"n": 3, "error": None}],
    ),
    "white space": ('[{"n": 1, "value": { "a b" : "c \\" d" ,\n"e":1} }, {"n":2,"value":"}]" }]',
                    [{"n": 1, "value": '{"a b":"c \\" d","e":1}'}, {"n": 2, "value": '"}]"'}]),
    "a failure with attributes": (
        '[{"n":1,"error":"x","about":{"code":"}"}},{"n":2,"error":null , "about": {}} , {"n":3,"value":1}]',
        [{"n": 1, "error": "x", "about": {"code": "}"}}, {"n": 2, "error": None, "about": {}}, {"n": 3, "value": "1"}],
    ),
    "numbers": ('[{"n":1,"value":[1e400,1E5,123456789012345678901234567890.10]}]',
                [{"n": 1, "value": "[1e400,1E5,123456789012345678901234567890.10]"}]),
}  # fmt: skip


@pytest.mark.parametrize("payload, want", RESULTS.values(), ids=RESULTS.keys())
def test_results(payload: str, want: list[dict[str, Any]]) -> None:
    assert list(shell.results(payload.encode())) == want


def test_no_bash(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert asyncio.run(shell.run("echo", "", {}, [], never)) == 127
    assert capsys.readouterr().err == "bash: not installed in this sandbox\n"


def test_arguments_that_are_too_long(capsys: pytest.CaptureFixture[str]) -> None:
    assert asyncio.run(shell.run("echo", "", {}, ["x" * 200_000], never)) == 126
    assert capsys.readouterr().err == "bash: Argument list too long\n"


async def never(name: str, input: str, line: int, toolset: str) -> str:
    raise AssertionError(f"{name} was called with {input}")
