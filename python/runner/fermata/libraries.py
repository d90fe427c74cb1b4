"""The modules that a program finds ready under a name, and the two kinds of sandboxes.

A scientific sandbox has imported the libraries before its program arrives. A plain sandbox
imports a library when its program first uses it, so that a program without libraries does not
wait for them. Until then the library's name refers to a lazy module, which the import system fills
when it is used or imported: ``np`` and ``numpy`` are the same module before and after. A program can
see the difference only in this: a lazy module is not in ``sys.modules``, and its type is a subclass
of the type of modules that has the same name.
"""

from __future__ import annotations

import faulthandler
import functools
import importlib
import json
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, Final

from fermata import SCIENTIFIC, children
from fermata.children import Children
from fermata.figures import Figures

# The modules of the standard library that a program finds ready, and others that programs import often.
_STANDARD: Final = (
    "asyncio", "collections", "datetime", "functools", "itertools", "json", "math", "os", "pathlib", "re", "sys",
)  # fmt: skip
_OFTEN: Final = ("random", "statistics", "string", "time", "typing", "uuid")
_PYPLOT: Final = "matplotlib.pyplot"
# The libraries that a program finds ready where they are installed: name and module.
_LIBRARIES: Final = {
    "np": "numpy",
    "numpy": "numpy",
    "pd": "pandas",
    "pandas": "pandas",
    "matplotlib": "matplotlib",
    "plt": _PYPLOT,
    "scipy": "scipy",
    "sklearn": "sklearn",
}

# After how many seconds an import is considered to hang. It is less than the server waits.
_HANGS: Final = 45

# These modules of the standard library are changed.
_CHANGED: Final = (children.CONTEXT, children.SPAWN)
# This module searches the machine for fonts, which takes seconds, unless it finds a list of fonts.
_FONTS: Final = "matplotlib.font_manager"


@dataclass
class Ready:
    """The modules and data that a process has ready for a program."""

    kind: str
    # The modules by the names under which the program finds them.
    names: dict[str, types.ModuleType]
    # Lists of fonts for matplotlib by the names of their files. They are added when they are found.
    fonts: dict[str, bytes] = field(default_factory=dict)
    # The figures of the program.
    figures: Figures = field(default_factory=Figures)
    # The processes that the program starts.
    children: Children = field(default_factory=Children)


def preload(kind: str) -> Ready:
    """Import what programs of this kind commonly use, so that no program waits for it."""
    # An import that hangs is named in the server's log.
    faulthandler.dump_traceback_later(_HANGS, file=2)
    for name in _OFTEN:
        importlib.import_module(name)
    ready = Ready(kind, standard())
    if kind == SCIENTIFIC:
        ready.names |= _imported()
        for name in _CHANGED:
            ready.children.imported(importlib.import_module(name))
        if (pyplot := sys.modules.get(_PYPLOT)) is not None:
            ready.figures.watch(pyplot)
    else:
        finder = _Finder(ready.fonts, ready.figures, ready.children)
        ready.names |= finder.names()
        # Built-in modules still come first.
        sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
    faulthandler.cancel_dump_traceback_later()
    return ready


def standard() -> dict[str, types.ModuleType]:
    """Import the modules of the standard library that a program finds ready."""
    return {name: importlib.import_module(name) for name in _STANDARD}


def _imported() -> dict[str, types.ModuleType]:
    found = {}
    for name, target in _LIBRARIES.items():
        with suppress(ImportError):
            found[name] = importlib.import_module(target)
    return found


def font_lists(directory: str) -> dict[str, bytes]:
    """Return the lists of fonts that matplotlib has left in a directory, once they are complete."""
    found = {}
    for path in Path(directory).glob("fontlist-*.json"):
        data = path.read_bytes()
        try:
            json.loads(data)
        except ValueError:
            # Another process still writes it.
            continue
        found[path.name] = data
    return found


# Which thread imports a lazy module, by the module's name.
_importing: Final[dict[str, int]] = {}


# Programs find this name in the messages of errors.
class module(types.ModuleType):
    """A lazy module: to use one of its attributes is to import it."""

    __module__ = "builtins"
    __qualname__ = "module"

    def __getattribute__(self, name: str) -> Any:
        """Return an attribute of the library."""
        if name == "__class__":
            # isinstance reads this attribute of every object, which does not mean that the library is used.
            return types.ModuleType
        if _is_imported(self, name):
            return types.ModuleType.__getattribute__(self, name)
        return getattr(_import(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the library."""
        if _is_imported(self, name):
            types.ModuleType.__setattr__(self, name, value)
        else:
            setattr(_import(self), name, value)

    def __delattr__(self, name: str) -> None:
        """Delete an attribute of the library."""
        if _is_imported(self, name):
            types.ModuleType.__delattr__(self, name)
        else:
            delattr(_import(self), name)


def _name(lazy: types.ModuleType) -> str:
    name: str = types.ModuleType.__getattribute__(lazy, "__name__")
    return name


def _is_imported(lazy: types.ModuleType, attribute: str) -> bool:
    """Whether the import of a lazy module uses the attribute, and not the program."""
    importer = _importing.get(_name(lazy))
    # The import statement of another thread reads __spec__ to find out that it must wait for the import.
    return importer == threading.get_ident() or (importer is not None and attribute == "__spec__")


def _import(lazy: types.ModuleType) -> types.ModuleType:
    name = _name(lazy)
    __import__(name)
    return sys.modules[name]


class _Finder:
    """Makes the import system fill the lazy modules, in place of making new modules for the libraries.

    It is in sys.meta_path before the finder of files.
    """

    def __init__(self, fonts: Mapping[str, bytes], figures: Figures, children: Children) -> None:
        self._fonts = fonts
        self._figures = figures
        self._children = children
        # The path before the program starts: directories that it adds may have files with a library's name.
        self._path = list(sys.path)
        roots = {target.partition(".")[0] for target in _LIBRARIES.values()}
        installed = {root for root in roots if PathFinder.find_spec(root, self._path) is not None}
        self._modules = {
            target: module(target) for target in _LIBRARIES.values() if target.partition(".")[0] in installed
        }

    def names(self) -> dict[str, types.ModuleType]:
        """Return the lazy modules by the names under which programs find them."""
        return {name: self._modules[target] for name, target in _LIBRARIES.items() if target in self._modules}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find the libraries and what they import; leave everything else to the other finders."""
        lazy = self._modules.get(name)
        if (
            lazy is None
            and name != _FONTS
            and name not in _CHANGED
            and threading.get_ident() not in _importing.values()
        ):
            return None
        spec = PathFinder.find_spec(name, self._path if path is None else path)
        loader: Any = spec and spec.loader
        if loader is None:
            return spec
        if lazy is not None:
            self._have_filled(lazy, name, loader)
        elif name == _FONTS:
            loader.exec_module = functools.partial(_with_fonts, self._fonts, loader.exec_module)
        elif name in _CHANGED:
            loader.exec_module = functools.partial(_and_then, loader.exec_module, self._children.imported)
        return spec

    def _have_filled(self, lazy: types.ModuleType, name: str, loader: Any) -> None:
        """Make this loader, which is for one module only, fill a lazy module."""
        execute = loader.exec_module

        def create(spec: ModuleSpec) -> types.ModuleType:
            _importing[name] = threading.get_ident()
            return lazy

        def fill(lazy: types.ModuleType) -> None:
            try:
                _quietly(execute, lazy)
                for part in [each for each in self._modules if each.startswith(f"{name}.")]:
                    # Programs use this part without importing it, such as matplotlib.pyplot.
                    __import__(part)
                # From now on it is an ordinary module, as fast as any other.
                lazy.__class__ = types.ModuleType
                if name == _PYPLOT:
                    self._figures.watch(lazy)
                del self._modules[name]
            except BaseException:
                vars(lazy).clear()
                types.ModuleType.__init__(lazy, name)
                raise
            finally:
                del _importing[name], loader.create_module, loader.exec_module

        loader.create_module, loader.exec_module = create, fill


def _quietly(execute: Callable[[types.ModuleType], None], lazy: types.ModuleType) -> None:
    """Execute a library without showing its warnings, as if it had been imported before the program arrived.

    Filters that the library sets for later warnings are kept.
    """
    filters: Any = warnings.filters
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("ignore")
        before = list(warnings.filters)
        execute(lazy)
        filters[:0] = [each for each in warnings.filters if each not in before]


def _and_then(
    execute: Callable[[types.ModuleType], None], change: Callable[[types.ModuleType], None], module: types.ModuleType
) -> None:
    execute(module)
    change(module)


def _with_fonts(
    fonts: Mapping[str, bytes], execute: Callable[[types.ModuleType], None], fonts_module: types.ModuleType
) -> None:
    """Execute matplotlib's module of fonts. It gets the lists of fonts, which the program does not see."""
    directory: str = sys.modules["matplotlib"].get_cachedir()
    before = set(os.listdir(directory))
    for name in fonts.keys() - before:
        with suppress(OSError):
            Path(directory, name).write_bytes(fonts[name])
    try:
        execute(fonts_module)
    finally:
        for name in {name for name in os.listdir(directory) if name.startswith("fontlist-")} - before:
            os.unlink(os.path.join(directory, name))
