"""The arguments of tool calls, as JSON.

Values with an obvious JSON form are converted. All others raise a TypeError, which the
program can catch where it makes the call.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import pathlib
import re
import uuid
from json import dumps, loads
from typing import Any, Final

_COMPACT: Final = (",", ":")

# The largest input of a call, in bytes of JSON, and how deep it may be nested. The server
# checks both again, in engine/calls.go.
MAX_INPUT: Final = 5_000_000
MAX_DEPTH: Final = 500

# numpy turns times in these units into bare numbers, since Python has no type for them.
_TOO_FINE: Final = ("[ns]", "[ps]", "[fs]", "[as]")


def encode(value: Any) -> str:
    """Return value as one line of ASCII JSON; NaN and infinities become null.

    Raises TypeError for a value that has no JSON form, and ValueError for one that refers
    to itself, is larger than MAX_INPUT or is refused by check.
    """
    try:
        text = dumps(value, default=_convert, allow_nan=False, separators=_COMPACT)
    except ValueError:
        # The value has a float that JSON cannot express, or refers to itself. _finite finds out which.
        text = ""
    if not text:
        text = dumps(_finite(value, set()), allow_nan=False, separators=_COMPACT)
    if len(text) > MAX_INPUT:
        raise ValueError(f"tool input is {len(text)} bytes of JSON, at most {MAX_INPUT} are allowed")
    if text.count("{") > 1 or text.count("[") >= MAX_DEPTH:
        # The keys of the outermost object are parameters, so they cannot be the same.
        check(text)
    return text


_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_BRACKET: Final = re.compile(r"[][{}]")


def check(text: str) -> None:
    """Raise ValueError for JSON that clients may refuse, or may read in different ways."""
    if text.count("[") + text.count("{") > MAX_DEPTH:
        depth = 0
        for bracket in _BRACKET.findall(_STRING.sub("", text)):
            depth += 1 if bracket in "[{" else -1
            if depth > MAX_DEPTH:
                raise ValueError(f"tool input is nested deeper than {MAX_DEPTH} levels")
    # Numbers do not matter here, and long ones take long to read.
    loads(text, object_pairs_hook=_check_names, parse_int=str, parse_float=str)


def _check_names(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"tool input has an object with the key {twice!r} twice")


def _convert(value: Any) -> Any:
    """Return the JSON form of a value that the json module does not support."""
    match value:
        case enum.Enum():
            return value.value
        case datetime.date() | datetime.time():
            # pandas' NaT is a datetime that is not equal to itself.
            return value.isoformat() if value == value else None
        case decimal.Decimal():
            return _number(value)
        case uuid.UUID() | pathlib.PurePath():
            return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return _convert_scientific(value)


def _convert_scientific(value: Any) -> Any:
    """Convert values of numpy and pandas without importing either."""
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    if package == "pandas":
        if kind.__name__ == "DataFrame":
            return value.to_dict(orient="records")
        if kind.__name__ == "NAType":
            return None
    if package == "numpy" and str(getattr(value, "dtype", "")).endswith(_TOO_FINE):
        value = value.astype(f"{value.dtype.kind}8[us]")
    if package in ("numpy", "pandas") and hasattr(value, "tolist"):
        converted = value.tolist()
        # A scalar that Python has no type for, such as longdouble, returns itself.
        if type(converted) is not kind:
            return converted
    raise TypeError(f"Object of type {kind.__name__} is not JSON serializable")


def _number(value: decimal.Decimal) -> int | float | str | None:
    """Return value as a number if that is exact, otherwise as text."""
    if not value.is_finite():
        return None
    if value == value.to_integral_value() and abs(value.adjusted()) < 400:
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)


def _finite(value: Any, inside: set[int]) -> Any:
    """Copy value with every NaN and infinity replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if id(value) in inside:
        raise ValueError("Circular reference detected")
    inside.add(id(value))
    try:
        if isinstance(value, dict):
            return {key: _finite(item, inside) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [_finite(item, inside) for item in value]
        return _finite(_convert(value), inside)
    finally:
        inside.discard(id(value))
