"""The first process of a container of the Docker engine: makes the worker and supervises it.

The container is the sandbox: Docker makes the namespaces, mounts and limits. This process must
keep the worker away from the stream to which the server attaches, which is the stdin and stdout
of this process.
"""

from __future__ import annotations

import base64
import os
import resource
import shutil
import signal
import socket
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from json import loads
from types import FrameType
from typing import Final, NoReturn

from fermata import frames, linux, sandbox, stopping
from fermata.supervisor import Supervisor, Worker

_STDIN: Final = 0
_STDOUT: Final = 1

# The directory in which the image keeps what libraries would otherwise compute at every start, and
# the directory in which libraries look for it.
_CACHE: Final = "/opt/fermata/cache"
_CACHE_HOME: Final = "/tmp"

# The container's own count of kills for memory, in cgroup 2 and in cgroup 1.
_OOM_COUNTERS: Final = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


@dataclass(frozen=True)
class Config:
    """The configuration that the server gives to the container."""

    # The bound on stdout and stderr each, in bytes.
    output: int
    # How long to wait for a server, in seconds.
    orphan: float
    # The seccomp filter for runtimes that do not apply the profile: base64 of zlib.
    seccomp: str
    # The limit on processes and threads if the container has a kernel of its own. It is 0 if the
    # kernel of the machine has that limit, since here it would count those of all containers.
    pids: int


def main(text: str, kind: str) -> NoReturn:
    """Run a sandbox of this kind as its configuration says."""
    os.umask(0o022)
    # If there were a handler, programs could signal the first process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sandbox.serve("supervisor", _supervise, Config(**loads(text)), kind)


def _supervise(config: Config, kind: str) -> None:
    os.environ.clear()
    os.environ.update(sandbox.environment())
    linux.seal_callbacks(read_only_too=False)
    ours, theirs = socket.socketpair()
    stdout, stdout_end = os.pipe()
    stderr, stderr_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        sandbox.serve("worker", _work, config, kind, stdout_end, stderr_end, theirs.detach())
    # From here on the worker, though of the same user, can neither open what this
    # process has open nor trace it.
    linux.set_dumpable(False)
    theirs.close()
    for fd in (stdout_end, stderr_end):
        os.close(fd)
    reaper = _Reaper(pid)
    signal.signal(signal.SIGCHLD, reaper.on_signal)
    counter = _oom_counter()
    worker = Worker(
        control=frames.WorkerChannel(ours),
        stdout=stdout,
        stderr=stderr,
        status=reaper,
        oom_kills=lambda: sandbox.oom_kills(counter),
        stopper=stopping.Signals(stopping.container_clock()),
    )
    server = frames.Channel(_STDIN, _STDOUT, frames.MAX_FROM_SERVER)
    Supervisor(worker, config.output, config.orphan, stream=server).run()


class _Reaper:
    """Reaps every process of the container, and reports how the worker ended.

    The supervisor waits for a descriptor of the worker besides SIGCHLD: a signal that arrives
    just before the supervisor begins to wait is handled only after the wait.
    """

    def __init__(self, worker: int) -> None:
        self._worker = worker
        self._pidfd = linux.pidfd_open(worker)
        self._code = 0

    def fileno(self) -> int:
        return self._pidfd

    def read(self) -> int:
        self._reap()
        return self._code

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        """Handle SIGCHLD."""
        self._reap()

    def _reap(self) -> None:
        with suppress(ChildProcessError):
            while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
                if ended[0] == self._worker:
                    self._code = os.waitstatus_to_exitcode(ended[1])


def _oom_counter() -> int | None:
    for path in _OOM_COUNTERS:
        with suppress(OSError):
            return os.open(path, os.O_RDONLY)
    return None


@contextmanager
def _cache() -> Iterator[None]:
    """Let libraries find what the image has computed for them, and remove it before a program arrives."""
    if os.path.isdir(_CACHE):
        shutil.copytree(_CACHE, _CACHE_HOME, dirs_exist_ok=True)
    yield
    for entry in os.scandir(_CACHE_HOME):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _work(config: Config, kind: str, stdout: int, stderr: int, control: int) -> None:
    """Isolate this process as a program requires it, and run a program."""
    from fermata import libraries, worker

    # A group and session without the supervisor, for programs that signal their own.
    os.setsid()
    os.chdir(sandbox.WORKSPACE)
    sandbox.die_first()
    if sandbox.process_status().get("Seccomp") == "0":
        linux.filter_system_calls(zlib.decompress(base64.b64decode(config.seccomp)))
    if config.pids:
        resource.setrlimit(resource.RLIMIT_NPROC, (config.pids, config.pids))
    sandbox.verify()
    # Warnings of libraries go to the server's log, which is what stderr is up to here.
    with _cache():
        ready = worker.preload(kind)
        ready.fonts.update(libraries.font_lists(_CACHE_HOME))
    sandbox.take_descriptors(stdout, stderr, control)
    worker.run(socket.socket(fileno=3), ready)
