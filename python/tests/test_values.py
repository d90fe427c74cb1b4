"""Tests of the arguments of tool calls as JSON."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import math
import pathlib
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fermata import values


class Color(enum.Enum):
    RED = "red"
    DEEP = ("a", 1)


class Level(enum.IntEnum):
    HIGH = 3


class Word(str, enum.Enum):
    YES = "yes"


class Permission(enum.Flag):
    READ = 4


class Text(str):
    def __str__(self) -> str:
        return "not this"


@dataclasses.dataclass
class Place:
    name: str
    where: Any = None


Pair = collections.namedtuple("Pair", "left right")
UTC = datetime.timezone.utc

CONVERTED = {
    "str": ("a", '"a"'),
    "str that is not ASCII": ("é\u2028", r'"\u00e9\u2028"'),
    "lone surrogate": ("\ud800", r'"\ud800"'),
    "NUL": ("\0", r'"\u0000"'),
    "subclass of str": (Text("a"), '"a"'),
    "int": (7, "7"),
    "int beyond 2**53": (2**53 + 1, "9007199254740993"),
    "int beyond 2**64": (10**30, "1" + "0" * 30),
    "float": (1.0, "1.0"),
    "small float": (5e-324, "5e-324"),
    "bool": (True, "true"),
    "None": (None, "null"),
    "list": ([1, [2]], "[1,[2]]"),
    "dict keeps its order": ({"b": 1, "a": 2}, '{"b":1,"a":2}'),
    "tuple": ((1, 2), "[1,2]"),
    "namedtuple": (Pair(1, 2), "[1,2]"),
    "OrderedDict": (collections.OrderedDict(b=1, a=2), '{"b":1,"a":2}'),
    "keys": ({1: "a", 1.5: "b", True: "a", None: "c"}, '{"1":"a","1.5":"b","null":"c"}'),
    "bool as key": ({True: 1, False: 2}, '{"true":1,"false":2}'),
    "NaN": (math.nan, "null"),
    "infinities": ([math.inf, -math.inf], "[null,null]"),
    "datetime": (datetime.datetime(2026, 1, 2, 3, 4, 5), '"2026-01-02T03:04:05"'),
    "datetime with zone": (datetime.datetime(2026, 1, 2, tzinfo=UTC), '"2026-01-02T00:00:00+00:00"'),
    "date": (datetime.date(2026, 1, 2), '"2026-01-02"'),
    "time": (datetime.time(3, 4), '"03:04:00"'),
    "Decimal that is an integer": (decimal.Decimal("7.00"), "7"),
    "Decimal with more digits than the context": (decimal.Decimal("1" * 60), "1" * 60),
    "Decimal that a float holds": (decimal.Decimal("0.1"), "0.1"),
    "Decimal that no float holds": (decimal.Decimal("0.12345678901234567890"), '"0.12345678901234567890"'),
    "Decimal beyond floats": (decimal.Decimal("1E+5000"), '"1E+5000"'),
    "tiny Decimal": (decimal.Decimal("1E-5000"), '"1E-5000"'),
    "Decimal zero with an exponent": (decimal.Decimal("0E-5000"), "0.0"),
    "Decimal NaN": (decimal.Decimal("NaN"), "null"),
    "signalling NaN": (decimal.Decimal("sNaN"), "null"),
    "Decimal infinity": (decimal.Decimal("-Infinity"), "null"),
    "UUID": (uuid.UUID(int=5), '"00000000-0000-0000-0000-000000000005"'),
    "Path": (pathlib.Path("/mnt/data/x"), '"/mnt/data/x"'),
    "PureWindowsPath": (pathlib.PureWindowsPath("c:/x"), '"c:\\\\x"'),
    "Enum": (Color.RED, '"red"'),
    "Enum of a tuple": (Color.DEEP, '["a",1]'),
    "IntEnum": (Level.HIGH, "3"),
    "Enum of str": (Word.YES, '"yes"'),
    "Flag": (Permission.READ, "4"),
    "dataclass": (Place("a", Place("b")), '{"name":"a","where":{"name":"b","where":null}}'),
}


@pytest.mark.parametrize("value, want", CONVERTED.values(), ids=CONVERTED.keys())
def test_converted(value: Any, want: str) -> None:
    assert values.encode(value) == want
    # The same value inside others, next to a NaN, with which the conversion takes the slow way.
    assert values.encode({"in": (value, math.nan)}) == f'{{"in":[{want},null]}}'


REFUSED = {
    "bytes": (b"x", "Object of type bytes is not JSON serializable"),
    "bytearray": (bytearray(b"x"), "Object of type bytearray is not JSON serializable"),
    "set": ({1}, "Object of type set is not JSON serializable"),
    "complex": (1j, "Object of type complex is not JSON serializable"),
    "function": (len, "Object of type builtin_function_or_method is not JSON serializable"),
    "generator": ((n for n in ()), "Object of type generator is not JSON serializable"),
    "range": (range(3), "Object of type range is not JSON serializable"),
    "timedelta": (datetime.timedelta(1), "Object of type timedelta is not JSON serializable"),
    "dataclass itself": (Place, "Object of type type is not JSON serializable"),
    "object": (object(), "Object of type object is not JSON serializable"),
    "tuple as key": ({(1, 2): 3}, "keys must be str, int, float, bool or None, not tuple"),
}


@pytest.mark.parametrize("value, message", REFUSED.values(), ids=REFUSED.keys())
def test_refused(value: Any, message: str) -> None:
    for wrapped in (value, [value], {"a": value}, Place("a", value), [math.nan, value]):
        with pytest.raises(TypeError) as caught:
            values.encode(wrapped)
        assert str(caught.value) == message


def test_nan_at_any_depth() -> None:
    value = {"a": [1.5, math.nan, {"b": (math.inf, Place("p", -math.inf))}], "c": decimal.Decimal("NaN")}
    want = {"a": [1.5, None, {"b": [None, {"name": "p", "where": None}]}], "c": None}
    assert json.loads(values.encode(value)) == want


def test_keys_are_converted_like_values() -> None:
    day = datetime.date(2026, 1, 2)
    value = {day: 1, Color.RED: 2, uuid.UUID(int=5): 3, decimal.Decimal("1.5"): 4, Level.HIGH: 5}
    want = {"2026-01-02": 1, "red": 2, "00000000-0000-0000-0000-000000000005": 3, "1.5": 4, "3": 5}
    assert json.loads(values.encode({"a": [value]})) == {"a": [want]}
    with pytest.raises(ValueError, match="^tool input has an object with the key '2026-01-02' twice$"):
        values.encode({"a": {day: 1, "2026-01-02": 2}})


async def forgotten() -> None:
    """Do nothing."""


def test_a_missing_await_is_named() -> None:
    coroutine = forgotten()
    for value in (coroutine, [coroutine]):
        with pytest.raises(TypeError, match=r"is not JSON serializable; write `await forgotten\(\.\.\.\)`$"):
            values.encode({"a": value})
    coroutine.close()


def test_nan_as_key_is_refused() -> None:
    with pytest.raises(ValueError):
        values.encode({math.nan: 1})


def test_cycles() -> None:
    in_list: list[Any] = []
    in_list.append(in_list)
    in_dict: dict[str, Any] = {}
    in_dict["a"] = (in_dict,)
    in_place = Place("a")
    in_place.where = [in_place]
    for cycle in (in_list, in_dict, in_place):
        with pytest.raises(ValueError, match="^Circular reference detected$"):
            values.encode({"x": cycle})


def test_shared_is_not_circular() -> None:
    shared = [1]
    assert values.encode([shared, shared, math.nan]) == "[[1],[1],null]"


def test_size() -> None:
    fits = "x" * (values.MAX_INPUT - 2)
    assert len(values.encode(fits)) == values.MAX_INPUT
    with pytest.raises(ValueError, match=f"at most {values.MAX_INPUT} are allowed"):
        values.encode(fits + "x")


def nested(depth: int, inner: Any = "[{") -> Any:
    for n in range(depth):
        inner = [inner] if n % 2 else {"a": inner}
    return inner


def test_depth() -> None:
    values.encode(nested(values.MAX_DEPTH, '"[{'))
    for deep in (nested(values.MAX_DEPTH + 1), {"a": json.loads("[" * values.MAX_DEPTH + "]" * values.MAX_DEPTH)}):
        with pytest.raises(ValueError, match=f"^tool input is nested deeper than {values.MAX_DEPTH} levels$"):
            values.encode(deep)
    values.encode([nested(3)] * values.MAX_DEPTH)


def test_keys_that_become_one() -> None:
    for twice, name in (({1: 1, "1": 2}, "1"), ({"x": 0, None: 1, "null": 2}, "null"), ({True: 1, "true": 2}, "true")):
        for wrapped in ({"a": twice}, {"a": [{"b": twice}]}):
            with pytest.raises(ValueError, match=f"^tool input has an object with the key '{name}' twice$"):
                values.encode(wrapped)
    values.encode({"a": [{"x": 1}, {"x": 2, "y": {"x": 3}}]})


def test_long_numbers_are_not_read() -> None:
    values.check('{"a":{"n":' + "7" * 4_000_000 + "}}")


def test_depth_is_an_error_the_program_can_catch() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError):
        values.encode(deep)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def finite(value: Any) -> Any:
    """Return the value that json.loads must return."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case list():
            return [finite(item) for item in value]
        case dict():
            return {key: finite(item) for key, item in value.items()}
    return value


@given(PLAIN)
def test_round_trip(value: Any) -> None:
    text = values.encode(value)
    assert text.isascii() and "\n" not in text
    assert json.loads(text) == finite(value)


NANO = "1970-01-01T00:00:00.000000001"


def test_numpy() -> None:
    np = pytest.importorskip("numpy")
    cases: list[tuple[Any, Any]] = [
        (np.int64(2**62), 2**62),
        (np.uint8(255), 255),
        (np.float64(1.5), 1.5),
        (np.float32(0.5), 0.5),
        (np.float16("nan"), None),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array([1.0, math.nan]), [1.0, None]),
        (np.array(5), 5),
        (np.array(["a", None, 1], dtype=object), ["a", None, 1]),
        (np.array([(1, "a")], dtype=[("n", int), ("s", "U1")]), [{"n": 1, "s": "a"}]),
        (np.array([(1, "a")], dtype=[("n", int), ("s", "U1")])[0], {"n": 1, "s": "a"}),
        (np.array([[(1, np.datetime64(1, "ns"))]], dtype=[("n", int), ("t", "M8[ns]")]), [[{"n": 1, "t": NANO}]]),
        (np.ma.array([1, 2], mask=[False, True]), [1, None]),
        (np.datetime64("2026-01-02"), "2026-01-02"),
        (np.datetime64("2026-01-02T03:04:05.000000000"), "2026-01-02T03:04:05"),
        (np.datetime64("2026-01-02T03:04:05.000000006"), "2026-01-02T03:04:05.000000006"),
        (np.array([1, "NaT"], dtype="datetime64[ns]"), [NANO, None]),
        (np.datetime64("NaT"), None),
        (np.array(["2026-01-02", "NaT"], dtype="datetime64[ns]"), ["2026-01-02T00:00:00", None]),
    ]
    for value, want in cases:
        got = json.loads(values.encode({"a": value}))["a"]
        assert got == want and type(got) is type(want), f"{value!r} became {got!r}, want {want!r}"
    for value in (np.complex64(1j), np.bytes_(b"x"), np.longdouble(1), np.array([1j]), np.timedelta64(5, "ns")):
        with pytest.raises(TypeError):
            values.encode({"a": value})


LABELLED: dict[str, tuple[str, Any]] = {
    "series of groups": ('frame.groupby("city")["n"].sum()', {"Paris": 4, "Rome": 2}),
    "series of counts": ('frame["n"].value_counts(sort=False)', {"1": 1, "2": 1, "3": 1}),
    "series with two levels": ('frame.groupby(["city", "n"]).size()', {"Paris": {"1": 1, "3": 1}, "Rome": {"2": 1}}),
    "series by time": ('pd.Series([1], [pd.Timestamp("2026-01-02")])', {"2026-01-02T00:00:00": 1}),
    "series without labels": ('frame["n"]', [1, 2, 3]),
    "slice of a series": ('frame["n"][1:]', [2, 3]),
    "row": ("frame.iloc[0]", {"city": "Paris", "n": 1}),
    "frame of groups": ('frame.groupby("city").sum()', [{"city": "Paris", "n": 4}, {"city": "Rome", "n": 2}]),
    "frame with an index": (
        'frame[:2].set_index("city")',
        [{"city": "Paris", "n": 1}, {"city": "Rome", "n": 2}],
    ),
    "pivot": (
        'frame[1:].pivot_table(index="city", values="n")',
        [{"city": "Paris", "n": 3}, {"city": "Rome", "n": 2}],
    ),
    "describe": ('frame.describe().loc[["max"]]', [{"index": "max", "n": 3.0}]),
    "filtered": ("frame[frame.n > 2]", [{"city": "Paris", "n": 3}]),
    "put together": ("pd.concat([frame, frame[:1]])['n']", [1, 2, 3, 1]),
    "filtered, counted anew": ("frame[frame.n > 2].reset_index(drop=True)", [{"city": "Paris", "n": 3}]),
    "frame without labels": ("frame[2:]", [{"city": "Paris", "n": 3}]),
}


@pytest.mark.parametrize("code, want", LABELLED.values(), ids=LABELLED.keys())
def test_labels_are_data(code: str, want: Any) -> None:
    pd = pytest.importorskip("pandas")
    value = eval(code, {"pd": pd, "frame": pd.DataFrame({"city": ["Paris", "Rome", "Paris"], "n": [1, 2, 3]})})
    assert json.loads(values.encode({"a": value}))["a"] == want
    assert json.loads(values.encode({"a": [value, math.nan]}))["a"] == [want, None]


@pytest.mark.parametrize(
    "code, name",
    {
        'frame.set_index("city")["n"]': "Paris",
        'pd.concat([frame, frame[["n"]]], axis=1)': "n",
        'frame.groupby(["city", "n"])[["n"]].sum()': "n",
    }.items(),
)
def test_labels_that_are_there_twice(code: str, name: str) -> None:
    pd = pytest.importorskip("pandas")
    value = eval(code, {"pd": pd, "frame": pd.DataFrame({"city": ["Paris", "Rome", "Paris"], "n": [1, 2, 3]})})
    with pytest.raises(ValueError, match=f"^tool input has an object with the key '{name}' twice$"):
        values.encode({"a": value})


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    day = pd.Timestamp("2026-01-02")
    cases: list[tuple[Any, Any]] = [
        (pd.Series([1, 2]), [1, 2]),
        (pd.Series([1.5, None]), [1.5, None]),
        (pd.Series([day, pd.NaT]), ["2026-01-02T00:00:00", None]),
        (pd.Series(["a", pd.NA], dtype="string"), ["a", None]),
        (pd.Series(["a", "b"], dtype="category"), ["a", "b"]),
        (pd.Index(["a", "b"]), ["a", "b"]),
        (pd.DataFrame({"a": [1, 2], "b": ["x", None]}), [{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
        (pd.DataFrame({"t": [day]}), [{"t": "2026-01-02T00:00:00"}]),
        (pd.DataFrame({1: [math.nan]}), [{"1": None}]),
        (pd.DataFrame(), []),
        (day, "2026-01-02T00:00:00"),
        (pd.NaT, None),
        (pd.NA, None),
    ]
    for value, want in cases:
        got = json.loads(values.encode({"a": value}))["a"]
        assert got == want, f"{value!r} became {got!r}, want {want!r}"
    with pytest.raises(TypeError):
        values.encode({"a": pd.Timedelta(1)})
