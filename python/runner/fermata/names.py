"""Names: tools that hide a builtin or something else that a program finds ready, or that have no usable name.

A tool that hides something keeps its name, since clients tell it to the authors of programs. It also
has a second name, and a program that uses the first one gets a warning that says what the tool hides.
A tool whose name has no character that Python allows is kept under that name, which no program can
write, so each program gets a warning that says how to call it.
"""

from __future__ import annotations

import builtins
import dis
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, ModuleType
from typing import Final

from fermata.tools import Stub, ToolExecutionError

_SUFFIX: Final = "_tool"

# How many characters of a name that no program can write are shown.
_SHOWN: Final = 64

_BUILTINS: Final = vars(builtins)
_ORIGINAL: Final = dict(_BUILTINS)
_ERROR: Final = ToolExecutionError.__name__

# Instructions that read a name of the program, and those that bind or delete one.
_READ: Final = frozenset({"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"})
_BIND_GLOBAL: Final = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL"})
_BIND_NAME: Final = frozenset({"STORE_NAME", "DELETE_NAME"})


def restore_builtins() -> None:
    """Restore the builtins that a program has replaced, since the runner needs them to report how it ended."""
    _BUILTINS.update(_ORIGINAL)


def hidden(stubs: Iterable[str], ready: Mapping[str, ModuleType]) -> list[str]:
    """Return the names of the tools that hide something, or that no program can write."""
    return [name for name in stubs if name in _ORIGINAL or name in ready or name == _ERROR or not name.isidentifier()]


def second(stubs: Mapping[str, Stub], names: Iterable[str]) -> dict[str, Stub]:
    """Return these tools by their second names, without those that are the name of another tool."""
    return {
        f"{name}{_SUFFIX}": stubs[name] for name in names if name.isidentifier() and f"{name}{_SUFFIX}" not in stubs
    }


def warning(names: Iterable[str], seconds: Mapping[str, Stub], ready: Mapping[str, ModuleType], code: CodeType) -> str:
    """Return a line for each of these tools whose name the program uses without giving it another meaning.

    There is also one for each whose name the program cannot use.
    """
    used = _used(code, frozenset(names))
    unusable = "".join(
        f"Warning: the name of the tool {name[:_SHOWN]!r} has no character that Python allows in a name; "
        f"call it as globals()[{name[:_SHOWN]!r}](...)\n"
        for name in names
        if not name.isidentifier()
    )
    return unusable + "".join(
        f"Warning: {_hides(name, f'{name}{_SUFFIX}' in seconds, ready)}\n" for name in names if name in used
    )


def _hides(name: str, has_second: bool, ready: Mapping[str, ModuleType]) -> str:
    if name in ready:
        # Reading an attribute in the usual way would import a lazy module.
        module = ModuleType.__getattribute__(ready[name], "__name__")
        alias = name if has_second else f"{name}_module"
        what, where = (
            f"the module {module}",
            f"`import {module}{f' as {alias}' * (alias != module)}` brings the module back",
        )
    elif name == _ERROR:
        what, where = "the exception of tools that fail", "that exception is a RuntimeError"
    else:
        what, where = f"Python's {name}", f"Python's {name} is builtins.{name}"
    also = f"the tool is also called {name}{_SUFFIX}, and " if has_second else ""
    return f"the tool {name} hides {what}; {also}{where}"


def _used(code: CodeType, names: frozenset[str]) -> set[str]:
    """Return which of these names the program reads, without those that it binds itself."""
    read, bound = set(), set()
    for part in _parts(code):
        if names.isdisjoint(part.co_names):
            continue
        for instruction in dis.get_instructions(part):
            if instruction.argval not in names:
                continue
            if instruction.opname in _READ:
                read.add(instruction.argval)
            elif instruction.opname in _BIND_GLOBAL or part is code and instruction.opname in _BIND_NAME:
                bound.add(instruction.argval)
    return read - bound


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of the program and of everything that it defines."""
    pending = [code]
    while pending:
        part = pending.pop()
        yield part
        pending += (const for const in part.co_consts if isinstance(const, CodeType))
