"""Counters of a launch estimated from blocks drawn at random, with intervals.

Blocks that were not drawn at random (corners, edges, the centre, and those that were followed)
count as what they are; the mean of the random ones stands for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core.binding import COUNT

CONFIDENCE = 0.95
# Half widths of intervals, in standard errors. Two would do for a normal distribution; the mean of
# few values that are mostly equal is skewed, and two cover it in 93% of cases.
STANDARD_ERRORS = 2.4
NARROW = 0.02  # relative half width of an interval, or share of blocks, that is taken for none

# Makes counters of the counts of some instructions, by their numbers; None: of all.
Metrics = Callable[[NDArray[Any], Sequence[int] | None], Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Counters that are estimates, with the ends of their 95% intervals.

    `agreeing`, `drawn`: how many of the random blocks have the counts of most. `unseen_share`:
    share of the blocks that may count otherwise although none of the random ones does, at 95%
    confidence.
    """

    intervals: Mapping[str, tuple[float, float]]
    drawn: int
    agreeing: int
    unseen_share: float

    def seen(self, blocks: int, where: str = "") -> str:
        """What the random blocks show of all `blocks`; `where` they may differ."""
        if self.agreeing < self.drawn:
            return f"{self.drawn} of them were drawn at random and differ{where}"
        return (
            f"{self.drawn} of {self.drawn} random blocks agree{where}: up to "
            f"{100 * self.unseen_share:.2g}% of {blocks:,} may differ (95%)"
        )

    @property
    def widest(self) -> float:
        """Largest half width of an interval, relative to its middle."""
        return max(map(relative_half_width, self.intervals.values()), default=0.0)

    @property
    def is_narrow(self) -> bool:
        """True if the intervals are narrow, and so is what blocks that agree leave open."""
        is_seen = self.agreeing < self.drawn or self.unseen_share <= NARROW
        return self.widest <= NARROW and is_seen


def relative_half_width(interval: tuple[float, float]) -> float:
    low, high = interval
    return (high - low) / (high + low) if high > low else 0.0


def unseen_share(drawn: int) -> float:
    """Largest share of blocks that a sample of so many misses with a probability of 5%.

    Source: (1 - share) ** drawn = 0.05.
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / drawn)) if drawn else 1.0


def drawn_blocks(known: Sequence[int], blocks: int, count: int, seed: bytes) -> list[int]:
    """`count` blocks other than those that are `known`, drawn uniformly without replacement."""
    generator = np.random.default_rng(int.from_bytes(sha256(seed).digest()[:8]))
    rest = blocks - len(known)
    drawn = np.sort(generator.choice(rest, size=min(count, rest), replace=False, shuffle=False))
    # The nth of the other blocks comes after each known one that at most n others precede.
    others_before = np.sort(np.asarray(known, dtype=np.int64)) - np.arange(len(known))
    after = np.searchsorted(others_before, drawn, side="right")
    return [int(block) for block in drawn + after]


def estimated_counts(
    certain: NDArray[Any],
    may_differ: NDArray[Any],
    known: Sequence[NDArray[Any]],
    drawn: Sequence[NDArray[Any]],
    blocks: int,
) -> NDArray[Any]:
    """Counts of a launch: `certain` ones as they are, those that `may_differ` as estimates."""
    found = certain.copy()
    rest = blocks - len(known)
    for name in COUNT.names or ():
        open_ = may_differ[name] > 0
        if open_.any():
            mean = np.mean([one[name][open_].astype(np.float64) for one in drawn], axis=0)
            sums = sum((one[name][open_].astype(np.float64) for one in known), np.zeros(len(mean)))
            found[name][open_] = np.rint(sums + rest * mean).astype(np.uint64)
    return found


def estimates(
    total: Mapping[str, int],
    may_differ: NDArray[Any],
    drawn: Sequence[NDArray[Any]],
    rest: int,
    metrics: Metrics,
) -> Estimates:
    """Intervals of the counters among `total` that may differ between blocks.

    `drawn`: counts of the random blocks, which stand for `rest` blocks. `metrics` makes counters of
    counts.
    """
    rows = np.flatnonzero(_any_field(may_differ))
    names = [name for name, n in metrics(_weights(may_differ), rows.tolist()).items() if n]
    values = _metrics_of(drawn, may_differ, rows, metrics, names)
    intervals = {}
    for name, of_blocks in zip(names, values.T, strict=True):
        error = _standard_error(of_blocks, rest) * rest
        least = float(total[name] - of_blocks.mean() * rest + of_blocks.sum())  # was executed
        middle = float(total[name])
        low = max(least, middle - STANDARD_ERRORS * error) if error else middle
        intervals[name] = (low, middle + STANDARD_ERRORS * error)
    _, which = np.unique(values, axis=0, return_inverse=True)
    alike = int(np.bincount(which.ravel()).max(initial=0)) if names else len(drawn)
    return Estimates(
        intervals=intervals,
        drawn=len(drawn),
        agreeing=alike,
        unseen_share=unseen_share(len(drawn)),
    )


def _standard_error(values: NDArray[np.float64], rest: int) -> float:
    """Of the mean of values that were drawn without replacement from `rest` ones."""
    drawn = len(values)
    if drawn < 2 or (values == values[0]).all():
        return 0.0
    return float(values.std(ddof=1)) / sqrt(drawn) * sqrt(max(0.0, 1 - drawn / rest))


def _weights(may_differ: NDArray[Any]) -> NDArray[Any]:
    """Counts that no difference of two of them makes zero, where they may differ."""
    found = may_differ.copy()
    for k, name in enumerate(COUNT.names or ()):
        found[name] <<= np.uint64(2 * k)
    return found


def _any_field(counts: NDArray[Any]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.zeros(len(counts), dtype=np.bool_)
    for name in COUNT.names or ():
        found |= counts[name] > 0
    return found


def _metrics_of(
    drawn: Sequence[NDArray[Any]],
    may_differ: NDArray[Any],
    rows: NDArray[np.int64],
    metrics: Metrics,
    names: Sequence[str],
) -> NDArray[np.float64]:
    """Counters of each random block, as far as its counts may differ; equal ones are made once."""
    known: dict[int, list[float]] = {}
    found = []
    for one in drawn:
        if id(one) not in known:
            part = one.copy()
            for name in COUNT.names or ():
                part[name] *= may_differ[name]
            executed = rows[_any_field(part)[rows]].tolist()
            of_block = metrics(part, executed)
            known[id(one)] = [float(of_block.get(name, 0)) for name in names]
        found.append(known[id(one)])
    return np.array(found, dtype=np.float64).reshape(len(drawn), len(names))
