"""Returns outside of functions: the program stays a module, and leaves it where it returns.

Python compiles no return in a module. So each becomes a break out of a loop that is put around the
program. A break leaves blocks just as a return does: clean-up runs, no handler of errors sees it, and
clean-up that leaves the block in another way overrides it. Loops of the program that contain a return
are left one after the other.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any, Final, TypeVar

_Node = TypeVar("_Node", ast.stmt, ast.expr)

# The name of the object that gets what the program returns. No program can use it by chance.
_NAME: Final = "<return>"
# The name exists before any program: a new name among the builtins would invalidate what Python has
# cached about them.
vars(builtins)[_NAME] = None


class Left:
    """What a program has returned."""

    def __init__(self) -> None:
        # Whether the program has ended by a return. It may also be true while the program goes on because
        # its clean-up has overridden a return. Before this is looked at, it becomes false.
        self.made = False
        self.value: Any = None

    def expect(self) -> None:
        """Take what the program that is started now returns."""
        vars(builtins)[_NAME] = self


class Returns:
    """The returns of a module, outside of functions and classes, and the loops that they leave."""

    def __init__(self, module: ast.Module) -> None:
        """Find the returns, and put their values, which are computed, in their place for now.

        Expressions are not looked at: they contain no statements and can be nested deeper than Python can
        recurse. The same holds for statements, as a chain of ``elif`` is nested.
        """
        self._module = module
        self._blocks: list[list[ast.stmt]] = []
        self._breaks: list[tuple[ast.stmt, ast.stmt | None]] = []
        # What stands in place of each return, and the value.
        self._values: dict[ast.stmt, ast.expr | None] = {}
        # The loops that contain a return.
        self._left: set[ast.stmt] = set()
        # The loop around each loop.
        self._around: dict[ast.stmt, ast.stmt | None] = {}
        pending: list[tuple[list[ast.stmt], ast.stmt | None]] = [(module.body, None)]
        while pending:
            block, loop = pending.pop()
            self._blocks.append(block)
            for index, statement in enumerate(block):
                if isinstance(statement, ast.Return):
                    block[index] = self._found(statement, loop)
                elif isinstance(statement, ast.Break):
                    self._breaks.append((statement, loop))
                elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                    pending += self._inside(statement, loop)

    def __bool__(self) -> bool:
        """Tell whether there is a return."""
        return bool(self._values)

    def _inside(self, statement: ast.stmt, loop: ast.stmt | None) -> list[tuple[list[ast.stmt], ast.stmt | None]]:
        """Return the blocks of a statement, each with the loop that a break in it would leave."""
        inner = loop
        if isinstance(statement, (ast.For, ast.AsyncFor, ast.While)):
            self._around[statement] = loop
            inner = statement
        found = []
        for part in (statement, *getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            found += [(part.body, inner)] if hasattr(part, "body") else []
            found += [(getattr(part, name), loop) for name in ("orelse", "finalbody") if hasattr(part, name)]
        return found

    def _found(self, statement: ast.Return, loop: ast.stmt | None) -> ast.stmt:
        """Note a return and the loops that it leaves, and return what stands in its place for now."""
        instead = _at(statement, ast.Pass() if statement.value is None else ast.Expr(statement.value))
        self._values[instead] = statement.value
        while loop is not None and loop not in self._left:
            self._left.add(loop)
            loop = self._around[loop]
        return instead

    def leave(self) -> None:
        """Make the module end at its returns."""
        new: dict[ast.stmt, list[ast.stmt]] = {}
        for each, value in self._values.items():
            new[each] = [_set(each, "value", value), _set(each, "made", True), _at(each, ast.Break())]
        for each, loop in self._breaks:
            if loop in self._left:
                new[each] = [_set(each, "made", False), each]
        for loop in self._left:
            assert isinstance(loop, (ast.For, ast.AsyncFor, ast.While))
            loop.orelse.insert(0, _set(loop, "made", False))
            new[loop] = [loop, _at(loop, ast.If(_field(loop, "made", ast.Load()), [_at(loop, ast.Break())], []))]
        for block in self._blocks:
            block[:] = [each for statement in block for each in new.get(statement, [statement])]
        body = self._module.body
        first = 0
        while _stays_first(body[first]):
            first += 1
        start, end = body[first], body[-1]
        around = ast.While(_at(start, ast.Constant(True)), [*body[first:], _set(end, "made", False), ast.Break()], [])
        _at(end, around.body[-1])
        body[first:] = [_at(start, around)]


def _stays_first(statement: ast.stmt) -> bool:
    """Tell whether a statement has its meaning only at the beginning of a module."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _field(place: ast.stmt, name: str, use: ast.expr_context) -> ast.expr:
    """Return a field of the object that gets what the program returns."""
    return _at(place, ast.Attribute(_at(place, ast.Name(_NAME, ast.Load())), name, use))


def _set(place: ast.stmt, name: str, value: ast.expr | bool | None) -> ast.stmt:
    """Set a field of the object that gets what the program returns."""
    if not isinstance(value, ast.expr):
        value = _at(place, ast.Constant(value))
    return _at(place, ast.Assign([_field(place, name, ast.Store())], value))


def _at(place: ast.stmt, node: _Node) -> _Node:
    """Give a new node the place of a statement of the program."""
    return ast.copy_location(node, place)
