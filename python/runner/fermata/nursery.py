"""A nursery: the process that forks the workers of one kind.

It has imported what programs of its kind have ready, so that each worker has it at once. It
forks a worker when the supervisor of a sandbox asks for one; the worker then moves into the
namespaces of that supervisor, and only the worker pays for the size of the libraries.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import selectors
import signal
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fermata import PLAIN, SCIENTIFIC, linux
from fermata.sandbox import (
    ENVIRONMENT,
    USER,
    WORKSPACE,
    die_first,
    process_status,
    report_status,
    serve,
    take_descriptors,
    verify,
)

if TYPE_CHECKING:
    from fermata.config import Config
    from fermata.libraries import Ready

# A request is the number of a user and a few descriptors.
_MAX_REQUEST: Final = 64
_MAX_FDS: Final = 16
# Where a nursery is asked for workers.
_REQUESTS: Final = 3
# A supervisor sends its worker this first: the namespaces of the sandbox are there.
_ENTER: Final = b"\0"
# How long a process may take to end that is about to, in milliseconds.
_LAST_MOMENT: Final = 200
# How much memory is taken for each size of objects, in bytes.
_HOLES: Final = 1 << 16


@dataclass(frozen=True)
class Nursery:
    """A nursery as the zygote and its supervisors see it."""

    # Becomes readable when the nursery has ended.
    pidfd: int
    requests: socket.socket

    def ask(self, user: int, worker: WorkerEnds) -> None:
        """Have a worker forked for the supervisor that calls this, and close the worker's descriptors."""
        supervisor = os.pidfd_open(os.getpid())
        fds = [supervisor, worker.control, worker.stdout, worker.stderr, worker.status]
        fds += worker.cgroups
        socket.send_fds(self.requests, [b"%d" % user], fds)
        for fd in fds:
            os.close(fd)


@dataclass(frozen=True)
class WorkerEnds:
    """The descriptors that a supervisor hands to its worker."""

    control: int
    stdout: int
    stderr: int
    # Where the worker's exit code goes when it has ended.
    status: int
    # The files by which to join the cgroups of the sandbox.
    cgroups: list[int]


def start(config: Config, kind: str, listener: socket.socket) -> Nursery:
    """Fork the nursery of one kind from the zygote, which listens for servers on ``listener``."""
    requests, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        # It keeps nothing else of what the zygote has open.
        os.dup2(end.detach(), _REQUESTS, inheritable=False)
        os.closerange(_REQUESTS + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        listener.detach()
        requests.detach()
        serve(f"{kind} nursery", _run, config, kind, socket.socket(fileno=_REQUESTS))
    end.close()
    return Nursery(os.pidfd_open(pid), requests)


def enter(control: socket.socket) -> None:
    """Have a worker enter the namespaces of its supervisor, who calls this when it has made them."""
    with suppress(BrokenPipeError):  # its status tells that the worker has ended
        control.send(_ENTER)


def _run(config: Config, kind: str, requests: socket.socket) -> None:
    """Import what programs of this kind have ready, then fork workers as supervisors ask for them."""
    # Programs find this process's modules. The worker has its own modules of the runner, and
    # those of the zygote are not among them.
    for name in [name for name in sys.modules if name.startswith("fermata.")]:
        del sys.modules[name]
    if not config.first_user:
        # linux.refuse_epoll leaves this to programs; modules are still imported with epoll.
        setattr(selectors, "DefaultSelector", selectors.PollSelector)
    # Not at the top of the file, which the zygote imports, too: it stays small without them.
    from fermata import libraries, memory, worker

    scientific = kind == SCIENTIFIC
    if scientific:
        memory.prepare()
    ready = worker.preload(kind)
    # Kept, and inherited, for as long as this function runs.
    _filling = _fill_holes() if scientific else []
    gc.freeze()
    if scientific:
        memory.freeze()
        # The page tables that workers inherit then have the pages that programs use first.
        worker.rehearse_again(ready)
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
    ends = linux.child_ends()
    poll = select.epoll()
    for fd in (requests.fileno(), ends):
        poll.register(fd, select.EPOLLIN)
    statuses: dict[int, int] = {}  # process id of a worker -> where its exit code goes
    while True:
        for fd, _ in poll.poll():
            if fd == ends:
                os.read(ends, 1 << 16)
                _reap(statuses)
                continue
            message, fds, flags, _ = socket.recv_fds(requests, _MAX_REQUEST, _MAX_FDS)
            if not message:
                return
            if flags & socket.MSG_CTRUNC:
                # Too many files are open. The supervisor notices that nobody has its worker's descriptors.
                for unused in fds:
                    os.close(unused)
                continue
            if kind == PLAIN and not ready.fonts and "plt" in ready.names:
                # The scientific nursery has left its list of fonts where no sandbox can see it.
                ready.fonts.update(libraries.font_lists(ENVIRONMENT["MPLCONFIGDIR"]))
            supervisor, control, stdout, stderr, status, *rest = fds
            try:
                linux.setns(supervisor, linux.CLONE_NEWPID)
                pid = os.fork()
                if pid == 0:
                    # Nothing of other workers is left to be found.
                    statuses.clear()
                    serve("worker", _work, config, ready, int(message), fds)
            except OSError:
                # The supervisor has ended: its namespace is gone, or takes no more
                # processes, which a fork reports as a lack of memory.
                for unused in fds:
                    os.close(unused)
                continue
            finally:
                linux.setns(namespace, linux.CLONE_NEWPID)
            statuses[pid] = status
            for unused in (supervisor, control, stdout, stderr, *rest):
                os.close(unused)


def _fill_holes() -> list[bytes]:
    """Take the places that are free between what the libraries have allocated.

    The allocator hands them out first, and a forked process would copy a page for nearly
    every object that it makes. With this its objects lie together, on pages of its own.
    """
    # Objects of up to 512 bytes lie among others of their size, a multiple of 16.
    empty = sys.getsizeof(b"")
    return [bytes(size - empty) for size in range(48, 513, 16) for _ in range(_HOLES // size)]


def _reap(statuses: dict[int, int]) -> None:
    """Reap all children that have ended, and tell the supervisors of workers how they ended.

    The namespace of a sandbox ends when nobody is left in it, not even a dead process
    that nobody has reaped: so every child is reaped, whoever has made it.
    """
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            if (status := statuses.pop(ended[0], None)) is not None:
                report_status(status, os.waitstatus_to_exitcode(ended[1]))
                os.close(status)


def _ends(pidfd: int) -> bool:
    """Whether a process has ended. One that is about to gets a moment for it."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(_LAST_MOMENT))


def _work(config: Config, ready: Ready, user: int, fds: list[int]) -> None:
    """Move this process into its supervisor's sandbox for good and run a program."""
    from fermata import worker

    # A group and session without any other process of ours, for programs that signal their own.
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    supervisor, control, stdout, stderr, _, *cgroups = fds
    for cgroup in cgroups:
        os.write(cgroup, b"0")
    if os.read(control, len(_ENTER)) != _ENTER:
        return
    try:
        linux.setns(supervisor, linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    except OSError:
        if _ends(supervisor):
            return  # The sandbox was destroyed before it was ready, as when the server stops.
        raise
    linux.unshare(linux.CLONE_NEWCGROUP)
    os.chdir(WORKSPACE)
    die_first()
    take_descriptors(stdout, stderr, control)
    for limit, value in _limits(config):
        resource.setrlimit(limit, (value, value))
    linux.become(user)
    linux.map_user(USER, user)
    # Only now: the kernel counts processes for each user namespace, and holds the count of
    # the namespaces above against the limits that were in force when a namespace was made.
    # So this limit is for this sandbox alone, also where all sandboxes are of one user.
    resource.setrlimit(resource.RLIMIT_NPROC, (config.pids, config.pids))
    linux.drop_bounding_set()
    linux.drop_capabilities()
    if user == 0:
        linux.refuse_epoll()
    linux.filter_system_calls(bytes.fromhex(config.seccomp))
    verify()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # Programs can read the variables of the functions that call them.
    vars(config).clear()
    worker.run(socket.socket(fileno=3), ready)


def _limits(config: Config) -> list[tuple[int, int]]:
    limits = [
        # With 0 the kernel would still run a handler of the host's for each dump.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_FSIZE, config.disk),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, 1024),
        # The kernel counts users inside as the user outside, up to what is set when theirs are made.
        (resource.RLIMIT_SIGPENDING, 256),
    ]
    if config.data:
        limits.append((resource.RLIMIT_DATA, config.data + _private_memory()))
    return limits


def _private_memory() -> int:
    """Return the bytes that RLIMIT_DATA already counts for this process."""
    return int(process_status()["VmData"].split()[0]) * 1024
