"""Figures: what is saved, when, and under which name."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest

from fermata import figures
from fermata.figures import Figures


class Figure:
    """A figure of a library that is like matplotlib."""

    def __init__(self, manager: Manager, empty: bool = False, error: BaseException | None = None) -> None:
        self.canvas = types.SimpleNamespace(figure=self, manager=manager)
        self.empty = empty
        self._error = error
        self.written: list[Any] = []

    def get_children(self) -> list[str]:
        return ["background"] if self.empty else ["background", "axes"]

    def savefig(self, file: Any, format: str = "") -> None:
        file.write(b"beginning")
        self.written.append(file)
        if self._error is not None:
            raise self._error


class Manager:
    def __init__(self, num: int) -> None:
        self.num = num
        self.canvas: Any = None


class Gcf:
    def __init__(self) -> None:
        self.figs: dict[int, Manager] = {}

    def get_all_fig_managers(self) -> list[Manager]:
        return list(self.figs.values())

    def destroy(self, num: int) -> None:
        del self.figs[num]


class Pyplot:
    """What the runner needs of pyplot."""

    def __init__(self) -> None:
        self.Figure = type("Figure", (Figure,), {"savefig": Figure.savefig})
        self._pylab_helpers = types.SimpleNamespace(Gcf=Gcf())

    def show(self, *args: Any, **kwargs: Any) -> None:
        raise AssertionError("there is no screen")

    def draw(self, **options: Any) -> Any:
        manager = Manager(len(self._pylab_helpers.Gcf.figs) + 1)
        figure = self.Figure(manager, **options)
        manager.canvas = figure.canvas
        self._pylab_helpers.Gcf.figs[manager.num] = manager
        return figure

    @property
    def open(self) -> int:
        return len(self._pylab_helpers.Gcf.figs)


@pytest.fixture(name="warnings")
def _warnings() -> list[str]:
    return []


@pytest.fixture(name="saver")
def _saver(tmp_path: Path, warnings: list[str]) -> Figures:
    return Figures(str(tmp_path), warnings.append)


@pytest.fixture(name="pyplot")
def _pyplot(saver: Figures) -> Pyplot:
    pyplot = Pyplot()
    saver.watch(pyplot)
    return pyplot


def names(directory: Path) -> list[str]:
    return sorted(each.name for each in directory.iterdir())


def test_no_pyplot(saver: Figures, tmp_path: Path) -> None:
    saver.finish()
    assert names(tmp_path) == []


def test_another_pyplot(saver: Figures, warnings: list[str]) -> None:
    saver.watch(types.ModuleType("pyplot"))
    saver.finish()
    assert warnings == []


def test_the_end(saver: Figures, pyplot: Pyplot, tmp_path: Path, warnings: list[str]) -> None:
    pyplot.draw()
    pyplot.draw()
    saver.finish()
    saver.finish()
    assert (names(tmp_path), pyplot.open, warnings) == (["figure-1.png", "figure-2.png"], 2, [])


def test_show(pyplot: Pyplot, tmp_path: Path) -> None:
    pyplot.draw()
    pyplot.show()
    assert (names(tmp_path), pyplot.open) == (["figure-1.png"], 0)
    pyplot.draw()
    pyplot.show(block=True)
    assert (names(tmp_path), pyplot.open) == (["figure-1.png", "figure-2.png"], 0)


def test_what_was_shown_can_still_be_saved(saver: Figures, pyplot: Pyplot, tmp_path: Path) -> None:
    pyplot.draw()
    shown = pyplot.draw()
    pyplot.show()
    # As pyplot.savefig does when no figure is open.
    new = pyplot.draw(empty=True)
    with open(tmp_path / "mine.png", "wb") as file:
        new.savefig(file)
        assert (shown.written[1:], new.written) == ([file], [])
        new.empty = False
        new.savefig(file)
        assert (shown.written[1:], new.written) == ([file], [file])


def test_an_error_of_savefig(pyplot: Pyplot, tmp_path: Path) -> None:
    with open(tmp_path / "mine.png", "wb") as file, pytest.raises(OSError) as caught:
        pyplot.draw(error=OSError()).savefig(file)
    assert [entry.name for entry in caught.traceback] == ["test_an_error_of_savefig", "savefig"]
    assert {str(entry.path) for entry in caught.traceback} == {__file__}


def test_show_that_does_not_wait(saver: Figures, pyplot: Pyplot, tmp_path: Path) -> None:
    pyplot.draw()
    pyplot.show(block=False)
    assert (names(tmp_path), pyplot.open) == ([], 1)
    saver.finish()
    assert names(tmp_path) == ["figure-1.png"]


def test_saved_by_the_program(saver: Figures, pyplot: Pyplot, tmp_path: Path) -> None:
    with open(tmp_path / "mine.png", "wb") as file:
        pyplot.draw().savefig(file)
    pyplot.show()
    saver.finish()
    assert (names(tmp_path), pyplot.open) == (["mine.png"], 1)


def test_empty(saver: Figures, pyplot: Pyplot, tmp_path: Path) -> None:
    pyplot.draw(empty=True)
    saver.finish()
    assert names(tmp_path) == []


def test_nothing_is_overwritten(saver: Figures, pyplot: Pyplot, tmp_path: Path) -> None:
    (tmp_path / "figure-1.png").write_text("mine")
    (tmp_path / "figure-2.png").symlink_to("nowhere")
    pyplot.draw()
    saver.finish()
    assert names(tmp_path) == ["figure-1.png", "figure-2.png", "figure-3.png"]
    assert (tmp_path / "figure-1.png").read_text() == "mine"


def test_too_many(saver: Figures, pyplot: Pyplot, tmp_path: Path, warnings: list[str]) -> None:
    for _ in range(figures._MAX + 2):
        pyplot.draw()
    saver.finish()
    assert len(names(tmp_path)) == figures._MAX
    assert warnings == ["only the first 20 figures are saved; save others with savefig\n"]


class Hostile(Exception):
    def __str__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "error, text",
    [
        (OSError(28, "No space"), "OSError: [Errno 28] No space"),
        (SystemExit(3), "SystemExit: 3"),
        (Hostile(), "Hostile"),
    ],
)
def test_failure(
    saver: Figures, pyplot: Pyplot, tmp_path: Path, warnings: list[str], error: BaseException, text: str
) -> None:
    pyplot.draw(error=error)
    pyplot.draw()
    pyplot.show()
    saver.finish()
    assert (names(tmp_path), warnings) == (["figure-2.png"], [f"a figure could not be saved: {text}\n"])


def test_pyplot_that_was_taken_apart(saver: Figures, pyplot: Pyplot, warnings: list[str]) -> None:
    pyplot._pylab_helpers.Gcf.figs = 5
    saver.finish()
    assert warnings == ["the open figures could not be saved: AttributeError: 'int' object has no attribute 'values'\n"]
