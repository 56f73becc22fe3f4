"""The options that several commands share, each declared once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from analysis.comparison.accuracy import DEFAULT_DEVICE
from toolkit.rungs.names import is_name


def complete_device(incomplete: str) -> list[str]:
    from analysis.devices import DEVICES

    return [key for key in DEVICES if key.startswith(incomplete)]


def complete_variant(incomplete: str) -> list[str]:
    from kernels.selection import BY_NAME

    return [name for name in BY_NAME if name.startswith(incomplete)]


DeviceName = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        help="A device of `list devices`.",
        show_default=f"the GPU that is here, else {DEFAULT_DEVICE.key}",
        autocompletion=complete_device,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the stored record instead of tables.")]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print every column, the parts of the times and all counters."),
]
Html = Annotated[Path, typer.Option("--html", help="Where the report goes.")]
Record = Annotated[Path, typer.Option("--record", help="Where the record goes.")]
Constants = Annotated[
    Path | None,
    typer.Option(
        "--constants",
        metavar="FILE",
        help="Predict with constants that `python -m toolkit.microbenchmarks` measured.",
        show_default="those of the architecture",
    ),
]
InputSeed = Annotated[
    int | None,
    typer.Option(help="Repeat the random inputs of an earlier run.", show_default="random"),
]


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Options of `simulate` and `check` on a kernel and its launch, as the user wrote them."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL.cu",
            help="CUDA C++, a .cubin of nvcc, or a rung such as stream-k, which takes --shape.",
        ),
    ]
    grid: Annotated[
        str | None,
        typer.Option("--grid", "-g", metavar="SIZE", help="Blocks, such as '64' or '8,8'."),
    ] = None
    block: Annotated[
        str | None, typer.Option("--block", "-b", metavar="SIZE", help="Threads of a block.")
    ] = None
    shape: Annotated[
        str | None,
        typer.Option("--shape", "-s", help="Of a rung by its name: '4096' or 'MxNxK'."),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            "-k",
            metavar="NAME",
            help="Such as 'scale' or 'gemm<128, 64>'.",
            show_default="the only one in the file",
        ),
    ] = None
    arguments: Annotated[
        list[str] | None,
        typer.Option("--arg", "-a", metavar="ARG", help="An argument, as above; repeatable."),
    ] = None
    shared: Annotated[
        int,
        typer.Option("--shared", min=0, metavar="BYTES", help="Dynamic shared memory per block."),
    ] = 0
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="ARCH",
            help="What to compile for, such as sm_86.",
            show_default=DEFAULT_DEVICE.sm_arch,
        ),
    ] = None
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            metavar="NAME",
            help="The same by a device of `list devices`; simulate predicts its time.",
            show_default=f"{DEFAULT_DEVICE.key}, or a device of ARCH",
            autocompletion=complete_device,
        ),
    ] = None
    defines: Annotated[
        list[str] | None,
        typer.Option("--define", "-D", metavar="MACRO", help="NAME=VALUE; repeatable."),
    ] = None
    options: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="OPTION", help="One of the compiler's; repeatable."),
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Blocks to execute: all; representative, a few that provably count like the "
            "others, or random ones; or how many.",
            show_default="representative; all with --save and of check",
        ),
    ] = None
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            min=0,
            metavar="SECONDS",
            help="Execute all blocks, rather than estimate counters, if that takes no longer.",
        ),
    ] = 10.0
    max_instructions: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Stop a kernel whose warps execute more."),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Repeat the random content of an earlier run.",
            show_default="random",
        ),
    ] = None

    def check(self) -> None:
        """Usage error for a launch whose source lacks options that only a rung supplies."""
        missing = {"'--grid' / '-g'": self.grid, "'--block' / '-b'": self.block}
        for option, value in missing.items():
            if value is None and not is_name(self.source):
                raise typer.BadParameter("missing; only a rung brings its own", param_hint=option)


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(LaunchOptions):
    """Options of `simulate`, which predicts a time too."""

    constants: Constants = None


def takes_launch(command: Callable[..., None]) -> Callable[..., None]:
    """The command, with the fields of its first parameter, which are options, in place of it."""
    first, *own = signature(command, eval_str=True).parameters.values()
    options: type[LaunchOptions] = first.annotation
    shared = signature(options, eval_str=True).parameters

    @wraps(command)
    def run(**given: Any) -> None:
        launch = options(**{name: given.pop(name) for name in shared})
        launch.check()
        command(launch, **given)

    own = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in own]
    vars(run)["__signature__"] = Signature([*shared.values(), *own])
    return run
