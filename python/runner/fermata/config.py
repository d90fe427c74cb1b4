"""What the server tells the zygote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """The settings of all sandboxes that one zygote makes. Sizes are in bytes."""

    # A directory to mount the root of all sandboxes on.
    root: str
    # The server's own directories, to be hidden where they lie in what sandboxes see.
    hide: list[str]
    # The first of the users that sandboxes run as; 0 if the server has only its own.
    first_user: int
    disk: int
    output: int
    pids: int
    # The limit on private memory where no cgroup limits it; 0 where one does.
    data: int
    # How long a sandbox outlives its server, in seconds.
    orphan: float
    # The seccomp filter, in hexadecimal.
    seccomp: str
