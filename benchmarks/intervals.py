"""The launches that intervals of predicted times come from, and how often the intervals hold.

    python -m benchmarks.intervals FILE ... [--write]

Each FILE was written by `benchmarks.prediction_errors --json` or by
`validation.public_launches.predict`. Intervals of the launches of the files come from the launches
of other families among them, as wide as their errors say. `--write` writes
`analysis/comparison/like_launches.py`; `benchmarks.held_out_widths --write` then writes how wide
intervals of other launches have to be.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from textwrap import wrap
from typing import Any

from analysis.comparison.interval import (
    ALIKE,
    COVERS,
    LAUNCH,
    UNITS,
    LaunchArrays,
    MeasuredLaunch,
    busy_of,
    measured_launches,
    merged,
    table_of,
)
from analysis.comparison.like_launches import HELD_OUT, PAIR_SHARE
from analysis.devices import find_device
from analysis.hardware.sm_constants import constants_of
from analysis.l2_state import L2State
from analysis.timing.predicted import Resource
from validation import ROOT
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS

TABLE = ROOT / "analysis" / "comparison" / "like_launches.py"
SHORTEST_S = 2e-6
MOST_COLUMNS = 100
LEAST_OF_FIRST = 0.5  # of its first time, that a launch takes which does the same work again
FAMILIES = {one.kernel: one.family for one in TRIALS} | {one.kernel: one.kernel for one in TIMED}


@dataclass(frozen=True, kw_only=True)
class Known:
    """A launch with its family, of which no other launch stands for it."""

    family: str
    version: str  #: the launch without its kernel: two versions of one are compared
    label: str
    launch: MeasuredLaunch


@dataclass(frozen=True, kw_only=True)
class WithInterval:
    """A launch and its interval, as ends in log(measured / predicted)."""

    launch: MeasuredLaunch
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.launch.error <= self.high

    @property
    def half_width(self) -> float:
        return (exp(self.high) - exp(self.low)) / 2

    def scaled(self, factor: float) -> WithInterval:
        """The same with a wider interval."""
        return replace(self, low=factor * self.low, high=factor * self.high)


def known_of(path: Path, part: str | None = None) -> Iterator[Known]:
    """The launches of a file, or of one of its parts, that have both times."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for cells in [document[part]] if part else document.values():
        for cell in cells:
            l2 = L2State(cell.get("l2", L2State.DIRTY))
            measured_s = cell.get(f"measured_{l2}_s")
            if measured_s is None or "predicted_s" not in cell or measured_s < SHORTEST_S:
                continue
            if l2 is L2State.WARM and _finds_work_done(cell):
                continue
            key = cell.get("timed_on", cell.get("device", "h200"))
            if key not in ("h200", "h100-sxm"):
                continue
            launch_s = constants_of(find_device(key)).launch_s
            bounds_s = merged((Resource(name), one) for name, one in cell["bounds_s"].items())
            limiter = Resource(cell["limiter"])
            kernel, _, version = cell["label"].partition(" ")
            is_rung = "held_out" in cell
            yield Known(
                family=cell.get("family") or ("ladder" if is_rung else FAMILIES[kernel]),
                version=version,
                label=cell["label"],
                launch=MeasuredLaunch(
                    limiter=ALIKE.get(limiter, limiter),
                    l2=l2,
                    busy=busy_of(bounds_s, cell["predicted_s"], launch_s),
                    error=log(measured_s / cell["predicted_s"]),
                ),
            )


def _finds_work_done(cell: Mapping[str, Any]) -> bool:
    """True if a launch on what another one left is much shorter than the first with a dirty L2.

    Then the time with a warm L2 is that of a launch that finds its work done, such as one whose
    blocks begin by reading flags of the blocks before.
    """
    first_s = cell["measured_dirty_s"]
    return bool(cell.get("again_s", first_s) < LEAST_OF_FIRST * first_s)


def judged(launches: Sequence[Known]) -> list[WithInterval]:
    """Each launch with the interval from the other families among them."""
    tables = {
        family: LaunchArrays.of([one.launch for one in launches if one.family != family])
        for family in {one.family for one in launches}
    }
    return [with_interval(one.launch, tables[one.family]) for one in launches]


def with_interval(
    launch: MeasuredLaunch, table: LaunchArrays, covers: float = COVERS
) -> WithInterval:
    """A launch with the interval from a table, as errors of its launches give it."""
    low, high = table.ends(launch.limiter, launch.l2, launch.busy, covers)
    return WithInterval(launch=launch, low=low, high=high)


def report(rows: Sequence[WithInterval], title: str) -> Iterator[str]:
    """Report the share of intervals that hold, their width, and the errors of wide ones."""
    widths = [row.half_width for row in rows]
    yield (
        f"{title}: {len(rows)} launches, {fmean(row.holds for row in rows):.0%} in their interval, "
        f"half width {median(widths):.1%} (median)"
    )
    by_limiter: dict[str, list[WithInterval]] = defaultdict(list)
    for row in rows:
        by_limiter[row.launch.limiter].append(row)
    for limiter, of in sorted(by_limiter.items(), key=lambda item: -len(item[1])):
        held = fmean(row.holds for row in of)
        width = median(row.half_width for row in of)
        yield f"  {limiter:22}{len(of):4} launches {held:6.0%}   half width {width:6.1%}"
    narrow, wide = quarters(rows)
    yield f"  mean error of the narrowest quarter {narrow:.1%}, of the widest {wide:.1%}"


def quarters(rows: Sequence[WithInterval]) -> tuple[float, float]:
    """Mean error of the quarter with the narrowest intervals, and of the one with the widest."""
    ordered = sorted(rows, key=lambda row: row.half_width)
    quarter = max(1, len(ordered) // 4)
    narrow, wide = (
        fmean(abs(exp(-row.launch.error) - 1) for row in part)
        for part in (ordered[:quarter], ordered[-quarter:])
    )
    return narrow, wide


def written(launches: Sequence[MeasuredLaunch], held_out: float, share: float) -> str:
    head = TABLE.read_text(encoding="utf-8").partition("# Width of")[0]
    lines = table_of(launches)
    kept = measured_launches(" ".join([*(unit.name for unit in UNITS), LAUNCH]), lines)
    names = "\n".join(wrap(" ".join([*(unit.name for unit in UNITS), LAUNCH]), 99))
    return (
        f"{head}# Width of an interval, relative to the one that errors of these launches give.\n"
        f"HELD_OUT = {held_out:.2f}\n\n"
        "# Distance of a launch to the fifth neighbour among the others, in the median.\n"
        f"USUAL_DISTANCE = {LaunchArrays.of(kept).usual_distance:.4f}\n\n"
        "# Half width of the interval of a change between two versions of one kernel, "
        "relative to that of\n# two independent predictions.\n"
        f'PAIR_SHARE = {share:.2f}\n\nCOLUMNS = """\n{names}\n"""\n\n'
        f'LAUNCHES = """\n{_in_groups(lines)}\n"""\n'
    )


def _in_groups(table: str) -> str:
    """The table with limiter and L2 above their launches, of which a line has as many as fit."""
    groups: dict[str, list[str]] = defaultdict(list)
    for line in table.splitlines():
        limiter, l2, launch = line.split(maxsplit=2)
        lines = groups[f"{limiter} {l2}"]
        if lines and len(both := f"{lines[-1]} | {launch}") < MOST_COLUMNS:
            lines[-1] = both
        else:
            lines.append(launch)
    return "\n".join("\n".join([name, *lines]) for name, lines in groups.items())


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(argv)
    launches = [one for path in chosen.files for one in known_of(path)]
    print("\n".join(report(judged(launches), "other families")))
    if chosen.write:
        of_files = [one.launch for one in launches]
        TABLE.write_text(written(of_files, HELD_OUT, PAIR_SHARE), encoding="utf-8")


if __name__ == "__main__":
    main()
