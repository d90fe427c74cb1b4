"""The file systems that sandboxes of the process engine see."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import fermata
from fermata import linux
from fermata.sandbox import USER, WORKSPACE

# The descriptor on which the server has opened the runner for the zygote, so that no module has a path of the host.
_RUNNER: Final = 4

# The directories of the host that have its programs, besides links to them.
_USUAL: Final = ("/usr", "/bin", "/lib", "/lib64")


def build(root: str, hide: list[str]) -> list[tuple[str, str]]:
    """Make a root that has what a Python program needs and nothing else, and move into it.

    Return which files of /proc each sandbox must cover, and with what. The directories in ``hide``
    are shown empty.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", root, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4m")
    for name in ("proc", "tmp", "run", "var/empty", "etc", "dev", "mnt/data", "opt/fermata", "root", "home"):
        Path(root, name).mkdir(parents=True, exist_ok=True)
    prefixes = _show_programs(root)
    _make_etc(root)
    _make_dev(root)
    _make_quiet(root)
    # The runner is copied and not mounted, since a mount reveals its path on the host.
    _copy(f"/proc/self/fd/{_RUNNER}", f"{root}/opt/fermata")
    os.close(_RUNNER)
    for hidden in hide:
        if os.path.isdir(root + hidden):
            linux.mount("tmpfs", root + hidden, "tmpfs", linux.MS_RDONLY, "mode=000,size=4k")
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    linux.pivot_root(root)
    # The runner is found in the new root from now on.
    sys.path.pop(0)
    fermata.__path__[:] = ["/opt/fermata/fermata"]
    _forget_others(prefixes)
    # The nurseries write to /tmp while they import (caches of fonts). Each sandbox mounts a file
    # system of its own on it.
    linux.mount("tmpfs", "/tmp", "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777,size=64m")
    linux.mount(
        "none", "/", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV
    )
    return _covers()


def enter(user: int, disk: int, covers: list[tuple[str, str]]) -> None:
    """Move this process into the namespaces and file systems of a new sandbox.

    ``disk`` is the size limit of each file system that the sandbox can write to, in bytes.
    """
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    size = f"size={disk},nr_inodes=65536,uid={user},gid={user}"
    flags = linux.MS_NOSUID | linux.MS_NODEV
    linux.mount("tmpfs", WORKSPACE, "tmpfs", flags, f"{size},mode=755")
    linux.mount("tmpfs", "/tmp", "tmpfs", flags, f"{size},mode=1777")
    linux.mount("tmpfs", "/dev/shm", "tmpfs", flags | linux.MS_NOEXEC, f"{size},mode=1777")
    linux.mount("proc", "/proc", "proc", flags | linux.MS_NOEXEC)
    # If the server is not root, the settings of these namespaces belong to the program's own user.
    linux.mount("/proc/sys", "/proc/sys", None, linux.MS_BIND)
    linux.mount("none", "/proc/sys", None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | flags | linux.MS_NOEXEC)
    for cover, path in covers:
        linux.mount(cover, path, None, linux.MS_BIND)
    if user == 0:
        _hide_supervisor()
    linux.loopback_up()


def _show_programs(root: str) -> list[str]:
    """Show the host's programs and libraries; return the directories of the interpreter that are elsewhere."""
    for name in ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        source = Path("/", name)
        if source.is_symlink():
            Path(root, name).symlink_to(os.readlink(source))
        elif source.is_dir():
            _show(str(source), root)
    prefixes = _prefixes()
    for prefix in prefixes:
        _show(prefix, root)
    return prefixes


def _make_etc(root: str) -> None:
    for name in ("ld.so.cache", "alternatives", "fonts", "localtime", "matplotlibrc", "mime.types", "magic"):
        if os.path.exists(f"/etc/{name}"):
            _show(f"/etc/{name}", root)
    Path(root, "etc/passwd").write_text(f"sandbox:x:{USER}:{USER}::{WORKSPACE}:/bin/sh\n", encoding="ascii")
    Path(root, "etc/group").write_text(f"sandbox:x:{USER}:\n", encoding="ascii")
    Path(root, "etc/hosts").write_text("127.0.0.1 localhost sandbox\n::1 localhost\n", encoding="ascii")
    # It exists already if the interpreter is below it.
    if not os.path.exists(f"{root}/var/tmp"):
        Path(root, "var/tmp").symlink_to("/tmp")


def _make_dev(root: str) -> None:
    for name in ("null", "zero", "full", "random", "urandom"):
        Path(root, "dev", name).touch()
        linux.bind_read_only(f"/dev/{name}", f"{root}/dev/{name}", device=True)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        Path(root, "dev", name).symlink_to(target)
    Path(root, "dev/shm").mkdir()


def _make_quiet(root: str) -> None:
    """Make what programs see in place of the files of /proc that tell how busy the machine is.

    Programs look there for the processors and the time of the start, so the files are not empty.
    """
    directory = Path(root, _QUIET[1:])
    directory.mkdir()
    for name, make in _QUIET_FILES.items():
        directory.joinpath(name).write_text(make(Path("/proc", name).read_text(encoding="ascii")), encoding="ascii")


def _quiet_stat(text: str) -> str:
    """Return the contents of /proc/stat with nothing but zeros, except for the time of the start."""
    lines = (line.split() for line in text.splitlines())
    return "".join(
        f"{' '.join(words if words[0] == 'btime' else [words[0], *['0'] * min(10, len(words) - 1)])}\n"
        for words in lines
        if words
    )


# Where the files are that cover those of the same name in /proc, and how each is made from the real one.
_QUIET: Final = "/var/quiet"
_QUIET_FILES: Final[dict[str, Callable[[str], str]]] = {
    "loadavg": lambda text: "0.00 0.00 0.00 1/1 1\n",
    "stat": _quiet_stat,
    "uptime": lambda text: f"{text.split()[0]} 0.00\n",
}


def _show(source: str, root: str) -> None:
    target = Path(root + source)
    if os.path.isdir(source):
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    linux.bind_read_only(source, str(target))


def _copy(source: str, target: str) -> None:
    """Copy the files of a directory, and the directories in it."""
    for name in os.listdir(source):
        if os.path.isdir(f"{source}/{name}"):
            os.mkdir(f"{target}/{name}")
            _copy(f"{source}/{name}", f"{target}/{name}")
        else:
            Path(target, name).write_bytes(Path(source, name).read_bytes())


def _prefixes() -> list[str]:
    """Return the directories of this interpreter that lie outside the usual ones."""
    wanted = {sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.path.realpath(sys.executable))}
    # Some distributions have their libraries elsewhere.
    wanted.update(path for path in sys.path if os.path.basename(path) in ("site-packages", "dist-packages"))
    wanted = {os.path.realpath(path) for path in wanted}
    outside = sorted(path for path in wanted if not _within(path, _USUAL))
    return [path for path in outside if not _within(os.path.dirname(path), outside)]


def _within(path: str, directories: Iterable[str]) -> bool:
    return any(path == directory or path.startswith(f"{directory}/") for directory in directories)


def _forget_others(prefixes: list[str]) -> None:
    """Remove the directories that sandboxes do not see from the path of modules.

    .pth files add such directories: other projects with all their files.
    """
    others = [path for path in sys.path if not _within(os.path.realpath(path), (*_USUAL, *prefixes))]
    sys.path[:] = [path for path in sys.path if path not in others]
    if others:
        text = "programs do not see and cannot import what was installed with `pip install -e`, or by .pth files from"
        os.write(2, f"{text} {', '.join(others)}: outside of the interpreter's own directories\n".encode())


# The files about the machine in /proc that programs need, or that reveal nothing about it.
_SHOWN: Final = frozenset((
    "cpuinfo", "filesystems", "meminfo", "sys", "sysvipc", "version",
    "execdomains", "key-users", "keys", "misc",
))  # fmt: skip


def _covers() -> list[tuple[str, str]]:
    """Return what to cover in /proc, since it reveals the host: for each file, what to mount and where."""
    covers = []
    for name in sorted(os.listdir("/proc")):
        mode = os.lstat(f"/proc/{name}").st_mode if not name.isdigit() and name not in _SHOWN else 0
        if name in _QUIET_FILES:
            covers.append((f"{_QUIET}/{name}", f"/proc/{name}"))
        elif not stat.S_ISLNK(mode) and mode & stat.S_IROTH:
            covers.append(("/var/empty" if stat.S_ISDIR(mode) else "/dev/null", f"/proc/{name}"))
    return [*covers, ("/dev/null", "/proc/sys/kernel/random/boot_id")]


def _hide_supervisor() -> None:
    """Keep programs of this process's own user from its files in /proc.

    Otherwise a program could list what this process has open, and write to its
    oom_score_adj, sched and autogroup.
    """
    flags = linux.MS_BIND | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("/proc/1", "/proc/1", None, linux.MS_BIND)
    linux.mount("none", "/proc/1", None, flags | linux.MS_REMOUNT | linux.MS_RDONLY)
    for name in ("fd", "fdinfo", "task/1/fd", "task/1/fdinfo"):
        # An empty directory.
        linux.mount("/run", f"/proc/1/{name}", None, linux.MS_BIND)
