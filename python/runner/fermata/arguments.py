"""The arguments of a tool: which it takes, and how the arguments of a call become its input."""

from __future__ import annotations

import difflib
import inspect
import keyword
import re
from collections.abc import Mapping
from types import FunctionType
from typing import Any, Final

# The longest name and the longest signature in a message, in characters, and how many names it lists.
_MAX_NAME: Final = 64
_MAX_SIGNATURE: Final = 1_000
_MAX_LISTED: Final = 10

_MODULE: Final = re.compile(r"\btyping\.")


class Arguments:
    """The arguments that a tool takes, as the generated source declares them."""

    def __init__(
        self, identifier: str, object_first: bool, declared: FunctionType, others: Mapping[str, bool] | None
    ) -> None:
        """Read the declaration.

        ``object_first`` tells whether the first parameter may itself be an object. ``others`` are
        the properties that cannot be parameters, each with whether it is required.
        """
        code, defaults = declared.__code__, declared.__defaults__ or ()
        self._identifier = identifier
        self._declared = declared
        self._object_first = object_first
        self._parameters: tuple[str, ...] = code.co_varnames[: code.co_argcount]
        first = code.co_argcount - len(defaults)
        self._required: tuple[str, ...] = self._parameters[:first]
        if ... in defaults:
            self._required += tuple(name for name, default in zip(self._parameters[first:], defaults) if default is ...)
        self._others: Mapping[str, bool] = others or {}
        if others:
            self._required += tuple(name for name, required in others.items() if required)
        self._closed = not code.co_flags & inspect.CO_VARKEYWORDS

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the input of a call: the arguments that were passed, in order, without defaults.

        Raises TypeError if the tool does not take these arguments.
        """
        input = self._placed(args, kwargs) if args else kwargs
        if self._closed:
            for name in input:
                if name not in self._parameters and name not in self._others:
                    raise self._unknown(name)
        for name in self._required:
            if name not in input:
                raise self._missing(input)
        return input

    def not_json(self, name: str, problem: object) -> TypeError:
        """Return the error for an argument that has no JSON form."""
        return TypeError(f"{self._identifier}() cannot send the argument {_shown(name)}: {problem}")

    def _placed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 1 and not kwargs and isinstance(args[0], dict) and self._is_input(args[0]):
            return args[0]
        if len(args) > len(self._parameters):
            most = f"at most {len(self._parameters)}" if self._parameters else "no"
            raise self._error(
                f"takes {most} argument{'s' * (len(self._parameters) != 1)} by position, but got {len(args)}"
            )
        bound = dict(zip(self._parameters, args))
        for name in kwargs:
            if name in bound:
                raise self._error(f"got the argument {name} twice, by position and by name")
        return bound | kwargs

    def _is_input(self, value: dict[Any, Any]) -> bool:
        """Tell whether a dict that is the only argument is the whole input of the call.

        Otherwise it is the value of the first parameter, which is the case if a key is not a
        string, or if that parameter takes objects, no other is required, and a key is not the name
        of an argument.
        """
        if not all(isinstance(key, str) for key in value):
            return False
        if not self._parameters or not self._object_first or not {*self._required} <= {self._parameters[0]}:
            return True
        return all(key in self._parameters or key in self._others for key in value)

    def _unknown(self, name: str) -> TypeError:
        known = [*self._parameters, *self._others] if len(name) <= _MAX_NAME else []
        near = difflib.get_close_matches(name, known, n=1)
        return self._error(f"has no argument {_shown(name)}", f"; did you mean {_shown(near[0])}?" if near else "")

    def _missing(self, input: Mapping[str, Any]) -> TypeError:
        missing = [name for name in self._required if name not in input]
        text = f"is missing the argument{'s' * (len(missing) > 1)} {_listed(missing)}"
        # The signature does not show these.
        others = ", ".join(f"{_shown(name)}: ..." for name in missing if name in self._others)
        return self._error(text, f", to be passed as **{{{others}}}" if others else "")

    def _error(self, text: str, hint: str = "") -> TypeError:
        its = " Its" if hint.endswith("?") else "; its"
        return TypeError(f"{self._identifier}() {text}{hint}{its} signature is {self._signature()}")

    def _signature(self) -> str:
        """Return the signature for people: without names of modules, and without defaults of required parameters."""
        parameters = []
        for each in inspect.signature(self._declared).parameters.values():
            if each.kind is each.VAR_KEYWORD:
                parameters.append(f"**{each.name}")
                continue
            text = f"{each.name}: {_MODULE.sub('', inspect.formatannotation(each.annotation))}"
            parameters.append(text if each.name in self._required else f"{text} = {each.default!r}")
        text = f"{self._identifier}({', '.join(parameters)})"
        return text if len(text) <= _MAX_SIGNATURE else f"{text[:_MAX_SIGNATURE]}…"


def _shown(name: str) -> str:
    """Return the name of an argument for a message: quoted if it is not an identifier, truncated if it is long."""
    if len(name) > _MAX_NAME:
        return f"{name[:_MAX_NAME]!r}…"
    return name if name.isidentifier() and not keyword.iskeyword(name) else repr(name)


def _listed(names: list[str]) -> str:
    *others, last = [_shown(name) for name in names[:_MAX_LISTED]]
    if len(names) > _MAX_LISTED:
        return f"{', '.join([*others, last])} and {len(names) - _MAX_LISTED} others"
    return f"{', '.join(others)} and {last}" if others else last
