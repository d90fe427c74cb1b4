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

# How much a name must be like another one to be refused as a misspelled one where others may be sent.
_MISSPELLED: Final = 0.8

_DIGITS: Final = re.compile(r"[0-9]+")
_MODULE: Final = re.compile(r"\btyping\.")


class Arguments:
    """The arguments that a tool takes, as the generated source declares them."""

    def __init__(
        self,
        identifier: str,
        object_first: bool,
        declared: FunctionType,
        others: Mapping[str, bool] | None = None,
        *,
        names: Mapping[str, str] | None = None,
        anything: bool = False,
    ) -> None:
        """Read the declaration.

        ``object_first`` tells whether the first parameter may itself be an object. ``others`` are
        the properties that cannot be parameters, each with whether it is required. ``names`` has
        the parameters that are spelled in another way than their property, and ``anything`` tells
        that the schema allows more than its properties.
        """
        code, defaults = declared.__code__, declared.__defaults__ or ()
        self._identifier = identifier
        self._declared = declared
        self._object_first = object_first
        self._others: Mapping[str, bool] = others or {}
        self._names: Mapping[str, str] = names or {}
        self._closed = not code.co_flags & inspect.CO_VARKEYWORDS
        self._anything = anything
        parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        required = parameters[: code.co_argcount - len(defaults)]
        if code.co_kwonlyargcount:
            optional = declared.__kwdefaults__ or {}
            required += tuple(name for name in parameters[code.co_argcount :] if name not in optional)
        if names:
            parameters = tuple(name for name in parameters if names.get(name) not in self._others)
            parameters, required = self._spelled(parameters), self._spelled(required)
        if others:
            required += tuple(name for name, needed in others.items() if needed and name not in required)
        # Both have the spelling of the schema. The parameters are those that can go by position.
        self._parameters: tuple[str, ...] = parameters
        self._required: tuple[str, ...] = required
        self._known: frozenset[str] = frozenset((*parameters, *self._others))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the input of a call: the arguments that were passed, in order, without defaults.

        Raises TypeError if the tool does not take these arguments.
        """
        if self._names and kwargs:
            kwargs = self._renamed(kwargs)
        input = self._placed(args, kwargs) if args else kwargs
        known = self._known
        # A tool without a schema has no argument that another one could be like.
        if self._closed or known and not self._anything:
            for name in input:
                if name not in known:
                    self._check_unknown(name, input)
        for name in self._required:
            if name not in input:
                raise self._missing(input)
        return input

    def _spelled(self, names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._names.get(name, name) for name in names)

    def _renamed(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call with the names that the schema has for them."""
        renamed = {self._names.get(name, name): value for name, value in given.items()}
        if len(renamed) < len(given):
            twice = next(each for each in given if each in self._names and self._names[each] in given)
            raise self._error(f"got the argument {_shown(self._names[twice])} twice, once as {twice}")
        return renamed

    def not_json(self, name: str, problem: object) -> TypeError:
        """Return the error for an argument that has no JSON form."""
        return TypeError(f"{self._identifier}() cannot send the argument {_shown(name)}: {problem}")

    def _placed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        if len(args) == 1 and not kwargs and isinstance(args[0], dict) and self._is_input(args[0]):
            return self._renamed(args[0]) if self._names else args[0]
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
        return all(key in self._known or key in self._names for key in value)

    def _check_unknown(self, name: str, input: Mapping[str, Any]) -> None:
        """Raise TypeError for an argument that is not in the schema, if the tool takes no others or it is a misspelled one.

        A schema that does not say whether there may be others means, most of the time, that the tool ignores them. An
        argument is not a misspelled one if the call has the argument whose name is like it as well.
        """
        known = [*self._parameters, *self._others, *self._names] if len(name) <= _MAX_NAME else []
        if self._closed:
            near = difflib.get_close_matches(name, known, n=1)
            if not near and name.isascii() and (folded := _folded(name)):
                near = [each for each in known if _folded(each) == folded]
            raise self._unknown(name, near)
        given = {*input}
        near = [each for each in known if self._names.get(each, each) not in given and _is_misspelled(name, each)]
        if near:
            raise self._unknown(name, difflib.get_close_matches(name, near, n=1) or near)

    def _unknown(self, name: str, near: list[str]) -> TypeError:
        return self._error(f"has no argument {_shown(name)}", f"; did you mean {_shown(near[0])}?" if near else "")

    def _missing(self, input: Mapping[str, Any]) -> TypeError:
        parameters = {spelled: name for name, spelled in self._names.items()}
        missing = [name for name in self._required if name not in input]
        text = f"is missing the argument{'s' * (len(missing) > 1)} {_listed([parameters.get(each, each) for each in missing])}"
        # The signature does not show these.
        others = [name for name in missing if name in self._others and name not in parameters]
        hint = ", ".join(f"{_quoted(name)}: ..." for name in others)
        return self._error(text, f", to be passed as **{{{hint}}}" if others else "")

    def _error(self, text: str, hint: str = "") -> TypeError:
        its = " Its" if hint.endswith("?") else "; its"
        return TypeError(f"{self._identifier}() {text}{hint}{its} signature is {self._signature()}")

    def _signature(self) -> str:
        """Return the signature for people, without names of modules."""
        parameters = []
        keywords = False
        for each in inspect.signature(self._declared).parameters.values():
            if each.kind is each.VAR_KEYWORD:
                parameters.append(f"**{each.name}")
                continue
            if each.kind is each.KEYWORD_ONLY and not keywords:
                keywords = True
                parameters.append("*")
            text = f"{each.name}: {_MODULE.sub('', inspect.formatannotation(each.annotation))}"
            parameters.append(text if each.default is each.empty else f"{text} = {each.default!r}")
        text = f"{self._identifier}({', '.join(parameters)})"
        return text if len(text) <= _MAX_SIGNATURE else f"{text[:_MAX_SIGNATURE]}…"


def _is_misspelled(name: str, right: str) -> bool:
    """Tell whether a name is so much like another one that it stands for it: ``heads`` for ``head``, but not ``line2``."""
    one, other = _folded(name), _folded(right)
    if one == other:
        return True
    if _DIGITS.sub("", one) == _DIGITS.sub("", other):
        return False
    match = difflib.SequenceMatcher(None, one, other)
    return match.real_quick_ratio() >= _MISSPELLED and match.ratio() >= _MISSPELLED


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _shown(name: str) -> str:
    """Return the name of an argument for a message: quoted if it is not an identifier, truncated if it is long."""
    return name if len(name) <= _MAX_NAME and name.isidentifier() and not keyword.iskeyword(name) else _quoted(name)


def _quoted(name: str) -> str:
    return repr(name) if len(name) <= _MAX_NAME else f"{name[:_MAX_NAME]!r}…"


def _listed(names: list[str]) -> str:
    *others, last = [_shown(name) for name in names[:_MAX_LISTED]]
    if len(names) > _MAX_LISTED:
        return f"{', '.join([*others, last])} and {len(names) - _MAX_LISTED} others"
    return f"{', '.join(others)} and {last}" if others else last
