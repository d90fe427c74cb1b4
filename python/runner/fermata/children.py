"""Children: the processes that a program starts afresh, with ``multiprocessing``, and that import its module.

Python tells such a process the file of the module. The program is not in a file, so the process gets a
small one, which runs the program as a module: its main part is left out if it is guarded by ``if
__name__ == "__main__"``, and no tool can be called.
"""

from __future__ import annotations

import functools
import os
import sys
from json import dumps, loads
from types import ModuleType
from typing import Any, Final

# The modules of the standard library that are changed when they are imported.
CONTEXT: Final = "multiprocessing.context"
SPAWN: Final = "multiprocessing.spawn"

_RUNNER: Final = os.path.dirname(os.path.dirname(__file__))
# The file of a child. Its only name beside those of the program is removed by the function that it calls.
_FILE: Final = """\
import sys
sys.path.insert(0, {runner!r})
from fermata.children import run
sys.path.remove({runner!r})
run(globals(), {told!r})
"""
# What a child needs to know: members of the program's request.
_TOLD: Final = frozenset(("code", "stubs", "package", "toolsets"))


class Children:
    """Makes the children of the program import its module."""

    def __init__(self) -> None:
        # The name of the program's file, and its request.
        self._file = ""
        self._request: dict[str, Any] = {}
        self._fork = False
        self._path = ""

    def expect(self, file: str, request: dict[str, Any]) -> None:
        """Note the program that runs now, and the name of its file."""
        self._file, self._request = file, request

    def prefer_fork(self) -> None:
        """Make Python fork children unless the program asks for something else.

        A program that awaits at its top level is not written to be imported.
        """
        if sys.version_info < (3, 14):
            # There, Linux forks by default.
            return
        self._fork = True
        if (context := sys.modules.get(CONTEXT)) is not None:
            self.imported(context)

    def imported(self, module: ModuleType) -> None:
        """Change one of the modules above, which was imported."""
        if module.__name__ == SPAWN:
            self._replace(module)
        elif self._fork and hasattr(module, "_default_context"):
            module._default_context._default_context = module._concrete_contexts["fork"]

    def _replace(self, spawn: Any) -> None:
        prepare = spawn.get_preparation_data

        @functools.wraps(prepare)
        def get_preparation_data(name: str) -> Any:
            data = prepare(name)
            if self._file and "init_main_from_path" in data:
                data["init_main_from_path"] = self._write()
            return data

        spawn.get_preparation_data = get_preparation_data

    def _write(self) -> str:
        """Return the path of the file of children, which is written when it is first needed."""
        if not self._path:
            # multiprocessing removes this directory at the end of the program.
            path = os.path.join(sys.modules["multiprocessing.util"].get_temp_dir(), "program.py")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444), "w", encoding="ascii") as file:
                told = {"file": self._file} | {name: value for name, value in self._request.items() if name in _TOLD}
                file.write(_FILE.format(runner=_RUNNER, told=dumps(told)))
            self._path = path
        return self._path

    def come_from(self, path: str) -> None:
        """Make this process, a child, have children of the same file."""
        self._path = path


def run(namespace: dict[str, Any], told: str) -> None:
    """Run the program as a module in a child, in the namespace of the child's file."""
    # Only children need these modules, and other modules of the runner import this one.
    import socket

    from fermata import PLAIN, calls, libraries, program, toolsets, worker

    request = loads(told)
    sys.excepthook = _show_error
    ready = libraries.preload(PLAIN)
    ready.figures.directory = os.getcwd()
    ready.children.expect(request["file"], request)
    ready.children.come_from(namespace["__file__"])
    ready.children.imported(sys.modules[SPAWN])
    pending = calls.Calls(socket.socketpair()[0])
    pending.refuse_all()
    calls.FORGOTTEN.watch()
    if "toolsets" in request:
        toolsets.install(request["package"], request["toolsets"], pending)
    del namespace["run"]
    namespace |= {"__file__": request["file"], "__loader__": program.Loader(request["code"])}
    worker.run_program(ready.names, request["code"], request["stubs"], pending, namespace)


def _show_error(kind: type[BaseException], error: BaseException, traceback: Any) -> None:
    """Print the error that ends a child, without the frames of the runner."""
    from fermata.program import error_text

    text = error_text(error, os.path.dirname(__file__))
    os.write(2, text.encode("utf-8", "backslashreplace"))
