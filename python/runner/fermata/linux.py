"""Features of Linux that not every Python offers: namespaces, mounts, privileges, pidfds, files in memory.

A Python that was built against an old C library, as portable builds are, lacks what that library
had not yet, such as ``os.pidfd_open``. So the runner takes all of these from here, by the numbers
that the kernel gives to its system calls, and never from a module of the standard library.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import struct
import sys
from typing import Final

# Some builds of libffi, which ctypes uses, keep a file of code open, and map it once more for every
# hundred or so functions that C can call back. Its number must be none that the runner gives to others.
_CALLBACKS_FROM: Final = 16
_taken = [os.open(os.devnull, os.O_RDONLY)]
while _taken[-1] < _CALLBACKS_FROM:
    _taken.append(os.open(os.devnull, os.O_RDONLY))
_next, _is_new = _taken.pop(), "ctypes" not in sys.modules
os.close(_next)

import ctypes  # noqa: E402

for _fd in _taken:
    os.close(_fd)

CLONE_NEWNS: Final = 0x00020000
CLONE_NEWCGROUP: Final = 0x02000000
CLONE_NEWUTS: Final = 0x04000000
CLONE_NEWIPC: Final = 0x08000000
CLONE_NEWUSER: Final = 0x10000000
CLONE_NEWPID: Final = 0x20000000
CLONE_NEWNET: Final = 0x40000000

MS_RDONLY: Final = 1
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18
MS_REMOUNT: Final = 32

_MNT_DETACH: Final = 2
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_MOUNT_ATTR_RDONLY: Final = 1
_MOUNT_ATTR_NOSUID: Final = 2
_MOUNT_ATTR_NODEV: Final = 4
# These numbers are the same on every architecture, as for all newer system calls.
_SYS_PIDFD_SEND_SIGNAL: Final = 424
_SYS_PIDFD_OPEN: Final = 434
_SYS_MOUNT_SETATTR: Final = 442
_SYS_MEMFD_CREATE: Final = {"x86_64": 319, "aarch64": 279}

_P_PIDFD: Final = 3
_MFD_CLOEXEC: Final = 1
_MFD_ALLOW_SEALING: Final = 2
_F_ADD_SEALS: Final = 1033
# No change of the seals themselves, no smaller size, no larger one, and no write.
_F_SEALS: Final = 1 | 2 | 4 | 8

_PR_SET_DUMPABLE: Final = 4
_PR_SET_SECCOMP: Final = 22
_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_SECCOMP_MODE_FILTER: Final = 2
_SECCOMP_ALLOW: Final = 0x7FFF0000
_SECCOMP_ERROR: Final = 0x00050000
_LINUX_CAPABILITY_VERSION_3: Final = 0x20080522

# PyDLL keeps the interpreter's lock during a call. The calls are short, and no other thread
# may run between a change of namespace and what follows it.
_libc: Final = ctypes.PyDLL(None, use_errno=True)


# The descriptor of that file, or -1 if none is kept open. It must stay open for programs.
CALLBACKS: Final = _next if _is_new and os.path.exists(f"/proc/self/fd/{_next}") else -1


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def read_file(path: str) -> str:
    """Return the contents of a file of the kernel, which has at most 64 KiB.

    This function and write_file run in processes that were just forked. There, a file object
    would write to many pages, each of which the kernel must copy.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 16).decode("ascii")
    finally:
        os.close(fd)


def write_file(path: str, text: str) -> None:
    """Write to a file of the kernel."""
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)


def unshare(flags: int) -> None:
    """Move this process into new namespaces."""
    _check(_libc.unshare(flags), f"unshare({flags:#x})")


def setns(fd: int, flags: int) -> None:
    """Join namespaces: those of the process to which a pidfd refers, or the one to which fd refers."""
    _check(_libc.setns(fd, flags), f"setns({flags:#x})")


def mount(source: str, target: str, kind: str | None, flags: int, data: str = "") -> None:
    """Mount a file system or change a mount."""
    result = _libc.mount(
        source.encode(), target.encode(), kind.encode() if kind else None, ctypes.c_ulong(flags), data.encode()
    )
    _check(result, f"mount {kind or 'bind'} on {target}")


def bind_read_only(source: str, target: str, device: bool = False) -> None:
    """Bind source, with everything that is mounted below it, to target, read-only.

    A device can still be written to, but its file cannot be changed, not even its times.
    """
    mount(source, target, None, MS_BIND | MS_REC)
    flags = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID | (0 if device else _MOUNT_ATTR_NODEV)
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    result = _libc.syscall(
        ctypes.c_long(_SYS_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        target.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
        attributes,
        ctypes.c_size_t(len(attributes)),
    )
    _check(result, f"mount_setattr {target}")


def pivot_root(new_root: str) -> None:
    """Make new_root, a mount point, the root of this mount namespace, and detach the old root."""
    os.chdir(new_root)
    # With the same directory for both arguments the old root is mounted on top of the new one.
    _check(_libc.syscall(ctypes.c_long(_PIVOT_ROOT[os.uname().machine]), b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}


def set_host_name(name: str) -> None:
    """Set the host name in this UTS namespace."""
    socket.sethostname(name)


def loopback_up() -> None:
    """Bring up the loopback interface of this network namespace."""
    siocgifflags, siocsifflags, iff_up = 0x8913, 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = fcntl.ioctl(probe, siocgifflags, struct.pack("16sH22x", b"lo", 0))
        (flags,) = struct.unpack_from("H", request, 16)
        fcntl.ioctl(probe, siocsifflags, struct.pack("16sH22x", b"lo", flags | iff_up))


def child_ends() -> int:
    """Return a descriptor that becomes readable when a child has ended, in place of the signal SIGCHLD."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGCHLD,))
    signals = (1 << (signal.SIGCHLD - 1)).to_bytes(128, "little")
    return _check(_libc.signalfd(-1, signals, os.O_CLOEXEC), "signalfd")


def pidfd_open(pid: int) -> int:
    """Return a descriptor that refers to a process, and becomes readable when it has ended."""
    return _check(_libc.syscall(ctypes.c_long(_SYS_PIDFD_OPEN), ctypes.c_int(pid), ctypes.c_uint(0)), "pidfd_open")


def pidfd_kill(pidfd: int) -> None:
    """Kill the process to which a pidfd refers."""
    number = ctypes.c_int(signal.SIGKILL)
    result = _libc.syscall(ctypes.c_long(_SYS_PIDFD_SEND_SIGNAL), ctypes.c_int(pidfd), number, None, ctypes.c_uint(0))
    _check(result, "pidfd_send_signal")


def pidfd_reap(pidfd: int) -> os.waitid_result | None:
    """Wait until the child to which a pidfd refers has ended, reap it, and return how it has ended."""
    return os.waitid(_P_PIDFD, pidfd, os.WEXITED)


def memory_file(name: str) -> int:
    """Return a new file in memory, which can be sealed."""
    flags = ctypes.c_uint(_MFD_CLOEXEC | _MFD_ALLOW_SEALING)
    result = _libc.syscall(ctypes.c_long(_SYS_MEMFD_CREATE[os.uname().machine]), name.encode(), flags)
    return _check(result, "memfd_create")


def seal(file: int) -> None:
    """Make sure that nobody changes a file in memory any more."""
    fcntl.fcntl(file, _F_ADD_SEALS, _F_SEALS)


def seal_callbacks(read_only_too: bool) -> None:
    """Put a copy that nobody can change in the place of the file at CALLBACKS.

    Programs get the descriptor, and processes that are none of theirs have the file mapped: what a
    program wrote there, they would run. A file that is open for reading only is copied on request.
    """
    if CALLBACKS < 0 or not read_only_too and fcntl.fcntl(CALLBACKS, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
        return
    copy = memory_file("callbacks")
    size = os.fstat(CALLBACKS).st_size
    while (at := os.lseek(copy, 0, os.SEEK_CUR)) < size:
        os.write(copy, os.pread(CALLBACKS, 1 << 20, at))
    seal(copy)
    readable = os.open(f"/proc/self/fd/{copy}", os.O_RDONLY)
    os.fchmod(copy, 0)
    os.dup2(readable, CALLBACKS, inheritable=False)
    os.close(readable)
    os.close(copy)


def set_dumpable(dumpable: bool) -> None:
    """Set whether processes of the same user may trace this process and open its files."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, int(dumpable), 0, 0, 0), "prctl(PR_SET_DUMPABLE)")


def drop_bounding_set() -> None:
    """Make sure that no program that this process executes has any capability."""
    capability = 0
    while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    # The loop has ended at the first number that is not a capability.
    if ctypes.get_errno() != errno.EINVAL:
        _check(-1, "prctl(PR_CAPBSET_DROP)")


def drop_capabilities() -> None:
    """Give up every capability for good, and every way to gain privileges by exec."""
    header = struct.pack("Ii", _LINUX_CAPABILITY_VERSION_3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl(PR_SET_NO_NEW_PRIVS)")


def filter_system_calls(program: bytes) -> None:
    """Install a seccomp filter, which is an array of struct sock_filter."""
    instructions = ctypes.create_string_buffer(program, len(program))
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions)))
    result = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0)
    _check(result, "prctl(PR_SET_SECCOMP)")


def refuse_epoll() -> None:
    """Refuse epoll to this process and its children. Another filter must be installed after this one.

    The kernel limits the watches of epoll for each user of the machine. If a program took all of
    them, a server of the same user could not run any more.
    """
    load_number, jump_if_equal, give_back = 0x20, 0x15, 0x06
    numbers = _EPOLL_CREATE[os.uname().machine]
    program = [(load_number, 0, 0, 0)]
    for left, number in zip(range(len(numbers) - 1, -1, -1), numbers, strict=True):
        program.append((jump_if_equal, left + 1, 0, number))
    program += [(give_back, 0, 0, _SECCOMP_ALLOW), (give_back, 0, 0, _SECCOMP_ERROR | errno.ENOSYS)]
    filter_system_calls(b"".join(struct.pack("HBBI", *instruction) for instruction in program))


_EPOLL_CREATE: Final = {"x86_64": (213, 291), "aarch64": (20,)}


def become(user: int) -> None:
    """Become a user and group of this user namespace; 0 is the one that this process is already."""
    if user == 0:
        return
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def map_user(inside: int, outside: int) -> None:
    """Move this process into a user namespace of its own, which has one user and one group.

    ``outside`` must be this process's user id and group id.
    """
    # /proc/self would belong to root if the process were not dumpable.
    set_dumpable(True)
    unshare(CLONE_NEWUSER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{inside} {outside} 1"),
        ("gid_map", f"{inside} {outside} 1"),
    ):
        write_file(f"/proc/self/{name}", text)
