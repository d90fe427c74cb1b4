"""Shell scripts, in which tools are shell functions.

A shell function connects to this process over the sandbox's own loopback interface, sends the name
that its text has for its tool, and the input, and prints the reply. ``a & b & wait`` makes both
calls in one pause. JSON is passed on as text, so no number loses a digit.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import itertools
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from json import JSONDecoder, dumps, loads
from typing import Any, Final

from fermata import linux
from fermata.tools import Tool, ToolExecutionError
from fermata.values import MAX_INPUT, check

# Calls a tool, given its name, its input as JSON, the line of the script and the key of its toolset,
# and returns the result as JSON.
Request = Callable[[str, str, int, str], Awaitable[str]]

# The code before the functions of the tools in every script. A reply is a line with a status
# and the length of a message for stderr, then that message, then what the function prints.
# The code starts no process, since a script may start only few. It calls builtins by `builtin`,
# since tools may have their names, and it resets the script's options. It sends the line only if
# the function of the tool was called in the script itself.
_PRELUDE: Final = r"""
__fermata_call() {
  { local - fd status length message output line=0; builtin set +eux; } 2>/dev/null
  exec {fd}<>"/dev/tcp/127.0.0.1/$__FERMATA_PORT" || builtin return 1
  [[ ${BASH_SOURCE[2]} == "$__FERMATA_SCRIPT" ]] && line=${BASH_LINENO[1]}
  builtin printf '%s\0%s\0%s\0' "$1" "$line" "${2:-{\}}" >&"$fd"
  IFS=' ' builtin read -r -u "$fd" status length
  LC_ALL=C builtin read -r -N "${length:-0}" -u "$fd" message
  LC_ALL=C builtin read -r -N 100000000 -u "$fd" output
  exec {fd}>&-
  [[ $message ]] && builtin printf '%s\n' "$message" >&2
  builtin printf '%s' "$output"
  builtin return "${status:-1}"
}
"""

# The first of the descriptors that scripts are unlikely to use by number.
_FIRST_DESCRIPTOR: Final = 100


def known(
    names: Iterable[str], toolsets: Iterable[Mapping[str, Any]], required: Sequence[Sequence[str] | None] = ()
) -> dict[str, Tool]:
    """Return the tools of a script by their names in the text of the shell functions.

    The name of a plain tool is its index, and that of a tool of a toolset is ``key.method``.
    ``required`` are the arguments that calls of the plain tools must have, if the server tells them.
    """
    tools = {
        str(index): Tool(name, required=needed or ())
        for index, (name, needed) in enumerate(itertools.zip_longest(names, required))
    }
    for each in toolsets:
        key = each["key"]
        tools.update((f"{key}.{method}", Tool(name, key)) for method, name in each.get("methods", {}).items())
    return tools


async def run(code: str, functions: str, tools: Mapping[str, Tool], args: Sequence[str], request: Request) -> int:
    """Run a script and return its exit code, which is negative if a signal ended it."""
    if not tools:
        return await _run(_memory_file("script", code), args, os.environ)
    server = await asyncio.start_server(_Desk(tools, request).serve, "127.0.0.1", 0, limit=MAX_INPUT)
    prelude = _memory_file("prelude", _PRELUDE + functions)
    port = server.sockets[0].getsockname()[1]
    # With BASH_ENV, shells that the script starts have the functions too.
    script = _memory_file("script", code)
    environment = os.environ | {
        "BASH_ENV": f"/proc/self/fd/{prelude}",
        "__FERMATA_PORT": str(port),
        "__FERMATA_SCRIPT": _path(script),
    }
    try:
        return await _run(script, args, environment, prelude)
    finally:
        server.close()


async def _run(script: int, args: Sequence[str], environment: Mapping[str, str], *fds: int) -> int:
    try:
        process = await asyncio.create_subprocess_exec(
            "bash", _path(script), *args,
            stdin=asyncio.subprocess.DEVNULL, env=environment, pass_fds=(script, *fds),
        )  # fmt: skip
    except OSError as error:
        # The text and the exit code are those of a shell.
        missing = error.errno == errno.ENOENT
        print("bash:", "not installed in this sandbox" if missing else error.strerror, file=sys.stderr)
        return 127 if missing else 126
    return await process.wait()


def _path(script: int) -> str:
    """Return the path by which the script's own shell reads it."""
    return f"/dev/fd/{script}"


def _memory_file(name: str, text: str) -> int:
    first = linux.memory_file(name)
    fd = fcntl.fcntl(first, fcntl.F_DUPFD_CLOEXEC, _FIRST_DESCRIPTOR)
    os.close(first)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogatepass", newline="\n", closefd=False) as file:
        file.write(text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


class _Desk:
    """Answers the requests of the shell functions."""

    def __init__(self, tools: Mapping[str, Tool], request: Request) -> None:
        self._tools = tools
        self._request = request

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Make the call that a shell function asks for, and send it the reply."""
        try:
            tool = self._tools[(await _take(reader) or b"").decode()]
            line = int(await _take(reader) or b"")
            reply = asyncio.ensure_future(self._reply(tool, await _take(reader), line))
            # If the function was killed before its call was made, no call is made.
            gone = asyncio.ensure_future(reader.read(1))
            await asyncio.wait((reply, gone), return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if not reply.done():
                reply.cancel()
                return
            writer.write(reply.result())
            await writer.drain()
        except (OSError, EOFError, KeyError, ValueError):
            # The request does not come from one of the functions.
            return
        except asyncio.CancelledError:
            # The script has ended.
            return
        finally:
            writer.close()

    async def _reply(self, tool: Tool, input: bytes | None, line: int) -> bytes:
        name = f"{tool.toolset}.{tool.name}" if tool.toolset else tool.name
        if input is None:
            return _refusal(f"tool input for {name} is larger than {MAX_INPUT} bytes")
        try:
            text = input.decode()
            members = loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            members = None
        if not isinstance(members, dict):
            return _refusal(
                f"tool input for {name} must be a JSON object, got: {input[:200].decode('utf-8', 'replace')}"
            )
        if missing := [each for each in tool.required if each not in members]:
            return _refusal(_missing(name, missing))
        try:
            check(text)
        except ValueError as error:
            return _refusal(str(error))
        try:
            return b"0 0\n" + (await self._request(tool.name, text, line, tool.toolset)).encode() + b"\n"
        except ToolExecutionError as error:
            output = dumps({"error": str(error)}, separators=(",", ":"), ensure_ascii=False)
            return _refusal(str(error)) + output.encode("utf-8", "replace") + b"\n"


async def _take(reader: asyncio.StreamReader) -> bytes | None:
    """Read up to a NUL. If that is more than the limit, skip all of it and return None."""
    fits = True
    while True:
        try:
            part = await reader.readuntil(b"\0")
        except asyncio.LimitOverrunError as over:
            await reader.readexactly(over.consumed)
            fits = False
        else:
            return part[:-1] if fits else None


def _refusal(message: str) -> bytes:
    """Return the beginning of a reply with which a function fails."""
    text = message.replace("\0", "").encode("utf-8", "replace")
    return b"1 %d\n%s" % (len(text), text)


def _missing(name: str, missing: list[str]) -> str:
    """Return what is wrong with a call that lacks arguments. Scripts often write the input to stdin instead."""
    shown = [each[:64] for each in missing[:10]]
    example = ", ".join(f"{dumps(each, ensure_ascii=False)}: ..." for each in shown)
    return (
        f"{name} is missing the argument{'s' * (len(shown) > 1)} {', '.join(shown)}: pass the input as a JSON object "
        f"in one argument, such as '{{{example}}}'; standard input is not read"
    )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_RESULT: Final = re.compile(r'[\[,]\s*\{"n":\s*(\d+),\s*"(value|error)":\s*')
_ABOUT: Final = re.compile(r'\s*,\s*"about":\s*')
_END: Final = re.compile(r"\s*\}\s*")
_SPACE: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")|\s+')


def results(payload: bytes) -> Iterator[dict[str, Any]]:
    """Split the results of calls. A value is kept as its JSON text, without white space."""
    text = payload.decode("utf-8", "replace")
    scan = JSONDecoder().raw_decode
    position = 0
    while (found := _RESULT.match(text, position)) is not None:
        value, end = scan(text, found.end())
        if found[2] == "value":
            value = _SPACE.sub(r"\1", text[found.end() : end])
        result = {"n": int(found[1]), found[2]: value}
        if (more := _ABOUT.match(text, end)) is not None:
            result["about"], end = scan(text, more.end())
        yield result
        if (closed := _END.match(text, end)) is None:
            break
        position = closed.end()


class Others:
    """All processes except those that existed when this object was made."""

    def __init__(self) -> None:
        self._known = set(_processes())

    def rest(self) -> bool:
        """Return whether there was a moment at which all of them slept."""
        # The kernel counts how often a thread has gone to sleep. A thread that sleeps at both looks,
        # and has not gone to sleep in between, has slept from the first look to the second.
        first = self._look()
        return first is not None and first == self._look()

    def _look(self) -> dict[str, bytes] | None:
        """Return the status of each thread, with how often it has gone to sleep, or None if one does not sleep."""
        found = {}
        for pid in _processes():
            if pid in self._known:
                continue
            try:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    found[thread] = _status(f"/proc/{pid}/task/{thread}/status")
                    if not _ASLEEP.search(found[thread]):
                        return None
            except OSError:
                # The process has just ended. If another process waits for it, that process wakes up now.
                return None
        return found


# Sleeping, stopped or dead; but neither on a processor nor waiting for a disk.
_ASLEEP: Final = re.compile(rb"^State:\t[STtZX]", re.MULTILINE)


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdecimal()]


def _status(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, 1 << 14)
    finally:
        os.close(fd)
