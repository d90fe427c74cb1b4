"""The table of the supervisor's states: what it allows happens, and nothing else does."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import get_args

import pytest
from supervised import Sandbox

from fermata import frames
from fermata.states import ENDED, MOVES, PAUSED, READY, RUNNING, STARTING, State

ALL: tuple[State, ...] = get_args(State)

# The frame that makes each move, and whether the worker or the server sends it.
CAUSES: dict[tuple[State, State], tuple[str, int]] = {
    (STARTING, READY): ("worker", frames.READY),
    (READY, RUNNING): ("server", frames.PROGRAM),
    (RUNNING, PAUSED): ("worker", frames.CALLS),
    (RUNNING, ENDED): ("worker", frames.DONE),
    (PAUSED, RUNNING): ("server", frames.RESULTS),
    (PAUSED, ENDED): ("server", frames.KILL),
}


def path(to: State) -> list[State]:
    """Return a shortest way from the first state to this one."""
    ways: list[list[State]] = [[STARTING]]
    for way in ways:
        if way[-1] == to:
            return way
        ways += [[*way, move] for move in MOVES[way[-1]] if move not in way]
    pytest.fail(f"no moves lead to {to}")


def test_states_and_moves_are_those_of_the_server() -> None:
    shared = json.loads((Path(__file__).parent.parent / "testdata" / "states.json").read_text(encoding="utf-8"))[
        "moves"
    ]
    assert {state: set(moves) for state, moves in MOVES.items()} == {
        state: set(moves) for state, moves in shared.items()
    }


def test_every_state_has_its_moves() -> None:
    assert set(MOVES) == set(ALL)
    assert {(state, to) for state in ALL for to in MOVES[state]} == set(CAUSES)


@pytest.mark.parametrize("state, to", CAUSES)
def test_moves_that_frames_make(tmp_path: Path, state: State, to: State) -> None:
    sandbox = Sandbox(tmp_path)
    server = sandbox.connect()
    server.send(frames.ATTACH)
    for move in itertools.pairwise([*path(state), to]):
        speaker, kind = CAUSES[move]
        if speaker == "worker":
            sandbox.say(kind, {"python": "3.x"})
            # The server hears of it before it goes on.
            server.receive()
        else:
            server.send(kind)
            if kind != frames.KILL:
                sandbox.hear()
    assert sandbox.connect().attach()["state"] == to
    sandbox.close()


@pytest.mark.parametrize("state, to", [move for move in itertools.product(ALL, ALL) if move not in CAUSES])
def test_moves_that_are_not_in_the_table(tmp_path: Path, state: State, to: State) -> None:
    sandbox = Sandbox(tmp_path)
    supervisor = sandbox._supervisor
    for move in path(state)[1:]:
        supervisor._move(move)
    with pytest.raises(RuntimeError, match=f"no move leads from {state} to {to}"):
        supervisor._move(to)
    assert supervisor._state == state
    sandbox.close()
