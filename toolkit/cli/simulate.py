"""The command `simulate`: it executes any kernel on the CPU."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from toolkit.cli.errors import one_line_errors
from toolkit.cli.launch_results import ResultOptions
from toolkit.cli.option_groups import takes_options
from toolkit.cli.options import RESULTS, SimulateOptions


@takes_options
def simulate(
    launch: SimulateOptions,
    results: ResultOptions,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch",
            help="Run again after each save and show what changed.",
            rich_help_panel=RESULTS,
        ),
    ] = False,
) -> None:
    """Execute a kernel on the CPU: predicted time, cost of each source line, remedies, counters.

    The grid, block and arguments come from host code in the file, unless options set them. A rung
    has its own: 'simulate stream-k --shape 1024'.

    'script.py:kernel' is a kernel of Triton, Numba, CuPy, the CuTe DSL or PyCUDA. The file is
    imported, which executes its top level (a PyCUDA file is only read). Give the constexprs and
    options of Triton as '-D BLOCK=1024 -D num_warps=8'; Triton chooses the block.

    \b
    An argument (-a), in the kernel's order, is one of:
      f32[64,64]       buffer of random numbers with two axes; f32[64*64] has one
      f32[64]=zeros    buffer of zeros; also ones, arange, 2.5, data.npy
      data.npy         buffer with type, shape and content of a file (256 MiB)
      i32=4096         value; 4096 alone has the type that the source declares
      struct:i32=1,f32=2            struct by value
      struct[64]:i32,f32[3]         buffer of structs
      tex:f32[64,64],linear,clamp   texture; tex:u8x4[64,64] has 4 channels
      surf:f32[64,64]=zeros         surface

    Types: i8 to i64, u8 to u64, f16, bf16, f32, f64, e4m3 and e5m2 (FP8), c64, c128, bool.
    Textures also take point, border, wrap, mirror, normalized, float, layered and array.
    """
    if watch and (results.save or results.as_json or results.html):
        raise typer.BadParameter("not with --save, --json or --html", param_hint="'--watch'")
    if watch and (results.verbose or launch.left_out):
        raise typer.BadParameter("not with --verbose or --left-out", param_hint="'--watch'")
    if launch.allow_out_of_bounds and results.save:
        raise typer.BadParameter("not with --save", param_hint="'--allow-out-of-bounds'")
    if launch.allow_out_of_bounds and results.apply:
        raise typer.BadParameter("not with --apply", param_hint="'--allow-out-of-bounds'")
    if watch and results.apply:
        raise typer.BadParameter("not with --watch", param_hint="'--apply'")
    results.check_apply()
    with one_line_errors("interrupted: nothing was written"):
        if watch:
            from toolkit.cli.watch import watch as run_after_saves

            with suppress(KeyboardInterrupt):
                run_after_saves(launch, top=results.shown_lines)
            return
        from toolkit.cli.completed_options import completed, told_of_content
        from toolkit.cli.launch_source import compiled_beside

        options = completed(launch, "simulate")

        with compiled_beside(options.launch) as compiled:
            from toolkit.cli.parsed_call import call_of
            from toolkit.cli.progress import SimulationProgress
            from toolkit.cli.remedies import with_remedies

            call = call_of(options, compiled, results.save or [])
            results.check(call)
            keeps = bool(results.save) or (results.as_json and not launch.allow_out_of_bounds)
            needed = call.needed_bytes(copies=keeps or call.blocks == "all")
            with (
                SimulationProgress(call.source.name, needed) as progress,
                told_of_content(options, saves=bool(results.save)),
            ):
                simulated = call.run(compiled, progress.advance, progress.announce, outputs=keeps)
                if results.remedies:
                    simulated = with_remedies(simulated)
        results.show(simulated, compiled.result, left_out=launch.left_out)
