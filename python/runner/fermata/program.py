"""The user's program: compiles its source unchanged, and reports how it failed."""

from __future__ import annotations

import ast
import builtins
import inspect
import io
import linecache
import re
import sys
import threading
import traceback
import warnings
from types import CodeType, TracebackType
from typing import Any, Final

from fermata import returned
from fermata.leaving import Left, Returns

FILENAME: Final = "<program>"
# The name of the program's file for the program itself. There is no such file.
NAME: Final = "program.py"

# The longest error line and the longest traceback that are reported, in characters.
_MAX_ERROR: Final = 4_000
_MAX_TRACEBACK: Final = 100_000
# How deeply groups of errors may be nested.
_MAX_NESTED: Final = 100


class Loader:
    """What the module of a program has as its loader: Python asks it for the source of a file that does not exist."""

    def __init__(self, source: str = "") -> None:
        self.source = source

    def get_source(self, name: str) -> str:
        """Return the source of the program."""
        return self.source


class Program:
    """A compiled program, ready to be run once in a namespace."""

    def __init__(self, source: str, valued: bool = False) -> None:
        """Compile source. A valued program keeps the value of the expression on its last line.

        Raises what compile raises, in nearly all cases SyntaxError.
        """
        source = source.removeprefix("\ufeff")
        # The lines as Python counts them; str.splitlines would split at more characters.
        lines = io.StringIO(source, newline=None).readlines()
        if lines and not lines[-1].endswith("\n"):
            # linecache does the same. Otherwise the marks below the last line would be one column too far right.
            lines[-1] += "\n"
        # Tracebacks take the lines of the program from here.
        linecache.cache[FILENAME] = (len(source), None, lines, FILENAME)
        # The value of the expression on the last line. A value that waits for an await is dropped at
        # once, so that Python warns about it as usual.
        self._last: Any = None
        self._left = Left()
        try:
            module = parse(source)
            self._valued = valued and _keep_last(module)
            self._code = _compile_whole(module) if _RETURN in source else _compile(module)
        except SyntaxError as error:
            _show_line(error, lines)
            raise
        # Whether the program starts an event loop of its own, which is not possible inside another one.
        self.starts_loop = _LOOP_WORDS.search(source) is not None and _starts_loop(module)

    @property
    def code(self) -> CodeType:
        """What Python runs."""
        return self._code

    @property
    def awaits(self) -> bool:
        """Whether the program awaits at its top level, so that it has to run in an event loop."""
        return bool(self._code.co_flags & inspect.CO_COROUTINE)

    @property
    def value(self) -> Any:
        """What the program has returned at its top level or, if it is valued, has left on its last line."""
        return self._left.value if self._left.made else self._last

    def start(self, namespace: dict[str, Any]) -> Any:
        """Run the program if it does not await, otherwise return its coroutine."""
        if self._valued:
            vars(builtins)[_KEEP] = self._keep
        self._left.expect()
        return eval(self._code, namespace)

    def _keep(self, value: Any) -> None:
        if not returned.is_waiting(value):
            self._last = value


# The name of the function that gets the value of the last line. No program can use it by chance.
_KEEP: Final = "<value>"
# The name exists before any program: a new name among the builtins would invalidate what Python has
# cached about them.
vars(builtins)[_KEEP] = None


def forget() -> None:
    """Forget what the program has returned or left on its last line."""
    vars(builtins)[_KEEP] = None
    Left().expect()


def _keep_last(module: ast.Module) -> bool:
    """Pass the value of the expression on the last line to _KEEP. Return False if there is no such line."""
    last = module.body[-1] if module.body else None
    if not isinstance(last, ast.Expr) or isinstance(last.value, ast.Starred):
        return False
    keep = ast.copy_location(ast.Name(_KEEP, ast.Load()), last.value)
    last.value = ast.copy_location(ast.Call(keep, [last.value], []), last.value)
    return True


# Modules that have functions or classes which run an event loop, and the names of those.
_LOOP_MODULES: Final = frozenset({"anyio", "asyncio", "trio", "uvloop"})
_LOOP_RUNNERS: Final = frozenset({"run", "Runner"})
# Names that run an event loop whatever object they belong to.
_LOOP_METHODS: Final = frozenset({"IsolatedAsyncioTestCase", "async_to_sync", "run_forever", "run_until_complete"})
# A program without any of these words starts no event loop.
_LOOP_WORDS: Final = re.compile("|".join([*_LOOP_METHODS, rf"\b(?:{'|'.join(_LOOP_MODULES)})\b"]))


def _starts_loop(module: ast.Module) -> bool:
    """Tell whether any part of the program, executed or not, starts an event loop."""
    names = set(_LOOP_MODULES)
    runners: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Import():
                names.update(each.asname for each in node.names if each.asname and _root(each.name) in _LOOP_MODULES)
            case ast.ImportFrom():
                imported = {each.name for each in node.names}
                if imported & _LOOP_METHODS or _root(node.module) in _LOOP_MODULES and imported & {*_LOOP_RUNNERS, "*"}:
                    return True
            case ast.Attribute(attr=attribute):
                if attribute in _LOOP_METHODS:
                    return True
                if attribute in _LOOP_RUNNERS and isinstance(name := _first(node), ast.Name):
                    runners.add(name.id)
    return not runners.isdisjoint(names)


def _root(name: str | None) -> str:
    return (name or "").partition(".")[0]


def _first(node: ast.expr) -> ast.expr:
    """Return the expression a of a.b.c."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node


def parse(source: str) -> ast.Module:
    """Return the tree of a program. Raises what compile raises."""
    try:
        return _tree(source)
    except IndentationError:
        first = next((line for line in source.splitlines() if line.strip() and not line.lstrip().startswith("#")), "")
        if not first[:1].isspace():
            raise
    # The whole program is indented, for example because it was copied from other code. It
    # is parsed as the body of a block, because dedenting the text would change its strings.
    try:
        block = _tree("if True:\n" + source).body
    except SyntaxError as error:
        if error.lineno is not None:
            error.lineno -= 1
        if error.end_lineno is not None:
            error.end_lineno -= 1
        error.msg = re.sub(r"(?<= line )\d+", lambda found: str(int(found[0]) - 1), error.msg)
        raise
    assert isinstance(block[0], ast.If)
    module = ast.Module(body=block[0].body + block[1:], type_ignores=[])
    return ast.increment_lineno(module, -1)


def _tree(source: str) -> ast.Module:
    # ast.parse would appear in the traceback of a syntax error.
    tree: ast.Module = compile(source, FILENAME, "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    return tree


def _compile(module: ast.Module) -> CodeType:
    code: CodeType = compile(module, FILENAME, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    return code


# A program without this word has no return.
_RETURN: Final = "return"


def _compile_whole(module: ast.Module) -> CodeType:
    """Compile a program, which may have top-level returns."""
    returns = Returns(module)
    # Without the returns this gives all errors and warnings of a module.
    code = _compile(module)
    if returns:
        returns.leave()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = _compile(module)
    return code


def _show_line(error: SyntaxError, lines: list[str]) -> None:
    """Give an error that was found after parsing its line, as if the program were a file."""
    if error.text is not None or error.lineno is None or not 0 < error.lineno <= len(lines):
        return
    error.text = lines[error.lineno - 1]
    # Such errors count bytes.
    error.offset = _column(error.text, error.offset)
    if error.end_lineno == error.lineno:
        error.end_offset = _column(error.text, error.end_offset)


def _column(line: str, offset: int | None) -> int | None:
    """Return the column of the character at an offset in bytes. Both count from 1."""
    if offset is None or offset < 1 or line.isascii():
        return offset
    return len(line.encode("utf-8", "replace")[: offset - 1].decode("utf-8", "replace")) + 1


def error_line(error: BaseException) -> str:
    """Return the last line of the traceback, such as ``ZeroDivisionError: division by zero``.

    The line of a group of errors ends with that of the first one.
    """
    try:
        text = _line(error)
        if first := _first_of(error):
            text = f"{text}: {_line(first)}"
        return _cut(text, _MAX_ERROR)
    except BaseException:  # the methods of the error belong to the program
        return _cut(type(error).__name__, _MAX_ERROR)


def _line(error: BaseException) -> str:
    text = "".join(traceback.format_exception_only(type(error), error))
    if isinstance(error, SyntaxError):
        text = text.rstrip().rpartition("\n")[2]
    return text.rstrip("\n") + _suggestion(error)


def _first_of(error: BaseException) -> BaseException | None:
    """Return the first error in a group that is no group itself, or None for an error that is no group."""
    first = error
    for _ in range(_MAX_NESTED):
        if not isinstance(first, BaseExceptionGroup):
            return None if first is error else first
        first = BaseExceptionGroup.exceptions.__get__(first)[0]
    return None


def error_text(error: BaseException, hidden: str) -> str:
    """Return the traceback, without frames of files below the directory ``hidden``."""
    try:
        _hide(error, hidden)
        text = "".join(traceback.format_exception(error))
        if suggestion := _suggestion(error):
            text = f"{text.removesuffix(chr(10))}{suggestion}\n"
        return _cut(text, _MAX_TRACEBACK)
    except BaseException:  # the methods of the error belong to the program
        return f"{_cut(type(error).__name__, _MAX_ERROR)}\n"


_SUGGESTION: Final = re.compile(r"\. Did you mean: '\w+'\?$")


def _suggestion(error: BaseException) -> str:
    """Return what Python adds to the error of a misspelled name, such as ``. Did you mean: 'total'?``.

    From Python 3.12 on, the module traceback adds it. Before that, only the interpreter's own printing does.
    """
    if sys.version_info >= (3, 12) or not isinstance(error, (AttributeError, NameError)) or hasattr(error, "__notes__"):
        return ""
    printed = _Printed(sys.stderr)
    sys.stderr = printed
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
    finally:
        sys.stderr = printed.other
    found = _SUGGESTION.search(printed.getvalue().rstrip("\n"))
    return found[0] if found else ""


class _Printed(io.StringIO):
    """A stderr for one thread. What other threads print goes where it would have gone."""

    def __init__(self, other: Any) -> None:
        """Keep what this thread prints, and pass on to ``other`` what other threads print."""
        super().__init__()
        self.other = other
        self._thread = threading.get_ident()

    def write(self, text: str, /) -> int:
        """Keep the text or pass it on."""
        if threading.get_ident() == self._thread:
            return super().write(text)
        return int(self.other.write(text))


def _hide(error: BaseException, hidden: str) -> None:
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        each = pending.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        each.__traceback__ = _without(each.__traceback__, hidden)
        pending += (each.__cause__, each.__context__)
        if isinstance(each, BaseExceptionGroup):
            pending += each.exceptions


def _without(tb: TracebackType | None, hidden: str) -> TracebackType | None:
    links = []
    while tb is not None:
        links.append(tb)
        tb = tb.tb_next
    files = [link.tb_frame.f_code.co_filename for link in links]
    # Above the first frame of the program are the frames that run it: the runner's and asyncio's.
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
