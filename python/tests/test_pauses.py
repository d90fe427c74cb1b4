"""The supervisor's watch over paused programs."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
from supervised import Sandbox, sent, wait_until

from fermata import frames, pauses
from fermata.frames import Frame


def test_program_comes_to_rest_when_no_server_is_there(sandbox: Sandbox, signals: list[signal.Signals]) -> None:
    sandbox.running().stream.close()
    sandbox.say(frames.CALLS, [1])
    server = sandbox.connect()
    hello = server.attach()
    if hello["state"] == "paused":
        assert hello["round"] == 1
    assert server.receive() == Frame(frames.CALLS, b"[1]")


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
