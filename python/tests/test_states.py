"""Tests of the states of a supervisor."""

from __future__ import annotations

import json
from pathlib import Path

from fermata.states import MOVES, State

SHARED: dict[str, list[str]] = json.loads(
    (Path(__file__).parent.parent / "testdata" / "states.json").read_text(encoding="utf-8")
)["moves"]


def test_states_are_those_of_the_server() -> None:
    assert [state.value for state in State] == list(SHARED)


def test_moves_are_those_of_the_table() -> None:
    assert {state.value: {to.value for to in MOVES[state]} for state in State} == {
        state: set(to) for state, to in SHARED.items()
    }


def test_every_state_can_be_reached() -> None:
    reached = {State.STARTING}
    while more := {to for state in reached for to in MOVES[state]} - reached:
        reached |= more
    assert reached == set(State)
