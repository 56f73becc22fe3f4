"""The command `simulate`: it executes any kernel on the CPU."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from toolkit.cli.errors import one_line_errors
from toolkit.cli.launch_results import ResultOptions
from toolkit.cli.options import SimulateOptions, takes_options


@takes_options
def simulate(
    launch: SimulateOptions,
    results: ResultOptions,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Run again after each save and show what changed."),
    ] = False,
) -> None:
    """Execute a kernel on the CPU: predicted time, cost of each source line, remedies, counters.

    A rung, by its name, has its own grid, block and arguments: 'simulate stream-k --shape 1024'.

    'script.py:kernel' is a kernel of Triton, Numba, CuPy or the CuTe DSL: the file is imported,
    which runs its top level. A module of PyCUDA is only read. Triton takes constexprs and options
    as '-D BLOCK=1024 -D num_warps=8', and chooses the block.

    An access out of bounds, a deadlock or an endless loop ends in one line with source line and
    thread.

    Arguments, in the kernel's order:

    'f32[64,64]' is a buffer of random numbers with two axes; 'f32[64*64]' has one.
    'f32[64]=zeros' is a buffer of zeros; also ones, arange, 2.5 or data.npy.
    'data.npy' is a buffer with type, shape and content of the file.
    'i32=4096' is a value; '4096' has the type that the source or the front end chooses.
    'struct:i32=1,f32=2' is a struct by value. 'tex:f32[64,64],linear,clamp' is a texture: behind it
    stand point or linear, clamp, border, wrap or mirror, normalized, float, layered, array.
    'tex:u8x4[64,64]' has 4 channels. 'surf:f32[64,64]=zeros' is a surface.

    Types are i8 to i64, u8 to u64, f16, bf16, e4m3, e5m2 (FP8), f32, f64, c64, c128 and bool;
    'struct[64]:i32,f32[3]' is a buffer of structs. A file has at most 256 MiB.

    Variables of the kernel's file are set in the same way: --set filter='f32[25]=ones', --set n=5.
    """
    if watch and (results.save or results.as_json or results.html):
        raise typer.BadParameter("not with --save, --json or --html", param_hint="'--watch'")
    if watch and results.apply:
        raise typer.BadParameter("not with --watch", param_hint="'--apply'")
    results.check_apply()
    with one_line_errors("interrupted: nothing was written"):
        if watch:
            from toolkit.cli.watch import watch as run_after_saves

            with suppress(KeyboardInterrupt):
                run_after_saves(launch, top=results.shown_lines)
            return
        from toolkit.cli.asked_launch import completed, told_of_content
        from toolkit.cli.launch_source import compiled_beside

        asked = completed(launch, "simulate")

        with compiled_beside(asked.launch) as compiled:
            from toolkit.cli.launch_options import call_of
            from toolkit.cli.progress import SimulationProgress
            from toolkit.cli.remedies import with_remedies

            call = call_of(asked, compiled, results.save or [])
            results.check(call)
            keeps = results.as_json or bool(results.save)
            needed = call.needed_bytes(copies=keeps or call.blocks == "all")
            with (
                SimulationProgress(call.source.name, needed) as progress,
                told_of_content(asked),
            ):
                simulated = call.run(compiled, progress.advance, progress.announce, outputs=keeps)
                if results.remedies:
                    simulated = with_remedies(simulated)
        results.show(simulated, compiled.result, left_out=launch.left_out)
