"""The value that a program returns, as JSON for its client.

A value that has a JSON form is sent in that form. Any other value is sent as a text, its ``repr``.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from json import dumps
from typing import Any, Final

from fermata import values

# The most bytes of JSON that a value may take. The server checks it again, in engine/core/value.go.
MAX: Final = 64_000

# The mark of a truncated text.
_CUT: Final = "…"

# Reads the name of a type. The metaclass of the type cannot change the answer.
_NAME: Final[Any] = vars(type)["__name__"]


class _Full(Exception):
    """The JSON of a value would be larger than MAX."""


def encode(value: Any) -> str | None:
    """Return value as JSON of at most MAX bytes of UTF-8, or None if the value is None.

    If the JSON would be larger, the result is a text that begins like that JSON. For a value without a
    JSON form it is the text of its ``repr``, whose run time is not limited here.
    """
    if value is None or is_waiting(value):
        return None
    pieces: list[str] = []
    try:
        value = _plain(value)
        if isinstance(value, str) and len(value) > MAX:
            raise _Full
        _write(value, _bounded(pieces), values.MAX_DEPTH)
        return _unicode("".join(pieces))
    except _Full:
        return _text(value if isinstance(value, str) else "".join(pieces), whole=False)
    except BaseException:
        # The value has no JSON form, or its methods, which belong to the program, fail.
        return _text(_repr(value), whole=True)


def is_waiting(value: Any) -> bool:
    """Return whether the program has left out an ``await`` of value."""
    try:
        return inspect.isawaitable(value)
    except BaseException:  # its attributes belong to the program
        return False


def _bounded(pieces: list[str]) -> Callable[[str], None]:
    """Return a function that adds a piece, and raises _Full when the pieces have become too large."""
    left = MAX

    def put(piece: str) -> None:
        nonlocal left
        pieces.append(piece)
        left -= _size(piece)
        if left < 0:
            raise _Full

    return put


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _write(value: Any, put: Callable[[str], None], depth: int) -> None:
    """Write the JSON of a value piece by piece, so that nothing larger than MAX is ever made.

    Raises TypeError or ValueError if it has none.
    """
    value = _plain(value)
    if isinstance(value, dict):
        _open(depth)
        put("{")
        seen: set[str] = set()
        for key, item in value.items():
            name = _name(_plain(key))
            if name in seen:
                raise ValueError("a name would be there twice")
            put(f'{"," if seen else ""}{name}:')
            seen.add(name)
            _write(item, put, depth - 1)
        put("}")
    elif isinstance(value, (list, tuple)):
        _open(depth)
        put("[")
        for index, item in enumerate(value):
            if index:
                put(",")
            _write(item, put, depth - 1)
        put("]")
    elif isinstance(value, str):
        put(dumps(value[:MAX], ensure_ascii=False))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("JSON has no such number")
        put(float.__repr__(value))
    else:
        put(_word(value))


def _open(depth: int) -> None:
    if depth == 0:
        raise ValueError("nested too deeply, perhaps without an end")


def _name(key: Any) -> str:
    """Return the JSON of a key of a dict."""
    if isinstance(key, str):
        return dumps(key[:MAX], ensure_ascii=False)
    if isinstance(key, float):
        raise TypeError("a number with a fraction is no name")
    return f'"{_word(key)}"'


def _word(value: Any) -> str:
    """Return the JSON of an integer, a boolean or None."""
    if value is None or isinstance(value, bool):
        return dumps(value)
    if not isinstance(value, int):
        raise TypeError("it has no JSON form")
    if int.bit_length(value) > 4 * MAX:
        # To compute its digits would take long.
        raise _Full
    return int.__repr__(value)


def _plain(value: Any) -> Any:
    """Return a scalar of numpy as a Python value, a text as str, and any other value as it is."""
    if isinstance(value, str):
        return "".join([value])
    if type(value).__module__ != "numpy" or not hasattr(value, "item") or getattr(value, "ndim", None) != 0:
        return value
    item = value.item()
    return item if type(item) in (bool, int, float, str) else value


def _repr(value: Any) -> str:
    """Return the ``repr`` of a value, or the name of its type if that fails."""
    try:
        return "".join([repr(value)])
    except BaseException:  # its methods belong to the program
        return f"<{_NAME.__get__(type(value))}>"


def _text(text: str, whole: bool) -> str:
    """Return a text as JSON. It is truncated if it is too long, and marked as truncated if it is not whole."""
    if whole and len(text) <= MAX and _size(encoded := _unicode(dumps(text, ensure_ascii=False))) <= MAX:
        return encoded
    # Each character takes at least one byte, and the mark and the quotation marks take some as well.
    low, high = 0, min(len(text), MAX)
    while low < high:
        middle = (low + high + 1) // 2
        if _size(dumps(text[:middle] + _CUT, ensure_ascii=False)) <= MAX:
            low = middle
        else:
            high = middle - 1
    return _unicode(dumps(text[:low] + _CUT, ensure_ascii=False))


def _unicode(text: str) -> str:
    """Join the halves of surrogate pairs, and replace single halves by U+FFFD."""
    try:
        text.encode()
        return text
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
