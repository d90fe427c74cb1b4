"""The user's program: compiling it as it is, and telling how it failed."""

from __future__ import annotations

import ast
import inspect
import linecache
import traceback
from types import CodeType, FunctionType, TracebackType
from typing import Any, Final

FILENAME: Final = "<program>"

# The longest error line and the longest traceback that are reported, in characters.
_MAX_ERROR: Final = 4_000
_MAX_TRACEBACK: Final = 100_000


class Program:
    """A compiled program, ready to be run once in a namespace."""

    def __init__(self, source: str) -> None:
        """Compile source.

        Raises whatever compile raises; SyntaxError in nearly all cases.
        """
        source = source.removeprefix("\ufeff")
        lines = source.splitlines(keepends=True)
        # Tracebacks quote the program's lines from here.
        linecache.cache[FILENAME] = (len(source), None, lines, FILENAME)
        module = _parse(source)
        if _returns(module):
            self._code, self._wrapped = _compile_function(module), True
        else:
            self._code, self._wrapped = _compile(module), False

    @property
    def awaits(self) -> bool:
        """Whether the program awaits at its top level, so that it needs a loop around it."""
        return bool(self._code.co_flags & inspect.CO_COROUTINE)

    def start(self, namespace: dict[str, Any]) -> Any:
        """Run a program that does not await; return the coroutine of one that does."""
        if self._wrapped:
            return FunctionType(self._code, namespace)()
        return eval(self._code, namespace)


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source, FILENAME)
    except IndentationError:
        first = next((line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
        if not first[:1].isspace():
            raise
    # The whole program is indented, as when it was written inside other code. It
    # is parsed as the body of a block: dedenting the text would change its strings.
    try:
        block = ast.parse("if True:\n" + source, FILENAME).body
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno -= 1
        if error.end_lineno is not None:
            error.end_lineno -= 1
        raise
    assert isinstance(block[0], ast.If)
    module = ast.Module(body=block[0].body + block[1:], type_ignores=[])
    return ast.increment_lineno(module, -1)


def _compile(module: ast.Module) -> CodeType:
    # Warnings about the program's own text (such as "\d") are the program's.
    code: CodeType = compile(module, FILENAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


class _ReturnFinder(ast.NodeVisitor):
    found = False

    def visit_Return(self, node: ast.Return) -> None:
        self.found = True

    def _skip(self, node: ast.AST) -> None:
        """What is inside has a scope of its own."""

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _skip


def _returns(module: ast.Module) -> bool:
    finder = _ReturnFinder()
    finder.visit(module)
    return finder.found


class _Unannotate(ast.NodeTransformer):
    """Drops annotations of names: a global name of a function may not have one."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if not isinstance(node.target, ast.Name):
            return node
        statement = ast.Pass() if node.value is None else ast.Assign(targets=[node.target], value=node.value)
        return ast.copy_location(statement, node)

    def _keep(self, node: ast.AST) -> ast.AST:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _keep


def _compile_function(module: ast.Module) -> CodeType:
    """Compile a program with a top-level return as a function whose names are global."""
    body = _Unannotate().visit(module).body
    names = _bound_names(_function_code(body))
    if names:
        body = [ast.Global(names=names), *body]
    return _function_code(body).replace(co_name="<module>", co_qualname="<module>")


def _bound_names(code: CodeType) -> list[str]:
    return [*code.co_varnames, *code.co_cellvars]


def _function_code(body: list[ast.stmt]) -> CodeType:
    try:
        return _function_code_of(ast.FunctionDef, body)
    except SyntaxError:
        # It awaits, or it has the same error as a coroutine function, raised again.
        return _function_code_of(ast.AsyncFunctionDef, body)


def _function_code_of(kind: type[ast.FunctionDef] | type[ast.AsyncFunctionDef], body: list[ast.stmt]) -> CodeType:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    fields: dict[str, Any] = {"type_params": []} if "type_params" in kind._fields else {}
    function = kind(name="program", args=arguments, body=body, decorator_list=[], **fields)
    module = ast.Module(body=[function], type_ignores=[])
    code = compile(ast.fix_missing_locations(module), FILENAME, "exec", dont_inherit=True)
    return next(const for const in code.co_consts if isinstance(const, CodeType))


def error_line(error: BaseException) -> str:
    """Return the last line of the traceback: ``ZeroDivisionError: division by zero``."""
    try:
        text = "".join(traceback.format_exception_only(error))
        if isinstance(error, SyntaxError):
            text = text.rstrip().rpartition("\n")[2]
        return _cut(text.rstrip("\n"), _MAX_ERROR)
    except BaseException:  # the error's own methods are the program's
        return type(error).__name__


def error_text(error: BaseException, hidden: str) -> str:
    """Return the traceback without the frames of files below ``hidden``."""
    try:
        _hide(error, hidden, set())
        return _cut("".join(traceback.format_exception(error)), _MAX_TRACEBACK)
    except BaseException:  # the error's own methods are the program's
        return f"{type(error).__name__}\n"


def _hide(error: BaseException | None, hidden: str, seen: set[int]) -> None:
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without(error.__traceback__, hidden)
    _hide(error.__cause__, hidden, seen)
    _hide(error.__context__, hidden, seen)
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            _hide(inner, hidden, seen)


def _without(tb: TracebackType | None, hidden: str) -> TracebackType | None:
    links = []
    while tb is not None:
        links.append(tb)
        tb = tb.tb_next
    files = [link.tb_frame.f_code.co_filename for link in links]
    # Above the program's first frame is what runs it: ours, and asyncio's.
    first = files.index(FILENAME) if FILENAME in files else 0
    kept = [link for link, file in zip(links[first:], files[first:]) if not file.startswith(hidden)]
    chain: TracebackType | None = None
    for link in reversed(kept):
        chain = TracebackType(chain, link.tb_frame, link.tb_lasti, link.tb_lineno)
    return chain


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"
