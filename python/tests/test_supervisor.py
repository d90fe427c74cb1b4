"""The supervisor between scripted servers and a scripted worker.

It runs in a thread; what it would send to every process is collected (conftest).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Stopper, WorkerProcess

from fermata import PROTOCOL, files, frames, pauses, states
from fermata.frames import Channel, Frame, WorkerChannel
from fermata.supervisor import Supervisor, Worker

OUTPUT = 100_000
FOREVER = 60.0


class Status:
    """Tells of the end of a worker when it is told."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def fileno(self) -> int:
        return self._read

    def read(self) -> int:
        [code] = struct.unpack("i", os.read(self._read, 4))
        return int(code)

    def tell(self, code: int) -> None:
        os.write(self._write, struct.pack("i", code))

    def close(self) -> None:
        os.close(self._read)
        os.close(self._write)


class Server:
    """A server's end of the stream."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.pauses: list[Frame] = []
        stream.settimeout(10)

    def send(self, kind: int, payload: bytes = b"") -> None:
        self.stream.sendall(frames.encode(kind, payload))

    def receive(self) -> Frame:
        """Return the next frame that is not about a pause."""
        while (frame := frames.receive(self.stream)).kind in (frames.STOPPED, frames.RAN):
            self.pauses.append(frame)
        return frame

    def hear_of_pause(self) -> Frame:
        """Return the next frame, which has to be about a pause."""
        frame = self.pauses.pop(0) if self.pauses else frames.receive(self.stream)
        assert frame.kind in (frames.STOPPED, frames.RAN)
        return frame

    def attach(self) -> dict[str, Any]:
        """Attach and return the hello."""
        self.send(frames.ATTACH)
        frame = self.receive()
        assert frame.kind == frames.HELLO
        hello: dict[str, Any] = json.loads(frame.payload)
        return hello

    def exit(self) -> tuple[dict[str, Any], bytes, bytes]:
        """Receive the report of the end: what it says, stdout and stderr."""
        kind, payload = self.receive()
        assert kind == frames.EXIT
        end = 4 + int.from_bytes(payload[:4], "big")
        head = json.loads(payload[4:end])
        output = payload[end:]
        assert len(output) == head["stdout"] + head["stderr"]
        return head, output[: head["stdout"]], output[head["stdout"] :]

    def gone(self) -> bool:
        """Wait until the supervisor has closed the stream."""
        try:
            return self.stream.recv(1) == b""
        except ConnectionResetError:
            return True


def sent(signals: list[signal.Signals], want: list[signal.Signals]) -> None:
    """Wait until these signals were sent: the last one comes after the report of the end."""
    deadline = time.monotonic() + 10
    while len(signals) < len(want) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert signals == want


class Sandbox:
    """A supervisor, its worker and the way to it."""

    def __init__(self, directory: Path, orphan: float = FOREVER, control: socket.socket | None = None) -> None:
        self.path = str(directory / "socket")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.path)
        self._listener.listen()
        self.worker, theirs = socket.socketpair()
        if control is not None:
            theirs.close()
            theirs = control
        self.worker.settimeout(10)
        self._channel = WorkerChannel(theirs)
        stdout, self.stdout = os.pipe()
        stderr, self.stderr = os.pipe()
        self.status = Status()
        self.oom_kills = 0
        self.stopper = Stopper()
        self._servers: list[socket.socket] = []
        self._fds = [stdout, self.stdout, stderr, self.stderr]
        self._supervisor = Supervisor(
            Worker(
                self._channel,
                stdout,
                stderr,
                self.status,
                lambda: self.oom_kills,
                self.stopper,
            ),
            OUTPUT,
            orphan,
            listener=self._listener,
        )
        self.thread = threading.Thread(target=self._supervisor.run, daemon=True)
        self.thread.start()

    def connect(self) -> Server:
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(10)
        stream.connect(self.path)
        self._servers.append(stream)
        return Server(stream)

    def say(self, kind: int, payload: Any = None, resting: bool = False) -> None:
        """Speak as the worker."""
        if kind == frames.CALLS and not resting:
            self.worker.sendall(frames.encode(frames.BUSY, b""))
        self.worker.sendall(frames.encode(kind, json.dumps(payload).encode()))

    def hear(self) -> Frame:
        """Listen as the worker."""
        return frames.receive(self.worker)

    def ready(self) -> Server:
        """Become ready and return the server that was told so."""
        self.say(frames.READY, {"python": "3.x"})
        server = self.connect()
        assert server.attach()["state"] == "ready"
        return server

    def running(self) -> Server:
        server = self.ready()
        server.send(frames.PROGRAM, b"program")
        assert self.hear() == Frame(frames.PROGRAM, b"program")
        return server

    def paused(self) -> Server:
        server = self.running()
        self.say(frames.CALLS, [1])
        assert server.receive() == Frame(frames.CALLS, b"[1]")
        return server

    def ended(self) -> bool:
        """Wait until the supervisor has ended."""
        self.thread.join(10)
        return not self.thread.is_alive()

    def close(self) -> None:
        self.worker.close()
        if self.thread.is_alive():
            self._supervisor._finished = True
            # Something happens, so that it looks.
            self.connect()
        assert self.ended(), "the supervisor does not end"
        for fd in self._fds:
            os.close(fd)
        for stream in (*self._servers, self._listener):
            stream.close()
        self.status.close()
        self._channel.close()


@pytest.fixture(name="sandbox")
def _sandbox(tmp_path: Path) -> Iterator[Sandbox]:
    sandbox = Sandbox(tmp_path)
    yield sandbox
    sandbox.close()


def test_hello_waits_until_the_worker_is_ready(sandbox: Sandbox) -> None:
    server = sandbox.connect()
    server.send(frames.ATTACH)
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.receive()
    server.stream.settimeout(10)
    sandbox.say(frames.READY, {"python": "3.x"})
    kind, payload = server.receive()
    assert kind == frames.HELLO
    assert json.loads(payload) == {"protocol": PROTOCOL, "python": "3.x", "state": "ready", "round": 0, "ran": 0}


def test_marker_comes_before_the_hello(sandbox: Sandbox) -> None:
    sandbox.say(frames.READY, {"python": "3.x"})
    server = sandbox.connect()
    server.send(frames.ATTACH, b"marker")
    assert server.stream.recv(6, socket.MSG_WAITALL) == b"marker"
    assert server.receive().kind == frames.HELLO


def test_rounds(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    for n in range(3):
        sandbox.say(frames.CALLS, [n])
        assert server.receive() == Frame(frames.CALLS, json.dumps([n]).encode())
        server.send(frames.RESULTS, b"results %d" % n)
        assert sandbox.hear() == Frame(frames.RESULTS, b"results %d" % n)
    os.write(sandbox.stdout, b"out")
    os.write(sandbox.stderr, b"err")
    sandbox.say(frames.DONE, {"exit": 0})
    assert server.receive() == Frame(frames.DONE, b'{"exit": 0}')
    assert server.exit() == ({"stdout": 3, "stderr": 3, "over": ""}, b"out", b"err")
    sent(signals, [signal.SIGSTOP, signal.SIGCONT] * 3 + [signal.SIGSTOP, signal.SIGKILL])


def test_large_frames(sandbox: Sandbox) -> None:
    server = sandbox.ready()
    program = os.urandom(3 << 20)
    sender = threading.Thread(target=server.send, args=[frames.PROGRAM, program])
    sender.start()
    assert sandbox.hear() == Frame(frames.PROGRAM, program)
    sender.join()
    text = "x" * (3 << 20)
    speaker = threading.Thread(target=sandbox.say, args=[frames.CALLS, text])
    speaker.start()
    assert server.receive() == Frame(frames.CALLS, json.dumps(text).encode())
    speaker.join()


def test_server_is_heard_after_files(sandbox: Sandbox) -> None:
    """A program may come while files are still on their way to the worker."""
    server = sandbox.ready()
    with socket.socket(fileno=os.dup(sandbox._channel.write_fd)) as control:
        control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    content = os.urandom(100_000)
    # The end of the file and the program come at once, while the worker has not read.
    server.stream.sendall(frames.encode(frames.FILE, content) + frames.encode(frames.PROGRAM, b"program"))
    while sandbox._supervisor._state == states.READY:
        time.sleep(0.001)
    assert sandbox.hear() == Frame(frames.FILE, content)
    assert sandbox.hear() == Frame(frames.PROGRAM, b"program")
    server.send(frames.KILL)
    assert server.exit()[0]["killed"]


def test_files_of_an_ended_program(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    monkeypatch.setattr("fermata.sandbox.WORKSPACE", str(workspace))
    monkeypatch.setattr(files, "_all_dead", lambda: True)
    server = sandbox.running()
    (workspace / "large").write_bytes(b"x" * (5 << 20))
    (workspace / "small").write_bytes(b"small")
    sandbox.say(frames.DONE, {"exit": 0})
    assert server.receive().kind == frames.DONE
    assert server.exit()[0]["files"]
    wanted = {"inputs": {"small": 5, "gone": 1}, "fixed": [], "max_files": 5, "max_size": 1 << 30}
    server.send(frames.LIST, json.dumps(wanted).encode())
    found = json.loads(server.receive().payload)
    assert [file["name"] for file in found["files"]] == ["small", "large"] and found["missing"] == ["gone"]
    (tmp_path / "outside").write_bytes(b"secret")
    server.send(frames.TAKE, b"../outside")
    assert server.receive() == Frame(frames.LOST, b"")
    server.send(frames.TAKE, b"large")
    assert server.receive().kind == frames.CONTENT
    # Another server comes in the middle of a file, and is not sent the rest of it.
    second = sandbox.connect()
    assert second.attach()["state"] == "ended"
    assert (second.receive().kind, second.receive().kind) == (frames.DONE, frames.EXIT)
    second.send(frames.TAKE, b"small")
    assert second.receive() == Frame(frames.CONTENT, b"small")
    assert second.receive() == Frame(frames.CONTENT, b"")


def test_files_are_not_listed_while_something_lives(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_all_dead", lambda: False)
    server = sandbox.running()
    sandbox.say(frames.DONE, {"exit": 0})
    assert (server.receive().kind, server.receive().kind) == (frames.DONE, frames.EXIT)
    server.send(frames.LIST, b"{}")
    found = json.loads(server.receive().payload)
    assert (found["files"], found["missing"], found["reasons"]) == ([], [], {"unreadable": 1})


def test_next_server_hears_what_it_may_have_missed(sandbox: Sandbox) -> None:
    first = sandbox.paused()
    first.stream.close()
    second = sandbox.connect()
    hello = second.attach()
    assert hello.pop("ran") < 1_000_000_000
    assert hello == {"protocol": PROTOCOL, "python": "3.x", "state": "paused", "round": 1}
    assert second.receive() == Frame(frames.CALLS, b"[1]")
    second.send(frames.RESULTS, b"[]")
    assert sandbox.hear() == Frame(frames.RESULTS, b"[]")
    third = sandbox.connect()
    assert third.attach()["state"] == "running"
    sandbox.say(frames.DONE, {"exit": 3})
    # Nothing of the round that was answered comes again.
    assert third.receive() == Frame(frames.DONE, b'{"exit": 3}')
    assert third.exit()[0]["over"] == ""
    third.stream.close()
    fourth = sandbox.connect()
    assert fourth.attach() == {"protocol": PROTOCOL, "python": "3.x", "state": "ended", "round": 1, "ran": 0}
    assert fourth.receive() == Frame(frames.DONE, b'{"exit": 3}')
    assert fourth.exit()[0]["over"] == ""


def test_program_comes_to_rest_when_no_server_is_there(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    sandbox.running().stream.close()
    sandbox.say(frames.CALLS, [1])
    server = sandbox.connect()
    hello = server.attach()
    if hello["state"] == "paused":
        assert hello["round"] == 1
    assert server.receive() == Frame(frames.CALLS, b"[1]")


def test_newest_server_counts(sandbox: Sandbox) -> None:
    first = sandbox.running()
    second = sandbox.connect()
    assert second.attach()["state"] == "running"
    assert first.gone()
    sandbox.say(frames.CALLS, [1])
    assert second.receive() == Frame(frames.CALLS, b"[1]")


def test_server_that_does_not_attach_is_told_nothing(sandbox: Sandbox) -> None:
    sandbox.running()
    server = sandbox.connect()
    sandbox.say(frames.CALLS, [1])
    assert server.attach()["round"] in (0, 1)
    assert server.receive() == Frame(frames.CALLS, b"[1]")


@pytest.mark.parametrize("kind", [frames.RESULTS, frames.HELLO, frames.CALLS, 0])
def test_server_breaks_the_protocol_before_a_program(sandbox: Sandbox, kind: int) -> None:
    server = sandbox.ready()
    server.send(kind)
    assert server.gone()
    assert sandbox.ended(), "a sandbox nobody knows of goes on"


@pytest.mark.parametrize("kind", [frames.PROGRAM, frames.RESULTS])
def test_server_breaks_the_protocol_of_a_running_program(sandbox: Sandbox, kind: int) -> None:
    server = sandbox.running()
    server.send(kind)
    assert server.gone()
    second = sandbox.connect()
    assert second.attach()["state"] == "running"
    sandbox.say(frames.CALLS, [1])
    assert second.receive() == Frame(frames.CALLS, b"[1]")


def test_frame_of_a_server_that_is_too_large(sandbox: Sandbox) -> None:
    server = sandbox.running()
    server.stream.sendall(frames.HEADER.pack(frames.MAX_FROM_SERVER + 1, frames.RESULTS))
    assert server.gone()


def test_server_leaves_before_a_program(sandbox: Sandbox) -> None:
    sandbox.ready().stream.close()
    assert sandbox.ended()


@pytest.mark.parametrize("end", ["running", "paused"])
def test_kill(sandbox: Sandbox, signals: list[signal.Signals], end: str) -> None:
    server: Server = getattr(sandbox, end)()
    os.write(sandbox.stdout, b"so far")
    server.send(frames.KILL)
    assert server.exit() == ({"killed": True, "stdout": 6, "stderr": 0, "over": ""}, b"so far", b"")
    # What is frozen dies when it is let go.
    paused = end == "paused"
    sent(signals, [signal.SIGSTOP] * (1 + paused) + [signal.SIGKILL] + [signal.SIGCONT] * paused)
    # Whatever comes later changes nothing.
    sandbox.status.tell(-9)
    server.send(frames.KILL)
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.receive()


@pytest.mark.parametrize("kind", [frames.READY, frames.PROGRAM, frames.HELLO, frames.EXIT, 0])
def test_worker_breaks_the_protocol(sandbox: Sandbox, signals: list[signal.Signals], kind: int) -> None:
    server = sandbox.running()
    sandbox.say(kind, {})
    head, _, _ = server.exit()
    assert head["broken"]
    sent(signals, [signal.SIGSTOP, signal.SIGKILL])


@pytest.mark.parametrize(
    "second",
    [frames.encode(frames.HELLO, b"{}"), frames.HEADER.pack(frames.MAX_FROM_WORKER + 1, frames.CALLS)],
    ids=["out of turn", "too large"],
)
def test_worker_breaks_the_protocol_behind_its_calls(sandbox: Sandbox, second: bytes) -> None:
    """The server that answers the calls is not to blame for what came with them."""
    server = sandbox.running()
    sandbox.worker.sendall(frames.encode(frames.CALLS, b"[1]") + second)
    assert server.receive() == Frame(frames.CALLS, b"[1]")
    server.send(frames.RESULTS, b"[]")
    assert server.exit()[0]["broken"]


def test_frame_of_the_worker_that_is_too_large(sandbox: Sandbox) -> None:
    server = sandbox.running()
    sandbox.worker.sendall(frames.HEADER.pack(frames.MAX_FROM_WORKER + 1, frames.CALLS))
    assert server.exit()[0]["broken"]


def test_one_frame_at_a_time_while_paused(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    # A worker cannot speak while it is stopped, unless it has spoken before.
    told = [frames.encode(frames.BUSY, b""), frames.encode(frames.CALLS, b"[1]"), frames.encode(frames.CALLS, b"[2]")]
    sandbox.worker.sendall(b"".join(told))
    assert server.receive() == Frame(frames.CALLS, b"[1]")
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.receive()
    server.stream.settimeout(1)
    assert signals == [signal.SIGSTOP]
    server.send(frames.RESULTS, b"[]")
    assert sandbox.hear() == Frame(frames.RESULTS, b"[]")
    assert server.receive() == Frame(frames.CALLS, b"[2]")


def test_program_that_rests_is_stopped_when_the_server_says_so(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    for stop in ([], [frames.STOP]):
        sandbox.say(frames.CALLS, [1], resting=True)
        assert server.receive().kind == frames.CALLS
        for kind in stop:
            server.send(kind)
        server.send(frames.RESULTS, b"[]")
        assert sandbox.hear().kind == frames.RESULTS
    server.send(frames.STOP)  # It comes too late.
    server.send(frames.KILL)
    server.exit()
    sent(signals, [signal.SIGSTOP, signal.SIGCONT, signal.SIGSTOP, signal.SIGKILL])


def test_program_that_rests_is_stopped_when_the_server_goes(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    sandbox.say(frames.CALLS, [1], resting=True)
    assert server.receive().kind == frames.CALLS
    server.stream.close()
    assert sandbox.connect().attach()["state"] == "paused"
    assert signals == [signal.SIGSTOP]


def test_stop_of_another_server_comes_too_early_or_late(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.ready()
    for kind in (frames.STOP, frames.PROGRAM):
        server.send(kind)
    assert sandbox.hear().kind == frames.PROGRAM
    server.send(frames.KILL)
    server.exit()
    server.send(frames.STOP)
    server.send(frames.LIST, b"{}")
    server.receive()
    assert signals == [signal.SIGSTOP, signal.SIGKILL]


@pytest.mark.parametrize("code, oom", [(7, 0), (0, 0), (-9, 0), (-9, 1)])
def test_worker_ends_without_a_word(sandbox: Sandbox, code: int, oom: int) -> None:
    server = sandbox.running()
    sandbox.oom_kills = oom
    os.write(sandbox.stderr, b"last words")
    sandbox.worker.close()
    sandbox.status.tell(code)
    want = {"code": code, "oom": bool(oom), "stdout": 0, "stderr": 10, "over": ""}
    assert server.exit() == (want, b"", b"last words")


def test_worker_that_closes_its_stream_is_waited_for(sandbox: Sandbox) -> None:
    server = sandbox.running()
    sandbox.worker.close()
    time.sleep(0.02)
    sandbox.status.tell(5)
    assert server.exit()[0]["code"] == 5


def test_last_frame_comes_with_the_end(sandbox: Sandbox) -> None:
    server = sandbox.running()
    sandbox.say(frames.DONE, {"exit": 0})
    sandbox.status.tell(0)
    assert server.receive() == Frame(frames.DONE, b'{"exit": 0}')
    assert server.exit()[0]["over"] == ""


def test_worker_dies_while_it_is_paused(sandbox: Sandbox) -> None:
    server = sandbox.paused()
    sandbox.status.tell(-9)
    assert server.exit()[0]["code"] == -9


def test_worker_dies_before_a_program(sandbox: Sandbox) -> None:
    sandbox.ready()
    sandbox.status.tell(1)
    assert sandbox.ended()


def test_output_up_to_the_cap(sandbox: Sandbox) -> None:
    server = sandbox.running()
    written = b"ab" * (OUTPUT // 2)
    for fd in (sandbox.stdout, sandbox.stderr):
        os.write(fd, written[: OUTPUT // 2])
        os.write(fd, written[OUTPUT // 2 :])
    sandbox.say(frames.DONE, {})
    server.receive()
    assert server.exit() == ({"stdout": OUTPUT, "stderr": OUTPUT, "over": ""}, written, written)


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_output_over_the_cap(sandbox: Sandbox, signals: list[signal.Signals], name: str) -> None:
    server = sandbox.running()
    # More than a pipe holds: the last byte is the one too many.
    flood = threading.Thread(target=os.write, args=[getattr(sandbox, name), b"x" * (OUTPUT + 1)])
    flood.start()
    head, stdout, stderr = server.exit()
    flood.join()
    assert head == {"stdout": 0, "stderr": 0, "over": name} | {name: OUTPUT}
    assert {"stdout": stdout, "stderr": stderr}[name] == b"x" * OUTPUT
    sent(signals, [signal.SIGSTOP, signal.SIGKILL])


def test_output_that_ends_early(sandbox: Sandbox) -> None:
    server = sandbox.running()
    os.write(sandbox.stdout, b"before")
    read_fd, write_fd = os.pipe()
    os.close(read_fd)
    os.dup2(write_fd, sandbox.stdout)  # closes the pipe's last writer
    os.close(write_fd)
    sandbox.say(frames.DONE, {})
    server.receive()
    assert server.exit()[1] == b"before"


def test_orphan(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=0.05)
    assert sandbox.ended(), "nobody ever came, and it still waits"
    sandbox.close()


def test_orphan_after_a_server(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=0.3)
    server = sandbox.paused()
    # As long as a server is there it waits.
    time.sleep(0.4)
    assert sandbox.thread.is_alive()
    began = time.monotonic()
    server.stream.close()
    assert sandbox.ended()
    assert 0.25 < time.monotonic() - began
    sandbox.close()


def test_server_that_comes_back_in_time(tmp_path: Path) -> None:
    sandbox = Sandbox(tmp_path, orphan=1.0)
    sandbox.paused().stream.close()
    time.sleep(0.1)
    assert sandbox.connect().attach()["state"] == "paused"
    time.sleep(1.1)
    assert sandbox.thread.is_alive()
    sandbox.close()


class Shared:
    """A supervisor whose servers use one stream, one after the other."""

    def __init__(self) -> None:
        stream, theirs = socket.socketpair()
        self.server = Server(stream)
        self.worker, control = socket.socketpair()
        self.worker.settimeout(10)
        channels = [Channel(s.fileno(), s.fileno(), frames.MAX_FROM_SERVER) for s in (control, theirs)]
        stdout, self._stdout = os.pipe()
        stderr, self._stderr = os.pipe()
        self.status = Status()
        worker = Worker(channels[0], stdout, stderr, self.status, lambda: 0, Stopper())
        self._supervisor = Supervisor(worker, OUTPUT, 5.0, stream=channels[1])
        self.thread = threading.Thread(target=self._supervisor.run, daemon=True)
        self.thread.start()
        self._fds = [stdout, stderr, self._stdout, self._stderr]
        self._sockets = [control, theirs]

    def attach(self, marker: bytes) -> dict[str, Any]:
        """Attach as a new server does: what was for another one is passed over."""
        self.server.send(frames.ATTACH, marker)
        seen = b""
        while not seen.endswith(marker):
            byte = self.server.stream.recv(1)
            assert byte, "the supervisor has gone"
            seen += byte
        kind, payload = self.server.receive()
        assert kind == frames.HELLO
        hello: dict[str, Any] = json.loads(payload)
        return hello

    def close(self) -> None:
        self.server.stream.close()
        self.thread.join(10)
        assert not self.thread.is_alive()
        self.worker.close()
        self.status.close()
        for fd in self._fds:
            os.close(fd)
        self._sockets[0].close()
        # The supervisor has closed the other one.
        self._sockets[1].detach()


def test_servers_share_a_stream() -> None:
    sandbox = Shared()
    marker = b"0123456789abcdef"
    sandbox.worker.sendall(frames.encode(frames.READY, b'{"python": "3.x"}'))
    assert sandbox.attach(marker)["state"] == "ready"
    sandbox.server.send(frames.PROGRAM, b"program")
    assert frames.receive(sandbox.worker) == Frame(frames.PROGRAM, b"program")
    sandbox.worker.sendall(frames.encode(frames.CALLS, b"[1]"))
    # This server dies before it reads the calls, and while it writes.
    sandbox.server.stream.sendall(frames.encode(frames.RESULTS, b"x" * 100)[:50])
    assert sandbox.attach(marker)["state"] in ("running", "paused")
    assert sandbox.server.receive() == Frame(frames.CALLS, b"[1]")
    sandbox.server.send(frames.RESULTS, b"[]")
    assert frames.receive(sandbox.worker) == Frame(frames.RESULTS, b"[]")
    # The next one breaks the protocol: what it says is passed over until another comes.
    sandbox.server.send(frames.HELLO, b"{}")
    sandbox.server.send(frames.KILL, b"")
    assert sandbox.attach(marker)["state"] == "running"
    sandbox.close()


def test_with_a_real_worker(tmp_path: Path, worker_process: WorkerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def signal_worker(number: signal.Signals) -> None:
        if worker_process.pid:
            os.kill(worker_process.pid, number)

    monkeypatch.setattr("fermata.stopping.signal_all", signal_worker)
    sandbox = Sandbox(tmp_path, control=worker_process.stream.dup())
    server = sandbox.connect()
    assert server.attach()["state"] == "ready"
    stubs = '@tool("t", "t", False)\nasync def _(**extra: Any) -> Any: ""\n'
    printed = tmp_path / "printed"
    code = f"print(await t(a=1))\nopen({str(printed)!r}, 'w')\nwhile True: pass"
    server.send(frames.PROGRAM, json.dumps({"code": code, "stubs": stubs}).encode())
    assert server.receive() == Frame(frames.CALLS, b'[{"n":1,"tool":"t","input":{"a":1}}]')
    server.send(frames.STOP)
    wait_for_state(worker_process.pid, "T")
    server.send(frames.RESULTS, b'[{"n": 1, "value": 5}]')
    wait_until(printed.exists, "the worker has not printed")
    server.send(frames.KILL)
    assert server.exit()[0]["killed"]
    assert worker_process.wait() == -signal.SIGKILL
    assert worker_process.printed()[0] == "5\n"
    sandbox.close()


def wait_for_state(pid: int, state: str) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_until(
        lambda: stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] == state, f"the worker is not {state}"
    )


def wait_until(condition: Callable[[], bool], complaint: str) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.001)


def test_server_is_told_when_the_program_has_stopped(sandbox: Sandbox) -> None:
    sandbox.stopper.still = False
    server = sandbox.paused()
    time.sleep(0.05)
    server.send(frames.STOP, b"1")
    server.stream.settimeout(0.1)
    with pytest.raises(TimeoutError):
        server.hear_of_pause()
    server.stream.settimeout(10)
    sandbox.stopper.still = True
    assert server.hear_of_pause() == Frame(frames.STOPPED, b"1")
    # One that has stopped already is told of at once, and what was taken back is not.
    server.send(frames.STOP, b"2")
    assert server.hear_of_pause() == Frame(frames.STOPPED, b"2")
    sandbox.stopper.still = False
    server.send(frames.RESULTS, b"[]")
    assert sandbox.hear().kind == frames.RESULTS
    sandbox.say(frames.CALLS, [2], resting=True)
    assert server.receive().kind == frames.CALLS
    server.send(frames.STOP, b"3")
    server.send(frames.STOP, b"4")
    sandbox.stopper.still = True
    assert server.hear_of_pause() == Frame(frames.STOPPED, b"4")


def test_program_that_the_supervisor_stops(sandbox: Sandbox) -> None:
    assert sandbox.paused().hear_of_pause() == Frame(frames.STOPPED, b"")


def test_what_runs_in_a_pause_is_counted(
    sandbox: Sandbox, signals: list[signal.Signals], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "_LAST_LOOK", 0.02)
    sandbox.stopper.wakes = True
    sandbox.stopper.nanoseconds = 1_000_000_000
    server = sandbox.paused()
    assert server.hear_of_pause().kind == frames.STOPPED
    sandbox.stopper.nanoseconds += 1_000_000  # nothing to speak of
    time.sleep(0.1)
    before = len(signals)
    sandbox.stopper.nanoseconds += 70_000_000
    assert server.hear_of_pause() == Frame(frames.RAN, b"70000000")
    assert signal.SIGCONT not in signals
    wait_until(lambda: len(signals) > before, "it is not stopped again")
    # Without a server it is counted for the next one; and so is the rest, at the end.
    server.stream.close()
    time.sleep(0.05)
    sandbox.stopper.nanoseconds += 50_000_000
    time.sleep(0.1)
    second = sandbox.connect()
    assert 50_000_000 <= second.attach()["ran"] < 1_000_000_000
    monkeypatch.setattr(pauses, "_LAST_LOOK", 60.0)
    time.sleep(0.05)
    sandbox.stopper.nanoseconds += 30_000_000
    second.send(frames.RESULTS, b"[]")
    assert second.receive() == Frame(frames.CALLS, b"[1]")
    assert sandbox.hear().kind == frames.RESULTS
    assert second.hear_of_pause() == Frame(frames.RAN, b"30000000")


def test_time_without_a_server_is_counted(sandbox: Sandbox) -> None:
    sandbox.running().stream.close()
    time.sleep(0.2)
    assert sandbox.connect().attach()["ran"] >= 150_000_000


def test_calls_that_came_together_are_two_pauses(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    server = sandbox.running()
    busy = frames.encode(frames.BUSY, b"")
    sandbox.worker.sendall(b"".join(busy + frames.encode(frames.CALLS, payload) for payload in (b"[1]", b"[2]")))
    for payload in (b"[1]", b"[2]"):
        assert server.receive() == Frame(frames.CALLS, payload)
        assert server.hear_of_pause().kind == frames.STOPPED
        assert signals[-1] == signal.SIGSTOP, "the program runs on in its pause"
        server.send(frames.RESULTS, b"[]")
        assert sandbox.hear().kind == frames.RESULTS


def test_supervisor_that_ends_lets_what_it_froze_die(tmp_path: Path, signals: list[signal.Signals]) -> None:
    sandbox = Sandbox(tmp_path, orphan=0.1)
    sandbox.paused().stream.close()
    assert sandbox.ended()
    assert signals[-2:] == [signal.SIGKILL, signal.SIGCONT]
    sandbox.close()


def slow_descriptor() -> tuple[socket.socket, list[socket.socket]]:
    """Return a socket that takes three seconds to close: its peer reads nothing of what it has to send."""
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    peer, _ = listener.accept()
    sender.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            sender.send(bytes(1 << 16))
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3))
    sender.setblocking(True)
    return sender, [listener, peer]


@pytest.mark.parametrize("refused", [True, False])
def test_descriptors_of_a_worker(
    tmp_path: Path, signals: list[signal.Signals], monkeypatch: pytest.MonkeyPatch, refused: bool
) -> None:
    """Whatever a worker sends along, its supervisor goes on."""
    if not refused:  # as on Linux before 6.16
        monkeypatch.setattr(frames, "_SO_PASSRIGHTS", 10_000)
    sandbox = Sandbox(tmp_path)
    server = sandbox.paused()
    slow, others = slow_descriptor()
    # While the program is paused nobody reads it, so that the last copy is the one on its way.
    try:
        socket.send_fds(sandbox.worker, [frames.encode(frames.CALLS, b"[1]")], [slow.fileno()])
    except PermissionError:
        assert refused
        server.send(frames.KILL)
    else:
        slow.close()
    began = time.monotonic()
    server.send(frames.RESULTS, b"[]")
    head, _, _ = server.exit()
    assert time.monotonic() - began < 1, "to close a descriptor has held the supervisor up"
    assert head.get("killed") or head.get("broken")
    for each in (*others, slow):
        each.close()
    sandbox.close()
