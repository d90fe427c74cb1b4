"""Figures: saves the matplotlib figures that the program has not saved itself.

There is no screen in a sandbox. So ``plt.show()`` saves the open figures, and at the end of the
program the figures that are still open are saved. This module does not import matplotlib: ``watch``
is called when pyplot was imported.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

# The most figures of one program that are saved.
_MAX: Final = 20


class Figures:
    """The open figures of the program, which are saved in ``directory``.

    ``warn`` gets a line of text for the program's author.
    """

    def __init__(self, directory: str = "", warn: Callable[[str], None] = print) -> None:
        self.directory = directory
        self.warn = warn
        self._saved = 0
        self._number = 0
        # The figures that the program has saved itself.
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        # pyplot's list of open figures, and the function that saves a figure; None until pyplot was
        # imported.
        self._open: Any = None
        self._save: Callable[..., object] | None = None

    def watch(self, pyplot: Any) -> None:
        """Replace pyplot's ``show``, and note which figures are saved from now on."""
        # If a release of matplotlib is different, figures are not saved, but the program runs.
        with suppress(Exception):
            figure, shown = pyplot.Figure, pyplot.show
            self._open = pyplot._pylab_helpers.Gcf
            self._save = save = figure.savefig

            @functools.wraps(save)
            def savefig(self_: Any, *args: Any, **kwargs: Any) -> Any:
                result = save(self_, *args, **kwargs)
                self._known.add(self_)
                return result

            @functools.wraps(shown)
            def show(*args: Any, **kwargs: Any) -> None:
                # With block=False the program continues to draw, so nothing is saved yet.
                if kwargs.get("block", True) is not False:
                    self.save(close=True)

            figure.savefig, pyplot.show = savefig, show

    def save(self, close: bool = False) -> None:
        """Save the figures that are open and were not saved yet, and close them on request."""
        if self._open is None or not self._open.figs:
            return
        for manager in self._open.get_all_fig_managers():
            figure = manager.canvas.figure
            # figure() before a plot that makes a figure of its own leaves an empty figure.
            if figure in self._known or len(figure.get_children()) < 2:
                continue
            if self._saved == _MAX:
                self.warn(f"only the first {_MAX} figures are saved; save others with savefig\n")
                return
            self._known.add(figure)
            self._saved += 1
            self._write(figure)
            if close:
                self._open.destroy(manager.num)

    def finish(self) -> None:
        """Save the figures that are open at the end of the program, whatever the program has done to pyplot."""
        try:
            self.save()
        except BaseException as error:
            self.warn(f"the open figures could not be saved: {_text(error)}\n")

    def _write(self, figure: Any) -> None:
        """Save a figure under the next name that is free."""
        assert self._save is not None
        path = ""
        try:
            fd, path = self._create()
            with open(fd, "wb") as file:
                self._save(figure, file, format="png")
        except BaseException as error:  # the program's artists can raise anything
            self.warn(f"a figure could not be saved: {_text(error)}\n")
            with suppress(OSError):
                os.unlink(path)

    def _create(self) -> tuple[int, str]:
        while True:
            self._number += 1
            path = os.path.join(self.directory, f"figure-{self._number}.png")
            with suppress(FileExistsError):
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), path


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # its methods are the program's
        return type(error).__name__
