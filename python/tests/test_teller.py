"""Sending the output to the server while the program runs."""

from __future__ import annotations

import os
import socket
import threading
import time

import pytest
from supervised import OUTPUT, Sandbox, Server

from fermata import frames, teller
from fermata.frames import Frame


@pytest.fixture(name="patient")
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make sure that nothing is sent only because time has passed."""
    for name in ("_QUIET", "_SOON", "_LONGEST"):
        monkeypatch.setattr(teller, name, 3600.0)


def test_output_is_told_while_the_program_runs(sandbox: Sandbox) -> None:
    server = sandbox.running()
    for fd in (sandbox.stdout, sandbox.stderr, sandbox.stdout):
        os.write(fd, b"a\xff")
        assert server.hear_output() == b"a\xff"
    assert server.printed == [b"a\xffa\xff", b"a\xff"]


def test_what_is_printed_together_is_told_together(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sandbox.running()
    monkeypatch.setattr(teller, "_SOON", 0.3)
    monkeypatch.setattr(teller, "_QUIET", 0.5)
    monkeypatch.setattr(teller, "_LONGEST", 3600.0)
    for piece in (b"a", b"b", b"c"):
        os.write(sandbox.stdout, piece)
    assert server.hear_output() == b"abc"
    # This comes after no quiet moment: it waits for one.
    for piece in (b"d", b"e"):
        os.write(sandbox.stdout, piece)
    assert server.hear_output() == b"de"


def test_output_without_a_quiet_moment_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sandbox.running()
    monkeypatch.setattr(teller, "_QUIET", 3600.0)
    monkeypatch.setattr(teller, "_LONGEST", 0.3)
    stop = threading.Event()

    def print_on() -> None:
        while not stop.wait(0.001):
            os.write(sandbox.stdout, b".")

    thread = threading.Thread(target=print_on)
    thread.start()
    try:
        pieces = [server.hear_output() for _ in range(3)]
    finally:
        stop.set()
        thread.join()
    # The first one may have come after a quiet moment.
    assert all(len(piece) > 1 for piece in pieces[1:])


def test_a_whole_piece_is_told_at_once(sandbox: Sandbox, patient: None) -> None:
    server = sandbox.running()
    os.write(sandbox.stderr, b"x" * (frames.MAX_OUTPUT - 1))
    server.stream.settimeout(0.05)
    with pytest.raises(TimeoutError):
        server.hear_output()
    server.stream.settimeout(10)
    os.write(sandbox.stdout, b"y")
    assert server.hear_output() == b"y"
    assert server.hear_output() == b"x" * (frames.MAX_OUTPUT - 1)
    os.write(sandbox.stdout, b"z" * (2 * frames.MAX_OUTPUT + 1))
    assert server.hear_output() == server.hear_output() == b"z" * frames.MAX_OUTPUT


def test_output_stands_before_the_calls_that_follow_it(sandbox: Sandbox, patient: None) -> None:
    server = sandbox.running()
    for n in range(20):
        os.write(sandbox.stdout, b"out %d\n" % n)
        os.write(sandbox.stderr, b"err %d\n" % n)
        sandbox.say(frames.CALLS, [n], resting=True)
        assert server.hear_output() == b"out %d\n" % n
        assert server.hear_output() == b"err %d\n" % n
        assert server.receive() == Frame(frames.CALLS, b"[%d]" % n)
        server.send(frames.RESULTS, b"[]")
        assert sandbox.hear().kind == frames.RESULTS


def test_all_that_a_pipe_holds_stands_before_the_calls(sandbox: Sandbox, patient: None) -> None:
    server = sandbox.running()
    for fd in (sandbox.stdout, sandbox.stderr):
        os.set_blocking(fd, False)
        assert os.write(fd, b"x" * 65_536) == 65_536
    sandbox.say(frames.CALLS, [1])
    server.receive()
    assert server.printed == [b"x" * 65_536] * 2


def test_output_in_a_pause_is_told(sandbox: Sandbox) -> None:
    server = sandbox.paused()
    assert server.hear_of_pause().kind == frames.STOPPED
    os.write(sandbox.stdout, b"late")
    assert server.hear_output() == b"late"


def test_too_much_output_before_calls_ends_the_program(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    server = sandbox.running()
    supervisor = sandbox._supervisor
    os.write(sandbox.stdout, b"x" * 10)
    assert server.hear_output()
    # Nothing is read but what is gathered before the calls.
    for output in supervisor._outputs.both:
        monkeypatch.setattr(output, "_limit", 10)
        supervisor._events.watch(output.fd, lambda mask: None, 0)
    os.write(sandbox.stdout, b"x")
    os.write(sandbox.stderr, b"x" * 11)
    sandbox.say(frames.CALLS, [1])
    head, stdout, _ = server.exit()
    assert head["over"] == "stdout" and stdout == b"x" * 10


def test_the_end_is_told_without_what_was_untold(sandbox: Sandbox, patient: None) -> None:
    server = sandbox.running()
    os.write(sandbox.stdout, b"untold")
    sandbox.say(frames.DONE, {})
    assert frames.receive(server.stream).kind == frames.DONE
    assert server.exit()[1] == b"untold"


def test_nothing_is_told_before_there_is_a_program(sandbox: Sandbox) -> None:
    server = sandbox.ready()
    os.write(sandbox.stderr, b"early")
    server.stream.settimeout(0.1)
    with pytest.raises(TimeoutError):
        server.hear_output()
    server.stream.settimeout(10)
    server.send(frames.PROGRAM, b"program")
    assert server.hear_output() == b"early"


@pytest.mark.parametrize("state", ["running", "paused"])
def test_the_next_server_is_told_everything(sandbox: Sandbox, patient: None, state: str) -> None:
    first: Server = getattr(sandbox, state)()
    if state == "paused":
        first.hear_of_pause()
    text = os.urandom(40_000)
    os.write(sandbox.stdout, text)
    os.write(sandbox.stderr, b"error")
    for _ in range(2):
        first.hear_output()
    first.stream.close()
    second = sandbox.connect()
    # No output before the hello.
    assert second.attach()["state"] == state
    while second.printed != [text, b"error"]:
        second.hear_output()
    if state == "paused":
        assert second.receive() == Frame(frames.CALLS, b"[1]")


def test_an_ended_program_is_told_of_once(sandbox: Sandbox) -> None:
    first = sandbox.running()
    os.write(sandbox.stdout, b"text")
    assert first.hear_output() == b"text"
    sandbox.say(frames.DONE, {})
    first.receive()
    assert first.exit()[1] == b"text"
    second = sandbox.connect()
    second.attach()
    assert frames.receive(second.stream).kind == frames.DONE
    assert second.exit()[1] == b"text"


def test_without_a_server_nothing_is_lost(sandbox: Sandbox) -> None:
    first = sandbox.running()
    os.write(sandbox.stdout, b"a")
    assert first.hear_output() == b"a"
    first.stream.close()
    for _ in range(3):
        os.write(sandbox.stdout, b"b" * frames.MAX_OUTPUT)
        time.sleep(0.02)
    second = sandbox.connect()
    second.attach()
    while len(second.printed[0]) < 1 + 3 * frames.MAX_OUTPUT:
        second.hear_output()


@pytest.mark.parametrize("takes_more", [True, False])
def test_slow_server(sandbox: Sandbox, takes_more: bool) -> None:
    """Output that the server cannot take yet waits, and calls are still sent after it."""
    server = sandbox.running()
    link = sandbox._supervisor._servers._link
    assert link is not None
    with socket.socket(fileno=os.dup(link.channel.write_fd)) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    for _ in range(4):
        os.write(sandbox.stdout, b"x" * (OUTPUT // 4))
        os.write(sandbox.stderr, b"y" * (OUTPUT // 4))
    time.sleep(0.2)
    waiting = sum(map(len, link.channel._outbox))
    assert 0 < waiting <= frames.MAX_OUTPUT + frames.OUTPUT_HEAD.size + frames.HEADER.size
    if takes_more:
        while server.printed != [b"x" * OUTPUT, b"y" * OUTPUT]:
            server.hear_output()
    sandbox.say(frames.CALLS, [1])
    assert server.receive() == Frame(frames.CALLS, b"[1]")
    assert server.printed == [b"x" * OUTPUT, b"y" * OUTPUT]
