"""Gives a program that plain Python runs what the server gives it: the tools and the names that are ready.

Python imports this module by itself at its start, as it is on PYTHONPATH. After that, Python runs the
program and nothing else.
"""

import asyncio
import builtins
import collections
import dataclasses
import datetime
import decimal
import enum
import functools
import importlib
import inspect
import itertools
import json
import math
import os
import pathlib
import re
import sys
import uuid

_HERE = os.path.dirname(os.path.abspath(__file__))
# Neither the program nor the processes that it starts see how they got their tools.
os.environ.pop("PYTHONPATH", None)
import tools  # noqa: E402

sys.path.remove(_HERE)


class ToolExecutionError(RuntimeError):
    """A tool has failed."""

    __module__ = "builtins"
    code = None
    where = None
    managed = False


def _default(value):
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, (uuid.UUID, pathlib.PurePath)):
        return str(value)
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return value.to_dict(orient="records")
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _without_nan(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    return [_without_nan(item) for item in value] if isinstance(value, list) else value


def _as_async(function):
    signature = inspect.signature(function)

    async def call(input):
        # The answer takes a moment, in which everything else that can run does.
        await asyncio.sleep(input.pop("seconds", 0.002))
        try:
            if function is tools.slow:
                return input["value"]
            return json.loads(json.dumps(function(**input)))
        except tools.Failure as failure:
            error = ToolExecutionError(str(failure))
        except Exception as other:
            error = ToolExecutionError(f"{type(other).__name__}: {other}")
        raise error

    @functools.wraps(function)
    def tool(*args, **kwargs):
        if len(args) == 1 and not kwargs and isinstance(args[0], dict) and function not in (tools.echo, tools.slow):
            args, kwargs = (), args[0]
        bound = signature.bind(*args, **kwargs)
        input = _without_nan(json.loads(json.dumps(bound.arguments, default=_default)))
        coroutine = call(input)
        coroutine.__name__ = coroutine.__qualname__ = function.__name__
        return coroutine

    return tool


def _prepare():
    ready = [asyncio, collections, datetime, functools, itertools, json, math, os, pathlib, re, sys]
    for module in ready:
        setattr(builtins, module.__name__, module)
    builtins.ToolExecutionError = ToolExecutionError
    for function in tools.ALL:
        setattr(builtins, function.__name__, _as_async(function))
    libraries = {"np": "numpy", "pd": "pandas", "plt": "matplotlib.pyplot"}
    libraries |= {name: name for name in ("numpy", "pandas", "matplotlib", "scipy", "sklearn")}
    with open(sys.orig_argv[-1], encoding="utf-8") as program:
        words = set(re.findall(r"\w+", program.read()))
    for name in words & set(libraries):
        try:
            setattr(builtins, name, importlib.import_module(libraries[name]))
        except ImportError:
            pass


if sys.orig_argv[-1].endswith("/program.py"):
    _prepare()
