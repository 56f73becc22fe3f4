"""The options that several commands share, each declared once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from analysis.comparison.accuracy import DEFAULT_DEVICE
from analysis.l2_state import DEFAULT_L2, L2State
from toolkit.launch.heap import HEAP_BYTES

# Headings of the groups of options in the help of `run`, `simulate` and `check`
LAUNCH, COMPILER, EXECUTION = "Launch", "Compiler", "Execution on the CPU"
MEASUREMENT, PREDICTION, RESULTS, REMEDIES = "Measurement", "Prediction", "Results", "Remedies"


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
        metavar="NAME",
        help="Device: a key of `list devices`.",
        show_default=f"the GPU of this machine, else {DEFAULT_DEVICE.key}",
        autocompletion=complete_device,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of tables.", rich_help_panel=RESULTS)
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print every column, the parts of the times and all counters."),
]
Html = Annotated[Path, typer.Option("--html", metavar="FILE", help="File to write the page to.")]
Record = Annotated[
    Path, typer.Option("--record", metavar="FILE", help="File to write the record to.")
]
Constants = Annotated[
    Path | None,
    typer.Option(
        "--constants",
        rich_help_panel=PREDICTION,
        metavar="FILE",
        help="Constants to predict with: an output of `python -m toolkit.microbenchmarks`.",
        show_default="those of the architecture",
    ),
]
Clock = Annotated[
    float | None,
    typer.Option(
        "--clock",
        rich_help_panel=PREDICTION,
        metavar="MHZ",
        help="SM clock to predict with.",
        show_default="that of the device under this load",
    ),
]
FoundInL2 = Annotated[
    L2State,
    typer.Option(
        "--l2",
        rich_help_panel=PREDICTION,
        help="State of L2 before the launch: clean or dirty (other data, read or written), or warm "
        "(what the same launch left).",
    ),
]
InputSeed = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Seed of random inputs, to repeat an earlier run.", show_default="random"
    ),
]


# Options of `run` and `simulate`; `check` has some of them.
Save = Annotated[
    list[str] | None,
    typer.Option(
        "--save",
        metavar="K=FILE",
        help="Save a buffer: 0=x.npy is the first argument, NAME=x.npy a __device__ variable.",
        rich_help_panel=RESULTS,
    ),
]
Lines = Annotated[
    bool, typer.Option("--lines/--no-lines", help="Show source lines.", rich_help_panel=RESULTS)
]
FITTING = 0  # source lines: as many as fit beside the rest of the answer
Top = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Number of source lines to show.",
        show_default="up to 6",
        rich_help_panel=RESULTS,
    ),
]
Details = Annotated[
    bool,
    typer.Option(
        "--verbose", help="Also show the launch, its counters and bounds.", rich_help_panel=RESULTS
    ),
]
Page = Annotated[
    Path | None,
    typer.Option(
        "--html",
        metavar="FILE",
        help="File to write a page to.",
        show_default="none",
        rich_help_panel=RESULTS,
    ),
]
Remedies = Annotated[
    bool,
    typer.Option(
        "--remedies/--no-remedies",
        help="Try edits and show what each saves.",
        rich_help_panel=REMEDIES,
    ),
]
Apply = Annotated[
    int | None,
    typer.Option(
        "--apply",
        min=1,
        metavar="N",
        help="Write the source with remedy N to NAME.remedyN.cu, if all outputs are equal.",
        rich_help_panel=REMEDIES,
    ),
]
Rounding = Annotated[
    bool,
    typer.Option(
        "--rounding",
        help="With --apply: accept results that differ by rounding.",
        rich_help_panel=REMEDIES,
    ),
]


@dataclass(frozen=True, kw_only=True)
class KernelOptions:
    """Options of `run`, `simulate` and `check` on a kernel and its launch, as a user wrote them."""

    source: Annotated[
        str,
        typer.Argument(
            metavar="KERNEL.cu",
            help="CUDA C++ file; cubin, fatbin, PTX, or a program or object file with kernels; "
            "script.py:kernel; or name of a rung, such as stream-k (with --shape).",
        ),
    ]
    grid: Annotated[
        str | None,
        typer.Option(
            "--grid",
            "-g",
            metavar="SIZE",
            help="Grid in blocks: '64' or '8,8'.",
            show_default="that of host code",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    block: Annotated[
        str | None,
        typer.Option(
            "--block",
            "-b",
            metavar="SIZE",
            help="Block in threads: '256' or '32,8'.",
            show_default="that of host code",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape",
            "-s",
            metavar="SHAPE",
            help="Problem size of a rung: '4096' or 'MxNxK'.",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            "--kernel",
            "-k",
            metavar="NAME",
            help="Name, such as 'scale' or 'gemm<128, 64>', or its number in the file.",
            show_default="the only one in the file",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="ARG",
            help="Next kernel argument (see simulate --help); repeatable.",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    shared: Annotated[
        int | None,
        typer.Option(
            "--shared",
            min=0,
            metavar="BYTES",
            help="Dynamic shared memory per block.",
            show_default="that of host code, else 0",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    launch_line: Annotated[
        int | None,
        typer.Option(
            "--launch",
            min=1,
            metavar="LINE",
            help="Line of the launch to take from host code.",
            show_default="the first whose values are known",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=ARG",
            help="Content of a __constant__ or __device__ variable, such as "
            "filter='f32[25]=ones' or n=5; repeatable.",
            rich_help_panel=LAUNCH,
        ),
    ] = None
    cooperative: Annotated[
        bool,
        typer.Option(
            "--cooperative",
            help="Cooperative launch, which grid.sync() needs.",
            rich_help_panel=LAUNCH,
        ),
    ] = False
    heap: Annotated[
        int,
        typer.Option(
            "--heap",
            min=0,
            metavar="BYTES",
            help="Heap of malloc and new in the kernel.",
            rich_help_panel=LAUNCH,
        ),
    ] = HEAP_BYTES
    arch: Annotated[
        str | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="Target architecture, such as sm_86.",
            show_default=DEFAULT_DEVICE.sm_arch,
            rich_help_panel=COMPILER,
        ),
    ] = None
    defines: Annotated[
        list[str] | None,
        typer.Option(
            "--define",
            "-D",
            metavar="MACRO",
            help="Macro, NAME=VALUE, or a constexpr or option of Triton; repeatable.",
            rich_help_panel=COMPILER,
        ),
    ] = None
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="OPTION",
            help="Compiler option; repeatable.",
            rich_help_panel=COMPILER,
        ),
    ] = None
    compiler: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=COMPILER,
            metavar="NAME",
            help="nvrtc (the kernels and what they use) or nvcc (the whole file; it needs a host "
            "compiler).",
            show_default="nvrtc",
        ),
    ] = None
    source_dirs: Annotated[
        list[str] | None,
        typer.Option(
            "--source-dir",
            metavar="FOLDER",
            help="Folder with the source files of machine code; repeatable.",
            rich_help_panel=COMPILER,
        ),
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Blocks to execute: all, a number, or representative: a few that stand for all.",
            show_default="representative; all for check and with --save",
            rich_help_panel=EXECUTION,
        ),
    ] = None
    max_instructions: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Stop a kernel after N warp instructions.",
            rich_help_panel=EXECUTION,
        ),
    ] = None
    seed: Annotated[
        int | None,
        typer.Option(
            rich_help_panel=EXECUTION,
            metavar="N",
            help="Seed of random buffers, to repeat an earlier run.",
            show_default="random",
        ),
    ] = None

    left_out: Annotated[
        bool,
        typer.Option(
            "--left-out", help="List the host code that was not compiled.", rich_help_panel=COMPILER
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class LaunchOptions(KernelOptions):
    """Options of `simulate` and `check`, which need no GPU."""

    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            rich_help_panel=PREDICTION,
            metavar="NAME",
            help="Target device: a key of `list devices`.",
            show_default=f"{DEFAULT_DEVICE.key}, or a device of ARCH",
            autocompletion=complete_device,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class PredictOptions(KernelOptions):
    """Options of `run` and `simulate`, which predict a time."""

    constants: Constants = None
    clock: Clock = None
    l2: FoundInL2 = DEFAULT_L2
    limit: Annotated[
        float,
        typer.Option(
            "--limit",
            min=0,
            metavar="SECONDS",
            help="Execute all blocks instead of estimating counters if that takes at most SECONDS.",
            rich_help_panel=EXECUTION,
        ),
    ] = 10.0
    inner_lines: Annotated[
        bool,
        typer.Option(
            "--inner-lines",
            help="Attribute inlined functions to their own lines.",
            rich_help_panel=RESULTS,
        ),
    ] = False


@dataclass(frozen=True, kw_only=True)
class SimulateOptions(PredictOptions, LaunchOptions):
    """Options of `simulate`, whose help lists the kinds of arguments."""

    allow_out_of_bounds: Annotated[
        bool,
        typer.Option(
            "--allow-out-of-bounds",
            help="Predict a time even with accesses outside all arrays: reads give zeros, writes "
            "are lost.",
            rich_help_panel=PREDICTION,
        ),
    ] = False

    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "--arg",
            "-a",
            metavar="ARG",
            help="Next kernel argument, as above; repeatable.",
            rich_help_panel=LAUNCH,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(PredictOptions):
    """Options of `run`, which measures on the GPU that is here."""

    arch: Annotated[
        str | None,
        typer.Option(
            "--arch",
            metavar="ARCH",
            help="Target architecture, such as sm_86.",
            show_default="that of the GPU",
            rich_help_panel=COMPILER,
        ),
    ] = None
    blocks: Annotated[
        str | None,
        typer.Option(
            metavar="WHICH",
            help="Blocks to simulate: all, a number, or representative: a few that stand for "
            "all. The GPU executes all.",
            show_default="representative",
            rich_help_panel=EXECUTION,
        ),
    ] = None
    samples: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Maximum number of timed launches.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = 1000
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds",
            min=0.01,
            metavar="SECONDS",
            help="Time limit for these launches.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = 2.0
    precision: Annotated[
        float,
        typer.Option(
            min=1e-6,
            max=1.0,
            metavar="FRACTION",
            help="Stop when the median is known to this fraction.",
            rich_help_panel=MEASUREMENT,
        ),
    ] = 0.01
