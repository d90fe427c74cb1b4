"""Workers as real processes, and a supervisor that cannot harm this machine."""

from __future__ import annotations

import atexit
import json
import logging
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import hypothesis
import pytest
from supervised import Sandbox

from fermata import PLAIN, frames, libraries, stopping, worker

# A busy machine is no fault of the code.
hypothesis.settings.register_profile("runner", deadline=None, max_examples=50, database=None)
hypothesis.settings.load_profile("runner")

# What the workers of these tests have ready: the libraries are another test's.
READY = libraries.Ready(PLAIN, libraries.standard())

Answer = Callable[[list[dict[str, Any]]], list[dict[str, Any]]]


def echo(batch: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answer each call with its input."""
    return [{"n": call["n"], "value": call["input"]} for call in batch]


@dataclass
class Run:
    """How a program went."""

    done: dict[str, Any] | None = None
    status: int = 0
    stdout: str = ""
    stderr: str = ""
    batches: list[list[dict[str, Any]]] = field(default_factory=list)
    # The lines of the calls, without those of calls that have none.
    lines: list[int] = field(default_factory=list)


Runner = Callable[..., Run]


# What supervisors would have sent to every process but themselves. Outside of a sandbox that is every
# process of the machine, so the function stays replaced for good: a test that fails may leave a
# supervisor behind.
_sent: list[signal.Signals] = []
stopping.signal_all = lambda number: _sent.append(number)
for _module in list(sys.modules.values()):
    assert _module is stopping or "signal_all" not in vars(_module), f"{_module} has a copy of stopping.signal_all"


@pytest.fixture(autouse=True)
def signals() -> list[signal.Signals]:
    """Return the signals that the test's supervisors would have sent to every process."""
    _sent.clear()
    return _sent


def _show_warning(
    message: Warning | str, category: type[Warning], file: str, number: int, to: Any = None, line: str | None = None
) -> None:
    (to or sys.stderr).write(warnings.formatwarning(message, category, file, number, line))


class WorkerProcess:
    """A worker that was forked from here, without a sandbox around it."""

    def __init__(self, directory: Path) -> None:
        ours, theirs = socket.socketpair()
        self.stream = ours
        self.stream.settimeout(15)
        self._out: IO[bytes] = tempfile.TemporaryFile()
        self._err: IO[bytes] = tempfile.TemporaryFile()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                ours.close()
                self._become_worker(directory)
                worker.prepare_parent()
                worker.run(theirs, READY)
            finally:
                os._exit(99)
        theirs.close()

    def _become_worker(self, directory: Path) -> None:
        """Forget what this process is: tests."""
        # Whoever runs the tests in the background may have SIGINT ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(self._out.fileno(), 1)
        os.dup2(self._err.fileno(), 2)
        os.chdir(directory)
        atexit._clear()
        sys.unraisablehook = sys.__unraisablehook__
        threading.excepthook = threading.__excepthook__
        # As the interpreter has them without -W, and without pytest.
        warnings.showwarning = _show_warning
        logging.root.handlers.clear()
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)

    def receive(self) -> frames.Frame:
        """Return the next frame that is for the server."""
        while (frame := frames.receive(self.stream)).kind == frames.BUSY:
            pass
        return frame

    def send(self, kind: int, payload: Any) -> None:
        self.stream.sendall(frames.encode(kind, json.dumps(payload).encode()))

    def run(self, program: dict[str, Any], answer: Answer) -> Run:
        """Run a program to its end."""
        assert self.receive().kind == frames.READY
        self.send(frames.PROGRAM, program)
        result = Run()
        while True:
            try:
                kind, payload = self.receive()
            except (EOFError, ConnectionResetError):
                break
            assert result.done is None, "a frame after the last one"
            if kind == frames.CALLS:
                batch = json.loads(payload)
                result.lines += [call.pop("line") for call in batch if "line" in call]
                result.batches.append(batch)
                self.send(frames.RESULTS, answer(result.batches[-1]))
            else:
                assert kind == frames.DONE
                result.done = json.loads(payload)
                self.stream.shutdown(socket.SHUT_WR)
        result.status = self.wait()
        result.stdout, result.stderr = self.printed()
        return result

    def wait(self) -> int:
        """Return the exit code, negative for a signal."""
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def printed(self) -> tuple[str, str]:
        """Return stdout and stderr."""
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode())
        return texts[0], texts[1]

    def close(self) -> None:
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()
        for file in (self.stream, self._out, self._err):
            file.close()


@pytest.fixture
def worker_process(tmp_path: Path) -> Iterator[WorkerProcess]:
    process = WorkerProcess(tmp_path)
    yield process
    process.close()


@pytest.fixture(name="sandbox")
def _sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path)
    yield sandbox
    sandbox.close()
