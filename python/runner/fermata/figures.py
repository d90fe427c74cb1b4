"""Figures: saves the matplotlib figures that the program has not saved itself.

There is no screen in a sandbox. So ``plt.show()`` saves the open figures, and at the end of the
program the figures that are still open are saved. This module does not import matplotlib: ``watch``
is called when pyplot was imported.
"""

from __future__ import annotations

import functools
import os
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any, Final

from fermata import lines

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
        # The current figure of the last plt.show(), which has closed it.
        self._shown: Any = None
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

            def savefig(self_: Any, *args: Any, **kwargs: Any) -> Any:
                if self._is_left_by_show(self_):
                    self_ = self._shown
                try:
                    result = save(self_, *args, **kwargs)
                except BaseException as error:
                    # With a bare raise, the traceback has no line of this function.
                    error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                    raise
                self._known.add(self_)
                return result

            @functools.wraps(shown)
            def show(*args: Any, **kwargs: Any) -> None:
                # With block=False the program continues to draw, so nothing is saved yet.
                if kwargs.get("block", True) is not False:
                    self.save(close=True)

            figure.savefig, pyplot.show = _as_part_of(save, savefig), show

    def save(self, close: bool = False) -> None:
        """Save the figures that are open and were not saved yet, and close them on request."""
        if self._open is None or not self._open.figs:
            return
        for manager in self._open.get_all_fig_managers():
            figure = manager.canvas.figure
            # figure() before a plot that makes a figure of its own leaves an empty figure.
            if figure in self._known or _is_empty(figure):
                continue
            if self._saved == _MAX:
                self.warn(f"only the first {_MAX} figures are saved; save others with savefig\n")
                return
            self._known.add(figure)
            self._saved += 1
            self._write(figure)
            if close:
                # The current figure comes last.
                self._shown = figure
                self._open.destroy(manager.num)

    def _is_left_by_show(self, figure: Any) -> bool:
        """Tell whether pyplot has made this figure anew because plt.show() has closed the one that is meant."""
        if self._shown is None or not _is_empty(figure):
            return False
        return any(manager.canvas.figure is figure for manager in self._open.get_all_fig_managers())

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
            with open(fd, "wb") as file, warnings.catch_warnings(record=True) as caught:
                self._save(figure, file, format="png")
            self._warn_of(caught)
        except BaseException as error:  # the program's artists can raise anything
            self.warn(f"a figure could not be saved: {_text(error)}\n")
            with suppress(OSError):
                os.unlink(path)

    def _warn_of(self, caught: list[warnings.WarningMessage]) -> None:
        """Show the warnings of matplotlib with the line of the program that has shown the figure, if there is one."""
        frame = lines.frame()
        texts = []
        for each in caught:
            if frame is None:
                texts.append(f"{each.category.__name__}: {each.message}\n")
                continue
            registry = frame.f_globals.setdefault("__warningregistry__", {})
            place = (frame.f_code.co_filename, frame.f_lineno or 0)
            warnings.warn_explicit(each.message, each.category, *place, registry=registry)
        for text in dict.fromkeys(texts):
            self.warn(text)

    def _create(self) -> tuple[int, str]:
        while True:
            self._number += 1
            path = os.path.join(self.directory, f"figure-{self._number}.png")
            with suppress(FileExistsError):
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), path


def _is_empty(figure: Any) -> bool:
    """Tell whether nothing is drawn on a figure: its background is its only child."""
    return len(figure.get_children()) < 2


def _as_part_of(original: Any, function: Any) -> Any:
    """Make a function part of the module of another one.

    The warnings of matplotlib name the first line outside of matplotlib, which is to be the program's.
    """
    code = function.__code__.replace(co_filename=original.__code__.co_filename)
    return functools.wraps(original)(FunctionType(code, original.__globals__, closure=function.__closure__))


def _text(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # its methods are the program's
        return type(error).__name__
