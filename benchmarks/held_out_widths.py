"""Widths that intervals of predicted times need, by launches that were held out.

    python -m benchmarks.held_out_widths                        # tables
    python -m benchmarks.held_out_widths --write --figure FILE.svg
    python -m benchmarks.held_out_widths --record second FILE.json --part second --model COMMIT
        --like COMMIT

`LOOKS` has the first predictions of parts that were held out until then: the launches, and the
development launches that intervals came from at that time (`analysis/comparison/like_launches.py`
of the commit of --like). The model is another one each time, so intervals of a part come from the
development launches of its own model. A launch needs the width of its interval times a factor:
its error, over the end on its side. The factor of a part is the one that four fifths of its
launches need. HELD_OUT is the one of the newest part of the public launches, which the newest of
the models predicted. The tables say how often intervals hold with the factor of the newest other
part. `--record` adds a part, or takes its place; without --like its
launches are compared with those that ship. `--write` writes HELD_OUT, and
PAIR_SHARE, which comes from pairs of launches of one program.
"""

from __future__ import annotations

import argparse
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, hypot
from pathlib import Path
from statistics import fmean, median

from analysis.comparison.interval import (
    COVERS,
    LaunchArrays,
    MeasuredLaunch,
    measured_launches,
    table_of,
)
from analysis.comparison.like_launches import COLUMNS, LAUNCHES
from analysis.l2_state import L2State
from benchmarks.intervals import TABLE, WithInterval, known_of, quarters, with_interval, written
from validation import ROOT, recordings
from validation.public_launches.listed import PARTS

LOOKS = ROOT / "validation" / "public_launches" / "recorded" / "looks.json"
LEAST_OF_LIMITER = 7  # launches
_TABLES = ("COLUMNS", "LAUNCHES")


LEAST_PAIRS = 30  # of a part: a fifth of fewer are a handful of launches

_SIZE, _MARGIN = 360, 48
_COLORS = ("steelblue", "darkorange", "seagreen", "firebrick", "purple")
_FIGURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}"
 font-family="sans-serif" font-size="11">
<rect width="{size}" height="{size}" fill="white"/>
<path d="M{low} {bottom}H{high}M{low} {bottom}V{top}" stroke="black" fill="none"/>
<path d="M{low} {bottom}L{high} {top}" stroke="gray" stroke-dasharray="4"/>
{marks}
<text x="{middle}" y="{below}" text-anchor="middle">chance that the interval states</text>
<text x="14" y="{middle}" text-anchor="middle" transform="rotate(-90 14 {middle})">
share of measured times in it</text>
<text x="{middle}" y="20" text-anchor="middle">
launches that widths do not come from, NVIDIA H200</text>
</svg>
"""


def figure(curves: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Share of intervals that hold, by the chance that they state, of each part, as an SVG."""
    low, high = _MARGIN, _SIZE - _MARGIN // 2

    def place(share: float) -> float:
        return round(low + share * (high - low), 1)

    def height(share: float) -> float:
        return round(_SIZE - place(share), 1)

    marks = [
        f'<text x="{place(one)}" y="{height(0) + 16}" text-anchor="middle">{one:.0%}</text>'
        f'<text x="{low - 6}" y="{height(one) + 4}" text-anchor="end">{one:.0%}</text>'
        for one in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    ]
    for k, ((name, curve), color) in enumerate(zip(curves.items(), _COLORS, strict=False)):
        points = [(place(chance), height(share)) for chance, share in curve]
        line = " ".join(f"{x},{y}" for x, y in points)
        marks.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        marks += [f'<circle cx="{x}" cy="{y}" r="3" fill="{color}"/>' for x, y in points]
        marks.append(
            f'<text x="{place(0.05)}" y="{height(0.95) + 16 * k}" fill="{color}">{name}</text>'
        )
    return _FIGURE.format(
        size=_SIZE,
        low=low,
        high=high,
        middle=_SIZE // 2,
        bottom=height(0),
        top=height(1),
        below=_SIZE - 8,
        marks="\n".join(marks),
    )


@dataclass(frozen=True, kw_only=True)
class Look:
    """A part, as the model predicted it that was first to do so."""

    part: str
    model: str  #: its commit
    launches: Sequence[MeasuredLaunch]
    programs: Sequence[str]  #: of each launch
    like: LaunchArrays  #: the development launches of that model

    def unscaled(self, covers: float = COVERS) -> list[WithInterval]:
        """Launches with the intervals that errors of development launches give."""
        return [with_interval(one, self.like, covers) for one in self.launches]

    def needed(self) -> list[float]:
        """Factor of its width that the interval of each launch needs."""
        return [
            one.launch.error / (one.low if one.launch.error < 0 else one.high)
            for one in self.unscaled()
        ]

    def scaled(self, factor: float, covers: float = COVERS) -> list[WithInterval]:
        return [one.scaled(factor) for one in self.unscaled(covers)]

    def needed_of_pairs(self, factor: float) -> list[float]:
        """PAIR_SHARE that each pair of launches of one program needs, in one state of L2."""
        groups = defaultdict[tuple[str, L2State], list[WithInterval]](list)
        for program, one in zip(self.programs, self.scaled(factor), strict=True):
            groups[program, one.launch.l2].append(one)
        return [_needed_of(*pair) for of in groups.values() for pair in combinations(of, 2)]


def _needed_of(before: WithInterval, after: WithInterval) -> float:
    """Error of the change between two launches, over the end of its interval on that side."""
    error = after.launch.error - before.launch.error
    if error < 0:
        return -error / hypot(after.low, before.high)
    return error / hypot(after.high, before.low)


def factor_of(needed: Sequence[float]) -> float:
    """The factor with which one more such launch lies in its interval, with a chance of COVERS."""
    place = min(len(needed), ceil(COVERS * (len(needed) + 1)))
    return sorted(needed)[place - 1]


def looks() -> dict[str, Look]:
    """The recorded parts by name."""
    found = {}
    for one in recordings.read(LOOKS)["looks"]:
        like = measured_launches(one["columns"], one["like"] or LAUNCHES)
        lines = "\n".join(row["line"] for row in one["launches"])
        found[one["part"]] = Look(
            part=one["part"],
            model=one["model"],
            launches=measured_launches(one["own_columns"], lines),
            programs=[row["family"] for row in one["launches"]],
            like=LaunchArrays.of(like),
        )
    return found


def public(found: Mapping[str, Look]) -> list[str]:
    """The recorded parts of the public launches, the newest one last."""
    return [part for part in PARTS if part in found]


def held_out_factor(found: Mapping[str, Look]) -> float:
    """HELD_OUT: the factor of the newest part of the public launches."""
    return round(factor_of(found[public(found)[-1]].needed()), 2)


def source_of(found: Mapping[str, Look], part: str) -> str:
    """The part whose factor tests a part: the newest other one of the public launches."""
    return [one for one in public(found) if one != part][-1]


def pair_share(found: Mapping[str, Look]) -> float:
    """PAIR_SHARE: what pairs need, in the public part of LEAST_PAIRS or more that needs most."""
    factor = held_out_factor(found)
    needed = [found[part].needed_of_pairs(factor) for part in public(found)]
    many = [pairs for pairs in needed if len(pairs) >= LEAST_PAIRS]
    return round(max(map(factor_of, many or needed)), 2)


def crossed(found: Mapping[str, Look]) -> Iterator[tuple[str, str, list[WithInterval]]]:
    """Each part with the factor of another: where it is from, the part, its launches."""
    for part, look in found.items():
        source = source_of(found, part)
        yield source, part, look.scaled(factor_of(found[source].needed()))


def report(found: Mapping[str, Look]) -> Iterator[str]:
    """Tables of the factors, and of how often intervals hold."""
    for part, look in found.items():
        own = look.unscaled()
        yield (
            f"{part}, predicted by {look.model}: {len(own)} launches, "
            f"{fmean(one.holds for one in own):.0%} in the intervals of development launches, half "
            f"width {median(one.half_width for one in own):.1%}; they need "
            f"{factor_of(look.needed()):.2f} times the width"
        )
    yield f"HELD_OUT, of the {public(found)[-1]} part: {held_out_factor(found):.2f}"
    for source, part, rows in crossed(found):
        narrow, wide = quarters(rows)
        yield (
            f"{part}, with the factor of {source}: {fmean(one.holds for one in rows):.0%} of "
            f"{len(rows)} in their interval, half width "
            f"{median(one.half_width for one in rows):.1%}; mean error of the narrowest quarter "
            f"{narrow:.1%}, of the widest {wide:.1%} ({wide / narrow:.2f})"
        )
        by_limiter: dict[str, list[bool]] = defaultdict(list)
        for one in rows:
            by_limiter[one.launch.limiter].append(one.holds)
        yield "  " + ", ".join(
            f"{limiter} {fmean(holds):.0%} of {len(holds)}"
            for limiter, holds in sorted(by_limiter.items(), key=lambda item: -len(item[1]))
            if len(holds) >= LEAST_OF_LIMITER
        )
    yield f"public launches, with the factor of another part: {covered(found):.0%}"
    share = pair_share(found)
    yield f"changes between launches of one program: {share:.2f} of the width of independent errors"
    for part, look in found.items():
        needed = look.needed_of_pairs(held_out_factor(found))
        yield (
            f"  {part}: {len(needed)} pairs need {factor_of(needed):.2f}; with {share:.2f} "
            f"{fmean(one <= share for one in needed):.0%} lie in the interval of the change"
        )


def covered(found: Mapping[str, Look]) -> float:
    """COVERED: share of the public launches in intervals with the factor of another part."""
    of_parts = [rows for _, part, rows in crossed(found) if part in PARTS]
    return fmean(one.holds for rows in of_parts for one in rows)


def record(part: str, path: Path, name: str, model: str, like: str | None) -> None:
    """Add the launches of a file of predictions to `LOOKS`."""
    document = recordings.read(LOOKS) if LOOKS.exists() else {"looks": []}
    known = list(known_of(path, name))
    columns, table = COLUMNS, ""
    if like:
        place = TABLE.relative_to(ROOT).as_posix()
        command = ["git", "show", f"{like}:{place}"]
        text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        columns, table = (text.split(f'{name} = """')[1].split('"""')[0] for name in _TABLES)
    row = {
        "part": part,
        "model": model,
        "columns": " ".join(columns.split()),
        "own_columns": " ".join(COLUMNS.split()),
        "like": table.strip(),
        "launches": [
            {"family": one.family, "label": one.label, "line": table_of([one.launch])}
            for one in known
        ],
    }
    document["looks"] = [one for one in document["looks"] if one["part"] != part] + [row]
    LOOKS.write_text(recordings.text_of(document), encoding="utf-8")


def calibration(found: Mapping[str, Look]) -> dict[str, list[tuple[float, float]]]:
    """For each part, the chances that intervals state, and the shares that they hold for.

    The factor is that of `source_of`, which comes from intervals of COVERS.
    """
    curves = {}
    for part, look in found.items():
        factor = factor_of(found[source_of(found, part)].needed())
        curves[f"{part} ({len(look.launches)})"] = [
            (chance, fmean(one.holds for one in look.scaled(factor, chance)))
            for chance in (k / 20 for k in range(2, 20))
        ]
    return curves


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", nargs=2, metavar=("PART", "FILE"))
    parser.add_argument("--part", metavar="NAME", help="of FILE")
    parser.add_argument("--model", metavar="COMMIT")
    parser.add_argument("--like", metavar="COMMIT")
    parser.add_argument("--write", action="store_true", help="HELD_OUT and PAIR_SHARE")
    parser.add_argument("--figure", type=Path, metavar="FILE")
    chosen = parser.parse_args(argv)
    if chosen.record:
        part, path = chosen.record
        record(part, Path(path), chosen.part or part, chosen.model, chosen.like)
    found = looks()
    print("\n".join(report(found)))
    if chosen.write:
        launches = measured_launches(COLUMNS, LAUNCHES)
        text = written(launches, held_out_factor(found), pair_share(found))
        TABLE.write_text(text, encoding="utf-8")
    if chosen.figure:
        chosen.figure.write_text(figure(calibration(found)), encoding="utf-8")


if __name__ == "__main__":
    main()
