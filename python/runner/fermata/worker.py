"""The worker: runs one program in the environment that it expects, and reports how it ended."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import functools
import gc
import io
import os
import signal
import socket
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from json import dumps, loads
from typing import Any, Final

from fermata import (
    calls,
    ending,
    frames,
    libraries,
    loops,
    rehearse,
    returned,
    shell,
    tools,
    toolsets,
    whereabouts,
    workspace,
)
from fermata import names as tool_names
from fermata.children import Children
from fermata.figures import Figures
from fermata.libraries import Ready
from fermata.program import NAME, Loader, Program, error_line, error_text, forget

_OWN_FILES: Final = os.path.dirname(__file__)


def preload(kind: str) -> Ready:
    """Do what can be done before a program of this kind arrives, in the process from which workers are forked."""
    ready = libraries.preload(kind)
    prepare_parent()
    rehearse.in_parent(_runner(ready))
    # These objects are never freed. When they are frozen, garbage collections in forked processes do
    # not visit them, and so do not write to their pages, which would be copied.
    gc.collect()
    gc.freeze()
    return ready


def rehearse_again(ready: Ready) -> None:
    """Rehearse once more what programs do first."""
    rehearse.in_parent(_runner(ready), times=1)


def _runner(ready: Ready) -> rehearse.Run:
    return functools.partial(run_program, ready.names, valued=True)


def run(stream: socket.socket, ready: Ready) -> None:
    """Report to the supervisor that the worker is ready, run the program that arrives, and end the process.

    ``stream`` is connected to the supervisor. ``ready`` is what preload has returned.
    """
    whereabouts.answer_on(stream)
    ready_frame = {"python": sys.version.split()[0], "pid": os.getpid()}
    stream.sendall(frames.encode(frames.READY, dumps(ready_frame).encode()))
    # The following steps are done while the server sends the program.
    _prepare_process()
    pending = calls.Calls(stream)
    pending.stops_alarms = True
    loops.install(pending)
    inputs = workspace.Inputs(os.getcwd())
    ready.figures.directory, ready.figures.warn = os.getcwd(), _write
    # With this handler, asyncio replaces it while an event loop runs.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rehearse.while_idle(_runner(ready), stream, pending)
    # Garbage collections of the program do not visit what exists before it.
    gc.freeze()
    main = [_new_main(os.path.join(os.getcwd(), NAME))]
    request: dict[str, Any] = {}
    ready.children.expect(vars(main[0])["__file__"], request)
    try:
        while (frame := frames.receive(stream)).kind == frames.FILE:
            inputs.take(frame.payload)
    except EOFError:
        os._exit(0)
    kind, payload = frame
    if kind != frames.PROGRAM:
        os._exit(1)
    request |= loads(payload)
    for directory in request.get("directories", ()):
        # An input file may have this name.
        with suppress(OSError):
            os.makedirs(directory, exist_ok=True)
    done: dict[str, Any] = {}
    status = 0
    value: str | None = None
    try:
        if request.get("mode") == "bash":
            status = _run_shell(request, pending)
            if status:
                from fermata import hints

                _write(hints.of_script(request["code"]))
        else:
            value = _run_python(request, vars(main[0]), ready, pending)
    except SystemExit as exit:
        status = _exit_status(exit.code)
    except BaseException as error:
        tool_names.restore_builtins()
        done["error"] = error_line(error)
        done["memory"] = isinstance(error, MemoryError)
        status = 1
        _show_error(error)
        _write(_hint(error, request["code"]))
        del error
    _finish(main, ready.figures, pending)
    tool_names.restore_builtins()
    most = request.get("output_files", 0)
    if most and (lost := workspace.beyond(inputs, most)):
        _write(f"Warning: {lost} files are not kept: a program may leave at most {most} (FERMATA_OUTPUT_FILES)\n")
    done["exit"] = status
    try:
        report = dumps(done)
        if value is not None:
            report = f'{report[:-1]}, "value": {value}}}'
        pending.finish(report.encode())
        # The end of a process of this size keeps a processor busy for milliseconds. So the
        # supervisor ends it after the answer was sent.
        stream.recv(1)
    finally:
        os._exit(status)


def run_program(
    names: Mapping[str, types.ModuleType],
    code: str,
    stubs: str,
    pending: calls.Calls,
    namespace: dict[str, Any],
    valued: bool = False,
    children: Children | None = None,
) -> Any:
    """Run the program to its end, in a namespace with these names.

    Returns the value that a valued program returns or leaves on its last line. Raises what the program
    raises, and what compiling it raises.
    """
    namespace.update(names)
    namespace["ToolExecutionError"] = tools.ToolExecutionError
    defined = tools.define(stubs, pending.invoke)
    hidden = tool_names.hidden(defined, names)
    seconds = tool_names.second(defined, hidden)
    namespace.update(defined | seconds)
    program = Program(code, valued)
    if hidden:
        _write(tool_names.warning(hidden, seconds, names, program.code))
    if program.awaits:
        if children is not None:
            children.prefer_fork()
        # When it ends, the runner cancels the tasks that are left, which may call tools to clean up.
        with asyncio.Runner() as runner:
            runner.run(program.start(namespace))
    elif program.starts_loop:
        program.start(namespace)
    else:
        _run_inside_loop(program, namespace)
    return program.value if valued else None


def _run_inside_loop(program: Program, namespace: dict[str, Any]) -> None:
    """Run a program that does not await inside a running loop, like a program that awaits.

    The loop itself runs only after the end of the program, and only if the program has left
    tasks: each task runs until it would wait, and is then cancelled, as by asyncio.run.
    """
    runner = asyncio.Runner()
    loop = runner.get_loop()
    asyncio._set_running_loop(loop)
    try:
        program.start(namespace)
    finally:
        asyncio._set_running_loop(None)
        if not isinstance(loop, loops.Loop) or loop.used():
            with runner:
                loop.call_soon(loop.stop)
                loop.run_forever()


def _run_python(request: dict[str, Any], namespace: dict[str, Any], ready: Ready, pending: calls.Calls) -> str | None:
    """Run a Python program to its end and return its value as JSON, if it has one."""
    sys.argv += request.get("args", ())
    namespace["__loader__"].source = request["code"]
    if "toolsets" in request:
        toolsets.install(request["package"], request["toolsets"], pending)
    valued = request.get("value", False)
    code, stubs = request["code"], request["stubs"]
    return returned.encode(run_program(ready.names, code, stubs, pending, namespace, valued, ready.children))


def _run_shell(request: dict[str, Any], pending: calls.Calls) -> int:
    """Run a shell script to its end and return its exit code."""
    pending.come_from_processes(shell.Others().rest, shell.results)
    known = shell.known(request.get("tools", ()), request.get("toolsets", ()), request.get("required", ()))
    args = request.get("args", ())
    with asyncio.Runner() as runner:
        try:
            return runner.run(shell.run(request["code"], request["stubs"], known, args, pending.request))
        finally:
            pending.close()


def prepare_parent() -> None:
    """Give this process what a program expects of a new interpreter and is the same in every worker forked from it."""
    threading.excepthook = _show_thread_error
    # Numbers in the results of tools may have any length.
    sys.set_int_max_str_digits(0)
    calls.FORGOTTEN.watch()
    with _descriptors_as_in_workers():
        sys.stdin = open(0, encoding="utf-8", errors="replace")
        # Output is not buffered, since a program may be killed at any moment.
        sys.stdout = sys.__stdout__ = _unbuffered(1)
        sys.stderr = sys.__stderr__ = _unbuffered(2)


@contextmanager
def _descriptors_as_in_workers() -> Iterator[None]:
    """Make stdin empty, and stdout and stderr pipes. File objects find out once what their descriptors are."""
    own = [os.dup(number) for number in range(3)]
    empty, pipe = os.open(os.devnull, os.O_RDONLY), os.pipe()
    try:
        for number, descriptor in enumerate((empty, pipe[1], pipe[1])):
            os.dup2(descriptor, number)
        yield
    finally:
        for number, descriptor in enumerate(own):
            os.dup2(descriptor, number)
        for descriptor in (*own, empty, *pipe):
            os.close(descriptor)


def _prepare_process() -> None:
    """Give this process, which was forked, what no other worker may have as well."""
    sys.path.insert(0, os.getcwd())
    # Otherwise all processes that are forked from one parent would generate the same random numbers,
    # and have the same key.
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        # Setting the whole state of the generator is faster than seeding it.
        numpy_random.set_state(("MT19937", memoryview(os.urandom(2496)).cast("I"), 624))
    if (processes := sys.modules.get("multiprocessing.process")) is not None:
        processes.current_process().authkey = os.urandom(32)


class _Whole(io.FileIO):
    """A file that writes all data, even if the process is stopped in the middle."""

    def write(self, data: Any, /) -> int:
        """Write data, and return how many bytes were written: all, unless more would block."""
        done = super().write(data) or 0
        if done == len(data):
            return done
        view = memoryview(data).cast("B")
        while done < view.nbytes and (more := super().write(view[done:])):
            done += more
        return done


def _unbuffered(fd: int) -> io.TextIOWrapper:
    raw: Any = _Whole(fd, "w", closefd=False)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", newline="\n", write_through=True)


def _exit_status(code: object) -> int:
    """Return the exit status of SystemExit(code), as the interpreter would."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    try:
        _write(f"{code}\n")
    except Exception:  # its __str__ belongs to the program
        pass
    return 1


def _new_main(file: str) -> types.ModuleType:
    """Make the module in which the program runs, whose file has this name."""
    module = types.ModuleType("__main__")
    vars(module).update(__builtins__=builtins, __file__=file, __loader__=Loader())
    sys.argv = [file]
    first, second = ending.MAIN
    sys.modules[first] = module
    if second in sys.modules:
        sys.modules[second] = module
    return module


def _finish(main: list[types.ModuleType], figures: Figures, pending: calls.Calls) -> None:
    """Do what the interpreter does at exit, and save the open figures. ``main`` has the module of the program."""
    # The first waits for threads, which may call tools. If a thread never ends, the run budget ends the program.
    shutdown: Callable[[], object] = threading._shutdown  # type: ignore[attr-defined]
    drop = functools.partial(ending.drop, main)
    steps: list[Callable[[], object]] = [shutdown, figures.finish, atexit._run_exitfuncs, pending.close, forget, drop]
    for step in steps:
        try:
            step()
        except BaseException as error:
            _tell(error)


def _tell(error: BaseException) -> None:
    """Print an error that does not change how the program has ended."""
    tool_names.restore_builtins()
    _write(error_text(error, _OWN_FILES))


def _hint(error: BaseException, source: str) -> str:
    """Return what else to tell about an error that has ended the program."""
    try:
        # Programs that do not fail do without this module.
        from fermata import hints

        return hints.of(error, source)
    except BaseException:  # the import system and the error belong to the program
        return ""


def _show_error(error: BaseException) -> None:
    """Print the error that has ended the program, or let the program's own sys.excepthook do so."""
    text = error_text(error, _OWN_FILES)
    if sys.excepthook is not sys.__excepthook__:
        try:
            sys.excepthook(type(error), error, error.__traceback__)
            return
        except BaseException as another:
            text = f"Error in sys.excepthook:\n{error_text(another, _OWN_FILES)}\nOriginal exception was:\n{text}"
    _write(text)


def _write(text: str) -> None:
    """Write text to stderr, whatever the program has done to sys.stderr."""
    data = text.encode("utf-8", "backslashreplace")
    try:
        while data:
            data = data[os.write(2, data) :]
    except OSError:
        # The program has closed it.
        return


def _show_thread_error(args: threading.ExceptHookArgs) -> None:
    """Print the error that has ended a thread, as Python does, but without the runner's frames."""
    if args.exc_value is None or isinstance(args.exc_value, SystemExit):
        return
    name = args.thread.name if args.thread else threading.get_ident()
    text = f"Exception in thread {name}:\n{error_text(args.exc_value, _OWN_FILES)}"
    with suppress(OSError, AttributeError, ValueError):  # sys.stderr belongs to the program
        sys.stderr.write(text)
