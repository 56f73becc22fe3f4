"""NVRTC in separate processes: ending the process is the only way to stop a compilation.

NVRTC is loaded nowhere else: loading takes time, and these processes load it in parallel with other
work.

A process serves one compilation after another, in parallel with others. It executes this file,
which therefore imports nothing else of the project.
"""

from __future__ import annotations

import atexit
import logging
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple

# A large kernel of templates takes seconds; macros that double each other never end.
NOTICE_S = 10  # time after which a notice is shown
LIMIT_S = 300  # time after which the compiler is stopped
WATCH_S = 0.5
MOST_MEMORY_BYTES = 2**33  # large templates take 1 GB
GRACE_S = 1  # of a process that has closed its output, to end with a status of its own
ABOUT = ("about",)  # a request for the compiler's version and architectures

_log = logging.getLogger(__name__)
OF_PTX_LINES = "(C75"  # in what ptxas says of wgmma


class CompilerAnswer(NamedTuple):
    """Answer of NVRTC for a source: the name of its status, and its outputs.

    `ptx` is there if ptxas refers to lines of it.
    """

    status: str
    log: str = ""
    symbol: str = ""
    image: bytes = b""
    ptx: str = ""


def compile_apart(
    source: str,
    *,
    name: str,
    headers: Mapping[str, str],
    options: Sequence[str],
    expression: str | None,
) -> CompilerAnswer:
    """Compile a source; `expression` is the C++ name of the kernel whose symbol is wanted.

    Raises TimeoutError after `LIMIT_S`, ImportError without NVRTC, ChildProcessError where it
    crashes, and OSError where its process does not start.
    """
    request = (_folder(), source, name, dict(headers), tuple(options), expression)
    return CompilerAnswer(*_asked(name, request))


def about_compiler() -> tuple[tuple[int, int], list[int]]:
    """NVRTC's version, and the compute capabilities that it knows. Raises as `compile_apart`."""
    status, *found = _asked("NVRTC", ABOUT)
    if status:
        raise OSError(f"NVRTC stopped with {status}")
    version, capabilities = found
    return version, capabilities


def _asked(name: str, request: tuple[Any, ...]) -> tuple[Any, ...]:
    idle = _idle.setdefault(os.getpid(), [])
    try:
        child = idle.pop()
    except IndexError:
        child = _Child()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(child.ask, request)
        try:
            answer = _awaited(asked, name)
        except (EOFError, BrokenPipeError):
            raise ChildProcessError(f"status {child.stop(GRACE_S)}") from None
        except BaseException:
            child.stop()
            raise
    idle.append(child)
    if answer is None:
        raise ImportError("NVRTC is not installed")
    return answer


def start_compiler() -> None:
    """Start a process for a later compilation: it is ready after a tenth of a second."""
    with suppress(OSError):  # who compiles finds the error again
        _idle.setdefault(os.getpid(), []).append(_Child())


def _awaited(asked: Future[tuple[Any, ...] | None], name: str) -> tuple[Any, ...] | None:
    with suppress(TimeoutError):
        return asked.result(timeout=NOTICE_S)
    if name not in _told:  # it is compiled again for each remedy
        _told.add(name)
        _log.warning("note: compiling %s takes long: it is stopped if it takes %g s", name, LIMIT_S)
    return asked.result(timeout=LIMIT_S - NOTICE_S)


def _folder() -> str | None:
    try:
        return os.getcwd()  # noqa: PTH109 (of relative paths among the options)
    except OSError:
        return None


class _Child:
    """A process that compiles."""

    def __init__(self) -> None:
        command = [sys.executable, "-P", __file__]
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        self._process = subprocess.Popen(  # Ctrl-C is for this process
            command, stdin=pipe, stdout=pipe, stderr=nothing, start_new_session=True
        )
        _all.setdefault(os.getpid(), []).append(self)
        self._send(sys.path)

    def ask(self, request: tuple[Any, ...]) -> tuple[Any, ...] | None:
        self._send(request)
        assert self._process.stdout is not None
        found: tuple[Any, ...] | None = pickle.load(self._process.stdout)
        return found

    def _send(self, what: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(what, self._process.stdin)
        self._process.stdin.flush()

    def stop(self, grace_s: float = 0) -> int:
        """Its exit status, after it has ended by itself in that time or was ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(grace_s)
        self._process.kill()
        status = self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # what was not sent yet
                pipe.close()  # type: ignore[union-attr]
        return status


# By process: forks do not share them.
_all: dict[int, list[_Child]] = {}
_idle: dict[int, list[_Child]] = {}
_told: set[str] = set()  # names of sources that take long


def stop_idle_compilers() -> None:
    """Give back their memory, 60 MB each, where little is left to compile."""
    for child in _idle.pop(os.getpid(), []):
        child.stop()


@atexit.register
def stop_compilers() -> None:
    """End all compilations of this process; threads that wait for one get a ChildProcessError."""
    _idle.pop(os.getpid(), None)
    for child in _all.pop(os.getpid(), []):
        child.stop()


# In the child.


def end_with_parent() -> None:
    """End this process soon after the one that started it, even in the middle of a compilation."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_S)
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def _serve() -> None:
    end_with_parent()
    _limit_memory()
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the compiler prints is no answer
    sys.path[:] = pickle.load(requests)
    try:
        from cuda.bindings import nvrtc

        _compiled(nvrtc, "", "", {}, (), None)  # the first one takes longer
    except (ImportError, RuntimeError):  # RuntimeError: without the library
        nvrtc = None
    with suppress(EOFError):
        while True:
            request = pickle.load(requests)
            pickle.dump(_answer(nvrtc, request) if nvrtc else None, answers)
            answers.flush()


def _limit_memory() -> None:
    """Limit the memory of the compiler, for recursive macros and templates. Not on Windows."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


def _answer(nvrtc: Any, request: tuple[Any, ...]) -> tuple[Any, ...]:
    if request == ABOUT:
        try:
            version, known = _call(nvrtc.nvrtcVersion), _call(nvrtc.nvrtcGetSupportedArchs)
        except _CallError as error:
            return (str(error),)
        return "", tuple(version), list(known)
    folder, *program = request
    if folder is not None:
        os.chdir(folder)
    return tuple(_compiled(nvrtc, *program))


def _compiled(
    nvrtc: Any,
    source: str,
    name: str,
    headers: Mapping[str, str],
    options: Sequence[str],
    expression: str | None,
) -> CompilerAnswer:
    names, contents = ([text.encode() for text in part] for part in (headers, headers.values()))
    texts = source.encode(), name.encode()
    try:
        program = _call(
            nvrtc.nvrtcCreateProgram, *texts, len(names), contents or None, names or None
        )
        try:
            if expression is not None:
                _call(nvrtc.nvrtcAddNameExpression, program, expression.encode())
            encoded = [option.encode() for option in options]
            (status,) = nvrtc.nvrtcCompileProgram(program, len(encoded), encoded)
            log = _filled(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            said = log.decode(errors="replace").strip("\0 \n")
            if status:
                return CompilerAnswer(status.name, said)
            symbol = b""
            if expression is not None:
                symbol = _call(nvrtc.nvrtcGetLoweredName, program, expression.encode())
            image = _filled(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
            ptx = ""
            if OF_PTX_LINES in said:
                ptx = _ptx(nvrtc, source, name, headers, options)
            return CompilerAnswer(status.name, said, symbol.decode(), image, ptx)
        finally:
            nvrtc.nvrtcDestroyProgram(program)
    except _CallError as error:
        return CompilerAnswer(str(error))


def _ptx(
    nvrtc: Any, source: str, name: str, headers: Mapping[str, str], options: Sequence[str]
) -> str:
    """The PTX that the machine code was made of; empty where it cannot be had."""
    virtual = [x.replace("=sm_", "=compute_") if "architecture" in x else x for x in options]
    names, contents = ([text.encode() for text in part] for part in (headers, headers.values()))
    texts = source.encode(), name.encode()
    program = _call(nvrtc.nvrtcCreateProgram, *texts, len(names), contents or None, names or None)
    try:
        _call(nvrtc.nvrtcCompileProgram, program, len(virtual), [x.encode() for x in virtual])
        return _filled(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program).decode(errors="replace")
    except _CallError:
        return ""
    finally:
        nvrtc.nvrtcDestroyProgram(program)


class _CallError(Exception):
    """The name of a status that is no success."""


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    status, *values = function(*arguments)
    if status:
        raise _CallError(status.name)
    return values[0] if len(values) == 1 else values


def _filled(size: Callable[..., Any], fill: Callable[..., Any], program: Any) -> bytes:
    content = bytearray(_call(size, program))
    if content:
        _call(fill, program, content)
    return bytes(content)


if __name__ == "__main__":
    _serve()
