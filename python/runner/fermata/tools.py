"""Tool stubs: the functions that the program calls.

The server's package stubs generates source with one decorated function for each tool.
Executing that source here makes the functions that the program sees.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable
from typing import Any, Literal

Stub = Callable[..., Awaitable[Any]]
Invoke = Callable[[str, dict[str, Any]], Awaitable[Any]]


class ToolExecutionError(RuntimeError):
    """A tool has failed. The text is the message that the client sent as its result."""

    # So that tracebacks have the name that programs use.
    __module__ = "builtins"


def define(source: str, invoke: Invoke) -> dict[str, Stub]:
    """Execute the generated source and return its stubs by identifier.

    ``invoke(name, input)`` makes the call and waits for its result.
    """
    stubs: dict[str, Stub] = {}

    def tool(name: str, identifier: str, object_first: bool) -> Callable[[Stub], Stub]:
        def decorate(declared: Stub) -> Stub:
            stub = _stub(name, identifier, object_first, declared, invoke)
            stubs[identifier] = stub
            return stub

        return decorate

    namespace = {"tool": tool, "Any": Any, "Literal": Literal}
    exec(compile(source, __file__, "exec", dont_inherit=True), namespace)
    return stubs


def _stub(name: str, identifier: str, object_first: bool, declared: Any, invoke: Invoke) -> Stub:
    code = declared.__code__
    parameters: tuple[str, ...] = code.co_varnames[: code.co_argcount]

    @functools.wraps(declared)
    async def stub(*args: Any, **kwargs: Any) -> Any:
        return await invoke(name, _bind(identifier, parameters, object_first, args, kwargs))

    stub.__name__ = stub.__qualname__ = identifier
    stub.__module__ = "tools"
    return stub


def _bind(
    identifier: str,
    parameters: tuple[str, ...],
    object_first: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> dict[str, Any]:
    """Return the input of a call: the arguments that were passed, in order, without defaults."""
    if not args:
        return kwargs
    if len(args) == 1 and not kwargs and isinstance(args[0], dict) and _is_input(args[0], parameters, object_first):
        return args[0]
    if len(args) > len(parameters):
        raise TypeError(
            f"{identifier}() takes at most {len(parameters)} positional arguments but {len(args)} were given"
        )
    bound = dict(zip(parameters, args))
    for key in kwargs:
        if key in bound:
            raise TypeError(f"{identifier}() got multiple values for argument {key!r}")
    return bound | kwargs


def _is_input(value: dict[Any, Any], parameters: tuple[str, ...], object_first: bool) -> bool:
    """Tell whether a dict that is the only argument is the whole input of the call.

    Otherwise it is the value of the first parameter, which is the case if a key is not a
    string, or if that parameter takes objects and a key is not the name of a parameter.
    """
    if not all(isinstance(key, str) for key in value):
        return False
    return not parameters or not object_first or all(key in parameters for key in value)
