"""Judges generated modules of toolsets with Python's own parser, and by importing them.

Every line of standard input is a source, as a JSON string. For each of them a line of standard
output describes the module, or the error in it.
"""

import ast
import inspect
import json
import pydoc
import sys
import types
import warnings
from typing import Any, get_type_hints


def check_function(function: ast.AST, kind: type[ast.AST]) -> None:
    """Raise AssertionError if a method contains anything but what stubs have."""
    assert isinstance(function, kind) and isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
    static, hook = function.decorator_list
    assert isinstance(static, ast.Name) and static.id == "staticmethod", ast.dump(static)
    assert isinstance(hook, ast.Call) and isinstance(hook.func, ast.Name) and hook.func.id == "_tool", ast.dump(hook)
    for argument in [*hook.args, *(keyword.value for keyword in hook.keywords)]:
        ast.literal_eval(argument)
    (doc,) = function.body
    assert isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and isinstance(doc.value.value, str)
    for default in function.args.defaults + function.args.kw_defaults:
        if default is not None:
            ast.literal_eval(default)
    calls = [n for n in ast.walk(function) if isinstance(n, (ast.Call, ast.Attribute, ast.Lambda, ast.NamedExpr))]
    assert calls == [hook], "code among the stubs"
    assert not function.name.startswith("_"), function.name


def check_class(body: list[ast.stmt], kind: type[ast.AST]) -> None:
    assert isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant), ast.dump(body[0])
    for function in body[1:]:
        check_function(function, kind)


def check_module(tree: ast.Module) -> None:
    """Raise AssertionError if the source contains anything but a toolset."""
    doc, typing, hook, exported, *hidden, toolset = tree.body
    assert isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant)
    assert ast.unparse(typing) == "from typing import Any, Literal" and ast.unparse(hook) == "from . import _tool"
    assert isinstance(toolset, ast.ClassDef) and not toolset.bases and not toolset.decorator_list
    assert ast.unparse(exported) == f"__all__ = ['{toolset.name}']"
    for alias in hidden:
        assert isinstance(alias, ast.Assign) and isinstance(alias.value, ast.Name), ast.dump(alias)
        assert ast.unparse(alias) == f"_{alias.value.id} = {alias.value.id}"
    twins = toolset.body.pop()
    assert isinstance(twins, ast.ClassDef) and twins.name == "aio" and not twins.bases and not twins.decorator_list
    check_class(toolset.body, ast.FunctionDef)
    check_class(twins.body, ast.AsyncFunctionDef)


class Blank(ast.NodeTransformer):
    """Takes the values of literals away."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant(type(node.value).__name__)


def load(source: str) -> tuple[types.ModuleType, list[dict[str, Any]]]:
    """Import the module from a package whose hook tells what it is given."""
    declared: list[dict[str, Any]] = []

    def hook(
        toolset: str,
        name: str,
        object_first: bool,
        others: dict[str, bool] | None = None,
        *,
        names: dict[str, str] | None = None,
        anything: bool = False,
    ) -> Any:
        def decorate(function: Any) -> Any:
            if not inspect.iscoroutinefunction(function):
                declared.append(
                    {"toolset": toolset, "name": name, "object_first": object_first, "others": others or {}}
                    | {"method": function.__name__}
                )
            return function

        return decorate

    package = types.ModuleType("fermata_tools")
    package.__path__ = []
    package._tool = hook  # type: ignore[attr-defined]
    sys.modules["fermata_tools"] = package
    module = types.ModuleType("fermata_tools.toolset")
    module.__package__ = "fermata_tools"
    sys.modules[module.__name__] = module
    exec(compile(source, "<toolset>", "exec", dont_inherit=True), module.__dict__)
    return module, declared


def judge(source: str) -> dict[str, Any]:
    assert all(c.isascii() or f"a{c}".isidentifier() for c in source)
    tree = ast.parse(source)
    shape = ast.dump(Blank().visit(ast.parse(source)))
    check_module(tree)
    module, methods = load(source)
    (class_name,) = module.__all__
    toolset = getattr(module, class_name)
    for method in methods:
        function, twin = getattr(toolset, method["method"]), getattr(toolset.aio, method["method"])
        assert inspect.iscoroutinefunction(twin) and not inspect.iscoroutinefunction(function)
        assert inspect.signature(function) == inspect.signature(twin)
        get_type_hints(function)
        method["signature"] = str(inspect.signature(function)).replace("typing.", "")
        method["doc"] = inspect.getdoc(function)
    return {
        "shape": shape,
        "class": class_name,
        "doc": toolset.__doc__,
        "methods": methods,
        "help": pydoc.plain(pydoc.render_doc(toolset)),
    }


warnings.simplefilter("error")
for line in sys.stdin:
    try:
        verdict = judge(json.loads(line))
    except BaseException as e:
        verdict = {"error": repr(e)}
    print(json.dumps(verdict), flush=True)
