"""The commands: parse, one library call, print. `python -m toolkit --help` lists them.

Exit codes: 0 done; 1 the input or a kernel failed, and one line says what, where, the value and
the remedy; 2 wrong usage; 3 a comparison found what it was to look for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from inspect import cleandoc
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from toolkit import __version__
from toolkit.cli.check import check
from toolkit.cli.compare import compare
from toolkit.cli.doctor import doctor
from toolkit.cli.errors import FAILED, INTERRUPTED
from toolkit.cli.explain import explain
from toolkit.cli.list import list_
from toolkit.cli.profile import profile
from toolkit.cli.report import report
from toolkit.cli.run import run
from toolkit.cli.simulate import simulate
from toolkit.cli.tune import tune
from toolkit.cli.usage import Commands, PlainCommand

# The files of commands import what is heavy inside functions: --help answers at once.

app = typer.Typer(
    name="toolkit",
    cls=Commands,
    help="Profile and explain CUDA kernels, with or without a GPU.",
    epilog="Start with: python -m toolkit simulate KERNEL.cu, or profile for the ladder",
    no_args_is_help=True,
    rich_markup_mode=None,
    # a shell completes the first word of a line, and that must not be `python`
    add_completion=Path(sys.argv[0]).stem == "gemm-ladder",
    pretty_exceptions_enable=False,
)

# In the order of the help, each with its example.
COMMANDS: dict[str, Callable[..., None]] = {
    "profile --shape 4096 --variant tiled:tile=16": profile,
    "simulate my.cu -g 64 -b 256 -a 'f32[16384]'": simulate,
    "run my.cu -g 64 -b 256 -a 'f32[16384]'": run,
    "check my.cu -g 64 -b 256 -a 'f32[16384]'": check,
    "tune vectorized --shape 4096,1000x333x64": tune,
    "report profile.json --html report.html": report,
    "compare before.json after.json --fail-on counts": compare,
    "explain bank conflicts": explain,
    "list devices": list_,
    "doctor": doctor,
}


for example, command in COMMANDS.items():
    app.command(
        example.split()[0],
        cls=PlainCommand,
        help=cleandoc(command.__doc__ or ""),
        epilog=f"Example: python -m toolkit {example}",
    )(command)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"gemm-ladder {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options that need no command."""


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # JSON is UTF-8 whatever the locale says
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        _run_app()
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            sys.exit("error: interrupted")
        raise


def _run_app() -> None:
    """Run the command; a file or standard output that cannot be used ends it in one line."""
    try:
        try:
            app(prog_name="python -m toolkit" if sys.argv[0].endswith("__main__.py") else None)
        finally:
            sys.stdout.flush()
    except OSError as error:
        if error.filename is not None:
            sys.exit(f"error: {error.filename} cannot be used: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        if isinstance(error, BrokenPipeError):  # the reader has seen enough
            sys.exit(FAILED)
        sys.exit(f"error: standard output cannot be written: {error.strerror}")
