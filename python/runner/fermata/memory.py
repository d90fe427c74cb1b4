"""Makes a process cheap to fork, by moving the memory that it has written to a file.

A fork copies the page tables of all memory that the process has written, and the end of
the child removes them, page by page. With the scientific libraries imported that is most
of the cost of a worker. Pages of a file are only looked up when they are used. So the
memory is written to a file, which is mapped privately in place of the memory. A process
that writes to it from then on gets a copy of the page, as after any fork. After
MADV_DONTNEED a program finds the old content of such memory, and not zeros.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from typing import Final, NamedTuple

from fermata import linux

# PyDLL keeps the interpreter's lock.
_libc: Final = ctypes.PyDLL(None)
_libc.pwrite.restype = ctypes.c_ssize_t

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
# The largest value that mallopt(3) accepts.
_MMAP_THRESHOLD: Final = 32 << 20
# How many bytes of freed memory a process keeps, also in a pause.
_TRIM_THRESHOLD: Final = 8 << 20
_MAP_FIXED: Final = 0x10

# The beginnings of the names, in brackets, of mappings that are not the kernel's; some C libraries name theirs.
_OWN_NAMES: Final = ("[heap]", "[anon")
# Flags, see proc(5), of mappings that a fork does not copy, or that are empty in the child (such
# as the one in which glibc keeps the state of getrandom), and of those that no file can replace.
_SPECIAL: Final = frozenset(("dc", "wf", "dp", "ss", "sl", "lo", "ht", "io", "pf"))

# ucontext_t begins with flags, the context that follows, and a stack: address, flags, size.
_CONTEXT: Final = struct.Struct("=QQQQQ")
_CONTEXT_SIZE: Final = 8 << 10
_STACK_SIZE: Final = 24 << 10


class _Region(NamedTuple):
    start: int
    end: int
    protection: int


def prepare() -> None:
    """Make the allocator keep large blocks with the small ones, as freeze needs it.

    This must be called before there are large blocks. The allocator lets the kernel grow a block that
    has a mapping of its own. Grown after freeze, such a block would include what follows in the file.
    Blocks of more than 32 MiB still have mappings of their own, but libraries keep none.
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
    file = linux.memory_file("frozen")
    try:
        # A process that may write to a file may find out which of its pages others have in memory.
        os.fchmod(file, 0)
        offset = 0
        for region in _written():
            _move(region, file, offset)
            offset += region.end - region.start
        # A process that gets the file cannot change what other processes see.
        linux.seal(file)
    finally:
        os.close(file)


def _can_freeze() -> bool:
    return hasattr(_libc, "makecontext") and hasattr(_libc, "mallopt")


def _written() -> list[_Region]:
    """Return the ordinary private mappings, except the stack, of which at least half was written."""
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
    # The first write is only to fail early, and to allocate the space that the second one needs.
    written = _libc.pwrite(file, ctypes.c_void_p(start), ctypes.c_size_t(size), ctypes.c_int64(offset))
    if written != size:
        raise OSError(f"the file took {written} of {size} bytes of memory")
    _run(
        ("pwrite", (file, start, size, offset)),
        ("mmap", (start, size, region.protection, mmap.MAP_PRIVATE | _MAP_FIXED, file, offset)),
    )


def _run(*calls: tuple[str, tuple[int, ...]]) -> None:
    """Call C functions with these arguments, without the interpreter between them.

    The interpreter would write to memory that was copied and is not mapped yet. So each
    function is a context of its own, see makecontext(3), which is followed by the next one.
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
