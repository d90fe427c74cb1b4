"""The end of a program's module: what the interpreter does at its own end, which a worker never reaches.

What the program has written is complete, whatever refers to it. Finalizers run while the names that they
use are still there.
"""

from __future__ import annotations

import gc
import io
import os
import stat
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from types import ModuleType
from typing import Any, Final

# What holds back written data. The first kind comes first because it writes to the second.
_WRITERS: Final[tuple[Any, ...]] = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)
# The names of the program's module. multiprocessing has imported it by the second.
MAIN: Final = ("__main__", "__mp_main__")
# A module that is among its own names lives as long as they do.
_ITSELF: Final = "<module>"


def drop(main: list[ModuleType]) -> None:
    """Take the module of the program out of a list that has the only reference of the runner to it, and free it."""
    # The collector would close files before what is above them has written its data.
    files = list(_files())
    streams = ((sys.stdout, sys.__stdout__), (sys.stderr, sys.__stderr__))
    _flush([*files, *(stream for stream, own in streams if stream is not own)])
    del streams
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    module: ModuleType | None = main.pop()
    vars(module)[_ITSELF] = module
    alive = weakref.ref(module)
    for name in MAIN:
        if sys.modules.get(name) is module:
            del sys.modules[name]
    del module
    # This runs finalizers, and warns of coroutines that nobody has awaited.
    gc.collect()
    if (module := alive()) is not None:
        # Something else still refers to the program's functions, such as a thread that has not ended. The
        # interpreter would have stopped the threads, so their errors are not told.
        threading.excepthook = lambda _: None
        vars(module).clear()
    _flush(files)
    for kind in _WRITERS:
        for file in files:
            if isinstance(file, kind):
                with suppress(BaseException):  # a file below it belongs to the program
                    kind.close(file)


def _files() -> Iterator[Any]:
    """Yield the open files that the program has made and that hold back what it has written."""
    objects = gc.get_objects()
    # The classes are looked at, and not the objects, since an object can lie about its class.
    kinds = {kind for kind in set(map(type, objects)) if issubclass(kind, _WRITERS)}
    for each in objects if kinds else ():
        if type(each) in kinds and not _is_pipe(each):
            yield each


def _is_pipe(file: Any) -> bool:
    """Tell whether a file is closed or leads to somebody who may never read: to flush it could block."""
    try:
        mode = os.fstat(file.fileno()).st_mode
    except io.UnsupportedOperation:
        # It is above an object of Python code.
        return False
    except BaseException:
        return True
    return not stat.S_ISREG(mode)


def _flush(files: list[Any]) -> None:
    for file in files:
        with suppress(BaseException):
            file.flush()
