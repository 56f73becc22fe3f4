"""The tables of public launches in docs/validation.md, from predictions beside measured times.

    python -m validation.public_launches.page [PART]

prints the tables of a part as it was opened, or a row for each part. The page has these lines,
which a test compares.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from statistics import fmean, median
from textwrap import wrap

from validation import recordings
from validation.public_launches.listed import FOLDER, HALVES, SEED, Part, measurements
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

#: The first predictions of each part that was held out, and the commit that made them.
OPENED: dict[Part, str] = {
    "second": "85786406",
    "third": "89d31fa9",
    "fourth": "9f8f2534",
    "fifth": "efcc59f7",
}
WORST = 5
WIDTH = 180  # of a line of text
GROUPS = {"limiter": "limiter", "l2": "L2", "rows": "row of the table of mechanisms"}


def opened(part: Part) -> list[Cell]:
    """The first predictions of a part, beside what was measured."""
    found: list[Cell] = recordings.read(FOLDER / f"{part}_predicted.json")[part]
    return found


def look(part: Part) -> str:
    """A row of the table that has each part as it was opened."""
    found = opened(part)
    told = [line for line in limiters(part, found) if line.startswith("where")]
    busy, waits = [line.rpartition(": ")[2] for line in told] + ["–"] * (2 - len(told))
    name = f"{part} {'half' if part in HALVES else 'part'} ({OPENED[part]})"
    return f"| {_errors(name, found)} | {busy} | {waits} |"


def page(part: Part, found: Sequence[Cell]) -> Iterator[str]:
    """The tables of a part, a line each."""
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
    parser.add_argument("part", nargs="?", choices=tuple(OPENED))
    chosen = parser.parse_args(argv)
    if chosen.part:
        print("\n".join(page(chosen.part, opened(chosen.part))))
    else:
        print("\n".join(map(look, OPENED)))


if __name__ == "__main__":
    main()
