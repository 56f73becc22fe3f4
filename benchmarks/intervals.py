"""The launches that intervals of predicted times come from, and how often the intervals hold.

    python -m benchmarks.intervals FILE ... [--test FILE ...] [--pairs FILE ...] [--write]

Each FILE was written by `benchmarks.prediction_errors --json` or by
`validation.public_launches.predict`. Intervals of the launches of the files come from the launches
of other families among them; those of `--test` from all of FILE. Versions of a kernel are compared
in the files of `--pairs`, such as the rungs at one shape (`--part recorded`). `--write` writes
`analysis/comparison/like_launches.py`.

    python -m benchmarks.intervals --shipped --test FILE --part second --figure FILE.svg

takes the launches of `like_launches.py` instead, and draws how often intervals of any chance hold.
`--add FILE` adds those of a file to them (`--part` says which), and `--write` writes both.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from textwrap import wrap

import numpy as np

from analysis.comparison.interval import (
    COVERS,
    LAUNCH,
    UNITS,
    LaunchArrays,
    MeasuredLaunch,
    busy_of,
    measured_launches,
    table_of,
)
from analysis.comparison.like_launches import COLUMNS, LAUNCHES, PAIR_SHARE
from analysis.devices import find_device
from analysis.hardware.sm_constants import constants_of
from analysis.l2_state import L2State
from analysis.timing.predicted import Resource
from validation import ROOT
from validation.timing.timed_launches import TIMED
from validation.timing.trial_launches import TRIALS

TABLE = ROOT / "analysis" / "comparison" / "like_launches.py"
SHORTEST_S = 2e-6
FAMILIES = {one.kernel: one.family for one in TRIALS} | {one.kernel: one.kernel for one in TIMED}


@dataclass(frozen=True, kw_only=True)
class Known:
    """A launch with its family, of which no other launch stands for it."""

    family: str
    version: str  #: the launch without its kernel: two versions of one are compared
    label: str
    launch: MeasuredLaunch


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A launch and its interval, as ends in log(measured / predicted)."""

    known: Known
    low: float
    high: float

    @property
    def holds(self) -> bool:
        return self.low <= self.known.launch.error <= self.high

    @property
    def half_width(self) -> float:
        return (exp(self.high) - exp(self.low)) / 2


def known_of(path: Path, part: str | None = None) -> Iterator[Known]:
    """The launches of a file, or of one of its parts, that have both times."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for cells in [document[part]] if part else document.values():
        for cell in cells:
            l2 = L2State(cell.get("l2", L2State.DIRTY))
            measured_s = cell.get(f"measured_{l2}_s")
            if measured_s is None or "predicted_s" not in cell or measured_s < SHORTEST_S:
                continue
            key = cell.get("timed_on", cell.get("device", "h200"))
            if key not in ("h200", "h100-sxm"):
                continue
            launch_s = constants_of(find_device(key)).launch_s
            bounds_s = {Resource(name): one for name, one in cell["bounds_s"].items()}
            kernel, _, version = cell["label"].partition(" ")
            is_rung = "held_out" in cell
            yield Known(
                family=cell.get("family") or ("ladder" if is_rung else FAMILIES[kernel]),
                version=version,
                label=cell["label"],
                launch=MeasuredLaunch(
                    limiter=Resource(cell["limiter"]),
                    l2=l2,
                    busy=busy_of(bounds_s, cell["predicted_s"], launch_s),
                    error=log(measured_s / cell["predicted_s"]),
                ),
            )


def judged(launches: Sequence[Known]) -> list[Tested]:
    """Each launch with the interval from the other families among them."""
    found, tables = [], dict[str, LaunchArrays]()
    for one in launches:
        if one.family not in tables:
            others = [x.launch for x in launches if x.family != one.family]
            tables[one.family] = LaunchArrays.of(others)
        found += judged_by([one], tables[one.family])
    return found


def judged_by(tested: Sequence[Known], table: LaunchArrays) -> list[Tested]:
    """Each launch with the interval from a table."""
    found = []
    for one in tested:
        low, high = table.ends(one.launch.limiter, one.launch.l2, one.launch.busy)
        found.append(Tested(known=one, low=low, high=high))
    return found


def report(rows: Sequence[Tested], title: str) -> Iterator[str]:
    """Report the share of intervals that hold, their width, and the errors of wide ones."""
    widths = [row.half_width for row in rows]
    yield (
        f"{title}: {len(rows)} launches, {fmean(row.holds for row in rows):.0%} in their interval, "
        f"half width {median(widths):.1%} (median)"
    )
    by_limiter: dict[str, list[Tested]] = defaultdict(list)
    for row in rows:
        by_limiter[row.known.launch.limiter].append(row)
    for limiter, of in sorted(by_limiter.items(), key=lambda item: -len(item[1])):
        held = fmean(row.holds for row in of)
        width = median(row.half_width for row in of)
        yield f"  {limiter:22}{len(of):4} launches {held:6.0%}   half width {width:6.1%}"
    ordered = sorted(rows, key=lambda row: row.half_width)
    quarter = max(1, len(ordered) // 4)
    narrow, wide = (
        fmean(abs(exp(-row.known.launch.error) - 1) for row in part)
        for part in (ordered[:quarter], ordered[-quarter:])
    )
    yield f"  mean error of the narrowest quarter {narrow:.1%}, of the widest {wide:.1%}"


def pair_share(launches: Sequence[Known]) -> tuple[float, int]:
    """Spread of the differences of errors of versions of a kernel, relative to independent ones.

    Four fifths of differences are at most so large, and four fifths of errors.
    """
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for one in launches:
        groups[one.family, one.version, one.launch.l2].append(one.launch.error)
    differences = [abs(a - b) for of in groups.values() for a, b in combinations(of, 2)]
    errors = [abs(one.launch.error) for one in launches]
    if not differences:
        return 1.0, 0
    apart, alone = (float(np.quantile(x, COVERS)) for x in (differences, errors))
    return apart / (2**0.5 * alone), len(differences)


CHANCES = tuple(k / 20 for k in range(2, 20))
_SIZE, _MARGIN = 360, 48
_FIGURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}"
 font-family="sans-serif" font-size="11">
<rect width="{size}" height="{size}" fill="white"/>
<path d="M{low} {bottom}H{high}M{low} {bottom}V{top}" stroke="black" fill="none"/>
<path d="M{low} {bottom}L{high} {top}" stroke="gray" stroke-dasharray="4"/>
<polyline points="{points}" fill="none" stroke="steelblue" stroke-width="2"/>
{marks}
<text x="{middle}" y="{below}" text-anchor="middle">chance that the interval states</text>
<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">
share of measured times in it</text>
<text x="{middle}" y="20" text-anchor="middle">{title}</text>
</svg>
"""


def held(tested: Sequence[Known], table: LaunchArrays, covers: float) -> float:
    """Share of the launches that an interval with this chance holds for."""
    found = []
    for one in (known.launch for known in tested):
        low, high = table.ends(one.limiter, one.l2, one.busy, covers)
        found.append(low <= one.error <= high)
    return fmean(found)


def figure(tested: Sequence[Known], table: LaunchArrays) -> str:
    """Share of intervals that hold, by the chance that they state, as an SVG."""
    low, high = _MARGIN, _SIZE - _MARGIN // 2

    def place(share: float) -> float:
        return round(low + share * (high - low), 1)

    def height(share: float) -> float:
        return round(_SIZE - place(share), 1)

    points = [(place(one), height(held(tested, table, one))) for one in CHANCES]
    marks = [
        f'<text x="{place(one)}" y="{height(0) + 16}" text-anchor="middle">{one:.0%}</text>'
        f'<text x="{low - 6}" y="{height(one) + 4}" text-anchor="end">{one:.0%}</text>'
        for one in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    marks += [f'<circle cx="{x}" cy="{y}" r="3" fill="steelblue"/>' for x, y in points]
    return _FIGURE.format(
        size=_SIZE,
        low=low,
        high=high,
        middle=_SIZE // 2,
        bottom=height(0),
        top=height(1),
        below=_SIZE - 8,
        points=" ".join(f"{x},{y}" for x, y in points),
        marks="\n".join(marks),
        title=f"{len(tested)} launches of public programs, NVIDIA H200",
    )


def written(launches: Sequence[MeasuredLaunch], share: float) -> str:
    head = TABLE.read_text(encoding="utf-8").partition("# Half width")[0]
    lines = table_of(launches)
    names = "\n".join(wrap(" ".join([*(unit.name for unit in UNITS), LAUNCH]), 99))
    return (
        f"{head}# Half width of the interval of a change between two versions of one kernel, "
        "relative to that of\n# two independent predictions.\n"
        f'PAIR_SHARE = {share:.2f}\n\nCOLUMNS = """\n{names}\n"""\n\n'
        f'LAUNCHES = """\n{lines}\n"""\n'
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE")
    parser.add_argument("--shipped", action="store_true", help="the launches that predictions use")
    parser.add_argument("--part", metavar="NAME", help="of the files of --test, such as second")
    parser.add_argument("--add", type=Path, metavar="FILE", help="launches beside those shipped")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="of --test, as SVG")
    parser.add_argument("--test", type=Path, nargs="+", metavar="FILE", default=[])
    parser.add_argument(
        "--pairs", type=Path, nargs="+", metavar="FILE", default=[], help="of versions of kernels"
    )
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args(argv)
    tests = [one for path in chosen.test for one in known_of(path, chosen.part)]
    if chosen.shipped:
        shipped = measured_launches(COLUMNS, LAUNCHES)
        if chosen.add:
            shipped += [one.launch for one in known_of(chosen.add, chosen.part)]
            if chosen.write:
                TABLE.write_text(written(shipped, PAIR_SHARE), encoding="utf-8")
        table = LaunchArrays.of(shipped)
        if tests:
            print("\n".join(report(judged_by(tests, table), "tested")))
        if chosen.figure:
            chosen.figure.write_text(figure(tests, table), encoding="utf-8")
        return
    launches = [one for path in chosen.files for one in known_of(path)]
    rows = judged(launches)
    print("\n".join(report(rows, "other families")))
    share, pairs = pair_share([one for path in chosen.pairs for one in known_of(path)])
    print(f"versions of one kernel: {share:.2f} of the width of independent errors, {pairs} pairs")
    if tests:
        table = LaunchArrays.of([one.launch for one in launches])
        print("\n".join(report(judged_by(tests, table), "tested")))
    if chosen.write:
        of_files = [one.launch for one in launches]
        TABLE.write_text(written(of_files, min(1.0, share)), encoding="utf-8")


if __name__ == "__main__":
    main()
