"""The states of a sandbox's supervisor, and the moves between them.

The supervisor sends its state to every server that attaches. The server's side is
engine/sandbox/state.go; both are tested against testdata/states.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

State = Literal["starting", "ready", "running", "paused", "ended"]

# The worker is not ready yet. This state is never sent to a server.
STARTING: Final = "starting"
# The sandbox waits for input files and for its program.
READY: Final = "ready"
# The program runs.
RUNNING: Final = "running"
# The program waits for the results of its calls.
PAUSED: Final = "paused"
# The program has ended, and the files that it has left can be taken.
ENDED: Final = "ended"

# The moves out of each state. If a sandbox fails before its program runs, there is no move: its
# supervisor ends.
MOVES: Final[Mapping[State, frozenset[State]]] = {
    STARTING: frozenset({READY}),
    READY: frozenset({RUNNING}),
    RUNNING: frozenset({PAUSED, ENDED}),
    PAUSED: frozenset({RUNNING, ENDED}),
    ENDED: frozenset(),
}
