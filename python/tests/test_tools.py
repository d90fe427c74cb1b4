"""Tool stubs: what they look like and how their arguments become an input."""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections.abc import Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata import tools, values

SOURCE = """
@tool("get-weather", "get_weather", False)
async def _(city: str, units: Literal["c", "f"] = "c", **extra: Any) -> Any:
    "Current weather.\\n\\nArgs:\\n    city: string, required."

@tool("create issue", "create_issue", True, {"user-id": False})
async def _(fields: dict[str, Any], title: str = None, **extra: Any) -> Any:
    "Create an issue."

@tool("closed", "closed", False, {"user-id": True, "from": False})
async def _(city: str, days: int = 3) -> Any:
    ""

@tool("late", "late", False)
async def _(a: int = 1, *, b: Any, c: list[Any], d: int | None = None) -> Any:
    ""

@tool("spelled", "spelled", False, {"from": True, "user-id": False}, names={"ID": "ＩＤ", "from_": "from", "user_id": "user-id"})
async def _(ID: int, url: str = None, *, from_: str, user_id: int = None) -> Any:
    ""

@tool("query", "query", False, {"$where": False})
async def _(maxResults: int = 10, line1: str = None, head: int = None, **extra: Any) -> Any:
    ""

@tool("anything", "anything", False, anything=True)
async def _(head: int = None, **extra: Any) -> Any:
    ""

@tool("météo", "mto", False, also="météo")
async def _(**extra: Any) -> Any:
    ""

@tool("two_objects", "two_objects", True)
async def _(a: dict[str, Any], b: Any, **extra: Any) -> Any:
    ""

@tool("nothing", "nothing", False)
async def _() -> Any:
    ""

@tool("ping", "ping", False)
async def _(**extra: Any) -> Any:
    ""
"""

made: list[tuple[str, dict[str, Any]]] = []


def invoke(name: str, input: dict[str, Any]) -> Coroutine[Any, Any, Any]:
    values.encode(input)

    async def made_call() -> Any:
        made.append((name, input))
        return {"got": name}

    return made_call()


STUBS = tools.define(SOURCE, invoke)


def call(identifier: str, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the input that a call of the stub makes."""
    made.clear()
    result = asyncio.run(STUBS[identifier](*args, **kwargs))  # type: ignore[arg-type]
    [(name, input)] = made
    assert result == {"got": name}
    return input


COLLIDING = {"self": 1, "name": 2, "tool_name": 3, "kwargs": 4, "input": 5, "args": 6, "invoke": 7, "identifier": 8}

BINDING: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]] = {
    "nothing": ("ping", (), {}, {}),
    "keywords in their order": ("get_weather", (), {"units": "f", "city": "x"}, {"units": "f", "city": "x"}),
    "None is sent": ("get_weather", (), {"city": None}, {"city": None}),
    "a default is not sent": ("get_weather", (), {"city": "x"}, {"city": "x"}),
    "further keyword": ("get_weather", (), {"city": "x", "planet": "Mars"}, {"city": "x", "planet": "Mars"}),
    "further keyword of a tool without parameters": ("ping", (), {"a": 1}, {"a": 1}),
    "names that ours could collide with": ("ping", (), COLLIDING, COLLIDING),
    "extra is a name like any other": ("ping", (), {"extra": 1}, {"extra": 1}),
    "keyword that is no identifier": ("ping", (), {"user-id": 1}, {"user-id": 1}),
    "keyword that is no identifier, declared": (
        "closed",
        (),
        {"city": 1, "user-id": 2, "from": 3},
        {"city": 1, "user-id": 2, "from": 3},
    ),
    "one dict with such a key": ("closed", ({"user-id": 2, "city": 1},), {}, {"user-id": 2, "city": 1}),
    "first takes objects, such a key is an argument": (
        "create_issue",
        ({"fields": {}, "user-id": 1},),
        {},
        {"fields": {}, "user-id": 1},
    ),
    "first takes objects, another one is required": (
        "two_objects",
        ({"a": {}, "b": 1, "c": 2},),
        {},
        {"a": {}, "b": 1, "c": 2},
    ),
    "required behind an optional one": ("late", (), {"b": 2, "c": []}, {"b": 2, "c": []}),
    "required behind an optional one, by position": ("late", (1, 2, [], 4), {}, {"a": 1, "b": 2, "c": [], "d": 4}),
    "spelled as Python does": ("spelled", (), {"ID": 1, "from_": "x"}, {"ＩＤ": 1, "from": "x"}),
    "spelled as in the schema": ("spelled", (), {"ＩＤ": 1, "from": "x"}, {"ＩＤ": 1, "from": "x"}),
    "another spelling, by position": (
        "spelled",
        (1, "u"),
        {"user_id": 2, "from": 3},
        {"ＩＤ": 1, "url": "u", "user-id": 2, "from": 3},
    ),
    "another spelling in one dict": ("spelled", ({"ID": 1, "from_": "x"},), {}, {"ＩＤ": 1, "from": "x"}),
    "unlike all others": ("query", (), {"planet": 1, "order": 2}, {"planet": 1, "order": 2}),
    "like another in all but a number": ("query", (), {"line2": 1}, {"line2": 1}),
    "like another that is there as well": ("query", (), {"head": 1, "heads": 2}, {"head": 1, "heads": 2}),
    "like another of a tool that takes anything": ("anything", (), {"heads": 2}, {"heads": 2}),
    "a second name": ("météo", (), {"a": 1}, {"a": 1}),
    "positional": ("get_weather", ("x",), {}, {"city": "x"}),
    "all positional": ("get_weather", ("x", "f"), {}, {"city": "x", "units": "f"}),
    "positional, then keyword": ("get_weather", ("x",), {"units": "f"}, {"city": "x", "units": "f"}),
    "positional, then further keyword": ("get_weather", ("x",), {"a": 1}, {"city": "x", "a": 1}),
    "one dict is the input": ("get_weather", ({"city": "x"},), {}, {"city": "x"}),
    "one dict with a further key is the input": (
        "get_weather",
        ({"planet": "x", "city": 1},),
        {},
        {"planet": "x", "city": 1},
    ),
    "one dict for a tool without parameters": ("ping", ({"a": 1},), {}, {"a": 1}),
    "one dict that is empty": ("nothing", ({},), {}, {}),
    "one dict with a key that is not a name is a value": ("get_weather", ({1: 2},), {}, {"city": {1: 2}}),
    "dict and keyword: the dict is a value": (
        "get_weather",
        ({"city": "x"},),
        {"units": "f"},
        {"city": {"city": "x"}, "units": "f"},
    ),
    "first takes objects, keys are parameters": ("create_issue", ({"fields": {}},), {}, {"fields": {}}),
    "first takes objects, keys are not": ("create_issue", ({"severity": 1},), {}, {"fields": {"severity": 1}}),
    "first takes objects, some keys are": (
        "create_issue",
        ({"title": "x", "severity": 1},),
        {},
        {"fields": {"title": "x", "severity": 1}},
    ),
    "first takes objects, two arguments": (
        "create_issue",
        ({"title": 1}, "t"),
        {},
        {"fields": {"title": 1}, "title": "t"},
    ),
}


@pytest.mark.parametrize("identifier, args, kwargs, want", BINDING.values(), ids=BINDING.keys())
def test_binding(identifier: str, args: tuple[Any, ...], kwargs: dict[str, Any], want: dict[str, Any]) -> None:
    got = call(identifier, *args, **kwargs)
    assert got == want
    assert list(got) == list(want), "the order of the arguments is lost"


WEATHER = "; its signature is get_weather(city: str, units: Literal['c', 'f'] = 'c', **extra)"
ISSUE = "; its signature is create_issue(fields: dict[str, Any], title: str = None, **extra)"
CLOSED = " signature is closed(city: str, days: int = 3)"

SPELLED = "; its signature is spelled(ID: int, url: str = None, *, from_: str, user_id: int = None)"
QUERY = " signature is query(maxResults: int = 10, line1: str = None, head: int = None, **extra)"

REFUSED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "nothing": ("get_weather", (), {}, f"get_weather() is missing the argument city{WEATHER}"),
    "a required one is missing": (
        "get_weather",
        (),
        {"town": "x"},
        f"get_weather() is missing the argument city{WEATHER}",
    ),
    "two are missing": (
        "late",
        (),
        {},
        "late() is missing the arguments b and c; its signature is "
        "late(a: int = 1, *, b: Any, c: list[Any], d: int | None = None)",
    ),
    "one with another spelling is missing": (
        "spelled",
        (),
        {"ID": 1},
        f"spelled() is missing the argument from_{SPELLED}",
    ),
    "one with another spelling is there twice": (
        "spelled",
        (),
        {"from": 1, "from_": 2},
        f"spelled() got the argument 'from' twice, once as from_{SPELLED}",
    ),
    "one with another spelling is there twice, by position": (
        "spelled",
        (1,),
        {"ID": 2, "from": 1},
        f"spelled() got the argument ＩＤ twice, by position and by name{SPELLED}",
    ),
    "misspelled": ("query", (), {"heads": 1}, f"query() has no argument heads; did you mean head? Its{QUERY}"),
    "misspelled with underscores": (
        "query",
        (),
        {"max_results": 1},
        f"query() has no argument max_results; did you mean maxResults? Its{QUERY}",
    ),
    "misspelled, no identifier": (
        "query",
        (),
        {"where": 1},
        f"query() has no argument where; did you mean '$where'? Its{QUERY}",
    ),
    "missing in one dict": (
        "get_weather",
        ({"units": "f"},),
        {},
        f"get_weather() is missing the argument city{WEATHER}",
    ),
    "missing in one dict where the first takes objects": (
        "create_issue",
        ({"title": "x"},),
        {},
        f"create_issue() is missing the argument fields{ISSUE}",
    ),
    "one that is no identifier is missing": (
        "closed",
        ("x",),
        {},
        f"closed() is missing the argument 'user-id', to be passed as **{{'user-id': ...}}; its{CLOSED}",
    ),
    "unknown": ("closed", ("x",), {"planet": 1}, f"closed() has no argument planet; its{CLOSED}"),
    "unknown, like one": (
        "closed",
        (),
        {"citty": 1},
        f"closed() has no argument citty; did you mean city? Its{CLOSED}",
    ),
    "unknown, like one that is no identifier": (
        "closed",
        ("x",),
        {"user_id": 1},
        f"closed() has no argument user_id; did you mean 'user-id'? Its{CLOSED}",
    ),
    "unknown in one dict": ("closed", ({"city": 1, "": 2},), {}, f"closed() has no argument ''; its{CLOSED}"),
    "unknown and long": (
        "closed",
        (),
        {"x" * 1_000_000: 1},
        f"closed() has no argument '{'x' * 64}'…; its{CLOSED}",
    ),
    "unknown of a tool that takes none": (
        "nothing",
        (),
        {"a": 1},
        "nothing() has no argument a; its signature is nothing()",
    ),
    "too many": (
        "get_weather",
        (1, 2, 3),
        {},
        f"get_weather() takes at most 2 arguments by position, but got 3{WEATHER}",
    ),
    "no parameters": (
        "ping",
        (1,),
        {},
        "ping() takes no arguments by position, but got 1; its signature is ping(**extra)",
    ),
    "twice": (
        "get_weather",
        ("x",),
        {"city": "y"},
        f"get_weather() got the argument city twice, by position and by name{WEATHER}",
    ),
    "not JSON": (
        "get_weather",
        ("x",),
        {"units": {1}},
        "get_weather() cannot send the argument units: Object of type set is not JSON serializable",
    ),
    "not JSON, inside": (
        "get_weather",
        (),
        {"city": [{"a": b""}], "units": 1},
        "get_weather() cannot send the argument city: Object of type bytes is not JSON serializable",
    ),
    "not JSON, behind one that is too large": (
        "get_weather",
        ("x" * 6_000_000,),
        {"user-id": 1j},
        "get_weather() cannot send the argument 'user-id': Object of type complex is not JSON serializable",
    ),
    "a key that is not JSON": (
        "get_weather",
        ("x",),
        {"units": {(1, 2): 3}},
        "get_weather() cannot send the argument units: keys must be str, int, float, bool or None, not tuple",
    ),
}


@pytest.mark.parametrize("identifier, args, kwargs, message", REFUSED.values(), ids=REFUSED.keys())
def test_refused_at_the_call(identifier: str, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    made.clear()
    with pytest.raises(TypeError) as caught:
        STUBS[identifier](*args, **kwargs)
    assert str(caught.value) == message
    assert caught.value.__context__ is None, "the traceback shows more than the call"
    assert made == []


@given(
    required=st.integers(0, 3),
    optional=st.lists(st.booleans(), max_size=3),
    closed=st.booleans(),
    given_args=st.integers(0, 7),
    given_names=st.lists(st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "x-y"]), unique=True),
)
def test_binding_is_that_of_python(
    required: int, optional: list[bool], closed: bool, given_args: int, given_names: list[str]
) -> None:
    """A stub takes what a function with its signature takes, in which nothing that is required has a default."""
    names = ["a", "b", "c", "d", "e", "f"][: required + len(optional)]
    defaults = dict(zip(names[required:], ("..." if late else "None" for late in optional)))
    parameters = [f"{name}: Any = {defaults[name]}" if name in defaults else f"{name}: Any" for name in names]
    others = ["**extra: Any"] * (not closed)
    late = next((at for at, name in enumerate(names) if defaults.get(name) == "..." and at > required), len(names))
    declared = [parameter.replace(" = ...", "") for parameter in parameters]
    signature = ", ".join(declared[:late] + ["*"] * (late < len(names)) + declared[late:] + others)
    stub = tools.define(f'@tool("t", "t", False)\nasync def _({signature}) -> Any:\n    ""\n', invoke)["t"]
    args, kwargs = range(given_args), dict.fromkeys(given_names, "by name")
    scope: dict[str, Any] = {"Any": Any}
    exec(f"def function({', '.join(parameters + others)}): pass", scope)
    want: dict[str, Any] | None
    try:
        bound = inspect.signature(scope["function"]).bind(*args, **kwargs).arguments
        want = bound | bound.pop("extra", {})
        if not {name for name, default in defaults.items() if default == "..."} <= want.keys():
            want = None
    except TypeError:
        want = None
    made.clear()
    try:
        asyncio.run(stub(*args, **kwargs))  # type: ignore[arg-type]
        got = made[0][1]
    except TypeError:
        got = None
    assert got == want


def test_signature_of_many_arguments_is_cut() -> None:
    names = [f"parameter_{n}" for n in range(250)]
    source = (
        f'@tool("many", "many", False)\nasync def _({", ".join(f"{name}: Any" for name in names)}) -> Any:\n    ""\n'
    )
    with pytest.raises(TypeError) as caught:
        tools.define(source, invoke)["many"]()
    missing, _, signature = str(caught.value).partition("; its signature is ")
    assert missing == f"many() is missing the arguments {', '.join(names[:10])} and 240 others"
    assert signature.startswith("many(parameter_0: Any, parameter_1: Any, ") and signature.endswith("…")
    assert len(signature) == 1_001


def test_stub_looks_like_a_function() -> None:
    stub = STUBS["get_weather"]
    assert list(STUBS) == [
        "get_weather",
        "create_issue",
        "closed",
        "late",
        "spelled",
        "query",
        "anything",
        "mto",
        "météo",
        "two_objects",
        "nothing",
        "ping",
    ]
    assert (stub.__name__, stub.__qualname__, stub.__module__) == ("get_weather", "get_weather", "tools")
    assert stub.__doc__ == "Current weather.\n\nArgs:\n    city: string, required."
    assert inspect.iscoroutinefunction(stub)
    if sys.version_info < (3, 14):  # it is deprecated since
        assert asyncio.iscoroutinefunction(stub)
    signature = inspect.signature(stub)
    assert list(signature.parameters) == ["city", "units", "extra"]
    assert signature.parameters["units"].default == "c"
    assert signature.parameters["city"].annotation is str


def test_nothing_is_called_without_await() -> None:
    made.clear()
    coroutine = STUBS["ping"]()
    assert inspect.iscoroutine(coroutine)
    assert (coroutine.__name__, coroutine.__qualname__) == ("ping", "ping")
    coroutine.close()
    assert made == []


def test_error_is_a_runtime_error() -> None:
    assert issubclass(tools.ToolExecutionError, RuntimeError)
    assert str(tools.ToolExecutionError("a: b")) == "a: b"


def test_source_sees_no_names_of_ours() -> None:
    with pytest.raises(NameError):
        tools.define("Invoke", invoke)
