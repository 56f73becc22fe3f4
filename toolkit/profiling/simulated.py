"""Conversion of a simulated rung to a record of a profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import PurePath

from analysis.comparison.agreement import machine_accesses
from analysis.devices import Device
from analysis.l2_state import L2State
from analysis.records.counters import MODELLED, InstructionCounts, by_line
from analysis.records.profile import LineCounters, Listing, Record, Simulated
from kernels.selection import Selection
from kernels.variant import Parameters, Variant
from toolkit.execution.traffic import Residence
from toolkit.launch.launch import Execution

PYCUDA_FILE = "kernel.cu"  # file name under which PyCUDA passes source to nvcc


def residence(record: Record, device: Device, l2: L2State) -> Residence | None:
    """Residence of a record's launch on `device`, None if its occupancy is not known."""
    if record.occupancy is None:
        return None
    return Residence(device=device, blocks_per_sm=record.occupancy.blocks_per_sm, l2=l2)


def with_simulation(
    record: Record, execution: Execution, selection: Selection
) -> tuple[Record, Listing]:
    """The record with counters and time of a simulation, or a note on why there is no time.

    The listing is of the machine code that was executed.
    """
    variant = selection.variant
    assert isinstance(variant, Variant)
    assert execution.cubin is not None
    assert execution.executed_blocks is not None
    made = listing(execution.instructions, variant, selection.parameters)
    has_traffic = bool(MODELLED.keys() & execution.counters.keys())
    record = replace(
        record,
        simulated=Simulated(
            architecture=execution.cubin.architecture,
            compiler=execution.cubin.compiler,
            counters=dict(execution.counters),
            accesses=machine_accesses(execution.instructions),
            lines=line_counters(execution.instructions, variant),
            basis=execution.basis or "",
            blocks_executed=execution.executed_blocks,
            traffic_basis=execution.traffic_basis if has_traffic else None,
            executed=tuple(one.executed for one in execution.instructions),
            memory=execution.memory,
            listing=made.label,
        ),
        predicted=execution.predicted,
    )
    if execution.predicted is not None:
        return record, made
    unknown = "not predicted: how many of its blocks an SM can hold is not known"
    return record.noted(execution.prediction_basis or unknown), made


def listing(
    instructions: Sequence[InstructionCounts], variant: Variant, parameters: Parameters
) -> Listing:
    """Source of the rung and its machine code."""
    return Listing(
        label=variant.label(parameters),
        file=variant.file,
        source=variant.source,
        sass=tuple(one.text for one in instructions),
        lines=tuple(_own_lines(instructions, variant)),
    )


def _own_lines(instructions: Sequence[InstructionCounts], variant: Variant) -> Iterator[int]:
    """Line of each instruction in the rung's own file, 0 if it belongs to none."""
    own = cache(lambda file: PurePath(file).name in (variant.file, PYCUDA_FILE))
    for one in instructions:
        file, line = one.charged or ("", 0)
        yield line if own(file) else 0


def line_counters(
    instructions: Sequence[InstructionCounts], variant: Variant
) -> tuple[LineCounters, ...]:
    """Counters and text of each source line, without lines whose counters are all 0."""
    source = variant.source.splitlines()
    found = []
    for (path, line), counters in by_line(instructions).items():
        counted = {name: count for name, count in counters.items() if count}
        file, shown = PurePath(path).name, ""
        if file in (variant.file, PYCUDA_FILE) and 0 < line <= len(source):
            file, shown = variant.file, source[line - 1].strip()
        if counted:
            found.append(LineCounters(file=file, line=line, text=shown, counters=counted))
    return tuple(found)
