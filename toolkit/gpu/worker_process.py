"""An object in a child process, so that a fault there does not end this process.

A fault on a GPU destroys the whole context, and an endless kernel blocks its process inside the
driver, where no exception is raised: only the end of the process frees the GPU. So the objects that
launch untested kernels are in a child process, and are called from here with a time limit
(docs/decisions/0021-rungs-in-children.md).
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from multiprocessing.connection import Connection, Pipe
from operator import methodcaller
from pathlib import Path
from typing import Any

from analysis.errors import LaunchError, ToolkitError, first_line

# Followed by the number of its pipe; -P keeps modules of the working directory out of it.
COMMAND = (sys.executable, "-P", "-m", "toolkit.gpu.worker_process")
HUNG = "did not end within"  # how the reason begins
GRACE_S = 5.0  # between asking a process to end and ending it
PR_SET_PDEATHSIG = 1

Maker = Callable[[Any], AbstractContextManager[Any]]


class Isolated:
    """Proxy of the object of `with make(argument)`, which lives in a fresh interpreter.

    A context manager; both `make` and its argument are pickled. The object is made at once, while
    this process does something else. If that fails, the first call raises the error; its time limit
    includes making the object. After a call that raised, all others raise the same. The process
    also ends with the thread that made it. Its output is dropped unless it `shows_output`. Raises
    LaunchError if the machine cannot start another process.
    """

    def __init__(self, make: Maker, argument: Any, *, shows_output: bool = False) -> None:
        # A fresh interpreter, since CUDA does not survive a fork, and not multiprocessing, which
        # would run the script of the caller again. Ctrl-C is this process's to handle.
        self._failure: ToolkitError | None = None
        self._pipe, theirs = Pipe()
        with theirs:
            self._child = _started([*COMMAND, str(theirs.fileno())], theirs.fileno(), shows_output)
        with suppress(OSError):  # it has ended, which the first call tells
            self._pipe.send((os.getpid(), make, argument))

    def __enter__(self) -> Isolated:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def ask(self, method: str, *arguments: Any, limit_s: float) -> Any:
        """Result of a method, called in the other process.

        Raises the ToolkitError that the method raised. Raises LaunchError with one line if it
        raised anything else, if the process died, or if it did not begin to answer in time and was
        ended.
        """
        try:
            if self._failure is None:
                return self._answer(method, arguments, limit_s)
        except ToolkitError:
            raise
        except (EOFError, OSError):
            self.close()
            how = _how(self._child.returncode)
            self._failure = LaunchError(f"the process that ran it died ({how})")
        except Exception as error:
            self.close()
            self._failure = LaunchError(f"its answer cannot be read ({first_line(error)})")
        except BaseException:  # the answer may still come: no later request may take it
            self._failure = LaunchError("interrupted")
            raise
        raise self._failure

    def _answer(self, method: str, arguments: tuple[Any, ...], limit_s: float) -> Any:
        self._pipe.send((method, arguments))
        in_time = self._pipe.poll(limit_s)
        self._failure, answer = self._pipe.recv() if in_time else (_hung(limit_s), None)
        if self._failure is not None:
            self.close(patience_s=GRACE_S if in_time else 0.0)
            raise self._failure
        return answer

    def dismiss(self) -> None:
        """Nothing more is asked: the process ends when it sees that."""
        self._pipe.close()

    def close(self, patience_s: float = GRACE_S) -> None:
        """Dismiss the process and wait so long for its end, then end it.

        What it held of the GPU is free afterwards.
        """
        self.dismiss()
        for wait_s, stop in (
            (patience_s, self._child.terminate),
            (GRACE_S, self._child.kill),
            (GRACE_S, lambda: None),
        ):
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(wait_s)
                return
            stop()


def _started(command: Sequence[str], pipe: int, shows_output: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=None if shows_output else subprocess.DEVNULL,
            stderr=None if shows_output else subprocess.DEVNULL,
            pass_fds=[pipe],
            env=os.environ
            | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(
            f"no process can be started ({first_line(error)}): close other programs"
        ) from None


def _hung(limit_s: float) -> LaunchError:
    return LaunchError(
        f"{HUNG} {limit_s:.0f} s and was stopped: an endless loop, or threads that wait for each "
        "other? `python -m toolkit check` says where, with no GPU"
    )


def _how(code: int | None) -> str:
    if code is None:
        return "it does not end"
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


# In the child.


def main() -> None:
    """Run in the child: make the object and answer until the parent closes the pipe."""
    with suppress(EOFError, OSError):
        pipe = Connection(int(sys.argv[1]))
        parent, make, argument = pipe.recv()
        _end_with(parent)
        failure, made = _attempt(lambda: make(argument).__enter__())
        while True:
            method, arguments = pipe.recv()
            answer = None
            if failure is None:
                failure, answer = _attempt(partial(methodcaller(method, *arguments), made))
            ctypes.CDLL(None).fflush(None)  # what a kernel printed
            pipe.send((failure, answer))
    os._exit(0)  # nothing is cleaned up: a kernel may still run, and PyCUDA aborts after a fault


def _attempt(call: Callable[[], Any]) -> tuple[ToolkitError | None, Any]:
    """Error of a call in one line, or None and the result of the call."""
    try:
        return None, call()
    except ToolkitError as error:
        return error, None
    except MemoryError:
        return LaunchError("the host's memory is exhausted: take a smaller shape"), None
    except Exception as error:
        return LaunchError(f"{type(error).__name__}: {first_line(error)}"), None


def _end_with(parent: int) -> None:
    """End where the parent is killed, also inside of a driver that waits for a kernel."""
    with suppress(OSError, AttributeError):  # where there is no such call, the pipe's end does
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main()
