"""From the core's counts per instruction to those that the analysis names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from analysis.records.counters import InstructionCounts, MemoryAction, MemorySpace
from toolkit.machine_code.instruction import INSTRUCTION_BYTES, Instruction
from toolkit.sass.core.binding import COUNT
from toolkit.sass.isa.bulk import direction
from toolkit.sass.isa.memory import width
from toolkit.sass.translate import Translated

_ACCESSES: dict[str, tuple[MemorySpace, MemoryAction]] = {
    "LDG": ("global", "load"),
    "STG": ("global", "store"),
    "LDS": ("shared", "load"),
    "STS": ("shared", "store"),
    "LDSM": ("shared", "load"),
    "STSM": ("shared", "store"),
    "LDL": ("local", "load"),
    "STL": ("local", "store"),
    "LD": ("generic", "load"),
    "ST": ("generic", "store"),
    "ATOMG": ("global", "atomic"),
    "ATOM": ("generic", "atomic"),
    "ATOMS": ("shared", "atomic"),
    "RED": ("global", "reduction"),
    "REDG": ("global", "reduction"),
    "REDS": ("shared", "reduction"),
    "LDGSTS": ("global", "copy"),
    "UTMALDG": ("global", "bulk load"),
    "UBLKCP": ("global", "bulk load"),
    "UTMASTG": ("global", "bulk store"),
    "UTMAREDG": ("global", "bulk reduction"),
    "UBLKRED": ("global", "bulk reduction"),
}


def instruction_counts(
    translated: Translated, counts: NDArray[Any], rows: Sequence[int] | None = None
) -> tuple[InstructionCounts, ...]:
    """The counts of each instruction, or of those in `rows`, beside its text and source line."""
    instructions = translated.kernel.instructions
    chosen = range(len(instructions)) if rows is None else rows
    columns = {name: counts[name].tolist() for name in COUNT.names or ()}
    return tuple(
        InstructionCounts(
            address=instruction.address,
            opcode=instruction.opcode,
            text=instruction.text,
            file=instruction.source.file if instruction.source else None,
            line=instruction.source.line if instruction.source else None,
            callers=instruction.source.callers if instruction.source else (),
            **_access(instruction),
            **{name: column[k] for name, column in columns.items()},
        )
        for k, instruction in ((k, instructions[k]) for k in chosen)
    )


def _access(instruction: Instruction) -> dict[str, Any]:
    access = _ACCESSES.get(instruction.opcode)
    if access is None:
        return {}
    space, action = access
    if action.startswith("bulk"):
        return _bulk_access(instruction, action)
    return {"space": space, "action": action, "bytes_per_lane": width(instruction)}


def _bulk_access(instruction: Instruction, action: MemoryAction) -> dict[str, Any]:
    if instruction.opcode.startswith("UBLK"):
        where = direction(instruction)
        if where == "BULK_SHARED":
            return {}
        if where == "BULK_STORE" and action == "bulk load":
            action = "bulk store"
    return {"space": "global", "action": action}


def loop_bytes(instructions: Iterable[InstructionCounts]) -> int:
    """Bytes of code that a launch executes over and over, as far as their counts tell.

    Instructions executed at least half as often as any, and more often than some: of straight code,
    none is.
    """
    executed = [one.executed for one in instructions if one.executed]
    often, fewest = max(executed, default=0) / 2, min(executed, default=0)
    return INSTRUCTION_BYTES * sum(times >= often and times > fewest for times in executed)
