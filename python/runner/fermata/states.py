"""States: where a supervisor stands between its start and the end of its program.

The server's side is engine/sandbox/state.go; both are tested against testdata/states.json.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class State(StrEnum):
    """A state of a supervisor, as it tells its server."""

    # The worker is not ready yet. No server is told of this state.
    STARTING = "starting"
    # The sandbox waits for input files and for its program.
    READY = "ready"
    RUNNING = "running"
    # The program waits for the results of its calls.
    PAUSED = "paused"
    # The program has ended, and the files that it has left can be taken.
    ENDED = "ended"


# The states that may follow each state.
MOVES: Final = {
    State.STARTING: {State.READY},
    State.READY: {State.RUNNING},
    State.RUNNING: {State.PAUSED, State.ENDED},
    State.PAUSED: {State.RUNNING, State.ENDED},
    State.ENDED: set[State](),
}
