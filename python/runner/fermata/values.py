"""The arguments of tool calls as JSON, and the results from JSON.

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
# checks both again, in engine/core/input.go.
MAX_INPUT: Final = 5_000_000
MAX_DEPTH: Final = 500

# numpy turns times in these units into bare numbers, since Python has no type for them.
_TOO_FINE: Final = ("[ns]", "[ps]", "[fs]", "[as]")


class BadKey(ValueError):
    """A key of an object has no JSON form."""


def encode(value: Any) -> str:
    """Return value as one line of ASCII JSON; NaN and infinities become null.

    Raises TypeError for a value that has no JSON form, and ValueError for one that refers
    to itself, is larger than MAX_INPUT or is refused by check.
    """
    try:
        text = dumps(value, default=_convert, allow_nan=False, separators=_COMPACT)
    except (TypeError, ValueError):
        # The value has a float or a key that json cannot express, or refers to itself. _plain finds out which.
        text = ""
    if not text:
        text = dumps(_plain(value, set()), allow_nan=False, separators=_COMPACT)
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
        raise _twice([name for name, _ in pairs])


def _twice(keys: list[Any]) -> ValueError:
    twice = next(key for key in keys if keys.count(key) > 1)
    return ValueError(f"tool input has an object with the key {twice!r} twice")


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
            return _records(value)
        if kind.__name__ == "Series" and _labelled(value.index):
            # Numbers that are there twice are those of rows of several frames.
            return value.tolist() if _numbered(value.index) and not value.index.is_unique else _by_label(value)
        if kind.__name__ == "NAType":
            return None
    if package == "numpy" and (names := getattr(getattr(value, "dtype", None), "names", None)) is not None:
        # It is an array of records, or one of them.
        return list(value) if getattr(value, "ndim", 0) else {name: value[name] for name in names}
    if package == "numpy" and str(getattr(value, "dtype", "")).endswith(_TOO_FINE):
        return _times(value)
    if package in ("numpy", "pandas") and hasattr(value, "tolist"):
        converted = value.tolist()
        # A scalar that Python has no type for, such as longdouble, returns itself.
        if type(converted) is not kind:
            return converted
    raise TypeError(f"Object of type {kind.__name__} is not JSON serializable{_missing_await(value)}")


def _labelled(index: Any) -> bool:
    """Tell whether an index of pandas is more than a count of the rows."""
    return type(index).__name__ != "RangeIndex" or index.name is not None


def _numbered(index: Any) -> bool:
    """Tell whether an index may have the numbers of rows that were filtered, sorted or put together."""
    return index.name is None and getattr(getattr(index, "dtype", None), "kind", "") in {"i", "u"}


def _records(frame: Any) -> list[dict[Any, Any]]:
    """Return the rows of a frame, each with the labels of its row, if they have any."""
    columns, labelled = frame.columns.tolist(), _labelled(frame.index) and not _numbered(frame.index)
    if labelled:
        columns += [name for name in frame.index.names if name is not None]
    if len({*columns}) < len(columns):
        raise _twice(columns)
    if labelled:
        frame = frame.reset_index()
    records: list[dict[Any, Any]] = frame.to_dict(orient="records")
    return records


def _by_label(series: Any) -> dict[Any, Any]:
    """Return a series as an object. Labels of several levels become objects in objects."""
    labels = series.index.tolist()
    if not series.index.is_unique:
        raise _twice(labels)
    found: dict[Any, Any] = {}
    for label, item in zip(labels, series.tolist()):
        *outer, last = label if series.index.nlevels > 1 else (label,)
        inside = found
        for key in outer:
            inside = inside.setdefault(key, {})
        inside[last] = item
    return found


def _times(times: Any) -> Any:
    """Return numpy's times as Python's if these are fine enough, otherwise as texts."""
    whole = times.astype(f"{times.dtype.kind}8[us]")
    # NaT is not equal to itself.
    if times.dtype.kind != "M" or ((whole == times) | (times != times)).all():
        return whole.tolist()
    return _texts(times.astype(str).tolist())


def _texts(times: Any) -> Any:
    if isinstance(times, list):
        return [_texts(each) for each in times]
    return None if times == "NaT" else times


def _missing_await(value: Any) -> str:
    """Return what to add to the error about a value that nobody has awaited."""
    if not hasattr(type(value), "__await__"):
        return ""
    name = getattr(value, "__qualname__", "")
    return f"; write `await {name}(...)`" if name else "; `await` is missing"


def _number(value: decimal.Decimal) -> int | float | str | None:
    """Return value as a number if that is exact, otherwise as text."""
    if not value.is_finite():
        return None
    if value == value.to_integral_value() and abs(value.adjusted()) < 400:
        return int(value)
    number = float(value)
    return number if decimal.Decimal(repr(number)) == value else str(value)


def _plain(value: Any, inside: set[int]) -> Any:
    """Copy value with every NaN and infinity replaced by None, and with keys that json supports."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (str, int)):
        return value
    if id(value) in inside:
        raise ValueError("Circular reference detected")
    inside.add(id(value))
    try:
        if isinstance(value, dict):
            items = [(_key(key), _plain(item, inside)) for key, item in value.items()]
            copied = dict(items)
            if len(copied) < len(items):
                raise _twice([key for key, _ in items])
            return copied
        if isinstance(value, (list, tuple)):
            return [_plain(item, inside) for item in value]
        return _plain(_convert(value), inside)
    finally:
        inside.discard(id(value))


def _key(key: Any) -> str | int | float | None:
    """Return a key that json supports. Keys are converted like values."""
    plain = key
    while not isinstance(plain, (str, int, float)) and plain is not None:
        if isinstance(plain, (dict, list, tuple)):
            raise TypeError(f"keys must be str, int, float, bool or None, not {type(key).__name__}")
        plain = _convert(plain)
    if isinstance(plain, float) and not math.isfinite(plain):
        raise BadKey(f"keys must be str, int, float, bool or None, not {plain}")
    return plain
