"""The command `reorder`: it shows the loops of a kernel before and after, on the model of an SM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from analysis.errors import InputError
from reports.sections.table import Cell, Table, head, plain_table
from toolkit import __version__
from toolkit.cli.errors import one_line_errors
from toolkit.cli.options import Architecture, CompilerOptions, Json, KernelName, Macros
from toolkit.cli.output import check_is_no_input, print_json, write
from toolkit.cli.terminal import out, rich_table, say

if TYPE_CHECKING:
    from toolkit.reorder import LoopChange, Reordered
    from toolkit.reorder.modelled import LoopClocks

SCHEMA_VERSION = 1
PER = 128  # multiply-adds that clocks are told for: an outer product of 8 and 16 values

_ROWS: tuple[tuple[str, Callable[[LoopClocks], float]], ...] = (
    ("clocks", lambda one: one.clocks),
    ("lost to register banks", lambda one: one.bank_clocks),
    ("other lost clocks", lambda one: one.other_clocks),
)


def reorder(
    source: Annotated[
        Path, typer.Argument(metavar="KERNEL.cu", help="CUDA C++, or a .cubin of nvcc.")
    ],
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
    with one_line_errors("interrupted: nothing was written"):
        from toolkit.cli.launch_source import inputs_of, parse_define
        from toolkit.machine_code.architectures import DEFAULT_ARCHITECTURE
        from toolkit.machine_code.kernel_source import compile_kernel, naming
        from toolkit.reorder import reorder as reorder_kernel
        from toolkit.store.user_files import check_writable, same_file

        if output:
            check_writable(output)
            if same_file(output, source):
                raise InputError(f"cannot write {output}: the kernel is read from it")
            check_is_no_input(output, inputs_of(Path(source), option or []))
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
            write({output: found.image})
        if as_json:
            print_json(document(found))
        else:
            print_reordered(found)


def print_reordered(found: Reordered) -> None:
    """The kernel, how much of it changed, and a table of its loops."""
    code = found.before
    say(
        f"{code.name} for {code.architecture} ({code.compiler}): "
        f"{found.changed_instructions:,} instructions changed"
    )
    if found.loops:
        out.print(rich_table(_table(found)))


def _table(found: Reordered) -> Table:
    about = f"modelled, {found.warps_per_scheduler} warps a scheduler, for {PER} multiply-adds"
    titles = (about, ("before", "", True), ("after", "", True))
    rows = (row for loop in found.loops for row in _rows(loop, found.warps_per_scheduler))
    return plain_table(titles, rows)


def _rows(loop: LoopChange, warps: int) -> Iterator[list[Cell | str]]:
    yield head(
        f"loop {loop.start:#06x} to {loop.end:#06x}: {loop.instructions:,} instructions, "
        f"{loop.multiply_adds:,} multiply-adds",
        3,
    )
    share = PER / loop.multiply_adds
    for name, value in _ROWS:
        values = (value(one) for one in (loop.before, loop.after))
        yield [f"  {name}", *(f"{share / warps * one:,.1f}" for one in values)]
    kept = (loop.reused_before, loop.reused_after)
    yield ["  operands kept for the next", *(f"{share * one:,.1f}" for one in kept)]


def document(found: Reordered) -> dict[str, Any]:
    """What --json prints: clocks are of a scheduler, for a turn of all its warps."""
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": __version__,
        "kernel": found.before.name,
        "architecture": found.before.architecture,
        "compiler": found.before.compiler,
        "changed_instructions": found.changed_instructions,
        "warps_per_scheduler": found.warps_per_scheduler,
        "loops": [asdict(loop) for loop in found.loops],
    }
