"""The zygote: makes the sandboxes of the process engine by forking.

Three kinds of process, all in a user namespace of the server's making and in a
minimal read-only root of the zygote's making:

- the zygote itself, small, forks the supervisor of each sandbox into namespaces
  of its own;
- the nursery, a child of the zygote that has imported the libraries, forks the
  worker of each sandbox into the namespaces of its supervisor, so that only the
  worker pays for the size of the libraries;
- supervisors and workers.

User code runs in workers only, and nothing that it can reach leads back here.
"""

from __future__ import annotations

import gc
import mmap
import os
import resource
import select
import selectors
import signal
import socket
import stat
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import fermata
from fermata import PLAIN, SCIENTIFIC, frames, linux, stopping
from fermata.sandbox import (
    ENVIRONMENT,
    USER,
    WORKSPACE,
    PipeStatus,
    Progress,
    die_first,
    oom_kills,
    process_status,
    report_status,
    serve,
    take_descriptors,
    verify,
)
from fermata.supervisor import Supervisor, Worker

if TYPE_CHECKING:
    from fermata.libraries import Ready

_MAX_MESSAGE: Final = 1 << 16
_MAX_FDS: Final = 16
# How many descriptors the zygote and supervisors may have open, and in flight.
_MAX_OPEN: Final = 1 << 16
# What a supervisor sends its worker first: the namespaces of the sandbox are there.
_ENTER: Final = b"\0"
# Where the server has opened the runner for the zygote: no module knows a path of the host.
_RUNNER: Final = 4
# Where a nursery is asked for workers, in place of where the zygote listens.
_REQUESTS: Final = 3


@dataclass(frozen=True)
class Config:
    """What the server tells the zygote. Sizes are in bytes."""

    root: str
    # Directories to hide, should they lie in what is shown: the server's own.
    hide: list[str]
    # The first of the users that sandboxes run as; 0 if the server has only its own.
    first_user: int
    disk: int
    output: int
    pids: int
    # The limit on private memory where no cgroup keeps it; 0 if one does.
    data: int
    orphan: float
    seccomp: str
    # What tells of the host in /proc, and what covers it; the zygote finds that out.
    covers: list[tuple[str, str]] = field(default_factory=list)


def main() -> NoReturn:
    """Run the zygote: configuration on stdin, descriptor 3 is where servers connect."""
    os.umask(0o022)
    # A handler would let programs signal their supervisor, which inherits it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    config = Config(**loads(sys.stdin.buffer.read()))
    listener = socket.socket(fileno=3)
    # Whoever connects is told by the kernel who listened last, and so finds this process.
    listener.listen(socket.SOMAXCONN)
    _raise_descriptors()
    config = _build_root(config)
    # What every sandbox inherits need not be done for each.
    linux.set_host_name("sandbox")
    linux.drop_bounding_set()
    nurseries = {kind: _start_nursery(config, kind, listener) for kind in (PLAIN, SCIENTIFIC)}
    # What is here now is every supervisor's, and need not be looked at by their collections.
    gc.collect()
    gc.freeze()
    serve("zygote", Zygote(config, listener, nurseries).run)


def _start_nursery(config: Config, kind: str, listener: socket.socket) -> Nursery:
    """Fork the nursery of one kind. What it inherits of others before it are the zygote's ends."""
    requests, end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        # All that it keeps of what the zygote has open.
        os.dup2(end.detach(), _REQUESTS, inheritable=False)
        os.closerange(_REQUESTS + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        listener.detach()
        requests.detach()
        serve("nursery", _run_nursery, config, kind, socket.socket(fileno=_REQUESTS))
    end.close()
    return Nursery(os.pidfd_open(pid), requests)


def _raise_descriptors() -> None:
    """Raise the limit on open descriptors, which is the limit on those in flight as well.

    Descriptors in flight are counted for each user of the machine, and held against the
    limit of the process that sends one more. A program has 1024, so that of one user's
    sandboxes none can keep its neighbours' supervisors from sending theirs.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MAX_OPEN if hard == resource.RLIM_INFINITY else min(hard, _MAX_OPEN)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


# The root that every sandbox sees.


def _build_root(config: Config) -> Config:
    """Make a root of what a Python program needs and nothing else, and move into it.

    Return the configuration for in there, which has no paths of the host: programs can
    read what the functions that call them have in their variables.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    root = config.root
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4m")
    for name in ("proc", "tmp", "run", "var/empty", "etc", "dev", "mnt/data", "opt/fermata", "root", "home"):
        Path(root, name).mkdir(parents=True, exist_ok=True)
    for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        source = Path("/", name)
        if source.is_symlink():
            Path(root, name).symlink_to(os.readlink(source))
        elif source.is_dir():
            _show(str(source), root)
    prefixes = _prefixes()
    for prefix in prefixes:
        _show(prefix, root)
    for name in ("ld.so.cache", "alternatives", "fonts", "localtime", "matplotlibrc", "mime.types", "magic"):
        if os.path.exists(f"/etc/{name}"):
            _show(f"/etc/{name}", root)
    Path(root, "etc/passwd").write_text(f"sandbox:x:{USER}:{USER}::{WORKSPACE}:/bin/sh\n", encoding="ascii")
    Path(root, "etc/group").write_text(f"sandbox:x:{USER}:\n", encoding="ascii")
    Path(root, "etc/hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n", encoding="ascii")
    Path(root, "var/tmp").symlink_to("/tmp")
    for name in ("null", "zero", "full", "random", "urandom"):
        Path(root, "dev", name).touch()
        linux.bind_read_only(f"/dev/{name}", f"{root}/dev/{name}", device=True)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path(root, "dev", name).symlink_to(target)
    Path(root, "dev/shm").mkdir()
    # Not shown but copied: a mount tells where on the host it comes from.
    _copy(f"/proc/self/fd/{_RUNNER}", f"{root}/opt/fermata")
    os.close(_RUNNER)
    for hidden in config.hide:
        if os.path.isdir(root + hidden):
            linux.mount("tmpfs", root + hidden, "tmpfs", linux.MS_RDONLY, "mode=000,size=4k")
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.pivot_root(root)
    # Here the runner is found from now on.
    sys.path.pop(0)
    fermata.__path__[:] = ["/opt/fermata/fermata"]
    _forget_others(prefixes)
    # The nursery may write here while it imports (font caches); each sandbox covers
    # it with a file system of its own.
    linux.mount("tmpfs", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777,size=64m")
    linux.mount(
        "none", "/", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )
    return replace(config, root="", hide=[], covers=_covers())


_USUAL: Final = ("/usr", "/bin", "/lib", "/lib64")


def _prefixes() -> list[str]:
    """Return the directories of this interpreter that lie outside the usual ones."""
    wanted = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    # Some distributions have their libraries elsewhere.
    wanted.update(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages"))
    wanted = {os.path.realpath(path) for path in wanted}
    outside = sorted(path for path in wanted if not _within(path, _USUAL))
    return [path for path in outside if not _within(os.path.dirname(path), outside)]


def _within(path: str, directories: Iterable[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)


def _forget_others(prefixes: list[str]) -> None:
    """Take out of the path of modules what is not shown: what .pth files name, other projects with all their files."""
    others = [path for path in sys.path if not _within(os.path.realpath(path), (*_USUAL, *prefixes))]
    sys.path[:] = [path for path in sys.path if path not in others]
    if others:
        text = "programs do not see and cannot import what was installed with `pip install -e`, or by .pth files from"
        os.write(2, f"{text} {', '.join(others)}: outside of the interpreter's own directories\n".encode())


# What programs need of the files about the machine in /proc, and what tells of no machine.
_SHOWN: Final = frozenset((
    "cpuinfo", "filesystems", "loadavg", "meminfo", "stat", "sys", "sysvipc", "uptime", "version",
    "execdomains", "key-users", "keys", "misc",
))  # fmt: skip


def _covers() -> list[tuple[str, str]]:
    """Return what tells programs of the host in /proc, each with what to mount there."""
    covers = []
    for name in sorted(os.listdir("/proc")):
        mode = os.lstat(f"/proc/{name}").st_mode if not name.isdigit() and name not in _SHOWN else 0
        if not stat.S_ISLNK(mode) and mode & stat.S_IROTH:
            covers.append(("/var/empty" if stat.S_ISDIR(mode) else "/dev/null", f"/proc/{name}"))
    return [*covers, ("/dev/null", "/proc/sys/kernel/random/boot_id")]


def _copy(source: str, target: str) -> None:
    """Copy the files of a directory, and the directories in it."""
    for name in os.listdir(source):
        if os.path.isdir(f"{source}/{name}"):
            os.mkdir(f"{target}/{name}")
            _copy(f"{source}/{name}", f"{target}/{name}")
        else:
            Path(target, name).write_bytes(Path(source, name).read_bytes())


def _show(source: str, root: str) -> None:
    target = Path(root + source)
    if os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    linux.bind_read_only(source, str(target))


# The zygote: one supervisor for each sandbox.


@dataclass(frozen=True)
class Nursery:
    """The process that forks the workers of one kind, as the zygote and its supervisors see it."""

    pidfd: int
    # Where supervisors ask for a worker.
    requests: socket.socket


class Zygote:
    """Forks supervisors at a server's word, and tells it when they have ended."""

    def __init__(self, config: Config, listener: socket.socket, nurseries: dict[str, Nursery]) -> None:
        self._config = config
        self._listener = listener
        self._nurseries = nurseries
        self._server: socket.socket | None = None
        self._met_server = False
        self._names: dict[int, str] = {}  # pidfd of a supervisor -> name of its sandbox
        self._pids: dict[str, int] = {}
        self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._poll = select.epoll()

    def run(self) -> None:
        """Serve until the server is gone and the last sandbox with it."""
        nurseries = {nursery.pidfd: kind for kind, nursery in self._nurseries.items()}
        for fd in (self._listener.fileno(), *nurseries):
            self._poll.register(fd, select.EPOLLIN)
        while self._server is not None or self._names or not self._met_server:
            for fd, _ in self._poll.poll():
                if fd == self._listener.fileno():
                    self._accept()
                elif self._server is not None and fd == self._server.fileno():
                    self._listen()
                elif fd in nurseries:
                    raise RuntimeError(f"the {nurseries[fd]} nursery has ended")
                elif fd in self._names:
                    self._reap(fd)

    def _accept(self) -> None:
        stream, _ = self._listener.accept()
        if self._server is not None:
            self._drop_server()
        self._server = stream
        self._met_server = True
        self._poll.register(stream.fileno(), select.EPOLLIN)

    def _drop_server(self) -> None:
        if self._server is not None:
            self._poll.unregister(self._server.fileno())
            self._server.close()
            self._server = None

    def _listen(self) -> None:
        assert self._server is not None
        try:
            data, fds, _, _ = socket.recv_fds(self._server, _MAX_MESSAGE, _MAX_FDS)
        except OSError:
            data, fds = b"", []
        if not data:
            self._drop_server()
            return
        try:
            message = loads(data)
            match message["op"]:
                case "spawn":
                    self._spawn(message, fds)
                case "kill":
                    self._kill(message["name"])
        finally:
            for fd in fds:
                os.close(fd)

    def _spawn(self, message: dict[str, Any], fds: list[int]) -> None:
        name: str = message["name"]
        # A new PID namespace for the next child, and back: os.fork runs what must
        # run around a fork, which a bare clone with flags would not.
        linux.unshare(linux.CLONE_NEWPID)
        try:
            pid = os.fork()
            if pid == 0:
                nursery = self._nurseries[message["kind"]]
                serve("supervisor", self._supervise, nursery, message["user"], message["fds"], fds)
        except OSError:
            # No room for one more; the others must not suffer.
            self._tell(name)
            return
        finally:
            linux.setns(self._namespace, linux.CLONE_NEWPID)
        pidfd = os.pidfd_open(pid)
        self._names[pidfd] = name
        self._pids[name] = pidfd
        self._poll.register(pidfd, select.EPOLLIN)

    def _kill(self, name: str) -> None:
        if (pidfd := self._pids.get(name)) is None:
            self._tell(name)
            return
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)

    def _reap(self, pidfd: int) -> None:
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        name = self._names.pop(pidfd)
        del self._pids[name]
        self._tell(name)

    def _tell(self, name: str) -> None:
        """Tell the server that nothing is left of a sandbox."""
        if self._server is None:
            return
        try:
            self._server.send(dumps({"op": "ended", "name": name}).encode())
        except OSError:
            self._drop_server()

    # From here on in a new process, PID 1 of its namespace.

    def _supervise(self, nursery: Nursery, user: int, names: list[str], fds: list[int]) -> None:
        """Make the sandbox around this process, have the worker made, and supervise it.

        ``names`` are those of the descriptors. The worker joins its control groups by those
        called "join".
        """
        named = dict(zip(names, fds))
        listener, counter = named["listener"], named.get("oom")
        joins = [fd for name, fd in zip(names, fds) if name == "join"]
        nurseries = (each.pidfd for each in self._nurseries.values())
        for fd in (self._listener.fileno(), *nurseries, self._namespace, self._poll.fileno(), *self._names):
            os.close(fd)
        self._drop_server_copy()
        ours, theirs = socket.socketpair()
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()
        status, status_end = os.pipe()
        own = os.pidfd_open(os.getpid())
        shared = os.memfd_create("progress")
        os.truncate(shared, mmap.PAGESIZE)
        progress = Progress(shared)
        ends = [theirs.detach(), stdout_end, stderr_end, status_end, shared]

        # The nursery forks while the sandbox is made.
        socket.send_fds(nursery.requests, [str(user).encode()], [own, *ends, *joins])
        for fd in (own, *ends, *joins):
            os.close(fd)
        for each in self._nurseries.values():
            each.requests.close()
        _enter(self._config, user)
        with suppress(BrokenPipeError):  # its status tells that the worker has ended
            ours.send(_ENTER)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped by the kernel
        _become(user)
        linux.drop_capabilities()
        linux.set_dumpable(False)
        linux.filter_system_calls(bytes.fromhex(self._config.seccomp))
        worker = Worker(
            control=frames.WorkerChannel(ours),
            stdout=stdout,
            stderr=stderr,
            status=PipeStatus(status),
            oom_kills=lambda: oom_kills(counter),
            progress=progress,
            stopper=stopping.Freezer.of(named) or stopping.Signals(stopping.process_clock),
        )
        config = self._config
        Supervisor(worker, config.output, config.orphan, listener=socket.socket(fileno=listener)).run()

    def _drop_server_copy(self) -> None:
        if self._server is not None:
            os.close(self._server.detach())


def _enter(config: Config, user: int) -> None:
    """Give this process, and so its sandbox, a session, namespaces and file systems of its own."""
    # A signal to a group finds all of it, in other namespaces of processes, too.
    os.setsid()
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    size = f"size={config.disk},nr_inodes=65536,uid={user},gid={user}"
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", WORKSPACE, "tmpfs", flags, f"{size},mode=755")
    linux.mount("tmpfs", "/tmp", "tmpfs", flags, f"{size},mode=1777")
    linux.mount("tmpfs", "/dev/shm", "tmpfs", flags | linux.MS_NOEXEC, f"{size},mode=1777")
    linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC)
    # Where the server is not root, the settings of these namespaces are the program's own user's.
    linux.mount("/proc/sys", "/proc/sys", None, linux.MS_BIND)
    linux.mount("none", "/proc/sys", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | flags | linux.MS_NOEXEC)
    for cover, path in config.covers:
        linux.mount(cover, path, None, linux.MS_BIND)
    if user == 0:
        _hide_supervisor()
    linux.loopback_up()


def _hide_supervisor() -> None:
    """Keep programs of this process's own user from its files in /proc.

    Otherwise a program could list what this process has open, and write to its
    oom_score_adj, sched and autogroup.
    """
    flags = linux.MS_BIND | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("/proc/1", "/proc/1", None, linux.MS_BIND)
    linux.mount("none", "/proc/1", None, flags | linux.MS_REMOUNT | linux.MS_RDONLY)
    for name in ("fd", "fdinfo", "task/1/fd", "task/1/fdinfo"):
        # An empty directory.
        linux.mount("/run", f"/proc/1/{name}", None, linux.MS_BIND)


def _become(user: int) -> None:
    """Become the sandbox's user; 0 is the server's own, seen from the zygote."""
    if user == 0:
        return
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


# The nursery: one worker for each sandbox.


def _run_nursery(config: Config, kind: str, requests: socket.socket) -> None:
    """Import what programs of this kind have ready, then fork workers at the word of supervisors."""
    # Programs find this process's modules: the worker has its own, and those of the zygote
    # are not among them.
    for name in [name for name in sys.modules if name.startswith("fermata.")]:
        del sys.modules[name]
    if not config.first_user:
        # What linux.refuse_epoll leaves to programs; at an import there still was epoll.
        setattr(selectors, "DefaultSelector", selectors.PollSelector)
    # Not at the top of the file: the zygote stays small without it.
    from fermata import libraries, worker

    ready = worker.preload(kind)
    # Kept, and inherited, for as long as this function runs.
    _filling = _fill_holes()
    gc.freeze()
    namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
    ends = linux.child_ends()
    poll = select.epoll()
    for fd in (requests.fileno(), ends):
        poll.register(fd, select.EPOLLIN)
    statuses: dict[int, int] = {}  # process id of a worker -> where its exit code goes
    while True:
        for fd, _ in poll.poll():
            if fd == ends:
                os.read(ends, _MAX_MESSAGE)
                _reap(statuses)
                continue
            message, fds, flags, _ = socket.recv_fds(requests, _MAX_MESSAGE, _MAX_FDS)
            if not message:
                return
            if flags & socket.MSG_CTRUNC:
                # Too many files are open; the supervisor sees that nobody has its descriptors.
                for unused in fds:
                    os.close(unused)
                continue
            supervisor, control, stdout, stderr, status, *rest = fds
            if kind == PLAIN and not ready.fonts and "matplotlib" in ready.names:
                # The scientific nursery has left them where its programs and others do not look.
                ready.fonts.update(libraries.font_lists(ENVIRONMENT["MPLCONFIGDIR"]))
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


# How much memory is taken for each size of objects, in bytes.
_HOLES: Final = 1 << 16


def _fill_holes() -> list[bytes]:
    """Take the places that are free between what the libraries have allocated.

    The allocator hands them out first, and a forked process would copy a page for nearly
    every object it makes. With this its objects lie together, on pages of its own.
    """
    # Objects of up to 512 bytes lie among others of their size, a multiple of 16.
    empty = sys.getsizeof(b"")
    return [bytes(size - empty) for size in range(48, 513, 16) for _ in range(_HOLES // size)]


def _reap(statuses: dict[int, int]) -> None:
    """Reap all that have ended, and tell the supervisors of workers, if they are still there, how they ended.

    The namespace of a sandbox ends when nobody is left in it, not even a dead process
    that nobody has asked for: no child is left alone, whoever has made it.
    """
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0] != 0:
            if (status := statuses.pop(ended[0], None)) is not None:
                report_status(status, os.waitstatus_to_exitcode(ended[1]))
                os.close(status)


def _work(config: Config, ready: Ready, user: int, fds: list[int]) -> None:
    """Move this process into its supervisor's sandbox for good and run a program."""
    from fermata import worker

    # A group and session without any other process of ours, for what signals its own.
    os.setsid()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    supervisor, control, stdout, stderr, _, shared, *cgroups = fds
    for cgroup in cgroups:
        os.write(cgroup, b"0")
    if os.read(control, len(_ENTER)) != _ENTER:
        return
    linux.setns(supervisor, linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    linux.unshare(linux.CLONE_NEWCGROUP)
    os.chdir(WORKSPACE)
    die_first()
    progress = Progress(shared)
    take_descriptors(stdout, stderr, control)
    for limit, value in _limits(config):
        resource.setrlimit(limit, (value, value))
    _become(user)
    linux.map_user(USER, user)
    # Only now: the kernel counts processes for each user namespace, and holds the count of
    # the ones above against the limits that were in force when a namespace was made. So
    # this limit is for this sandbox alone, also where all sandboxes are of one user.
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
    worker.run(socket.socket(fileno=3), progress, ready)


def _limits(config: Config) -> list[tuple[int, int]]:
    limits = [
        # With 0 the kernel would still run a handler of the host's for each dump.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_FSIZE, config.disk),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, 1024),
        # Users inside count as the user outside, up to what is set when theirs are made.
        (resource.RLIMIT_SIGPENDING, 256),
    ]
    if config.data:
        limits.append((resource.RLIMIT_DATA, config.data + _private_memory()))
    return limits


def _private_memory() -> int:
    """Return the bytes that RLIMIT_DATA already counts for this process."""
    return int(process_status()["VmData"].split()[0]) * 1024
