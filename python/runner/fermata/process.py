"""The first process of a sandbox of the process engine: makes the sandbox around itself and supervises the worker."""

from __future__ import annotations

import os
import signal
import socket

from fermata import frames, linux, nursery, root, stopping
from fermata.config import Config
from fermata.nursery import Nursery, WorkerEnds
from fermata.sandbox import PipeStatus, oom_kills
from fermata.supervisor import Supervisor, Worker


def supervise(
    config: Config, covers: list[tuple[str, str]], workers: Nursery, user: int, names: list[str], fds: list[int]
) -> None:
    """Make a sandbox for a user, have its worker forked, and supervise it to its end.

    ``names`` has the name of each of ``fds``. Servers connect to "listener", and the worker joins its
    cgroups by those called "join".
    """
    named = dict(zip(names, fds, strict=True))
    counter = named.get("oom")
    ours, theirs = socket.socketpair()
    stdout, stdout_end = os.pipe()
    stderr, stderr_end = os.pipe()
    status, status_end = os.pipe()
    joins = [fd for name, fd in zip(names, fds) if name == "join"]
    # The nursery forks the worker while this process makes the sandbox.
    workers.ask(user, WorkerEnds(theirs.detach(), stdout_end, stderr_end, status_end, joins))
    workers.requests.close()
    # A session of its own is needed: a signal to a group reaches all of it, even in other namespaces.
    os.setsid()
    root.enter(user, config.disk, covers)
    nursery.enter(ours)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped by the kernel
    linux.become(user)
    linux.drop_capabilities()
    linux.set_dumpable(False)
    linux.filter_system_calls(bytes.fromhex(config.seccomp))
    worker = Worker(
        control=frames.WorkerChannel(ours),
        stdout=stdout,
        stderr=stderr,
        status=PipeStatus(status),
        oom_kills=lambda: oom_kills(counter),
        stopper=stopping.Freezer.of(named) or stopping.Signals(stopping.process_clock),
    )
    Supervisor(worker, config.output, config.orphan, listener=socket.socket(fileno=named["listener"])).run()
