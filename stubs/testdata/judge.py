"""Judges generated stubs with Python's own parser.

Every line of standard input is a source, as a JSON string. For each of them a line of
standard output describes the stubs that it defines, or the error in it.
"""

import ast
import inspect
import json
import sys
import warnings
from typing import Any, Literal


def check_shape(tree: ast.Module) -> list[str]:
    """Return the docstrings. Raise AssertionError if the source contains anything but stubs."""
    docs = []
    for stub in tree.body:
        assert isinstance(stub, ast.AsyncFunctionDef) and stub.name == "_", ast.dump(stub)
        (decorator,) = stub.decorator_list
        assert isinstance(decorator, ast.Call), ast.dump(decorator)
        assert isinstance(decorator.func, ast.Name) and decorator.func.id == "tool", ast.dump(decorator)
        name, identifier, object_first, *others = map(ast.literal_eval, decorator.args)
        assert isinstance(name, str) and isinstance(identifier, str) and isinstance(object_first, bool)
        for keyword in decorator.keywords:
            assert keyword.arg in ("names", "anything", "also"), keyword.arg
            assert ast.literal_eval(keyword.value), keyword.arg
        assert not others or others[0] and all(isinstance(required, bool) for required in others[0].values())
        (doc,) = stub.body
        assert isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant), ast.dump(doc)
        assert isinstance(doc.value.value, str), ast.dump(doc)
        calls = [n for n in ast.walk(stub) if isinstance(n, (ast.Call, ast.Attribute, ast.Lambda))]
        assert calls == [decorator], "code among the stubs"
        for default in stub.args.defaults + stub.args.kw_defaults:
            if default is not None:
                ast.literal_eval(default)
        # Newer compilers remove indentation from docstrings: only the source has the exact text.
        docs.append(doc.value.value)
    return docs


def judge(source: str) -> list[dict[str, Any]]:
    assert all(c.isascii() or f"a{c}".isidentifier() for c in source)
    docs = check_shape(ast.parse(source))
    stubs: list[dict[str, Any]] = []

    def tool(
        name: str,
        identifier: str,
        object_first: bool,
        others: dict[str, bool] | None = None,
        *,
        names: dict[str, str] | None = None,
        anything: bool = False,
        also: str = "",
    ) -> Any:
        def define(function: Any) -> None:
            assert inspect.iscoroutinefunction(function)
            assert function.__doc__ is not None
            signature = inspect.signature(function)
            parameters = list(signature.parameters.values())
            if closed := not parameters or parameters[-1].kind is not inspect.Parameter.VAR_KEYWORD:
                assert all(p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) for p in parameters)
            else:
                del parameters[-1]
            stubs.append(
                {
                    "name": name,
                    "identifier": identifier,
                    "object_first": object_first,
                    "others": others or {},
                    "names": names or {},
                    "anything": anything,
                    "also": also,
                    "closed": closed,
                    "parameters": [p.name for p in parameters],
                    "signature": str(signature),
                    "doc": docs[len(stubs)],
                }
            )

        return define

    exec(compile(source, "<stubs>", "exec"), {"tool": tool, "Any": Any, "Literal": Literal})
    assert len(stubs) == len(docs)
    return stubs


warnings.simplefilter("error")
for line in sys.stdin:
    try:
        verdict = {"stubs": judge(json.loads(line))}
    except BaseException as e:
        verdict = {"error": repr(e)}
    print(json.dumps(verdict), flush=True)
