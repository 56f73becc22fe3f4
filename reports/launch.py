"""The counters of one launch as rows, each with the metric that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from analysis.records.counters import (
    ALL_COUNTERS,
    MODELLED,
    OF_BULK_COPIES,
    CounterClass,
    InstructionCounts,
)
from analysis.records.metrics import THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS
from analysis.records.source_lines import Access, accesses
from reports import text

SPACES = ("global", "shared", "local", "generic")
BELOW_L1 = "L2 and DRAM"


@dataclass(frozen=True, kw_only=True)
class CounterRow:
    """A counter, under Nsight Compute's name where it has one, or a metric that follows from it.

    `grade` is how far to trust a counter that is not exact.
    """

    group: str
    meaning: str
    value: str
    name: str = ""
    grade: str = ""
    is_metric: bool = False


def counter_rows(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int]
) -> dict[str, list[CounterRow]]:
    """The counters of a launch that are not zero, by group, each before its metric."""
    rows = [*_counted(instructions, counters), *_not_named(instructions)]
    groups = ("instructions", *(f"{space} memory" for space in SPACES), BELOW_L1)
    found = {group: [row for row in rows if row.group == group] for group in groups}
    return {group: of_group for group, of_group in found.items() if of_group}


def _counted(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int]
) -> Iterator[CounterRow]:
    """The counters that are not zero, each with the metric that follows from it."""
    metrics = _metrics(instructions, counters)
    for name, value in counters.items():
        if not value:
            continue
        counter = ALL_COUNTERS[name]
        group = next((f"{s} memory" for s in SPACES if f"_{s}_" in name), "instructions")
        if name in MODELLED or name in OF_BULK_COPIES:
            group = BELOW_L1
        grade = "" if counter.grade == CounterClass.EXACT else counter.grade
        yield CounterRow(
            group=group, meaning=counter.meaning, value=f"{value:,}", name=name, grade=grade
        )
        if name in metrics:
            meaning, derived = metrics[name]
            yield CounterRow(group=group, meaning=meaning, value=derived, is_metric=True)


def _not_named(instructions: Sequence[InstructionCounts]) -> Iterator[CounterRow]:
    """Accesses that no counter is for, such as atomics."""
    for one in accesses(instructions):
        what, group = f"{one.space} {one.action}s", f"{one.space} memory"
        if one.action in ("load", "store", "copy") and one.space != "generic":
            continue
        unit = "wavefronts" if one.space == "shared" else "32-byte sectors"
        yield CounterRow(group=group, meaning=f"requests of {what}", value=f"{one.requests:,}")
        yield CounterRow(group=group, meaning=f"{unit} of {what}", value=f"{one.units:,}")


def _metrics(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int]
) -> dict[str, tuple[str, str]]:
    """What follows from counters, by the name of the counter that it is shown below."""
    metrics = {}
    if issued := counters[WARP_INSTRUCTIONS]:
        active = text.count(counters[THREAD_INSTRUCTIONS] / issued)
        metrics[THREAD_INSTRUCTIONS] = "active threads per warp instruction", f"{active} of 32"
    # asynchronous copies into shared memory count as global loads
    sides = {"load": "ld", "copy": "ld", "store": "st"}
    found: dict[tuple[str, str], list[Access]] = {}
    for one in accesses(instructions):
        if one.action in sides:
            found.setdefault((one.space, sides[one.action]), []).append(one)
    for (space, short), of in found.items():
        requests = sum(one.requests for one in of)
        units, ideal = (
            text.count(sum(getattr(one, name) for one in of) / requests)
            for name in ("units", "ideal")
        )
        if space == "shared":
            conflicts = text.count(sum(one.excess for one in of) / requests)
            name = f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{short}.sum"
            metrics[name] = "bank conflicts per access", conflicts
        else:
            but = f" (ideal: {ideal})" if units != ideal else ", the fewest possible"
            name = f"l1tex__t_sectors_pipe_lsu_mem_{space}_op_{short}.sum"
            metrics[name] = f"sectors per request{but}", units
    return metrics
