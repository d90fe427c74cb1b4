"""A nursery: the process that forks the workers of one kind.

It has imported the modules that programs of its kind have ready, so that each worker has them at
once. It forks a worker when the supervisor of a sandbox asks for one. The worker then moves into
the namespaces of that supervisor. So only the worker, and not the supervisor, needs the memory for
the libraries.
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
    close_from,
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
# The descriptor on which a nursery receives requests for workers.
_REQUESTS: Final = 3
# What a supervisor sends to its worker first: the namespaces of the sandbox exist.
_ENTER: Final = b"\0"
# How long a process may take to end when it is about to end, in milliseconds.
_LAST_MOMENT: Final = 200
# How much memory is allocated for each size of objects, in bytes.
_HOLES: Final = 1 << 16


@dataclass(frozen=True)
class Nursery:
    """A nursery as the zygote and its supervisors see it."""

    # A descriptor that becomes readable when the nursery has ended.
    pidfd: int
    requests: socket.socket

    def ask(self, user: int, worker: WorkerEnds) -> None:
        """Have a worker forked for the supervisor that calls this, and close the worker's descriptors."""
        supervisor = linux.pidfd_open(os.getpid())
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
    # The pipe for the worker's exit code.
    status: int
    # The files with which the worker joins the cgroups of the sandbox.
    cgroups: list[int]


def start(config: Config, kind: str, listener: socket.socket) -> Nursery:
    """Fork the nursery of one kind from the zygote, which listens for servers on ``listener``."""
    requests, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        # It keeps no other descriptor of the zygote.
        os.dup2(end.detach(), _REQUESTS, inheritable=False)
        close_from(_REQUESTS + 1)
        listener.detach()
        requests.detach()
        serve(f"{kind} nursery", _run, config, kind, socket.socket(fileno=_REQUESTS))
    end.close()
    return Nursery(linux.pidfd_open(pid), requests)


def enter(control: socket.socket) -> None:
    """Make a worker enter the namespaces of its supervisor, which calls this when it has made them."""
    with suppress(BrokenPipeError):  # the worker has ended, which its status will report
        control.send(_ENTER)


def _run(config: Config, kind: str, requests: socket.socket) -> None:
    """Import what programs of this kind have ready, then fork workers as supervisors ask for them."""
    # Programs see the modules of this process. They must not see the zygote's modules of the runner,
    # so these are imported again for the worker.
    for name in [name for name in sys.modules if name.startswith("fermata.")]:
        del sys.modules[name]
    if not config.first_user:
        # Programs cannot use epoll after linux.refuse_epoll, so the default selector uses poll.
        setattr(selectors, "DefaultSelector", selectors.PollSelector)
    # They are not imported at the top of the file, so that the zygote, which imports the file, stays small.
    from fermata import libraries, memory, worker

    scientific = kind == SCIENTIFIC
    if scientific:
        memory.prepare()
    ready = worker.preload(kind)
    # The objects are kept, and inherited by workers, as long as this function runs.
    _filling = fill_holes()
    gc.freeze()
    if scientific:
        memory.freeze()
        # After this, the page tables that workers inherit have the pages that programs use first.
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
                # Too many files are open. The supervisor will notice that its worker's descriptors are closed.
                for unused in fds:
                    os.close(unused)
                continue
            if kind == PLAIN and not ready.fonts and "plt" in ready.names:
                # The scientific nursery has written its list of fonts to a place that no sandbox can see.
                ready.fonts.update(libraries.font_lists(ENVIRONMENT["MPLCONFIGDIR"]))
            supervisor, control, stdout, stderr, status, *rest = fds
            try:
                linux.setns(supervisor, linux.CLONE_NEWPID)
                pid = os.fork()
                if pid == 0:
                    # The worker must not have anything of other workers.
                    statuses.clear()
                    serve("worker", _work, config, ready, int(message), fds)
            except OSError:
                # The supervisor has ended. Its namespace does not exist any more, or accepts no
                # more processes, which fork reports as a lack of memory.
                for unused in fds:
                    os.close(unused)
                continue
            finally:
                linux.setns(namespace, linux.CLONE_NEWPID)
            statuses[pid] = status
            for unused in (supervisor, control, stdout, stderr, *rest):
                os.close(unused)


def fill_holes() -> list[bytes]:
    """Fill the free memory between the objects of a process that others are forked from.

    The allocator would use it first, and a forked process would copy a page for nearly every
    object that it makes. With the holes filled, its objects are together on pages of their own.
    """
    # Objects of up to 512 bytes are allocated among others of the same size, a multiple of 16.
    empty = sys.getsizeof(b"")
    return [bytes(size - empty) for size in range(48, 513, 16) for _ in range(_HOLES // size)]


def _reap(statuses: dict[int, int]) -> None:
    """Reap all children that have ended, and tell the supervisors of workers how they ended.

    The namespace of a sandbox ends when no process is left in it, not even a dead one that was not
    reaped. So every child is reaped, whichever process has made it.
    """
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            if (status := statuses.pop(ended[0], None)) is not None:
                report_status(status, os.waitstatus_to_exitcode(ended[1]))
                os.close(status)


def _ends(pidfd: int) -> bool:
    """Whether a process has ended. A process that is about to end gets a moment for it."""
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
    # This must come after the user namespace was made: the kernel counts processes for each user
    # namespace, and compares the counts of the namespaces above with the limits that were set when
    # the namespace was made. So this limit applies to this sandbox only, even if all sandboxes run
    # as the same user.
    resource.setrlimit(resource.RLIMIT_NPROC, (config.pids, config.pids))
    linux.drop_bounding_set()
    linux.drop_capabilities()
    if user == 0:
        linux.refuse_epoll()
    linux.filter_system_calls(bytes.fromhex(config.seccomp))
    verify()
    # Programs can read the variables of the functions that call them.
    vars(config).clear()
    worker.run(socket.socket(fileno=3), ready)


def _limits(config: Config) -> list[tuple[int, int]]:
    limits = [
        # With 0 the kernel would still run the host's handler of core dumps.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_FSIZE, config.disk),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, 1024),
        # For the users inside, the kernel counts the user outside, up to the limit that is set when
        # their namespace is made.
        (resource.RLIMIT_SIGPENDING, 256),
    ]
    if config.data:
        limits.append((resource.RLIMIT_DATA, config.data + _private_memory()))
    return limits


def _private_memory() -> int:
    """Return the bytes that RLIMIT_DATA already counts for this process."""
    return int(process_status()["VmData"].split()[0]) * 1024
