"""Tool stubs: the functions that the program calls.

The server's package stubs generates source with one decorated function for each tool.
Executing that source here makes the functions that the program sees.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from types import CodeType, FunctionType
from typing import Any, Final, Literal, NamedTuple

from fermata import lines, values
from fermata.arguments import Arguments

_NO_MESSAGE: Final = "tool execution failed"

Stub = Callable[..., Coroutine[Any, Any, Any]]
# Makes a call of a tool with an input, and returns a coroutine that waits for the result. Raises
# TypeError for an input that has no JSON form.
Invoke = Callable[[str, dict[str, Any]], Coroutine[Any, Any, Any]]


class Tool(NamedTuple):
    """The name of a tool in its calls."""

    name: str
    # The key of the toolset through which the program calls it, or empty.
    toolset: str = ""
    # The arguments that its calls must have. The stubs of Python programs check that themselves.
    required: Sequence[str] = ()


class ToolExecutionError(RuntimeError):
    """A tool has failed. The text is the message of its result, and the attributes come from its envelope."""

    # With this module, tracebacks have the name that programs use.
    __module__ = "builtins"

    code: str | None = None
    where: str | None = None
    managed: bool = False


def failure(result: Mapping[str, Any]) -> ToolExecutionError:
    """Return the exception for the result of a call that has failed."""
    error = ToolExecutionError(result["error"] or _NO_MESSAGE)
    if "about" in result:
        vars(error).update(result["about"])
    return error


def define(source: str, invoke: Invoke) -> dict[str, Stub]:
    """Execute the generated source and return its stubs by identifier."""
    stubs: dict[str, Stub] = {}

    def tool(
        name: str, identifier: str, object_first: bool, *others: Mapping[str, bool], also: str = "", **traits: Any
    ) -> Callable[[FunctionType], None]:
        def decorate(declared: FunctionType) -> None:
            arguments = Arguments(identifier, object_first, declared, *others, **traits)
            stub = async_stub(identifier, arguments, declared, functools.partial(invoke, name))
            stub.__module__ = "tools"
            stubs[identifier] = stub
            if also:
                stubs[also] = stub

        return decorate

    namespace = {"tool": tool, "Any": Any, "Literal": Literal}
    exec(compile(source, __file__, "exec", dont_inherit=True), namespace)
    return stubs


def async_stub(
    identifier: str,
    arguments: Arguments,
    declared: FunctionType,
    invoke: Callable[[dict[str, Any]], Coroutine[Any, Any, Any]],
) -> Stub:
    """Return the function of a tool, whose calls ``invoke`` makes.

    Like every async function, it refuses wrong arguments when it is called and not when it is awaited.
    """

    @functools.wraps(declared)
    def stub(*args: Any, **kwargs: Any) -> Coroutine[Any, Any, Any]:
        try:
            input = arguments.bind(args, kwargs)
            try:
                call = invoke(input)
            except (TypeError, values.BadKey) as error:
                refused = refusal(arguments, input, error)
            else:
                # Python's warning about a coroutine that was never awaited has the name of the tool.
                call.__name__ = call.__qualname__ = identifier
                return call
            raise refused
        except BaseException as error:
            # With a bare raise, the traceback gets no line of this function: it ends in the program.
            error.__traceback__ = lines.of_program(error.__traceback__)
            raise

    stub.__name__, stub.__qualname__ = identifier.rpartition(".")[2], identifier
    _mark_as_async(stub)
    return stub


def refusal(arguments: Arguments, input: dict[str, Any], error: TypeError | ValueError) -> TypeError | ValueError:
    """Return the error for a call whose input has no JSON form; it names the argument."""
    for name, value in input.items():
        try:
            values.encode(value)
        except TypeError as problem:
            return arguments.not_json(name, problem)
        except values.BadKey as problem:
            return ValueError(str(arguments.not_json(name, problem)))
        except ValueError:
            continue
    return error


if sys.version_info >= (3, 12):
    _mark_as_async = inspect.markcoroutinefunction
else:

    def _mark_as_async(function: Any) -> None:
        """Make inspect and asyncio treat a function that returns a coroutine as an async function."""
        function.__code__ = _async_code(function.__code__)

    @functools.cache
    def _async_code(code: CodeType) -> CodeType:
        return code.replace(co_flags=code.co_flags | inspect.CO_COROUTINE)
