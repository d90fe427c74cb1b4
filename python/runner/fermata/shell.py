"""Shell scripts: tools as shell functions.

A function connects to this process over the sandbox's own loopback interface, says
which tool and with what, and prints what comes back. ``a & b & wait`` makes both
calls in one pause.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from json import JSONDecodeError, dumps, loads
from typing import Any, Final

from fermata.tools import Invoke, ToolExecutionError

# The most a script may pass to one call, in bytes.
_MAX_INPUT: Final = 8 << 20

# What every script finds defined, before the functions of the tools. A reply is a
# digit, for an error its message and NUL, and what the function prints. The names of
# builtins may be the names of tools, so they are called as builtins.
_PRELUDE: Final = r"""
__fermata_call() {
  local fd status message
  exec {fd}<>"/dev/tcp/127.0.0.1/$__FERMATA_PORT" || builtin return 1
  builtin printf '%s\0%s\0' "$1" "${2:-{\}}" >&"$fd"
  builtin read -r -N 1 -u "$fd" status || status=2
  if [[ $status != 0 ]]; then
    IFS= builtin read -r -d '' -u "$fd" message
    builtin printf '%s\n' "$message" >&2
  fi
  command cat <&"$fd"
  exec {fd}>&-
  [[ $status == 0 ]]
}
"""


async def run(code: str, functions: str, names: Sequence[str], args: Sequence[str], invoke: Invoke) -> int:
    """Run a script and return its exit code, negative for a signal."""
    server = await asyncio.start_server(_Desk(names, invoke).serve, "127.0.0.1", 0, limit=_MAX_INPUT)
    port = server.sockets[0].getsockname()[1]
    script, prelude = _memory_file("script", code), _memory_file("prelude", _PRELUDE + functions)
    environment = os.environ | {"BASH_ENV": f"/proc/{os.getpid()}/fd/{prelude}", "__FERMATA_PORT": str(port)}
    async with server:
        process = await asyncio.create_subprocess_exec(
            "bash", f"/proc/self/fd/{script}", *args,
            stdin=asyncio.subprocess.DEVNULL, env=environment, pass_fds=(script,),
        )  # fmt: skip
        return await process.wait()


def _memory_file(name: str, text: str) -> int:
    fd = os.memfd_create(name)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass", newline="\n", closefd=False) as file:
        file.write(text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class _Desk:
    """Answers the shell functions."""

    def __init__(self, names: Sequence[str], invoke: Invoke) -> None:
        self._names = names
        self._invoke = invoke

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Make the call that a function asks for, and send it what to print."""
        try:
            index = await reader.readuntil(b"\0")
            input = await reader.readuntil(b"\0")
            writer.write(await self._reply(self._names[int(index[:-1])], input[:-1]))
            await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, IndexError, ValueError):
            # Not one of the functions, or one that was killed.
            pass
        finally:
            writer.close()

    async def _reply(self, name: str, input: bytes) -> bytes:
        try:
            arguments = loads(input)
        except (JSONDecodeError, UnicodeDecodeError, RecursionError):
            arguments = None
        if not isinstance(arguments, dict):
            shown = input[:200].decode("utf-8", "replace")
            return b"2" + f"tool input for {name} must be a JSON object, got: {shown}".encode() + b"\0"
        try:
            return b"0" + _line(await self._invoke(name, arguments))
        except (ToolExecutionError, ValueError) as error:
            message = str(error)
            return b"1" + message.replace("\0", "").encode("utf-8", "replace") + b"\0" + _line({"error": message})


def _line(value: Any) -> bytes:
    return dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
