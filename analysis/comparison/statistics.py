"""Statistics of repeated timings, without assumptions about their distribution.

Times of a kernel are skewed and have outliers. They are therefore summarized by the median, with a
confidence interval from order statistics: the number of samples below the true median is binomial
with p = 1/2, whatever the distribution (Conover, "Practical Nonparametric Statistics", 3rd ed.,
section 3.2; Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 15).

Two runs are compared by the quotient of their medians' intervals. Each end of a 95% interval is
beyond the true median with a chance of at most 2.5%, so either end of the quotient is wrong with at
most 5%, for any distributions and numbers of samples. One-sided claims ("slower by more than 3%")
and that of equivalence ("within 3%", two one-sided tests: Schuirmann, J. Pharmacokinet. Biopharm.
15, 1987) hold at that level. A rank test would ask whether the runs differ at all, and with a
thousand samples they always do: because of the GPU's temperature, if not of the kernel. Nothing is
resampled, so that the same files always give the same verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import exp, lgamma, log, sqrt
from numbers import Real
from statistics import median

from analysis.argument_types import checked, shown
from analysis.errors import InputError
from analysis.records.profile import Interval
from analysis.vocabulary import Vocabulary


class TimeVerdict(Vocabulary):
    """Verdict on a time from the samples of two runs."""

    SLOWER = "slower"
    FASTER = "faster"
    AMBIGUOUS = "ambiguous"
    SAME = "same"


# A change of time too small to act on. Sampling stops when a median is known to 1%, which makes
# a quotient known to 2%: less than 3% would leave most runs ambiguous, more would hide a lost
# optimisation of a few percent.
NEGLIGIBLE_CHANGE = 0.03


MOST_TIME_S = sys.float_info.max  # infinity is no time
TAIL = 0.025  # the chance that a 95% interval is beyond the true median, at either end


def median_interval(samples: Sequence[float]) -> Interval | None:
    """Narrowest symmetric order-statistics interval that covers the true median.

    It does so with a chance of at least 95% for independent samples. None for fewer than 6 samples,
    since 1 - 2·2^-5 < 0.95 ≤ 1 - 2·2^-6. Raises InputError for a sample that is no number, negative
    or infinite.
    """
    ordered = sorted(_times("samples", samples))
    rank = _rank(len(ordered))
    if rank == 0:
        return None
    return Interval(low=ordered[rank - 1], high=ordered[-rank])


def relative_half_width(samples: Sequence[float]) -> float | None:
    """Half the width of the median's 95% interval, divided by the median.

    None if there is no interval or the median is 0. Raises InputError as `median_interval`.
    """
    interval = median_interval(samples)
    if interval is None:
        return None
    middle = median(samples)
    return (interval.high - interval.low) / 2 / middle if middle else None


@checked
def is_precise(samples: Sequence[float], relative: float = 0.01) -> bool:
    """True if the median is known to ± `relative`; False if there is no interval.

    This is a rule for stopping, not a test. Call it rarely: the more often it is called, the more
    often a series stops early by chance, and the less often its interval covers the true median.
    Raises InputError as `median_interval`, and for a negative `relative`.
    """
    if relative < 0:
        raise InputError(f"relative = {relative}: give 0 or more")
    half_width = relative_half_width(samples)
    return half_width is not None and half_width <= relative


def ratio_interval(
    peer_samples: Sequence[float], samples: Sequence[float]
) -> tuple[float, Interval | None]:
    """Median of peer_i / sample_i and its 95% interval: above 1, the launch is faster.

    Both samples i were taken in the same round, so that effects on both cancel. Raises InputError
    if the lengths differ or are 0, or if a sample of the launch is 0, and as `median_interval`.
    """
    of_peer, of_launch = _times("peer_samples", peer_samples), _times("samples", samples)
    if len(of_peer) != len(of_launch) or not of_launch:
        raise InputError(
            f"{len(of_peer)} samples of the peer and {len(of_launch)} of the launch: "
            "give equal numbers, at least 1"
        )
    if not all(of_launch):
        raise InputError(f"sample {of_launch.index(0)} is 0 s: a ratio needs positive times")
    ratios = [peer / own for peer, own in zip(of_peer, of_launch, strict=True)]
    return median(ratios), median_interval(ratios)


def quotient(after: Interval | None, before: Interval | None) -> Interval | None:
    """Interval of the quotient of two true medians, from their 95% intervals.

    Each end is wrong with a chance of at most 5%. None without both, or if `before` reaches 0 or
    is no interval.
    """
    if after is None or before is None or not 0 < before.low <= before.high:
        return None
    return Interval(low=after.low / before.high, high=after.high / before.low)


def time_verdict(change: Interval | None, negligible: float = NEGLIGIBLE_CHANGE) -> TimeVerdict:
    """Verdict on a change of time by more than `negligible`, by the interval of after over before.

    It is SAME if the interval excludes a larger change, and AMBIGUOUS if it excludes neither.
    """
    if change is None:
        return TimeVerdict.AMBIGUOUS
    if change.low > 1 + negligible:
        return TimeVerdict.SLOWER
    if change.high < 1 - negligible:
        return TimeVerdict.FASTER
    is_within = change.low >= 1 - negligible and change.high <= 1 + negligible
    return TimeVerdict.SAME if is_within else TimeVerdict.AMBIGUOUS


@cache
def _rank(count: int) -> int:
    """Largest r for which samples r and count + 1 - r enclose the median; 0 if there is none.

    Both ends fail with the chance that a binomial (count, 1/2) is below r. Chances of numbers that
    are ten standard deviations, 5·√count, below the mean do not count.
    """
    first = max(0, int(count / 2 - 5 * sqrt(count)))
    ways = lgamma(count + 1) - lgamma(first + 1) - lgamma(count - first + 1)  # as a logarithm
    chance, below = exp(ways - count * log(2)), 0.0
    for number in range(first, count // 2):
        below += chance
        if below > TAIL:
            return number
        chance *= (count - number) / (number + 1)
    return count // 2


def _times(name: str, samples: Sequence[float]) -> list[float]:
    """Samples as floats. Raises InputError for what are no times."""
    if isinstance(samples, str | bytes | Mapping) or not isinstance(samples, Iterable):
        raise InputError(f"{name} = {shown(samples)}: give a list of times in seconds")
    found = []
    for index, sample in enumerate(samples):
        is_number = isinstance(sample, Real) and not isinstance(sample, bool)
        if not (is_number and 0 <= sample <= MOST_TIME_S):  # NaN is not
            raise InputError(
                f"sample {index} is {shown(sample)}: times are finite and not negative"
            )
        found.append(float(sample))
    return found
