"""`python -m toolkit`, and the command `gemm-ladder`."""

import gc
import os
import signal
import sys
from _thread import interrupt_main
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

COMPILING = {"check", "profile", "run", "simulate"}
OWN_PACKAGES = {"analysis", "kernels", "reports", "toolkit"}
SOON_S = 0.01
ENDS_WITHIN_S = 20.0  # after Ctrl-C: results of a profile are written in a few seconds

_interrupts: list[int] = []  # of those that were raised: Ctrl-C


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C before anything else can handle it."""
    os.write(2, b"error: interrupted\n")
    os._exit(1)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Handle Ctrl-C while a command runs.

    An interrupt between two instructions of a library may leave a lock behind, for which threads
    wait for ever: then the command ends a little later.
    """
    _interrupts.append(number)
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _end_late)
        signal.setitimer(signal.ITIMER_REAL, ENDS_WITHIN_S)
    raise KeyboardInterrupt


def _end_late(number: int, frame: FrameType | None) -> None:
    """End a command that an interrupt did not end in time."""
    _end_now(f"interrupted, and stopped after {ENDS_WITHIN_S:g} s: files may be missing")


def _end_with_children(number: int, frame: FrameType | None) -> None:
    """End the processes that were started, and then this one, as the signal does by default."""
    _end_children()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _end_now(why: str) -> None:
    """End this process at once: it has no memory left, or does not end by itself."""
    _end_children()
    os.write(2, f"error: {why}\n".encode())
    os._exit(1)


def _end_children() -> None:
    if started := sys.modules.get("toolkit.machine_code.programs"):
        started.stop_children()


def _handle(handler: Callable[[int, FrameType | None], object] | int, *names: str) -> None:
    """Set a handler of signals that this system has and that are not ignored (nohup)."""
    for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, handler)


_handle(_end_at_once, "SIGINT")  # before anything is imported that takes time

import toolkit  # noqa: E402


def main() -> None:
    """Run the command line."""
    try:
        if hidden := _hidden():
            sys.exit(f"error: {hidden}")
        from toolkit.launch.process_memory import end_before_memory_does, set_up_memory

        set_up_memory()
        if COMPILING.intersection(sys.argv[1:2]) and "--watch" not in sys.argv:
            _start_compiler()
        main = _command_line()
        end_before_memory_does(_end_now)
        sys.unraisablehook = _unraisable
        _handle(_interrupt, "SIGINT")
        _handle(_end_with_children, "SIGTERM", "SIGHUP")
        main()
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    finally:  # the command is done, and so is its status; Python would let a signal change it
        _handle(signal.SIG_IGN, "SIGINT")
        if _interrupts:
            _leave(sys.exc_info()[1])
        gc.freeze()  # the process ends: no cycle needs to be found


def _start_compiler() -> None:
    """Start the compiler, so that it is ready when the options are read, if it may be needed."""
    from toolkit.machine_code.compiled_before import was_compiled
    from toolkit.machine_code.compiler_process import start_compiler

    if not was_compiled(sys.argv[2:]):
        start_compiler()


def _command_line() -> Callable[[], None]:
    """The commands. Where a package that they need is missing, end with a remedy."""
    try:
        from toolkit.cli.app import main
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package in OWN_PACKAGES:
            raise
        sys.exit(
            f"error: {package} is not installed for {sys.executable}: install gemm-ladder with it "
            "(-m pip install -e .), or use the Python that has it (source .venv/bin/activate)"
        )
    return main


def _hidden() -> str | None:
    """Remedy if a user's file or folder takes the place of a package of ours, else None."""
    from pathlib import Path

    found = Path(toolkit.__file__ or next(iter(toolkit.__path__)))
    if not Path(__file__).parent.samefile(found if found.is_dir() else found.parent):
        return (
            f"{found} hides gemm-ladder's own package 'toolkit': rename it, or start in another "
            "folder (the command gemm-ladder starts in any)"
        )
    return toolkit.hidden_package()


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    """An interrupt that came where nothing can be raised comes again, a little later."""
    if lost.exc_type is KeyboardInterrupt:
        from threading import Timer

        timer = Timer(SOON_S, interrupt_main)
        timer.daemon = True
        timer.start()
    else:
        sys.__unraisablehook__(lost)


def _leave(error: BaseException | None) -> None:
    """End with the status that an error has, as Python does where nothing was interrupted.

    Python ends with that of a signal if KeyboardInterrupt came out of code that `exec` ran, such as
    that of a dataclass, whoever handled it; and threads in native code may end it with another.
    """
    code: str | int | None = 0 if error is None else 1
    if isinstance(error, SystemExit):
        code = error.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    _end_children()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    main()
