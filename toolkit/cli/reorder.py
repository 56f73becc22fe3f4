"""What `reorder` prints: the loops of a kernel before and after, on the model of an SM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table

import toolkit
from toolkit.cli.tables import out, plain_table
from toolkit.reorder import LoopChange, Reordered

SCHEMA_VERSION = 1
PER = 128  # multiply-adds that clocks are told for: an outer product of 8 and 16 values

_ROWS: tuple[tuple[str, Callable[[LoopChange], tuple[float, float]]], ...] = (
    ("clocks", lambda loop: (loop.before.clocks, loop.after.clocks)),
    ("lost to register banks", lambda loop: (loop.before.bank_clocks, loop.after.bank_clocks)),
    ("other lost clocks", lambda loop: (loop.before.other_clocks, loop.after.other_clocks)),
)


def print_reordered(found: Reordered) -> None:
    """The kernel, how much of it changed, and a table of its loops."""
    code = found.before
    out.print(
        escape(
            f"{code.name} for {code.architecture} ({code.compiler}): "
            f"{found.changed_instructions:,} instructions changed"
        ),
        soft_wrap=True,
    )
    if found.loops:
        out.print(_table(found))


def _table(found: Reordered) -> Table:
    table = plain_table(2)
    table.add_column(
        f"modelled, {found.warps_per_scheduler} warps a scheduler, for {PER} multiply-adds"
    )
    for title in ("before", "after"):
        table.add_column(title, justify="right", no_wrap=True)
    for loop in found.loops:
        _add_loop(table, loop, found.warps_per_scheduler)
    return table


def _add_loop(table: Table, loop: LoopChange, warps: int) -> None:
    table.add_row(
        f"[bold]loop {loop.start:#06x} to {loop.end:#06x}[/]: {loop.instructions:,} instructions, "
        f"{loop.multiply_adds:,} multiply-adds"
    )
    share = PER / loop.multiply_adds / warps
    for name, values in _ROWS:
        table.add_row(f"  {name}", *(f"{share * value:,.1f}" for value in values(loop)))
    share = PER / loop.multiply_adds
    kept = (f"{share * n:,.1f}" for n in (loop.reused_before, loop.reused_after))
    table.add_row("  operands kept for the next", *kept)


def document(found: Reordered) -> dict[str, Any]:
    """What --json prints: clocks are of a scheduler, for a turn of all its warps."""
    return {
        "schema_version": SCHEMA_VERSION,
        "toolkit_version": toolkit.__version__,
        "kernel": found.before.name,
        "architecture": found.before.architecture,
        "compiler": found.before.compiler,
        "changed_instructions": found.changed_instructions,
        "warps_per_scheduler": found.warps_per_scheduler,
        "loops": [asdict(loop) for loop in found.loops],
    }
