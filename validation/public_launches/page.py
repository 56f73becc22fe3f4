"""The tables of a part in docs/validation.md, from its predictions beside its measured times.

    python -m validation.public_launches.page FILE

FILE was written by `predict --join`. The page has these lines as they are printed, which a test
compares.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from textwrap import wrap

from validation.public_launches.listed import SEED, Part, measurements
from validation.public_launches.predict import (
    SHOWN,
    Cell,
    Errors,
    as_timed,
    error_of,
    factor_of,
    grouped,
    half_width,
    limited_by_dram,
    limiters,
    measured_s,
    median_ratio,
    share_held,
)

WORST = 5
WIDTH = 180  # of a line of text
GROUPS = {"limiter": "limiter", "l2": "L2", "rows": "row of the table of mechanisms"}


def page(part: Part, found: Sequence[Cell]) -> Iterator[str]:
    """The tables, a line each."""
    gap_s = measurements(part)["gap"]["time_s"]
    looks: dict[str, Sequence[Cell]] = {"as timed": list(map(as_timed, found))}
    if gap_s:
        looks = {f"less {gap_s * 1e6:.3f} µs": found} | looks
    yield from _table(
        "times | launches | shorter than 5 µs | without a time | mean error | median | "
        "90th percentile | off by more than 1.6 | in their interval | half width",
        [_errors(title, of) for title, of in looks.items()],
    )
    known, *also = (Errors.of(of).known for of in looks.values())
    for key, title in GROUPS.items():
        groups = grouped(known, key)
        columns = [groups, *(grouped(of, key) for of in also)]
        heads = ["launches | mean error | predicted / measured | in their interval"] * len(columns)
        yield from _table(
            f"{title} | {' | as timed: '.join(heads)}",
            [" | ".join([name, *(_group(of[name]) for of in columns)]) for name in groups],
        )
    errors = {
        f"`{name}` ({len(of)})" if len(of) > 1 else f"`{name}`": fmean(map(error_of, of))
        for name, of in grouped(known, "family").items()
    }
    ordered = sorted(errors, key=errors.__getitem__)
    text = ", ".join(f"{name} {errors[name]:.1%}" for name in ordered)
    yield from wrap(f"Mean errors by program: {text}.", WIDTH, break_on_hyphens=False)
    yield ""
    worst = sorted(known, key=factor_of, reverse=True)[:WORST]
    drawn = random.Random(SEED).sample(known, min(SHOWN, len(known)))
    for title, of in (("the worst", worst), ("ten at random", drawn)):
        yield from _table(
            f"{title} | predicted, µs | interval | measured, µs | limiter | L2", map(_launch, of)
        )
    busy, waits, *_ = limiters(part, found)
    yield f"The limiter: {busy}; {waits}. {limited_by_dram(part)} counted launches."


def _table(head: str, rows: Iterator[str] | Sequence[str]) -> Iterator[str]:
    yield f"| {head} |"
    yield "|" + "---|" * (head.count(" | ") + 1)
    for row in rows:
        yield f"| {row} |"
    yield ""


def _errors(title: str, found: Sequence[Cell]) -> str:
    errors = Errors.of(found)
    return (
        f"{title} | {len(errors.timed)} | {errors.shorter} | {errors.without_time} | "
        f"{fmean(errors.each):.1%} | {median(errors.each):.1%} | {errors.highest_tenth:.1%} | "
        f"{errors.off} | {share_held(errors.known):.0%} | {half_width(errors.known):.1%}"
    )


def _group(of: Sequence[Cell]) -> str:
    mean, ratio = fmean(map(error_of, of)), median_ratio(of)
    return f"{len(of)} | {mean:.1%} | {ratio:.2f} | {share_held(of):.0%}"


def _launch(cell: Cell) -> str:
    family, kernel, *_ = cell["label"].split()
    times_s = [cell["predicted_s"], *cell["interval_s"], measured_s(cell) or 0.0]
    predicted, low, high, measured = (f"{time_s * 1e6:.1f}" for time_s in times_s)
    return (
        f"`{family}` {kernel.partition('.')[0]} | {predicted} | {low} to {high} | {measured} | "
        f"{cell['limiter']} | {cell['l2']}"
    )


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, metavar="FILE")
    chosen = parser.parse_args(argv)
    for part, found in json.loads(chosen.file.read_text(encoding="utf-8")).items():
        print("\n".join(page(part, found)))


if __name__ == "__main__":
    main()
