"""Modules of toolsets, as the server's package stubs generates them, with a hook over the runner's own arguments."""

from __future__ import annotations

import asyncio
import inspect
import pydoc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest

from fermata.arguments import Arguments

SOURCE = Path(__file__).parents[2] / "stubs/testdata/toolsets/weather.py.golden"


def hook(
    toolset: str, name: str, object_first: bool, *others: dict[str, bool], **traits: Any
) -> Callable[[FunctionType], Callable[..., Any]]:
    """Make a function that returns what the server would be told of a call."""

    def decorate(declared: FunctionType) -> Callable[..., Any]:
        arguments = Arguments(declared.__name__, object_first, declared, *others, **traits)

        def call(*args: Any, **kwargs: Any) -> Any:
            return toolset, name, arguments.bind(args, kwargs)

        async def twin(*args: Any, **kwargs: Any) -> Any:
            return call(*args, **kwargs)

        function: Any = twin if inspect.iscoroutinefunction(declared) else call
        function.__wrapped__, function.__doc__, function.__name__ = declared, declared.__doc__, declared.__name__
        return function  # type: ignore[no-any-return]

    return decorate


@pytest.fixture
def weather(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of the toolset, imported as programs do."""
    package = ModuleType("fermata_tools")
    package.__path__ = []
    package._tool = hook  # type: ignore[attr-defined]
    module = ModuleType("fermata_tools.weather")
    module.__package__ = package.__name__
    monkeypatch.setitem(sys.modules, package.__name__, package)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(SOURCE.read_text(), str(SOURCE), "exec", dont_inherit=True), module.__dict__)
    names: dict[str, Any] = {}
    exec("from fermata_tools.weather import *", names)
    yield names["Weather"]


def test_a_method_is_called_without_an_instance(weather: Any) -> None:
    assert weather.get_current("Paris", **{"user-id": 1}) == (
        "weather",
        "get-current",
        {"city": "Paris", "user-id": 1},
    )
    assert weather().list(tags=["a"], cls="b") == ("weather", "list", {"tags": ["a"], "cls": "b"})
    assert weather.get_current({"city": "Paris", "user-id": 1})[2] == {"city": "Paris", "user-id": 1}


def test_a_name_that_classes_change_arrives(weather: Any) -> None:
    assert weather.tool__init__(**{"__secret": "s"}, self="me") == (
        "weather",
        "__init__",
        {"__secret": "s", "self": "me"},
    )


def test_wrong_arguments_are_refused(weather: Any) -> None:
    with pytest.raises(TypeError, match="get_current.*user_id"):
        weather.get_current("Paris")
    with pytest.raises(TypeError, match="town"):
        weather.get_current(town="Paris", **{"user-id": 1})


def test_the_twin_is_awaited(weather: Any) -> None:
    async def program() -> Any:
        return await asyncio.gather(weather.aio.list(), weather.aio.report(at={"a": 1}))

    assert asyncio.run(program()) == [("weather", "list", {}), ("weather", "report", {"at": {"a": 1}})]


def test_threads_call_methods(weather: Any) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda city: weather.get_current(city=city, **{"user-id": 1})[2]["city"], "abc"))
    assert results == ["a", "b", "c"]


def test_help_and_signatures(weather: Any) -> None:
    shown = str(inspect.signature(weather.get_current)).replace("typing.", "")
    assert shown == "(city: str, units: Literal['c', 'f'] = 'c', *, user_id: int) -> dict[str, Any]"
    assert inspect.signature(weather.get_current) == inspect.signature(weather.aio.get_current)
    text = pydoc.plain(pydoc.render_doc(weather))
    for part in ("class Weather", "Current weather and forecasts.", "get_current(city: str, units: ", "user-id", "aio"):
        assert part in text
    assert (inspect.getdoc(weather.report) or "").startswith("Args:\n    at: object, required.")
    assert weather.aio.list.__doc__ == "Weather.list, to be awaited."
