"""Counters of a launch estimated from blocks drawn at random, with intervals.

Blocks that were executed for another reason (corners, edges, the centre, and blocks whose values
were followed) contribute their own counts. All other blocks contribute the mean of the random ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toolkit.sass.core.binding import COUNT

CONFIDENCE = 0.95
# Half width of an interval, in standard errors. Two would be enough for a normal distribution, but
# the mean of few values that are mostly equal is skewed: two standard errors cover it in only 93%
# of cases.
STANDARD_ERRORS = 2.4
# The same of fewer draws: quantiles of Student's t distribution for 2, 3, ... draws, where they are
# larger.
STANDARD_ERRORS_OF_FEW = (12.71, 4.31, 3.19, 2.78, 2.58, 2.45)
NARROW = 0.02  # relative half width of an interval, or share of blocks, that counts as negligible

# Function that computes counters from the counts of the instructions with these numbers (None: of
# all instructions).
Metrics = Callable[[NDArray[Any], Sequence[int] | None], Mapping[str, int]]


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Estimated counters with their 95% intervals."""

    intervals: Mapping[str, tuple[float, float]]  # ends of the interval, by counter
    drawn: int  # number of random blocks
    agreeing: int  # number of random blocks with the most frequent counts
    # largest share of all blocks that may have other counts if all random blocks agree (95%)
    unseen_share: float

    def seen(self, blocks: int, where: str = "") -> str:
        """Text on the agreement of the random blocks.

        `blocks`: number of all blocks. `where`: text that names the code that may differ.
        """
        if self.agreeing < self.drawn:
            return f"{self.drawn} random ones among them differ{where}"
        if self.drawn == 1:
            agree = "one of them is random"
        else:
            agree = f"all {self.drawn} random ones among them agree{where}"
        most = f"{100 * self.unseen_share:.2g} % of {blocks:,}"
        return f"{agree}: at most {most} differ (95 % confidence)"

    @property
    def widest(self) -> float:
        """Largest half width of an interval, relative to its middle."""
        return max(map(relative_half_width, self.intervals.values()), default=0.0)

    @property
    def is_narrow(self) -> bool:
        """True if the intervals are narrow and, if all blocks agree, the unseen share is small."""
        is_seen = self.agreeing < self.drawn or self.unseen_share <= NARROW
        return self.widest <= NARROW and is_seen


def relative_half_width(interval: tuple[float, float]) -> float:
    low, high = interval
    return (high - low) / (high + low) if high > low else 0.0


def unseen_share(drawn: int) -> float:
    """Share of blocks that `drawn` random blocks miss with a probability of 5%.

    Source: (1 - share) ** drawn = 0.05.
    """
    return float(1 - (1 - CONFIDENCE) ** (1 / drawn)) if drawn else 1.0


def half_width_in_errors(drawn: int) -> float:
    """Half width of an interval of a mean of so many drawn values, in standard errors."""
    few = STANDARD_ERRORS_OF_FEW
    return few[drawn - 2] if 2 <= drawn < 2 + len(few) else STANDARD_ERRORS


def drawn_from_parts(blocks: int, count: int, seed: bytes) -> list[int]:
    """A block drawn at random from each of `count` equal parts of a launch, by linear index."""
    generator = np.random.default_rng(int.from_bytes(sha256(seed).digest()[:8]))
    ends = np.arange(count + 1) * blocks // count
    return [int(block) for block in generator.integers(ends[:-1], ends[1:])]


def drawn_blocks(known: Sequence[int], blocks: int, count: int, seed: bytes) -> list[int]:
    """Linear indices of `count` blocks other than `known`, drawn uniformly without replacement."""
    generator = np.random.default_rng(int.from_bytes(sha256(seed).digest()[:8]))
    rest = blocks - len(known)
    drawn = np.sort(generator.choice(rest, size=min(count, rest), replace=False, shuffle=False))
    # The nth of the other blocks comes after each known block that at most n other blocks precede.
    others_before = np.sort(np.asarray(known, dtype=np.int64)) - np.arange(len(known))
    after = np.searchsorted(others_before, drawn, side="right")
    return [int(block) for block in drawn + after]


def nearest_drawn(
    drawn: Sequence[int], executed: Sequence[int], class_of: NDArray[np.uint32]
) -> NDArray[np.int64]:
    """For each block of a launch, the nearest of those `drawn` that are of its class.

    Of two, the lower one. `executed`: all executed blocks, of which the nearest one stands for a
    block of whose class none was drawn. `class_of`: class of each block.
    """
    found = np.arange(len(class_of))
    of_drawn, of_executed = np.unique(drawn), np.unique(executed)
    for number in np.flatnonzero(np.bincount(class_of)):
        members = np.flatnonzero(class_of == number)
        among = of_drawn[class_of[of_drawn] == number]
        if not among.size:
            among = of_executed[class_of[of_executed] == number]
        found[members] = nearest(among, members)
    return found


def nearest(among: NDArray[np.int64], blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each of `blocks`, the nearest of those `among`, which are in order. Of two, the lower."""
    between = (among[1:] + among[:-1]) / 2
    return among[np.searchsorted(between, blocks)]


def further_draws(values: NDArray[np.float64], rest: int) -> int:
    """Number of further draws after which the mean of such values has a narrow interval."""
    error = STANDARD_ERRORS * _standard_error(values, rest) / max(1.0, float(values.mean()))
    return ceil(len(values) * ((error / NARROW) ** 2 - 1)) if error > NARROW else 0


def longest_missed(values: NDArray[np.float64], blocks: int) -> float:
    """By how much the largest of so many values exceeds the largest of `values`, relative to it.

    `values` are drawn from them. What is above the median is taken to be distributed exponentially:
    on average, the largest of N is then ln(N / n) times the mean above the largest of n.
    """
    above = values[values >= np.median(values)] - np.median(values)
    return float(above.mean() * log(blocks / len(values)) / max(1.0, values.max()))


def estimated_counts(
    certain: NDArray[Any],
    may_differ: NDArray[Any],
    known: Sequence[NDArray[Any]],
    drawn: Sequence[NDArray[Any]],
    blocks: int,
) -> NDArray[Any]:
    """Counts of a launch: the `certain` counts, with estimates of those that `may_differ`.

    `known`, `drawn`: counts of the blocks that were executed for another reason, and of the random
    blocks. `blocks`: number of blocks of the launch.
    """
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
    """Intervals of those counters of `total` that may differ between blocks.

    `drawn`: counts of the random blocks, which represent `rest` blocks. `metrics` computes counters
    from counts.
    """
    rows = np.flatnonzero(_any_field(may_differ))
    names = [name for name, n in metrics(_weights(may_differ), rows.tolist()).items() if n]
    values = _metrics_of(drawn, may_differ, rows, metrics, names)
    intervals = {}
    for name, of_blocks in zip(names, values.T, strict=True):
        error = half_width_in_errors(len(drawn)) * _standard_error(of_blocks, rest) * rest
        # the executed blocks alone: a lower bound
        least = float(total[name] - of_blocks.mean() * rest + of_blocks.sum())
        middle = float(total[name])
        low = max(least, middle - error) if error else middle
        intervals[name] = (low, middle + error)
    _, which = np.unique(values, axis=0, return_inverse=True)
    alike = int(np.bincount(which.ravel()).max(initial=0)) if names else len(drawn)
    return Estimates(
        intervals=intervals,
        drawn=len(drawn),
        agreeing=alike,
        unseen_share=unseen_share(len(drawn)),
    )


def _standard_error(values: NDArray[np.float64], rest: int) -> float:
    """Standard error of the mean of `values`, drawn without replacement from `rest` values."""
    drawn = len(values)
    if drawn < 2 or (values == values[0]).all():
        return 0.0
    return float(values.std(ddof=1)) / sqrt(drawn) * sqrt(max(0.0, 1 - drawn / rest))


def _weights(may_differ: NDArray[Any]) -> NDArray[Any]:
    """Made-up counts, such that a counter is nonzero if a count that may differ enters it.

    Each field has another power of 4, so that differences of fields are not zero.
    """
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
    """Part of each random block's counters that may differ: a row per block, a column per name.

    Blocks that share one array of counts are computed once.
    """
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
