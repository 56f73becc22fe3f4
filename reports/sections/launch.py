"""The counters of one launch as a table, each with the metric that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.records.counters import (
    ALL_COUNTERS,
    MODELLED,
    OF_BULK_COPIES,
    CounterClass,
    InstructionCounts,
)
from analysis.records.metrics import THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS
from analysis.records.profile import Grade
from analysis.records.source_lines import Access, accesses
from reports import text
from reports.sections.table import Table, head, plain_table

SPACES = ("global", "shared", "local", "generic")
BELOW_L1 = "L2 and DRAM"


_Row = tuple[str, str, str, str]  # group, meaning, value, name at Nsight Compute


Estimates = Mapping[str, tuple[float, float]]  # ends of the 95% interval of each counter


def counters_table(
    instructions: Sequence[InstructionCounts],
    counters: Mapping[str, int],
    estimates: Estimates | None = None,
) -> Table:
    """Nonzero counters of a launch by group, each followed by the metrics derived from it."""
    found = [*_counted(instructions, counters, estimates or {}), *_not_named(instructions)]
    groups = ("instructions", *(f"{space} memory" for space in SPACES), BELOW_L1)
    titles = ("counters", ("count", Grade.SIMULATED, True), "at Nsight Compute")
    return plain_table(
        titles,
        (
            row
            for group in groups
            if (of_group := [one for one in found if one[0] == group])
            for row in (head(group, len(titles)), *(one[1:] for one in of_group))
        ),
    )


def _counted(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int], estimates: Estimates
) -> Iterator[_Row]:
    """The counters that are not zero, each with the metric that follows from it."""
    metrics = _metrics(instructions, counters)
    for name, value in counters.items():
        if not value:
            continue
        counter = ALL_COUNTERS[name]
        group = next((f"{s} memory" for s in SPACES if f"_{s}_" in name), "instructions")
        if name in MODELLED or name in OF_BULK_COPIES:
            group = BELOW_L1
        grade = "" if counter.counter_class == CounterClass.EXACT else f" ({counter.counter_class})"
        shown = f"{value:,}"
        if name in estimates:
            grade += " (estimate)"
            shown = text.count_interval(*estimates[name])
        yield group, f"  {counter.meaning}{grade}", shown, name
        if name in metrics:
            meaning, derived = metrics[name]
            yield group, f"    {meaning}", derived, ""


def _not_named(instructions: Sequence[InstructionCounts]) -> Iterator[_Row]:
    """Accesses that no counter is for, such as atomics."""
    for one in accesses(instructions):
        what, group = f"{one.space} {one.action}s", f"{one.space} memory"
        if one.action in ("load", "store", "copy") and one.space != "generic":
            continue
        unit = "wavefronts" if one.space == "shared" else "32-byte sectors"
        yield group, f"  requests of {what}", f"{one.requests:,}", ""
        yield group, f"  {unit} of {what}", f"{one.units:,}", ""


def _metrics(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int]
) -> dict[str, tuple[str, str]]:
    """Metrics derived from counters, keyed by the counter that each is shown below."""
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
