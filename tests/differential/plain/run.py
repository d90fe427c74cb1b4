"""Runs a program that is no plain script: it awaits or returns at its top level, or its last line is a value.

Usage: ``run.py WAY VALUE_FILE PROGRAM`` runs a program. ``run.py`` alone reads a list of files from its
input and prints for each in which WAY it runs: ``script`` if ``python3 program.py`` does.

A return at the top level is done by an exception that only BaseException catches. So everything else is
as in a module.
"""

import ast
import asyncio
import inspect
import json
import linecache
import sys
import types


class Returned(BaseException):
    """The program has returned."""


def _compiles(source):
    try:
        tree = _Returns().visit(ast.parse(source))
        compile(tree, "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError:
        return False
    return True


def way(source):
    """Tell in which way a program runs."""
    try:
        module = ast.parse(source)
        compile(source, "program.py", "exec", dont_inherit=True)
    except ValueError:
        return "script"  # it has a null byte
    except SyntaxError as error:
        try:
            code = compile(source, "program.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError as other:
            return "return" if other.msg == "'return' outside function" and _compiles(source) else "script"
        return "await" if code.co_flags & inspect.CO_COROUTINE else f"unknown: {error}"
    last = module.body[-1] if module.body else None
    return "value" if isinstance(last, ast.Expr) and not isinstance(last.value, (ast.Call, ast.Constant)) else "script"


class _Returns(ast.NodeTransformer):
    def visit_Return(self, node):
        value = node.value or ast.copy_location(ast.Constant(None), node)
        name = ast.copy_location(ast.Name("__Returned__", ast.Load()), node)
        call = ast.copy_location(ast.Call(name, [value], []), node)
        return ast.copy_location(ast.Raise(call, None), node)

    def visit_FunctionDef(self, node):
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef


def shown(value):
    """Return a value as the documentation says that the server shows it."""
    try:
        return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        return json.dumps(repr(value))


def _plain(value):
    if type(value).__module__ == "numpy" and not getattr(value, "shape", 1):
        return value.item()
    if isinstance(value, dict):
        if not all(type(key) in (str, int) for key in value):
            raise TypeError
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def run(name, value_file, path):
    """Run the program in a module that is __main__."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [path]
    module.__file__ = path
    module.__Returned__ = Returned
    tree = ast.parse(source, path)
    _Returns().visit(tree)
    last = tree.body[-1]
    value = None
    ending = None
    if isinstance(last, ast.Expr) and not isinstance(last.value, (ast.Call, ast.Constant)):
        ending = ast.Expression(tree.body.pop().value)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    async def main():
        nonlocal value
        try:
            # A statement and the last line that is a value are two pieces of code with the same names.
            if inspect.isawaitable(done := eval(compile(tree, path, "exec", flags, dont_inherit=True), vars(module))):
                await done
            if ending:
                value = eval(compile(ending, path, "eval", flags, dont_inherit=True), vars(module))
                if inspect.iscoroutine(value):
                    value = await value
        except Returned as returned:
            value = returned.args[0]

    linecache.getlines(path)
    asyncio.run(main())
    if value is not None:
        with open(value_file, "w", encoding="utf-8") as file:
            file.write(shown(value))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(*sys.argv[1:])
    else:
        for line in sys.stdin:
            with open(line.rstrip("\n"), encoding="utf-8") as program:
                print(way(program.read()), flush=True)
