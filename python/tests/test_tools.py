"""Tool stubs: what they look like and how their arguments become an input."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from fermata import tools

SOURCE = """
@tool("get-weather", "get_weather", False)
async def _(city: str, units: Literal["c", "f"] = "c", **extra: Any) -> Any:
    "Current weather.\\n\\nArgs:\\n    city: string, required."

@tool("create issue", "create_issue", True)
async def _(fields: dict[str, Any], title: str = None, **extra: Any) -> Any:
    "Create an issue."

@tool("ping", "ping", False)
async def _(**extra: Any) -> Any:
    ""
"""

made: list[tuple[str, dict[str, Any]]] = []


async def invoke(name: str, input: dict[str, Any]) -> Any:
    made.append((name, input))
    return {"got": name}


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
    "nothing": ("get_weather", (), {}, {}),
    "keywords in their order": ("get_weather", (), {"units": "f", "city": "x"}, {"units": "f", "city": "x"}),
    "None is sent": ("get_weather", (), {"city": None}, {"city": None}),
    "a default is not sent": ("get_weather", (), {"city": "x"}, {"city": "x"}),
    "unknown keyword": ("get_weather", (), {"planet": "Mars"}, {"planet": "Mars"}),
    "unknown keyword of a tool without parameters": ("ping", (), {"a": 1}, {"a": 1}),
    "names that ours could collide with": ("ping", (), COLLIDING, COLLIDING),
    "extra is a name like any other": ("get_weather", (), {"extra": 1}, {"extra": 1}),
    "keyword that is no identifier": ("get_weather", (), {"user-id": 1}, {"user-id": 1}),
    "positional": ("get_weather", ("x",), {}, {"city": "x"}),
    "all positional": ("get_weather", ("x", "f"), {}, {"city": "x", "units": "f"}),
    "positional, then keyword": ("get_weather", ("x",), {"units": "f"}, {"city": "x", "units": "f"}),
    "positional, then unknown keyword": ("get_weather", ("x",), {"a": 1}, {"city": "x", "a": 1}),
    "one dict is the input": ("get_weather", ({"city": "x"},), {}, {"city": "x"}),
    "one dict with an unknown key is the input": ("get_weather", ({"planet": "x"},), {}, {"planet": "x"}),
    "one dict for a tool without parameters": ("ping", ({"a": 1},), {}, {"a": 1}),
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


REFUSED: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], str]] = {
    "too many": (
        "get_weather",
        (1, 2, 3),
        {},
        "get_weather() takes at most 2 positional arguments but 3 were given",
    ),
    "no parameters": ("ping", (1,), {}, "ping() takes at most 0 positional arguments but 1 were given"),
    "twice": ("get_weather", ("x",), {"city": "y"}, "get_weather() got multiple values for argument 'city'"),
}


@pytest.mark.parametrize("identifier, args, kwargs, message", REFUSED.values(), ids=REFUSED.keys())
def test_refused(identifier: str, args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        call(identifier, *args, **kwargs)
    assert str(caught.value) == message
    assert made == []


def test_stub_looks_like_a_function() -> None:
    stub = STUBS["get_weather"]
    assert list(STUBS) == ["get_weather", "create_issue", "ping"]
    assert (stub.__name__, stub.__qualname__, stub.__module__) == ("get_weather", "get_weather", "tools")
    assert stub.__doc__ == "Current weather.\n\nArgs:\n    city: string, required."
    assert inspect.iscoroutinefunction(stub) and asyncio.iscoroutinefunction(stub)
    signature = inspect.signature(stub)
    assert list(signature.parameters) == ["city", "units", "extra"]
    assert signature.parameters["units"].default == "c"
    assert signature.parameters["city"].annotation is str


def test_nothing_is_called_without_await() -> None:
    made.clear()
    coroutine = STUBS["ping"]()
    assert inspect.iscoroutine(coroutine)
    coroutine.close()
    assert made == []


def test_error_is_a_runtime_error() -> None:
    assert issubclass(tools.ToolExecutionError, RuntimeError)
    assert str(tools.ToolExecutionError("a: b")) == "a: b"


def test_source_sees_no_names_of_ours() -> None:
    with pytest.raises(NameError):
        tools.define("Invoke", invoke)
