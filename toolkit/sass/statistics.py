"""From the core's counts per instruction to those that the analysis names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

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
    chosen = list(range(len(instructions))) if rows is None else list(rows)
    if not chosen:
        return ()
    named = zip(*(_named(instructions[k]) for k in chosen), strict=True)
    columns: dict[str, Sequence[Any]] = dict(zip(_NAMED, named, strict=True))
    columns |= {name: counts[name][chosen].tolist() for name in COUNT.names or ()}
    return tuple(map(_with_values, zip(*(columns[name] for name in _FIELDS), strict=True)))


_FIELDS = tuple(one.name for one in fields(InstructionCounts))
_SETTERS = [getattr(InstructionCounts, name).__set__ for name in _FIELDS]


def _with_values(values: Iterable[Any]) -> InstructionCounts:
    """Counts with the values of `_FIELDS`, made in a third of the time of a frozen dataclass."""
    made = object.__new__(InstructionCounts)
    for put, value in zip(_SETTERS, values, strict=True):
        put(made, value)
    return made


# Fields of `InstructionCounts` that do not depend on a launch.
_NAMED = (
    *("address", "opcode", "text", "file", "line", "callers"),
    *("space", "action", "bytes_per_lane"),
)


def _named(instruction: Instruction) -> tuple[Any, ...]:
    """Values of `_NAMED`."""
    source, access = instruction.source, _access(instruction)
    return (
        instruction.address,
        instruction.opcode,
        instruction.text,
        source.file if source else None,
        source.line if source else None,
        source.callers if source else (),
        access.space,
        access.action,
        access.bytes_per_lane,
    )


class _Access(NamedTuple):
    """Memory that an instruction accesses, as the fields of `InstructionCounts` say it."""

    space: MemorySpace | None = None
    action: MemoryAction | None = None
    bytes_per_lane: int = 0


def _access(instruction: Instruction) -> _Access:
    access = _ACCESSES.get(instruction.opcode)
    if access is None:
        return _Access()
    space, action = access
    if action.startswith("bulk"):
        return _bulk_access(instruction, action)
    return _Access(space, action, width(instruction))


def _bulk_access(instruction: Instruction, action: MemoryAction) -> _Access:
    if instruction.opcode.startswith("UBLK"):
        where = direction(instruction)
        if where == "BULK_SHARED":
            return _Access()
        if where == "BULK_STORE" and action == "bulk load":
            action = "bulk store"
    return _Access("global", action)


def loop_bytes(instructions: Iterable[InstructionCounts]) -> int:
    """Bytes of code that a launch executes over and over, as far as their counts tell.

    Instructions executed at least half as often as any, and more often than some: of straight code,
    none is.
    """
    executed = [one.executed for one in instructions if one.executed]
    often, fewest = max(executed, default=0) / 2, min(executed, default=0)
    return INSTRUCTION_BYTES * sum(times >= often and times > fewest for times in executed)
