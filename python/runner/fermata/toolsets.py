"""Toolsets: the modules from which a program imports the classes of its tools.

The server's package stubs generates the source of each module. A module is compiled when the program
imports it.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Final

from fermata import lines, tools, values
from fermata.arguments import Arguments
from fermata.calls import Calls

# How many toolsets the message of an error lists, and how much it shows of a name, in characters.
_MAX_LISTED: Final = 20
_MAX_NAME: Final = 64

# Makes the function that is called instead of a function that a module declares.
_Decorate = Callable[[FunctionType], Callable[..., Any]]


def install(package: str, toolsets: Iterable[Mapping[str, Any]], calls: Calls) -> None:
    """Make the program's toolsets importable as modules of a package."""
    sys.meta_path.insert(0, _Finder(package, {each["key"]: each for each in toolsets}, calls))


class _Finder:
    """Finds the package and its modules for the import system."""

    def __init__(self, package: str, toolsets: Mapping[str, Mapping[str, Any]], calls: Calls) -> None:
        self._package = package
        self._toolsets = toolsets
        self._calls = calls

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the package and its modules; leave everything else to the other finders.

        Raises ImportError for a toolset that the program does not have.
        """
        if name == self._package:
            return ModuleSpec(name, _Package(self._fill), is_package=True)
        package, _, key = name.rpartition(".")
        if package != self._package:
            return None
        if key not in self._toolsets:
            try:
                raise ImportError(self._unknown(key), name=name)
            except ImportError as error:
                # With a bare raise, the traceback has no line of this function.
                error.__traceback__ = None
                raise
        spec = ModuleSpec(name, _Module(self._toolsets[key]["source"]), origin=f"{package.replace('.', '/')}/{key}.py")
        spec.has_location = True
        return spec

    def _fill(self, package: ModuleType) -> None:
        """Add to the package what it has besides its modules."""

        def attribute(name: str) -> ModuleType:
            if name in self._toolsets:
                return importlib.import_module(f"{self._package}.{name}")
            try:
                raise AttributeError(f"module {self._package!r} has no attribute {name!r}")
            except AttributeError as error:
                error.__traceback__ = None
                raise

        vars(package).update(
            __doc__="The toolsets of this program.",
            __all__=sorted(self._toolsets),
            __getattr__=attribute,
            _tool=self._tool,
        )

    def _unknown(self, key: str) -> str:
        shown = repr(key) if len(key) <= _MAX_NAME else f"{key[:_MAX_NAME]!r}…"
        keys = sorted(self._toolsets)
        # If the program asks for the class in place of the module, the module is proposed.
        classes = {str(self._toolsets[each]["class"]).lower(): each for each in keys}
        near = difflib.get_close_matches(key.lower()[:_MAX_NAME], [*keys, *classes], n=1)
        text = f"this program has no toolset {shown}"
        if near:
            right = classes.get(near[0], near[0])
            text += f"; did you mean `from {self._package}.{right} import {self._toolsets[right]['class']}`?"
            return f"{text} There is {_listed(keys)}"
        return f"{text}; there is {_listed(keys)}" if keys else text

    def _tool(
        self, toolset: str, name: str, object_first: bool, *others: Mapping[str, bool], **traits: Any
    ) -> _Decorate:
        """Return the decorator that the generated source applies to the methods of a tool."""

        def decorate(declared: FunctionType) -> Callable[..., Any]:
            identifier = declared.__qualname__
            arguments = Arguments(identifier, object_first, declared, *others, **traits)
            if not inspect.iscoroutinefunction(declared):
                return _blocking_stub(arguments, declared, functools.partial(self._calls.block, name, toolset=toolset))
            invoke = functools.partial(self._calls.invoke, name, toolset=toolset)
            return tools.async_stub(identifier, arguments, declared, invoke)

        return decorate


def _blocking_stub(
    arguments: Arguments, declared: FunctionType, block: Callable[[dict[str, Any]], Any]
) -> Callable[..., Any]:
    @functools.wraps(declared)
    def stub(*args: Any, **kwargs: Any) -> Any:
        try:
            input = arguments.bind(args, kwargs)
            try:
                return block(input)
            except (TypeError, values.BadKey) as error:
                refused = tools.refusal(arguments, input, error)
            raise refused
        except BaseException as error:
            # As in tools.async_stub.
            error.__traceback__ = lines.of_program(error.__traceback__)
            raise

    return stub


def _listed(keys: list[str]) -> str:
    if len(keys) > _MAX_LISTED:
        return f"{', '.join(keys[:_MAX_LISTED])} and {len(keys) - _MAX_LISTED} others"
    return ", ".join(keys)


class _Package(Loader):
    """Makes the package."""

    def __init__(self, fill: Callable[[ModuleType], None]) -> None:
        self._fill = fill

    def exec_module(self, module: ModuleType) -> None:
        """Fill the package."""
        self._fill(module)


class _Module(Loader):
    """Makes the module of a toolset from its source."""

    def __init__(self, source: str) -> None:
        self._source = source

    def get_source(self, name: str) -> str:
        """Return the source, for tracebacks and for inspect.getsource."""
        return self._source

    def exec_module(self, module: ModuleType) -> None:
        """Execute the source."""
        spec = module.__spec__
        assert spec is not None and spec.origin is not None
        exec(compile(self._source, spec.origin, "exec", dont_inherit=True), vars(module))
