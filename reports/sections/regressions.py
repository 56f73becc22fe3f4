"""What a comparison found that a job shall fail on, in phrases."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.comparison.launches import LaunchComparison
from analysis.comparison.runs import CountChange, ProfileComparison
from reports import text

KINDS = ("counts", "time")


def regressions(comparison: ProfileComparison | LaunchComparison, kind: str) -> Iterator[str]:
    """Counts that changed or are missing, or times that are slower, a phrase each."""
    if isinstance(comparison, LaunchComparison):
        if kind == "counts":
            yield from (*comparison.lost, *map(_phrase, comparison.changed))
        return
    if kind == "counts":
        for key in comparison.only_before:
            if key.has_counts:
                yield f"{key.label} at {key.shape}: missing in the second profile"
    for pair in comparison.pairs:
        where = f"{pair.label} at {pair.shape}"
        for lost in pair.lost if kind == "counts" or pair.status_after != "ok" else ():
            yield f"{where}: {lost}"
        if kind == "counts":
            for one in pair.changed:
                yield f"{where}: {_phrase(one)}"
        elif pair.time and pair.time.verdict == "slower":
            times = (pair.time.before_s, pair.time.after_s)
            yield f"{where}: slower, {' → '.join(map(text.seconds, times))}"


def not_compared(comparison: ProfileComparison | LaunchComparison, kind: str) -> str:
    """Says that no number of a kind could be compared; empty where one was."""
    if _compares(comparison, kind):
        return ""
    what = "count" if kind == "counts" else "time of a GPU"
    is_foreseen = kind == "time" and _compares(comparison, "predicted time")
    but = " (predicted ones are compared, and hold nothing)" if is_foreseen else ""
    return f"no {what} could be compared{but}"


def _compares(comparison: ProfileComparison | LaunchComparison, kind: str) -> bool:
    """Whether anything of a kind was compared: "counts", "time" or "predicted time"."""
    if isinstance(comparison, LaunchComparison):
        return kind == "counts" or (kind == "predicted time" and comparison.predicted is not None)
    verdicts = {
        "counts": comparison.counts,
        "time": comparison.times,
        "predicted time": comparison.predictions,
    }
    return verdicts[kind] != "not compared"


def _phrase(one: CountChange) -> str:
    return f"{one.name} ({one.grade}) {one.before:,} → {one.after:,}"
