"""The zygote: makes the sandboxes of the process engine by forking.

All of its processes are in a user namespace of the server's making and in a minimal
read-only root of the zygote's making:

- the zygote itself, which is small, forks the supervisor of each sandbox into namespaces of
  its own;
- the nurseries, children of the zygote, one for each kind of sandboxes, fork the workers;
- supervisors and workers, one of each for a sandbox.

User code runs in workers only, and cannot reach the zygote.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import signal
import socket
import sys
from json import dumps, loads
from typing import Any, Final, NoReturn

from fermata import PLAIN, SCIENTIFIC, linux, nursery, process, root
from fermata.config import Config
from fermata.nursery import Nursery
from fermata.sandbox import environment, serve

_MAX_MESSAGE: Final = 1 << 16
_MAX_FDS: Final = 16
# How many descriptors the zygote and supervisors may have open, and in flight.
_MAX_OPEN: Final = 1 << 16


def main() -> NoReturn:
    """Run the zygote. Its configuration comes on stdin, and servers connect to descriptor 3."""
    os.umask(0o022)
    # Supervisors inherit this. If there were a handler, programs could signal their supervisor.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(environment())
    told = loads(sys.stdin.buffer.read())
    listener = socket.socket(fileno=3)
    # The kernel tells a server that connects which process has called listen last, which is this one now.
    listener.listen(socket.SOMAXCONN)
    _raise_descriptors()
    # Even for reading only, the file is open in the host's file systems, where its owner may write to it.
    linux.seal_callbacks(read_only_too=True)
    covers = root.build(told["root"], told["hide"])
    # Programs can read the variables of the functions that call them, which must not have paths of the host.
    config = Config(**(told | {"root": "", "hide": []}))
    del told
    # Sandboxes inherit these settings, so they are made once.
    linux.set_host_name("sandbox")
    linux.drop_bounding_set()
    nurseries = {kind: nursery.start(config, kind, listener) for kind in (PLAIN, SCIENTIFIC)}
    # Every supervisor inherits the objects that exist now. Its garbage collections need not visit them.
    gc.collect()
    _filling = nursery.fill_holes()
    gc.freeze()
    serve("zygote", Zygote(config, covers, listener, nurseries).run)


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


def _mourn(kind: str, ended: os.waitid_result | None) -> NoReturn:
    """End the zygote, since the nursery of a kind has ended. The last line on stderr is why."""
    if ended is not None and ended.si_code != os.CLD_EXITED:
        number = signal.Signals(ended.si_status)
        memory = ": the kernel kills processes when memory runs out" if number == signal.SIGKILL else ""
        raise RuntimeError(f"the {kind} nursery was ended by {number.name}{memory}")
    # The nursery has said why.
    os._exit(1)


class Zygote:
    """Forks a supervisor whenever a server asks for a sandbox, and tells the server when one has ended."""

    def __init__(
        self,
        config: Config,
        covers: list[tuple[str, str]],
        listener: socket.socket,
        nurseries: dict[str, Nursery],
    ) -> None:
        self._config = config
        self._covers = covers
        self._listener = listener
        self._nurseries = nurseries
        self._server: socket.socket | None = None
        self._met_server = False
        self._names: dict[int, str] = {}  # pidfd of a supervisor -> name of its sandbox
        self._pids: dict[str, int] = {}
        self._namespace = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._poll = select.epoll()

    def run(self) -> None:
        """Serve until the server has gone and the last sandbox has ended."""
        kinds = {each.pidfd: kind for kind, each in self._nurseries.items()}
        for fd in (self._listener.fileno(), *kinds):
            self._poll.register(fd, select.EPOLLIN)
        while self._server is not None or self._names or not self._met_server:
            for fd, _ in self._poll.poll():
                if fd == self._listener.fileno():
                    self._accept()
                elif self._server is not None and fd == self._server.fileno():
                    self._listen()
                elif fd in kinds:
                    _mourn(kinds[fd], linux.pidfd_reap(fd))
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
        # The next child gets a new PID namespace, and then the old one is restored. A clone with flags
        # would not run the hooks that os.fork runs.
        linux.unshare(linux.CLONE_NEWPID)
        try:
            pid = os.fork()
            if pid == 0:
                serve("supervisor", self._supervise, message, fds)
        except OSError:
            # There is no room for another sandbox, but the existing ones must go on.
            self._tell_ended(name)
            return
        finally:
            linux.setns(self._namespace, linux.CLONE_NEWPID)
        pidfd = linux.pidfd_open(pid)
        self._names[pidfd] = name
        self._pids[name] = pidfd
        self._poll.register(pidfd, select.EPOLLIN)

    def _supervise(self, message: dict[str, Any], fds: list[int]) -> None:
        """Become a supervisor, the first process of its namespace, and close the descriptors of the zygote."""
        workers = self._nurseries.pop(message["kind"])
        for other in self._nurseries.values():
            os.close(other.pidfd)
            other.requests.close()
        for fd in (self._listener.fileno(), workers.pidfd, self._namespace, self._poll.fileno(), *self._names):
            os.close(fd)
        if self._server is not None:
            os.close(self._server.detach())
        process.supervise(self._config, self._covers, workers, message["user"], message["fds"], fds)

    def _kill(self, name: str) -> None:
        if (pidfd := self._pids.get(name)) is None:
            self._tell_ended(name)
            return
        linux.pidfd_kill(pidfd)

    def _reap(self, pidfd: int) -> None:
        linux.pidfd_reap(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        name = self._names.pop(pidfd)
        del self._pids[name]
        self._tell_ended(name)

    def _tell_ended(self, name: str) -> None:
        """Tell the server that all processes of a sandbox have ended."""
        if self._server is None:
            return
        try:
            self._server.send(dumps({"op": "ended", "name": name}).encode())
        except OSError:
            self._drop_server()
