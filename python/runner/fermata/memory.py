"""Makes a process cheap to fork: keeps what it has written in a file.

A fork copies the page tables of all memory that its process has written, and the end of
the child takes them apart, page by page: with a scientific stack imported that is most
of what a worker costs. Pages of a file are looked up when they are touched instead. So
the file is given what the memory holds, and is mapped in its place, privately: what
anybody writes from then on is a copy of its own, as after any fork. What a program gives
back with MADV_DONTNEED it finds as it was, and not empty.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import struct
from typing import Final, NamedTuple

# PyDLL keeps the interpreter's lock.
_libc: Final = ctypes.PyDLL(None)
_libc.pwrite.restype = ctypes.c_ssize_t

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# The most that mallopt(3) takes.
_MMAP_THRESHOLD: Final = 32 << 20
# How much a process keeps of what it has freed, also in a pause.
_TRIM_THRESHOLD: Final = 8 << 20
_MAP_FIXED: Final = 0x10

# How mappings in brackets begin that are not the kernel's; some C libraries name theirs.
_OWN_NAMES: Final = ("[heap]", "[anon")
# Mappings, see proc(5), that a fork does not copy as they are: not at all, or empty, as that
# in which glibc keeps the state of getrandom; and those that no file can take the place of.
_SPECIAL: Final = frozenset(("dc", "wf", "dp", "ss", "sl", "lo", "ht", "io", "pf"))

# ucontext_t begins with flags, the context to go on with, and a stack: address, flags, size.
_CONTEXT: Final = struct.Struct("=QQQQQ")
_CONTEXT_SIZE: Final = 8 << 10
_STACK_SIZE: Final = 24 << 10


class _Region(NamedTuple):
    start: int
    end: int
    protection: int


def prepare() -> None:
    """Keep large blocks of memory with the small ones, for freeze; call this before there are any.

    The allocator lets the kernel stretch a block that it has mapped by itself, which would
    stretch the mapping of the file, into what comes next there. It still does so with blocks
    of more than 32 MiB, of which libraries keep none.
    """
    if not _can_freeze():
        return
    for parameter, size in ((_M_MMAP_THRESHOLD, _MMAP_THRESHOLD), (_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)):
        if _libc.mallopt(parameter, size) != 1:
            raise RuntimeError(f"mallopt({parameter}, {size}) failed")


def freeze() -> None:
    """Move the memory that this process has written to a file.

    Nothing is moved with another C library than glibc, nor while other threads run.
    """
    if not _can_freeze() or len(os.listdir("/proc/self/task")) > 1:
        return
    file = os.memfd_create("frozen", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        # Who may write a file may ask what others have of it in memory.
        os.fchmod(file, 0)
        offset = 0
        for region in _written():
            _move(region, file, offset)
            offset += region.end - region.start
        # Whoever gets hold of it cannot change what the others see.
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    finally:
        os.close(file)


def _can_freeze() -> bool:
    return hasattr(_libc, "makecontext") and hasattr(_libc, "mallopt")


def _written() -> list[_Region]:
    """Return the ordinary private mappings, but for the stack, of which at least half was written."""
    regions: list[_Region] = []
    region, written = _Region(0, 0, 0), 0
    with open("/proc/self/smaps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            key, *rest = line.split(maxsplit=5)
            if not key.endswith(":"):
                region, written = _parse(key, *rest), 0
            elif key == "Anonymous:":
                written = int(rest[0]) * 1024
            elif key == "VmFlags:" and 2 * written >= region.end - region.start > 0:
                if _SPECIAL.isdisjoint(line.split()):
                    regions.append(region)
    return regions


def _parse(addresses: str, permissions: str, offset: str, device: str, inode: str, name: str = "") -> _Region:
    start, end = (int(address, 16) for address in addresses.split("-"))
    if "s" in permissions or "r" not in permissions or (name.startswith("[") and not name.startswith(_OWN_NAMES)):
        return _Region(0, 0, 0)
    bits = (("r", mmap.PROT_READ), ("w", mmap.PROT_WRITE), ("x", mmap.PROT_EXEC))
    return _Region(start, end, sum(bit for letter, bit in bits if letter in permissions))


def _move(region: _Region, file: int, offset: int) -> None:
    start, size = region.start, region.end - region.start
    # Once ahead: it may fail now, and takes the room that it will need.
    written = _libc.pwrite(file, ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_int64(offset))
    if written != size:
        raise OSError(f"the file took {written} of {size} bytes of memory")
    _run(
        ("pwrite", (file, start, size, offset)),
        ("mmap", (start, size, region.protection, mmap.MAP_PRIVATE | _MAP_FIXED, file, offset)),
    )


def _run(*calls: tuple[str, tuple[int, ...]]) -> None:
    """Call C functions with these arguments, without the interpreter between them.

    It would write to the memory that has been copied and not yet been mapped. So each
    function is a context of its own, see makecontext(3), and goes on with the next.
    """
    step = _CONTEXT_SIZE + _STACK_SIZE
    with mmap.mmap(-1, step * (len(calls) + 1)) as memory:
        anchor = ctypes.c_char.from_buffer(memory)
        here = ctypes.addressof(anchor)
        for number, (name, arguments) in enumerate(calls, 1):
            context = here + number * step
            _libc.getcontext(ctypes.c_void_p(context))
            following = context + step if number < len(calls) else here
            flags = _CONTEXT.unpack_from(memory, number * step)[0]
            _CONTEXT.pack_into(memory, number * step, flags, following, context + _CONTEXT_SIZE, 0, _STACK_SIZE)
            _libc.makecontext(
                ctypes.c_void_p(context),
                ctypes.cast(getattr(_libc, name), ctypes.c_void_p),
                len(arguments),
                *(ctypes.c_uint64(argument) for argument in arguments),
            )
        _libc.swapcontext(ctypes.c_void_p(here), ctypes.c_void_p(here + step))
        del anchor
