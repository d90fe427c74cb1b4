"""The supervisor as a whole: rounds, output, and how programs end."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest
from conftest import WorkerProcess
from supervised import OUTPUT, Sandbox, Server, sent, wait_until

from fermata import frames
from fermata.frames import Frame


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


def test_nobody_asks_for_the_line(sandbox: Sandbox) -> None:
    server = sandbox.running()
    server.send(frames.KILL)
    assert "line" not in server.exit()[0]


def test_the_line_of_a_worker_without_a_name(sandbox: Sandbox) -> None:
    server = sandbox.running()
    server.send(frames.KILL, b"line")
    assert "line" not in server.exit()[0]


def test_the_line_of_a_paused_program(sandbox: Sandbox) -> None:
    server = sandbox.paused()
    server.send(frames.KILL, b"line")
    assert "line" not in server.exit()[0]


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
    code = f"print(await t(a=1))\nopen({str(printed)!r}, 'w')\n\nwhile True: pass"
    server.send(frames.PROGRAM, json.dumps({"code": code, "stubs": stubs}).encode())
    assert server.receive() == Frame(frames.CALLS, b'[{"n":1,"tool":"t","line":1,"input":{"a":1}}]')
    server.send(frames.STOP)
    wait_for_state(worker_process.pid, "T")
    server.send(frames.RESULTS, b'[{"n": 1, "value": 5}]')
    wait_until(printed.exists, "the worker has not printed")
    server.send(frames.KILL, b"line")
    report = server.exit()[0]
    assert (report["killed"], report["line"]) == (True, 4)
    assert worker_process.wait() == -signal.SIGKILL
    assert worker_process.printed()[0] == "5\n"
    sandbox.close()


def test_the_methods_of_a_toolset_with_a_real_worker(tmp_path: Path, worker_process: WorkerProcess) -> None:
    sandbox = Sandbox(tmp_path, control=worker_process.stream.dup())
    server = sandbox.connect()
    assert server.attach()["state"] == "ready"
    source = "from . import _tool\nclass S:\n @staticmethod\n @_tool('s', 't-1', False)\n def t(**extra): ''\n"
    code = (
        "from concurrent.futures import ThreadPoolExecutor\nfrom mine.s import S\n"
        "with ThreadPoolExecutor(2) as pool:\n    print(list(pool.map(lambda a: S.t(a=a), range(2))))"
    )
    toolsets = [{"key": "s", "class": "S", "source": source}]
    program = {"code": code, "stubs": "", "package": "mine", "toolsets": toolsets}
    server.send(frames.PROGRAM, json.dumps(program).encode())
    first, second = (b'{"n":%d,"toolset":"s","tool":"t-1","line":4,"input":{"a":%d}}' % (n + 1, n) for n in range(2))
    assert server.receive() == Frame(frames.CALLS, b"[%b,%b]" % (first, second))
    # The results come one by one, and none for a time.
    server.send(frames.RESULTS, b'[{"n":2,"value":"b"}]')
    assert server.receive() == Frame(frames.CALLS, b"[%b]" % first)
    server.send(frames.RESULTS, b"[]")
    assert server.receive() == Frame(frames.CALLS, b"[%b]" % first)
    server.send(frames.RESULTS, b'[{"n":1,"value":"a"}]')
    assert server.receive() == Frame(frames.DONE, b'{"exit": 0}')
    assert worker_process.printed()[0] == "['a', 'b']\n"
    sandbox.close()


def wait_for_state(pid: int, state: str) -> None:
    stat = Path(f"/proc/{pid}/stat")
    wait_until(
        lambda: stat.read_text(encoding="ascii").rpartition(")")[2].split()[0] == state, f"the worker is not {state}"
    )
