"""The configuration that the server gives to the zygote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    """The settings of all sandboxes that one zygote makes. Sizes are in bytes."""

    # The directory on which the root of all sandboxes is mounted.
    root: str
    # The server's own directories, which must be hidden if sandboxes could see them.
    hide: list[str]
    # The first of the users that sandboxes run as; 0 if the server has only its own.
    first_user: int
    disk: int
    output: int
    pids: int
    # The limit on private memory if no cgroup limits it; 0 if one does.
    data: int
    # How long a sandbox outlives its server, in seconds.
    orphan: float
    # The seccomp filter, in hexadecimal.
    seccomp: str
