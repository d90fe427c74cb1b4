"""Pausing: batches of calls and their results.

The supervisor is a socket with the answers already in it, so that no thread of
these tests keeps the program from coming to rest.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest

from fermata import calls, frames, loops, rest
from fermata.calls import Calls
from fermata.loops import Loop
from fermata.tools import ToolExecutionError


class Peer:
    """The supervisor's end of the stream."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream

    def answer(self, *results: dict[str, Any]) -> None:
        """Have these results ready for the next batch."""
        self.stream.sendall(frames.encode(frames.RESULTS, json.dumps(results).encode()))

    def kinds(self) -> list[int]:
        """Return the kinds of the frames that were sent so far."""
        return [frame.kind for frame in self._frames()]

    def batches(self) -> list[list[dict[str, Any]]]:
        """Return the batches that were sent so far."""
        found = [frame for frame in self._frames() if frame.kind != frames.BUSY]
        assert all(frame.kind == frames.CALLS for frame in found)
        return [json.loads(frame.payload) for frame in found]

    def _frames(self) -> Iterator[frames.Frame]:
        decoder = frames.Decoder(frames.MAX_FROM_WORKER)
        self.stream.setblocking(False)
        with suppress(BlockingIOError):
            while data := self.stream.recv(1 << 16):
                decoder.feed(data)
        self.stream.setblocking(True)
        while (frame := decoder.next()) is not None:
            yield frame

    def numbers(self) -> list[list[int]]:
        """Return the numbers of the calls of each batch."""
        return [[call["n"] for call in batch] for batch in self.batches()]


@pytest.fixture(name="ends")
def _ends() -> Iterator[tuple[Calls, Peer]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(10)
        yield Calls(ours), Peer(theirs)


@pytest.fixture(name="pending")
def _pending(ends: tuple[Calls, Peer]) -> Iterator[Calls]:
    loops.install(ends[0])
    yield ends[0]
    asyncio.new_event_loop().close()  # the one that was made ahead, if nothing has used it
    with loops._no_deprecation():
        asyncio.set_event_loop_policy(None)
    courier = ends[0].rest.courier
    if courier is not None:
        courier.join(10)
        assert not courier.is_alive(), "the courier did not end"


@pytest.fixture(name="peer")
def _peer(ends: tuple[Calls, Peer]) -> Peer:
    return ends[1]


def value(n: int, value: Any = None) -> dict[str, Any]:
    return {"n": n, "value": value}


def test_one_call(pending: Calls, peer: Peer) -> None:
    peer.answer(value(1, {"a": [1.0, 2**70, None]}))
    assert asyncio.run(pending.invoke("get-weather", {"city": "é", "n": 1.0})) == {"a": [1.0, 2**70, None]}
    assert peer.batches() == [[{"n": 1, "tool": "get-weather", "input": {"city": "é", "n": 1.0}}]]


def test_gather_is_one_batch(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(*(pending.invoke("t", {"i": i}) for i in range(10)))

    peer.answer(*(value(n, n) for n in range(10, 0, -1)))
    assert asyncio.run(program()) == list(range(1, 11))
    assert peer.batches() == [[{"n": i + 1, "tool": "t", "input": {"i": i}} for i in range(10)]]


def test_one_after_the_other(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        return [await pending.invoke("t", {}) for _ in range(20)]

    for n in range(1, 21):
        peer.answer(value(n, n))
    assert asyncio.run(program()) == list(range(1, 21))
    assert peer.numbers() == [[n] for n in range(1, 21)]


def test_everything_that_can_run_runs_first(pending: Calls, peer: Peer) -> None:
    async def late(i: int) -> Any:
        for _ in range(i):
            await asyncio.sleep(0)
        reader, writer = socket.socketpair()
        with reader, writer:
            reader.setblocking(False)
            writer.send(b"x")
            await asyncio.get_running_loop().sock_recv(reader, 1)
        return await pending.invoke("t", {"i": i})

    async def program() -> list[Any]:
        return await asyncio.gather(*(late(i) for i in range(5)))

    peer.answer(*(value(n) for n in range(1, 6)))
    asyncio.run(program())
    assert peer.numbers() == [[1, 2, 3, 4, 5]]


def test_sleeping_sibling_does_not_hold_a_call_back(pending: Calls, peer: Peer) -> None:
    async def program() -> Any:
        sleeper = asyncio.create_task(asyncio.sleep(60))
        try:
            return await pending.invoke("t", {})
        finally:
            sleeper.cancel()

    peer.answer(value(1, "quick"))
    assert asyncio.run(program()) == "quick"


def test_calls_without_a_result_are_asked_again(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(*(pending.invoke("t", {"i": i}) for i in range(3)))

    peer.answer(value(2, "b"))
    peer.answer()
    peer.answer(value(1, "a"), value(3, "c"))
    assert asyncio.run(program()) == ["a", "b", "c"]
    batches = peer.batches()
    assert [[call["n"] for call in batch] for batch in batches] == [[1, 2, 3], [1, 3], [1, 3]]
    assert batches[1] == [batches[0][0], batches[0][2]]


def test_new_calls_join_those_asked_again(pending: Calls, peer: Peer) -> None:
    async def two() -> list[Any]:
        return [await pending.invoke("t", {}), await pending.invoke("t", {})]

    async def program() -> list[Any]:
        return await asyncio.gather(two(), two())

    peer.answer(value(2, "b"))
    peer.answer(value(3, "c"), value(1, "a"))
    peer.answer(value(4, "d"))
    assert asyncio.run(program()) == [["a", "d"], ["b", "c"]]
    assert peer.numbers() == [[1, 2], [1, 3], [4]]


def test_cancelled_calls_are_not_asked_again(pending: Calls, peer: Peer) -> None:
    async def program() -> Any:
        slow = asyncio.create_task(pending.invoke("slow", {}))
        await pending.invoke("t", {})
        slow.cancel()
        return await pending.invoke("t", {})

    # The task begins when the program first waits, in its call.
    peer.answer(value(1))
    peer.answer(value(2, "too late"), value(3, "end"))
    assert asyncio.run(program()) == "end"
    assert peer.numbers() == [[1, 2], [3]]


def test_call_that_was_cancelled_before_the_rest_is_not_sent(pending: Calls, peer: Peer) -> None:
    async def program() -> Any:
        never = asyncio.create_task(pending.invoke("never", {}))
        await asyncio.sleep(0)
        never.cancel()
        return await pending.invoke("t", {})

    peer.answer(value(2))
    asyncio.run(program())
    assert peer.numbers() == [[2]]


def test_results_nobody_waits_for_are_dropped(pending: Calls, peer: Peer) -> None:
    peer.answer(value(99, "?"), value(1, "a"), value(1, "b"))
    assert asyncio.run(pending.invoke("t", {})) == "a"


@pytest.mark.parametrize(
    "error, message",
    [
        ("no such city", "no such city"),
        ("", "tool execution failed"),
        (None, "tool execution failed"),
        ("a: b\n", "a: b\n"),
    ],
)
def test_error_result(pending: Calls, peer: Peer, error: str | None, message: str) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(*(pending.invoke("t", {}) for _ in range(2)), return_exceptions=True)

    peer.answer({"n": 1, "error": error}, value(2, "fine"))
    raised, fine = asyncio.run(program())
    assert type(raised) is ToolExecutionError and str(raised) == message
    assert fine == "fine"


def test_argument_without_json_form_fails_at_the_call(pending: Calls, peer: Peer) -> None:
    async def program() -> Any:
        other = asyncio.create_task(pending.invoke("t", {"fine": 1}))
        with pytest.raises(TypeError, match="Object of type bytes is not JSON serializable"):
            await pending.invoke("t", {"x": b""})
        return await other

    peer.answer(value(1, "a"))
    assert asyncio.run(program()) == "a"
    assert peer.batches() == [[{"n": 1, "tool": "t", "input": {"fine": 1}}]]


def test_full_batch(pending: Calls, peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(*(pending.invoke("t", {"x": "y" * 400}) for _ in range(5)))

    monkeypatch.setattr(calls, "MAX_BATCH", 1000)
    peer.answer(value(1), value(2))
    peer.answer(value(3))
    peer.answer(value(4), value(5))
    asyncio.run(program())
    assert peer.numbers() == [[1, 2], [3, 4], [4, 5]]


@pytest.fixture(name="patient")
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give threads longer than a busy machine needs to start them."""
    monkeypatch.setattr(rest, "_GRACE", 0.3)


@pytest.mark.usefixtures("patient")
def test_threads_join_the_batch(pending: Calls, peer: Peer) -> None:
    def in_thread(i: int) -> Any:
        return asyncio.run(pending.invoke("t", {"i": i}))

    async def program() -> list[Any]:
        own = pending.invoke("t", {"i": -1})
        return await asyncio.gather(own, *(asyncio.to_thread(in_thread, i) for i in range(3)))

    peer.answer(*(value(n, n) for n in range(1, 5)))
    assert sorted(asyncio.run(program())) == [1, 2, 3, 4]
    [batch] = peer.batches()
    assert sorted(call["input"]["i"] for call in batch) == [-1, 0, 1, 2]
    assert [call["n"] for call in batch] == [1, 2, 3, 4]


def test_threads_whose_main_thread_only_joins(pending: Calls, peer: Peer) -> None:
    got: list[Any] = []

    def in_thread() -> None:
        got.append(asyncio.run(pending.invoke("t", {})))

    threads = [threading.Thread(target=in_thread) for _ in range(3)]
    for _ in threads:
        # They may come to rest one after the other.
        peer.answer(*(value(n, n) for n in range(1, 4)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(got) == [1, 2, 3]
    assert sorted(n for batch in peer.numbers() for n in batch) == [1, 2, 3]


@pytest.fixture(name="busy")
def _busy() -> Iterator[Callable[[], None]]:
    """A function with which a thread never waits in a way that the runner recognizes."""
    stop = False

    def spin() -> None:
        while not stop:
            time.sleep(0.0005)

    thread = threading.Thread(target=spin)
    yield thread.start
    stop = True
    thread.join(10)


def test_courier_goes_when_a_thread_never_rests(pending: Calls, peer: Peer, busy: Callable[[], None]) -> None:
    async def program() -> list[Any]:
        first = await asyncio.gather(*(pending.invoke("t", {}) for _ in range(3)))
        return [*first, await pending.invoke("t", {})]

    busy()
    peer.answer(*(value(n, n) for n in range(1, 4)))
    peer.answer(value(4, 4))
    assert asyncio.run(program()) == [1, 2, 3, 4]
    assert peer.numbers() == [[1, 2, 3], [4]]


@pytest.mark.usefixtures("patient")
def test_loop_of_another_make(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(*(pending.invoke("t", {}) for _ in range(3)))

    peer.answer(*(value(n, n) for n in range(1, 4)))
    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        assert runner.run(program()) == [1, 2, 3]
    assert peer.numbers() == [[1, 2, 3]]


def after(delay: float, act: Callable[[], None]) -> threading.Timer:
    """Act later, from a thread that rests until then."""
    timer = threading.Timer(delay, act)
    timer.start()
    return timer


def test_time_stands_still_in_a_pause(pending: Calls, peer: Peer) -> None:
    async def program() -> tuple[Any, float]:
        began = asyncio.get_running_loop().time()
        # Under the pause's length, and over what a busy machine takes for the rest.
        async with asyncio.timeout(0.3):
            got = await pending.invoke("t", {})
        return got, asyncio.get_running_loop().time() - began

    timer = after(0.4, lambda: peer.answer(value(1, "late, but in time")))
    began = time.monotonic()
    got, taken = asyncio.run(program())
    timer.join()
    assert got == "late, but in time"
    assert taken < 0.3 < time.monotonic() - began


def test_timeout_of_a_call(pending: Calls, peer: Peer) -> None:
    # The results of the round come without this call's.
    async def program() -> Any:
        try:
            await asyncio.wait_for(asyncio.gather(pending.invoke("slow", {}), work()), 0.05)
        except TimeoutError:
            return await pending.invoke("t", {})

    async def work() -> None:
        await pending.invoke("t", {})
        time.sleep(0.06)

    peer.answer(value(2))
    peer.answer(value(3, "after the timeout"))
    assert asyncio.run(program()) == "after the timeout"
    assert peer.numbers() == [[1, 2], [3]]


def test_alarm_in_a_pause(pending: Calls, peer: Peer) -> None:
    def ring(number: int, frame: object) -> None:
        raise TimeoutError("the program's own")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    try:
        with pytest.raises(TimeoutError, match="the program's own"):
            asyncio.run(pending.invoke("t", {}))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert peer.numbers() == [[1]]


def test_supervisor_learns_that_something_still_runs(pending: Calls, peer: Peer, busy: Callable[[], None]) -> None:
    peer.answer(value(1))
    asyncio.run(pending.invoke("t", {}))
    assert peer.kinds() == [frames.CALLS]
    busy()
    peer.answer(value(2, "stopped"))
    assert asyncio.run(pending.invoke("t", {})) == "stopped"
    assert peer.kinds() == [frames.BUSY, frames.CALLS]


def test_end_is_told_after_a_pause(pending: Calls, peer: Peer) -> None:
    thread = threading.Thread(target=lambda: asyncio.run(pending.invoke("t", {})))
    thread.start()
    assert peer.stream.recv(1, socket.MSG_PEEK)
    ended = after(0, lambda: pending.finish(b"{}"))
    ended.join(0.1)
    assert ended.is_alive()
    peer.answer(value(1))
    thread.join()
    ended.join()


def test_closed(pending: Calls, peer: Peer) -> None:
    async def program() -> None:
        waiting = asyncio.create_task(pending.invoke("t", {}))
        await asyncio.sleep(0)
        pending.close()
        with pytest.raises(RuntimeError, match="the program has ended"):
            await pending.invoke("t", {})
        waiting.cancel()

    asyncio.run(program())
    assert peer.batches() == []


def test_supervisor_is_gone(pending: Calls, peer: Peer) -> None:
    peer.stream.shutdown(socket.SHUT_WR)
    with pytest.raises(EOFError):
        asyncio.run(pending.invoke("t", {}))


def test_frame_that_is_no_result(pending: Calls, peer: Peer) -> None:
    peer.stream.sendall(frames.encode(frames.PROGRAM, b"{}"))
    with pytest.raises(frames.ProtocolError):
        asyncio.run(pending.invoke("t", {}))


def test_loop_without_calls_waits_as_ever(pending: Calls, peer: Peer) -> None:
    async def program() -> str:
        reader, writer = await asyncio.open_connection(sock=theirs)
        timer = after(0.01, lambda: ours.sendall(b"line\n"))
        line = await reader.readline()
        timer.join()
        await asyncio.sleep(0.01)
        writer.close()
        await writer.wait_closed()
        return line.decode()

    ours, theirs = socket.socketpair()
    with ours:
        assert asyncio.run(program()) == "line\n"
    assert peer.batches() == []


def test_every_new_loop_is_ours(pending: Calls) -> None:
    async def kind() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    coroutine: Coroutine[Any, Any, type[asyncio.AbstractEventLoop]] = kind()
    assert asyncio.run(coroutine) is Loop
    loop = asyncio.new_event_loop()
    assert type(loop) is Loop
    loop.close()


def test_receive_in_pieces() -> None:
    ours, theirs = socket.socketpair()
    payload = bytes(range(256)) * 4000
    stream = frames.encode(frames.RESULTS, payload)

    def send() -> None:
        for start in range(0, len(stream), 100_003):
            theirs.sendall(stream[start : start + 100_003])
        theirs.shutdown(socket.SHUT_WR)

    with ours, theirs:
        sender = threading.Thread(target=send)
        sender.start()
        assert frames.receive(ours) == frames.Frame(frames.RESULTS, payload)
        with pytest.raises(EOFError):
            frames.receive(ours)
        sender.join()


def test_calls_of_other_processes_wait_until_those_rest(pending: Calls, peer: Peer) -> None:
    async def late() -> Any:
        await asyncio.sleep(2 * rest._LOOK)
        return await pending.invoke("t", {"i": 2})

    async def program() -> list[Any]:
        return await asyncio.gather(pending.invoke("t", {"i": 1}), late())

    peer.answer(value(1, 1), value(2, 2))
    pending.rest.processes = lambda: pending._issued == 2
    assert asyncio.run(program()) == [1, 2]
    assert peer.numbers() == [[1, 2]]


def test_calls_do_not_wait_for_processes_that_never_rest(pending: Calls, peer: Peer) -> None:
    pending.rest.processes = lambda: False
    peer.answer(value(1, 1))
    began = time.monotonic()
    assert asyncio.run(pending.invoke("t", {})) == 1
    assert time.monotonic() - began >= rest._PATIENCE


def test_what_processes_sent_before_they_came_to_rest_is_heard_first(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        reader, writer = await asyncio.open_connection(sock=theirs)

        async def late() -> Any:
            await reader.readline()
            return await pending.invoke("t", {"i": 2})

        try:
            return await asyncio.gather(pending.invoke("t", {"i": 1}), late())
        finally:
            writer.close()

    def at_rest() -> bool:
        # The last thing before it comes to rest.
        if pending._issued == 1:
            ours.sendall(b"line\n")
        return True

    pending.rest.processes = at_rest
    peer.answer(value(1, 1), value(2, 2))
    ours, theirs = socket.socketpair()
    with ours:
        assert asyncio.run(program()) == [1, 2]
    assert peer.numbers() == [[1, 2]]


def test_results_are_decoded_as_they_are_to_be(pending: Calls, peer: Peer) -> None:
    pending.come_from_processes(lambda: True, lambda payload: [{"n": 1, "value": payload.decode()}])
    peer.answer(value(1, 1.5))
    assert asyncio.run(pending.request("t", '{"x":1.10}', 0)) == '[{"n": 1, "value": 1.5}]'
    assert peer.batches() == [[{"n": 1, "tool": "t", "input": {"x": 1.1}}]]


# Calls that block their thread.


def test_a_blocking_call(pending: Calls, peer: Peer) -> None:
    peer.answer(value(1, "a"))
    assert pending.block("current", {"city": "é"}, "weather") == "a"
    assert peer.kinds() == [frames.CALLS]


def test_a_blocking_call_that_fails(pending: Calls, peer: Peer) -> None:
    peer.answer({"n": 1, "error": "no such city"})
    peer.answer({"n": 2, "error": None})
    for message in ("no such city", "tool execution failed"):
        with pytest.raises(ToolExecutionError, match=message):
            pending.block("current", {}, "weather")
    assert pending.patience() == 0 and not pending.pause()


def test_a_blocking_call_is_asked_again_with_its_number(pending: Calls, peer: Peer) -> None:
    peer.answer()
    peer.answer(value(7, "of no call"))
    peer.answer(value(1, "a"))
    assert pending.block("current", {}, "weather") == "a"
    assert peer.batches() == [[{"n": 1, "toolset": "weather", "tool": "current", "input": {}}]] * 3


def test_tasks_that_wait_get_their_results_while_their_thread_is_blocked(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        task = asyncio.create_task(pending.invoke("t", {}))
        await asyncio.sleep(0)
        blocked = pending.block("current", {}, "weather")
        assert not task.done()
        return [blocked, await task]

    peer.answer(value(1, "task"))
    peer.answer(value(2, "blocked"))
    assert asyncio.run(program()) == ["blocked", "task"]
    assert peer.numbers() == [[1, 2], [2]]


def test_blocking_calls_of_threads_are_one_batch(pending: Calls, peer: Peer) -> None:
    peer.answer(*(value(n, "x") for n in range(1, 9)))
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(pending.block("t", {}, "s"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (peer.numbers(), results) == ([[1, 2, 3, 4, 5, 6, 7, 8]], ["x"] * 8)


def test_a_thread_that_is_blocked_when_the_program_ends(pending: Calls, peer: Peer) -> None:
    caught: list[BaseException] = []

    def block() -> None:
        try:
            pending.block("t", {}, "s")
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=block)
    thread.start()
    while not pending._waiting:
        time.sleep(0.001)
    pending.close()
    thread.join(10)
    assert [str(error) for error in caught] == ["the program has ended; no tool can be called any more"]
    peer.answer()


def test_an_input_that_blocks_nobody(pending: Calls, peer: Peer) -> None:
    with pytest.raises(TypeError):
        pending.block("t", {"a": {1}}, "s")
    pending.close()
    with pytest.raises(RuntimeError, match="the program has ended"):
        pending.block("t", {}, "s")
    assert peer.kinds() == []


def test_timers_count_what_the_server_runs(pending: Calls, peer: Peer) -> None:
    async def program() -> Any:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pending.invoke("slow", {}), 0.05)
        return await asyncio.wait_for(pending.invoke("t", {}), 30)

    threading.Timer(0.06, peer.answer, [value(0)]).start()
    threading.Timer(0.2, peer.answer, [value(2, "second"), value(0)]).start()
    assert asyncio.run(program()) == "second"
    first, second = peer.batches()
    assert [(call["n"], call["wakes"]) for call in first] == [(1, 50)]
    assert [call["n"] for call in second] == [2] and second[0]["wakes"] == 30000


def test_timers_stand_still_in_a_pause(pending: Calls, peer: Peer) -> None:
    threading.Timer(0.2, peer.answer, [value(1, "late")]).start()
    assert asyncio.run(asyncio.wait_for(pending.invoke("t", {}), 0.05)) == "late"
    assert [call["wakes"] for call in peer.batches()[0]] == [50]


def test_a_call_is_made_again_after_a_timer(pending: Calls, peer: Peer) -> None:
    async def program() -> list[Any]:
        return await asyncio.gather(pending.invoke("t", {}), asyncio.sleep(0.05, "slept"))

    threading.Timer(0.06, peer.answer, [value(0)]).start()
    threading.Timer(0.2, peer.answer, [value(1, "result")]).start()
    assert asyncio.run(program()) == ["result", "slept"]
    first, second = peer.batches()
    assert first[0].pop("wakes") == 50 and first == second


def test_a_timer_far_away(pending: Calls, peer: Peer) -> None:
    peer.answer(value(1, "result"))
    assert asyncio.run(asyncio.wait_for(pending.invoke("t", {}), 1e9)) == "result"
    assert peer.batches()[0][0]["wakes"] == calls._MAX_WAKES
