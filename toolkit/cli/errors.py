"""End of a command that fails: one line on standard error, and an exit code."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import typer

from analysis.errors import LaunchError, RecordError, ToolkitError, first_line
from toolkit.cli.terminal import err, say

FAILED = 1
DIFFERS = 3
INTERRUPTED = 128 + signal.SIGINT  # how Typer ends on Ctrl-C, without a word


@contextmanager
def one_line_errors(
    interrupted: str = "interrupted: only the files listed as written are new",
) -> Iterator[None]:
    """Turn a ToolkitError, or Ctrl-C, into one line on standard error and exit code 1."""
    try:
        yield
    except ToolkitError as error:
        if isinstance(error, LaunchError) and error.printed:
            from toolkit.cli.printed import print_before_failure

            print_before_failure(error.printed)
        fail(str(error))
    except KeyboardInterrupt:
        fail(interrupted)
    except MemoryError as error:
        fail(without_memory(error))


def without_memory(error: MemoryError) -> str:
    """The line for a launch that does not fit into memory."""
    what = f" ({first_line(error)})" if str(error) else ""
    return f"not enough memory{what}: make the launch smaller, or free memory"


def fail(message: str, code: int = FAILED) -> NoReturn:
    """End the command with a message and an exit code."""
    say(f" {message}", "bold red", lead="error:", console=err)
    raise typer.Exit(code)


def fail_on_first(what: str, found: Sequence[str], *, rest: str = "") -> None:
    """End with exit code 3 where a comparison found something; `rest` says where the others are."""
    if found:
        more = f" (and {len(found) - 1} more{rest})" if len(found) > 1 else ""
        fail(f"{what}: {found[0]}{more}", DIFFERS)


@contextmanager
def damage_of(*records: Path) -> Iterator[None]:
    """Blame the loaded files for numbers that no run of this toolkit leaves."""
    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise RecordError(
            f"{' or '.join(map(str, records))}: its numbers cannot be drawn "
            f"({first_line(error)}): it was edited or damaged; profile again"
        ) from error
