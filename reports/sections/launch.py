"""The counters of one launch as a table, each with the metric that follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from analysis.records.counters import ALL_COUNTERS, CounterClass, InstructionCounts
from analysis.records.description import Group
from analysis.records.metrics import L1_SECTORS, METRICS
from analysis.records.profile import Grade
from analysis.records.source_lines import AccessTotal, accesses
from reports import text
from reports.sections.table import Table, head, plain_table

_Row = tuple[str, str, str, str]  # group, label, value, name at Nsight Compute
Estimates = Mapping[str, tuple[float, float]]  # ends of the 95% interval of each counter


def counters_table(
    instructions: Sequence[InstructionCounts],
    counters: Mapping[str, int],
    estimates: Estimates | None = None,
) -> Table:
    """Nonzero counters of a launch by group, each followed by the metrics derived from it."""
    found = [*_counted(instructions, counters, estimates or {}), *_not_named(instructions)]
    titles = ("counters", ("count", Grade.SIMULATED, True), "at Nsight Compute")
    return plain_table(
        titles,
        (
            row
            for group in Group
            if (of_group := [one for one in found if one[0] == group])
            for row in (head(group, len(titles)), *(one[1:] for one in of_group))
        ),
    )


def _counted(
    instructions: Sequence[InstructionCounts], counters: Mapping[str, int], estimates: Estimates
) -> Iterator[_Row]:
    """The counters that are not zero, each with the metric that follows from it."""
    below = {one.below: one for one in METRICS.values() if one.below}
    ideals = _ideals(instructions)
    for tag, value in counters.items():
        if not value:
            continue
        counter = ALL_COUNTERS[tag]
        grade = "" if counter.counter_class == CounterClass.EXACT else f" ({counter.counter_class})"
        shown = text.written(counter, value)
        if tag in estimates:
            grade += " (estimate)"
            shown = text.count_interval(*estimates[tag])
        yield counter.group, f"  {counter.label}{grade}", shown, tag
        metric = below.get(tag)
        if metric and (derived := metric.of(counters)) is not None:
            shown = text.written(metric, derived)
            ideal = _against(shown, ideals.get(tag))
            yield metric.group, f"    {metric.label}{ideal}", shown, ""


def _not_named(instructions: Sequence[InstructionCounts]) -> Iterator[_Row]:
    """Accesses that no counter is for, such as atomics."""
    for one in accesses(instructions):
        what, group = f"{one.space} {one.action}s", f"{one.space} memory"
        if one.action in ("load", "store", "copy") and one.space != "generic":
            continue
        unit = "wavefronts" if one.space == "shared" else "32-byte sectors"
        yield group, f"  requests of {what}", text.digits(one.requests), ""
        yield group, f"  {unit} of {what}", text.digits(one.units), ""


def _ideals(instructions: Sequence[InstructionCounts]) -> dict[str, float]:
    """The fewest sectors per request that could hold the data, by the counter of the sectors."""
    # asynchronous copies into shared memory count as global loads
    sides = {"load": "ld", "copy": "ld", "store": "st"}
    found: dict[str, list[AccessTotal]] = {}
    for one in accesses(instructions):
        tag = L1_SECTORS.get((one.space, sides.get(one.action, "")))
        if tag:
            found.setdefault(tag, []).append(one)
    return {
        tag: sum(one.ideal for one in of) / sum(one.requests for one in of)
        for tag, of in found.items()
    }


def _against(shown: str, ideal: float | None) -> str:
    """Text that states the ideal number, empty if it is not known."""
    if ideal is None:
        return ""
    fewest = text.count(ideal)
    return " (ideal)" if fewest == shown else f" (ideal: {fewest})"
