"""The commands: parse, one library call, print. `python -m toolkit --help` lists them.

Exit codes: 0 done; 1 the input or a kernel failed, and one line says what, where, the value and
the remedy; 2 wrong usage; 3 a comparison found what it was to look for.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from analysis.errors import InputError, ToolkitError
from toolkit import __version__

# Everything else is imported where it is used: --help answers at once.

if TYPE_CHECKING:
    from analysis.comparison import ProfileComparison
    from analysis.launch_comparison import LaunchComparison
    from analysis.result import Profile, Score
    from analysis.tuning import Tuning

app = typer.Typer(
    name="toolkit",
    help="Profile and explain CUDA kernels, with or without a GPU.",
    epilog="Start with: python -m toolkit profile",
    no_args_is_help=True,
    # a shell completes the first word of a line, and that must not be `python`
    add_completion=Path(sys.argv[0]).stem == "gemm-ladder",
    pretty_exceptions_enable=False,
)

FAILED = 1
DIFFERS = 3
INTERRUPTED = 128 + signal.SIGINT  # how Typer ends on Ctrl-C, without a word


class ExecutorChoice(StrEnum):
    auto = "auto"
    gpu = "gpu"
    simulate = "simulate"
    theory = "theory"


class Listing(StrEnum):
    variants = "variants"
    devices = "devices"


def _complete_device(incomplete: str) -> list[str]:
    from analysis.devices import DEVICES

    return [key for key in DEVICES if key.startswith(incomplete)]


def _complete_variant(incomplete: str) -> list[str]:
    from kernels.registry import BY_NAME

    return [name for name in BY_NAME if name.startswith(incomplete)]


Json = Annotated[bool, typer.Option("--json", help="Print the stored record instead of tables.")]
Html = Annotated[Path, typer.Option("--html", help="Where the report goes.")]

# What simulate, check and reorder ask of a kernel and its launch.
KernelSource = Annotated[
    str,
    typer.Argument(
        metavar="KERNEL.cu",
        help="CUDA C++, a .cubin of nvcc, or a rung such as stream-k, which takes --shape.",
    ),
]
KernelFile = Annotated[
    Path, typer.Argument(metavar="KERNEL.cu", help="CUDA C++, or a .cubin of nvcc.")
]
GridSize = Annotated[
    str | None, typer.Option("--grid", "-g", metavar="SIZE", help="Blocks, such as '64' or '8,8'.")
]
BlockSize = Annotated[
    str | None, typer.Option("--block", "-b", metavar="SIZE", help="Threads of a block.")
]
RungShape = Annotated[
    str | None,
    typer.Option("--shape", "-s", help="Of a rung by its name: '4096' or 'MxNxK'."),
]
KernelName = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        "-k",
        metavar="NAME",
        help="Such as 'scale' or 'gemm<128, 64>'.",
        show_default="the only one in the file",
    ),
]
KernelArguments = Annotated[
    list[str] | None,
    typer.Option("--arg", "-a", metavar="ARG", help="An argument, as above; repeatable."),
]
SharedBytes = Annotated[
    int,
    typer.Option("--shared", min=0, metavar="BYTES", help="Dynamic shared memory per block."),
]
Architecture = Annotated[
    str | None,
    typer.Option(metavar="ARCH", help="What to compile for, such as sm_86.", show_default="sm_90"),
]
CompiledForDevice = Annotated[
    str | None,
    typer.Option(
        "--device",
        "-d",
        metavar="NAME",
        help="The same by a device of `list devices`.",
        autocompletion=_complete_device,
    ),
]
Macros = Annotated[
    list[str] | None,
    typer.Option("--define", "-D", metavar="MACRO", help="NAME=VALUE; repeatable."),
]
CompilerOptions = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="OPTION", help="One of the compiler's; repeatable."),
]
WhichBlocks = Annotated[
    str | None,
    typer.Option(
        metavar="WHICH",
        help="Blocks to execute: all; representative, some of each place in the grid; or how many.",
        show_default="all; of a rung by its name, a few that stand for all",
    ),
]
MostInstructions = Annotated[
    int | None,
    typer.Option(min=1, metavar="N", help="Stop a kernel whose warps execute more."),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        help="Repeat the random content of an earlier run.",
        show_default="random",
    ),
]


def _check_extents(source: str, grid: str | None, block: str | None) -> None:
    """Wrong usage where a source lacks what only a rung brings."""
    from toolkit.rungs.launch import is_name

    missing = {"'--grid' / '-g'": grid, "'--block' / '-b'": block}
    for option, value in missing.items():
        if value is None and not is_name(source):
            raise typer.BadParameter("missing; only a rung brings its own", param_hint=option)


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


@app.command(epilog="Example: python -m toolkit profile --shape 4096 --variant tiled:tile=16")
def profile(
    shape: Annotated[
        list[str] | None,
        typer.Option("--shape", "-s", help="'4096' or 'MxNxK'; repeatable.", show_default="4096"),
    ] = None,
    variant: Annotated[
        list[str] | None,
        typer.Option(
            "--variant",
            "-v",
            help="A rung or reference, such as 'tiled' or 'tiled:tile=16'; repeatable.",
            show_default="the whole ladder",
            autocompletion=_complete_variant,
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            help="A device of `list devices`.",
            show_default="the GPU that is here, else rtx-3090",
            autocompletion=_complete_device,
        ),
    ] = None,
    executor: Annotated[
        ExecutorChoice,
        typer.Option(help="What runs the kernels: auto takes a GPU if it can, theory runs none."),
    ] = ExecutorChoice.auto,
    html: Html = Path("profile.html"),
    record: Annotated[Path, typer.Option("--record", help="Where the record goes.")] = Path(
        "profile.json"
    ),
    seconds: Annotated[
        float, typer.Option(min=0.01, help="Most time for the samples of one variant and shape.")
    ] = 2.0,
    samples: Annotated[
        int, typer.Option(min=1, help="Most samples of one variant and shape.")
    ] = 1000,
    precision: Annotated[
        float,
        typer.Option(min=1e-6, max=1.0, help="Stop when the median is known this well (± share)."),
    ] = 0.01,
    warm_l2: Annotated[
        bool, typer.Option("--warm-l2", help="Do not flush L2 between samples.")
    ] = False,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeat the random inputs of an earlier run.", show_default="random"),
    ] = None,
    counters: Annotated[
        bool,
        typer.Option(
            "--counters",
            help="Collect hardware counters through Nsight Compute (of traffic, which differs from "
            "launch to launch, the median of several).",
        ),
    ] = False,
    counters_from: Annotated[
        Path | None,
        typer.Option(
            "--counters-from",
            metavar="FILE",
            help="Read them from a .ncu-rep, or from a CSV that ncu printed (counted in several "
            "passes, DRAM writes are up to 2.4 MB too high).",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with an interrupted run, from RECORD.journal or else RECORD; what failed "
            "stands.",
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 3 where an exact counter disagrees.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Profile the ladder and write profile.html and profile.json.

    With a GPU every rung is compiled, checked and timed beside cuBLAS; without one its machine code
    for the chosen device is executed on the CPU, checked and counted.
    """
    with _one_line_errors():
        from reports import render
        from toolkit.cli.tables import TerminalProgress
        from toolkit.gpu.sampling import Sampling
        from toolkit.profiling.profile import profile as run_profile
        from toolkit.profiling.resume import is_result
        from toolkit.store.journal import journal_of, unfinished
        from toolkit.store.profile_json import dumps
        from toolkit.store.recorded_runs import recorded_run
        from toolkit.store.user_files import same_file

        journal = journal_of(record)
        _check_output(html, others=[record, journal])
        _check_output(record)
        _check_output(journal)
        if counters_from and any(same_file(counters_from, x) for x in (html, record, journal)):
            raise InputError(f"cannot write {counters_from}: the counters are read from it")
        before = unfinished(record) if resume else None
        with _interrupt_says("interrupted: nothing was written"), TerminalProgress() as progress:
            result = run_profile(
                shape or ["4096"],
                variant,
                device=device,
                executor=executor.value,
                sampling=Sampling(precision=precision, time_limit_s=seconds, max_samples=samples),
                warm_l2=warm_l2,
                seed=seed,
                counters=counters,
                counters_from=counters_from,
                progress=progress,
                resume=before,
                journal=journal,
            )
        if result.status == "interrupted" and not any(map(is_result, result.records)):
            _fail("interrupted before anything was measured; nothing was written")
        recorded = recorded_run(result.device.key) if result.executor != "gpu" else None
        texts = {html: render(result, recorded=recorded), record: dumps(result)}
        shown = _shown(result, recorded, as_json)
        _write(texts)
        journal.unlink(missing_ok=True)
        sys.stdout.write(shown)
        _finish_profile(result)
        if strict:
            _hold_exact_counters(result)


@app.command(epilog="Example: python -m toolkit simulate my.cu -g 64 -b 256 -a 'f32[16384]'")
def simulate(
    source: KernelSource,
    grid: GridSize = None,
    block: BlockSize = None,
    shape: RungShape = None,
    kernel: KernelName = None,
    arg: KernelArguments = None,
    shared: SharedBytes = 0,
    arch: Architecture = None,
    device: CompiledForDevice = None,
    define: Macros = None,
    option: CompilerOptions = None,
    blocks: WhichBlocks = None,
    max_instructions: MostInstructions = None,
    save: Annotated[
        list[str] | None,
        typer.Option(
            "--save", metavar="K=FILE", help="Keep a buffer: 1=x.npy is the second argument's."
        ),
    ] = None,
    lines: Annotated[bool, typer.Option("--lines/--no-lines", help="Show source lines.")] = True,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Most source lines to show.")] = 20,
    seed: Seed = None,
    as_json: Json = False,
) -> None:
    """Execute any kernel on the CPU: real outputs, exact counters, source lines, no GPU.

    A rung by its name brings grid, block and arguments: 'simulate stream-k --shape 1024'.

    Accesses out of bounds, deadlocks and endless loops stop with the source line and the thread.

    Arguments, in the kernel's order:

    'f32[64,64]' is a buffer of random numbers; 'f32[64*64]' has one axis.
    'f32[64]=zeros' is one of zeros; also ones, arange, 2.5 or data.npy.
    'data.npy' is one as it was saved.
    'i32=4096' is a value, '4096' one of the type that the source declares.
    'struct:i32=1,f32=2' is a struct by value.

    Types are i8 to i64, u8 to u64, f16, f32, f64 and bool. A file has at most 256 MiB.
    """
    _check_extents(source, grid, block)
    with _one_line_errors(), _interrupt_says("interrupted: nothing was written"):
        from toolkit.cli.launch_options import parse_call

        call = parse_call(
            source=source,
            kernel=kernel,
            grid=grid,
            block=block,
            shape=shape,
            shared=shared,
            arguments=arg or [],
            arch=arch,
            device=device,
            defines=define or [],
            options=option or [],
            blocks=blocks,
            max_instructions=max_instructions,
            seed=seed,
            saves=save or [],
        )
        from toolkit.cli import simulate as view

        with view.SimulationProgress(call.source.name) as progress:
            simulated = call.run(progress.advance)
        _write(simulated.files())
        if as_json:
            _print_json(view.document(simulated))
        else:
            view.print_simulated(simulated, top=top if lines else None)


@app.command(epilog="Example: python -m toolkit check my.cu -g 64 -b 256 -a 'f32[16384]'")
def check(
    source: KernelSource,
    grid: GridSize = None,
    block: BlockSize = None,
    shape: RungShape = None,
    kernel: KernelName = None,
    arg: KernelArguments = None,
    shared: SharedBytes = 0,
    arch: Architecture = None,
    device: CompiledForDevice = None,
    define: Macros = None,
    option: CompilerOptions = None,
    blocks: WhichBlocks = None,
    max_instructions: MostInstructions = None,
    seed: Seed = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was found as JSON instead of lines.")
    ] = False,
) -> None:
    """Say what is wrong with a kernel, with no GPU: the tools of compute-sanitizer, on the CPU.

    memcheck: accesses out of bounds or misaligned. racecheck: hazards on shared memory between
    threads that no barrier, warp synchronisation or wait for an asynchronous copy orders, and
    between blocks on global memory. synccheck: barriers that some threads never reach, masks of
    other lanes. initcheck: reads of what nobody wrote.

    Arguments are those of simulate; 'f32[64]=unwritten' is an output, which holds nothing that may
    be read.

    Exit code 1 says that there are errors.
    """
    _check_extents(source, grid, block)
    with _one_line_errors(), _interrupt_says("interrupted: the check is not complete"):
        from toolkit.cli.launch_options import parse_call

        call = parse_call(
            source=source,
            kernel=kernel,
            grid=grid,
            block=block,
            shape=shape,
            shared=shared,
            arguments=arg or [],
            arch=arch,
            device=device,
            defines=define or [],
            options=option or [],
            blocks=blocks,
            max_instructions=max_instructions,
            seed=seed,
        )
        from toolkit.cli import check as view
        from toolkit.cli.simulate import SimulationProgress

        with SimulationProgress(call.source.name) as progress:
            checked = call.check(progress.advance)
        if as_json:
            _print_json(view.document(call, checked))
        else:
            view.print_checked(checked)
        if checked.findings:
            raise typer.Exit(FAILED)


@app.command(epilog="Example: python -m toolkit tune vectorized --shape 4096,1000x333x64")
def tune(
    variant: Annotated[
        str,
        typer.Argument(
            help="A rung; 'coarsened-1d:tm=8' fixes some parameters.",
            autocompletion=_complete_variant,
        ),
    ],
    shape: Annotated[
        list[str] | None,
        typer.Option(
            "--shape", "-s", help="'4096' or 'MxNxK', or several: '512,4096'.", show_default="4096"
        ),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            "-d",
            help="A device of `list devices`; another than the GPU here is ranked for, not run.",
            show_default="the GPU that is here, else rtx-3090",
            autocompletion=_complete_device,
        ),
    ] = None,
    predict: Annotated[
        int, typer.Option(min=1, help="Most configurations to predict, the best by closed forms.")
    ] = 64,
    measure: Annotated[
        int, typer.Option(min=1, help="Most configurations to measure, the best by prediction.")
    ] = 16,
    finalists: Annotated[int, typer.Option(min=1, help="Most leaders to race against cuBLAS.")] = 6,
    strategy: Annotated[
        str, typer.Option(help="One of Kernel Tuner's; others choose among all predicted ones.")
    ] = "brute_force",
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="GPUs of this machine, or of a Ray cluster.", show_default="none"),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="The folder of Kernel Tuner's caches.", show_default="the user's cache"),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.01, help="Most time for the samples of one finalist.")
    ] = 2.0,
    seed: Annotated[
        int | None,
        typer.Option(help="Repeat the random inputs of an earlier run.", show_default="random"),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the winners in the user's data folder.")
    ] = True,
    html: Html = Path("tuning.html"),
    record: Annotated[Path, typer.Option("--record", help="Where the record goes.")] = Path(
        "tuning.json"
    ),
    as_json: Json = False,
) -> None:
    """Find the parameters of a rung that no others beat, at every shape.

    All legal configurations are ranked by prediction; with a GPU, Kernel Tuner measures the best of
    them, and the leaders are checked and raced against cuBLAS. After Ctrl-C, repeat the command: it
    goes on.
    """
    with _one_line_errors(), _interrupt_says("interrupted: nothing was written but the cache"):
        from toolkit.cli.tables import TerminalProgress
        from toolkit.gpu.sampling import Sampling
        from toolkit.tuning.tune import tune as run_tune
        from toolkit.tuning.tuner import Effort

        _check_output(html, others=[record])
        _check_output(record)
        with TerminalProgress() as progress:
            result = run_tune(
                variant,
                [one for text in shape or ["4096"] for one in text.split(",")],
                device=device,
                effort=Effort(
                    predictions=predict,
                    measurements=measure,
                    finalists=finalists,
                    strategy=strategy,
                    workers=workers,
                    cache=cache,
                    sampling=Sampling(time_limit_s=seconds),
                ),
                seed=seed,
                progress=progress,
            )
        _finish_tuning(result, html, record, keep=keep, as_json=as_json)


@app.command(epilog="Example: python -m toolkit reorder my.cu --kernel gemm -o faster.cubin")
def reorder(
    source: KernelFile,
    kernel: KernelName = None,
    arch: Architecture = None,
    define: Macros = None,
    option: CompilerOptions = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where the new machine code goes."),
    ] = None,
    warps: Annotated[
        int,
        typer.Option(min=1, max=16, metavar="N", help="Warps per scheduler on the model."),
    ] = 2,
    as_json: Json = False,
) -> None:
    """Reorder the multiply-adds of compiled code by the register banks: same bits, fewer clocks.

    What the code computes stays the same, and is proved to before anything is written. A driver
    loads the result as it loads any cubin: PyCUDA by module_from_file.
    """
    with _one_line_errors(), _interrupt_says("interrupted: nothing was written"):
        from toolkit.cli.launch_options import parse_define
        from toolkit.cli.reorder import document, print_reordered
        from toolkit.launch.checks import DEFAULT_ARCHITECTURE
        from toolkit.machine_code.kernel_source import compile_kernel, naming
        from toolkit.reorder import reorder as reorder_kernel
        from toolkit.store.profile_json import check_writable
        from toolkit.store.user_files import same_file

        if output:
            check_writable(output)
            if same_file(output, source):
                raise InputError(f"cannot write {output}: the kernel is read from it")
        with naming(source):
            cubin = compile_kernel(
                source,
                kernel,
                target=arch or DEFAULT_ARCHITECTURE,
                defines=dict(map(parse_define, define or [])),
                options=("-lineinfo", *(option or [])),
            )
            if arch not in (None, cubin.limits_of):
                raise InputError(
                    f"{source} is of {cubin.architecture}, not of {arch}: leave out --arch"
                )
            found = reorder_kernel(cubin, warps_per_scheduler=warps)
        if output:
            _write({output: found.image})
        if as_json:
            _print_json(document(found))
        else:
            print_reordered(found)


@app.command(epilog="Example: python -m toolkit report profile.json --html report.html")
def report(
    records: Annotated[
        list[Path],
        typer.Argument(
            metavar="RECORD.json...",
            help="A profile.json, or one that xz compressed; several stand side by side.",
        ),
    ],
    html: Html = Path("profile.html"),
    recorded: Annotated[
        Path | None, typer.Option(help="A measured profile.json to show beside a single one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Render saved profiles into a report; of several, a reader chooses which one it shows."""
    with _one_line_errors():
        from reports import render, render_together

        _check_output(html, others=[*records, *filter(None, [recorded])])
        runs = _with_recorded(records, recorded)
        with damage_of(*records, *filter(None, [recorded])):
            (result, beside), *others = runs
            text = render_together(runs) if others else render(result, recorded=beside)
            shown = "".join(_shown(*run, as_json) for run in runs)
        _write({html: text})
        sys.stdout.write(shown)


def _with_recorded(
    records: Sequence[Path], recorded: Path | None
) -> list[tuple[Profile, Profile | None]]:
    """The saved profiles, each with the run that is shown beside it, if there is any."""
    from toolkit.store.profile_json import load
    from toolkit.store.recorded_runs import recorded_run

    if recorded and len(records) > 1:
        raise InputError(
            f"--recorded {recorded} goes beside one profile, not {len(records)}: "
            "give it as one of them"
        )
    runs = []
    for result in map(load, records):
        beside = load(recorded) if recorded else None
        if beside is None and result.executor != "gpu":
            beside = recorded_run(result.device.key)
        runs.append((result, beside))
    return runs


@app.command(epilog="Example: python -m toolkit compare before.json after.json --fail-on counts")
def compare(
    before: Annotated[
        Path, typer.Argument(metavar="A.json", help="Of before: a profile, or `simulate --json`.")
    ],
    after: Annotated[Path, typer.Argument(metavar="B.json", help="The same of after.")],
    html: Annotated[
        Path | None, typer.Option("--html", help="Where a page of it goes.", show_default="none")
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help="Exit with 3 where 'counts' changed or are missing, a 'time' is slower, "
            "or 'counts,time'.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the comparison as JSON instead of tables.")
    ] = False,
) -> None:
    """Say what changed between two profiles or launches: counts to the last digit, and times.

    Counts need no GPU: a job without one can hold a kernel's traffic.
    """
    kinds = _kinds(fail_on)
    with _one_line_errors():
        from toolkit.store.user_files import same_file

        if same_file(before, after):
            raise InputError(f"{before} and {after} are one file: give two profiles")
        if html:
            _check_output(html, others=[before, after])
        found = _comparison(before, after)
        with damage_of(before, after):
            text = _comparison_page(found, html) if html else ""
            shown = _compared(found, as_json)
        if html:
            _write({html: text})
        print(shown, end="", flush=True)  # before what is said on stderr
        for kind in kinds:
            _hold(found, kind)


def _comparison(before: Path, after: Path) -> ProfileComparison | LaunchComparison:
    """Two profiles compared, or two launches."""
    from analysis.comparison import compare as compare_profiles
    from analysis.launch_comparison import compare_launches
    from toolkit.store.profile_json import holds_launch, load, load_launch

    launches = [path for path in (before, after) if holds_launch(path)]
    if len(launches) == 2:
        return compare_launches(load_launch(before), load_launch(after))
    profiles = [load(path) for path in (before, after) if path not in launches]
    if launches:
        raise InputError(f"only {launches[0]} is of `simulate --json`: give two of a kind")
    return compare_profiles(*profiles)


KINDS = ("counts", "time")


def _kinds(text: str | None) -> list[str]:
    """What --fail-on names; anything else is wrong usage."""
    kinds = [kind.strip() for kind in text.split(",")] if text is not None else []
    for kind in kinds:
        if kind not in KINDS:
            raise typer.BadParameter(
                f"{kind!r} is none of {', '.join(KINDS)}", param_hint="'--fail-on'"
            )
    return kinds


def _comparison_page(found: ProfileComparison | LaunchComparison, html: Path) -> str:
    from analysis.launch_comparison import LaunchComparison
    from reports.comparison import page

    if isinstance(found, LaunchComparison):
        raise InputError(f"--html {html}: the page is of profiles, not of launches: leave it out")
    return page(found)


def _compared(found: ProfileComparison | LaunchComparison, as_json: bool) -> str:
    """What standard output gets, whole before anything is written."""
    from toolkit.cli.compare import document, print_comparison
    from toolkit.cli.tables import out

    if as_json:
        return _json(document(found))
    with out.capture() as capture:
        print_comparison(found)
    return capture.get()


def _hold(found: ProfileComparison | LaunchComparison, kind: str) -> None:
    """Fail on what --fail-on names, also where nothing of the kind could be compared."""
    from toolkit.cli.compare import compares, regressions

    changed = list(regressions(found, kind))
    if changed:
        more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
        _fail(f"--fail-on {kind}: {changed[0]}{more}", DIFFERS)
    if not compares(found, kind):
        what = "count" if kind == "counts" else "time of a GPU"
        is_foreseen = kind == "time" and compares(found, "predicted time")
        but = " (predicted ones are compared, and hold nothing)" if is_foreseen else ""
        _fail(f"--fail-on {kind}: no {what} could be compared{but}: profile both sides alike")


@app.command(name="list", epilog="Example: python -m toolkit list devices")
def list_(
    what: Annotated[
        Listing | None, typer.Argument(help="What to list.", show_default="both")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the variants and the devices that are known."""
    from analysis.devices import DEVICES
    from kernels import LADDER, REFERENCES

    if as_json:
        _print_json(_listing(what))
        return
    from toolkit.cli.tables import print_devices, print_variants

    if what in (None, Listing.variants):
        print_variants(LADDER, REFERENCES)
    if what in (None, Listing.devices):
        print_devices(list(DEVICES.values()))


@app.command(epilog="Example: python -m toolkit doctor")
def doctor(as_json: Json = False) -> None:
    """Say what is found on this machine, what is missing, and the command that fixes it."""
    from dataclasses import asdict

    from toolkit.profiling.doctor import examine

    findings = examine()
    if as_json:
        _print_json([asdict(finding) for finding in findings])
        return
    from toolkit.cli.tables import print_findings

    print_findings(findings)


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


class _one_line_errors:  # noqa: N801  (reads as a statement where it is used)
    """Turn a ToolkitError into one line on standard error and exit code 1."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ToolkitError):
            _fail(str(error))
        if isinstance(error, KeyboardInterrupt):
            _fail("interrupted: no file is new but those listed as written")


@contextmanager
def _interrupt_says(message: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        _fail(message)


def _fail(message: str, code: int = FAILED) -> NoReturn:
    from rich.markup import escape

    from toolkit.cli.tables import err

    err.print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True)
    raise typer.Exit(code)


def _check_output(path: Path, others: Sequence[Path] = ()) -> None:
    """Raise InputError where `path` cannot be written, or is one of the other files in use."""
    from toolkit.store.profile_json import check_writable
    from toolkit.store.user_files import same_file

    check_writable(path)
    if any(same_file(path, other) for other in others):
        raise InputError(f"cannot write the report to {path}: the record has that name")


@contextmanager
def damage_of(*records: Path) -> Iterator[None]:
    """Blame the loaded files for numbers that no run of this toolkit leaves."""
    from analysis.errors import RecordError, first_line

    try:
        yield
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise RecordError(
            f"{' or '.join(map(str, records))}: its numbers cannot be drawn "
            f"({first_line(error)}): it was edited or damaged; profile again"
        ) from error


def _shown(result: Profile, recorded: Profile | None, as_json: bool) -> str:
    """What standard output gets, whole before anything is written."""
    if as_json:
        from toolkit.store.profile_json import dumps

        return dumps(result)
    from toolkit.cli.tables import out, print_profile

    with out.capture() as capture:
        print_profile(result, recorded)
    return capture.get()


def _write(contents: Mapping[Path, str | bytes]) -> None:
    """Write one whole file after the other, and say so of each."""
    from toolkit.cli.tables import err
    from toolkit.store.profile_json import write_atomically

    # Ctrl-C may come between a file and its line
    with _interrupt_says("interrupted while writing: each file is whole, the old or the new one"):
        for path, content in contents.items():
            write_atomically(path, content)
            err.print(f"wrote {path}", markup=False, soft_wrap=True)


def _finish_tuning(result: Tuning, html: Path, record: Path, *, keep: bool, as_json: bool) -> None:
    """Write, keep and show what was found."""
    from dataclasses import asdict

    from reports.tuning import page
    from toolkit.cli.tables import err
    from toolkit.cli.tune import print_tuning
    from toolkit.store.tuned import keep as keep_entries
    from toolkit.tuning.tune import entries_of

    document = json.dumps(asdict(result), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    _write({html: page(result), record: document})
    entries = entries_of(result) if keep else []
    if entries:
        err.print(f"kept {len(entries)} in {keep_entries(entries)}", markup=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(document)
    else:
        print_tuning(result)
    if result.missing:
        asked = len(result.shapes) + len(result.missing)
        _fail(
            f"{len(result.missing)} of {asked} shapes are missing: {result.missing[0]}; what was "
            f"measured is in the cache, repeat: {result.command}"
        )


def _finish_profile(result: Profile) -> None:
    """Fail where the run was cut short or a kernel failed."""
    if result.status == "interrupted":
        from toolkit.profiling.resume import is_result

        kept = sum(map(is_result, result.records))
        _fail(f"interrupted: results kept: {kept}; repeat with: {result.command}")
    failed = [record.label for record in result.records if record.status == "failed"]
    if failed:
        _fail(f"{len(failed)} failed: {', '.join(failed)}; the reasons are above and in the report")


def _hold_exact_counters(result: Profile) -> None:
    """Fail where an exact counter disagrees, or where none was known by two grades."""
    from analysis.scorecard import disagreements, predicted_and_reference

    scores = [(record, score) for record in result.records for score in record.scores]
    exact = [one for _, one in scores if one.grade == "exact"]
    if not any(map(predicted_and_reference, exact)):
        _fail("--strict found nothing to compare: take executor simulate, or gpu, and some rung")
    apart = [
        f"{record.label} at {record.shape}: {score.counter} is {_numbers(score)}"
        for record, score in scores
        if disagreements([score])
    ]
    if apart:
        more = f" (and {len(apart) - 1} more, in the report)" if len(apart) > 1 else ""
        _fail(f"an exact counter disagrees: {apart[0]}{more}", DIFFERS)


def _numbers(score: Score) -> str:
    """'1,234 simulated, 1,235 measured'"""
    grades = {"theory": score.theory, "simulated": score.simulated, "measured": score.measured}
    return ", ".join(f"{count:,} {grade}" for grade, count in grades.items() if count is not None)


def _listing(what: Listing | None) -> dict[str, Any]:
    from dataclasses import asdict

    from analysis.devices import DEVICES
    from kernels import LADDER, REFERENCES

    listing: dict[str, Any] = {}
    if what in (None, Listing.variants):
        listing["variants"] = [
            {
                "name": variant.name,
                "rung": variant.rung,
                "title": variant.title,
                "idea": variant.idea,
                "source": variant.file,
                "entry": variant.entry,
                "parameters": {name: asdict(p) for name, p in variant.parameters.items()},
                "constraints": [constraint.text for constraint in variant.constraints],
            }
            for variant in LADDER
        ] + [{"name": r.name, "rung": None, "title": r.title, "idea": r.idea} for r in REFERENCES]
    if what in (None, Listing.devices):
        listing["devices"] = [asdict(device) for device in DEVICES.values()]
    return listing


def _print_json(document: Any) -> None:
    sys.stdout.write(_json(document))


def _json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
