"""`python -m toolkit`, and the command `gemm-ladder`."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

COMPILING = {"check", "profile", "simulate"}


def _end_at_once(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does while nothing is there yet to handle it, or nothing any more."""
    os.write(2, b"error: interrupted\n")
    os._exit(1)


def _handle(handler: Callable[[int, FrameType | None], object], *names: str) -> None:
    """Set a handler of signals that this system has and that are not ignored (nohup)."""
    for number in (getattr(signal, name) for name in names if hasattr(signal, name)):
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, handler)


_handle(_end_at_once, "SIGINT")  # before anything is imported that takes time

import toolkit  # noqa: E402


def main() -> None:
    """Run the command line."""
    try:
        if hidden := toolkit.hidden_package():
            sys.exit(f"error: {hidden}")
        if COMPILING.intersection(sys.argv[1:2]) and "--watch" not in sys.argv:
            from toolkit.machine_code.compiler_process import start_compiler

            start_compiler()  # it is ready when the options are read
        from toolkit.cli.app import main

        # the others too end what was started before this process ends
        _handle(signal.default_int_handler, "SIGINT", "SIGTERM", "SIGHUP")
        main()
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    finally:
        _handle(_end_at_once, "SIGINT")


if __name__ == "__main__":
    main()
