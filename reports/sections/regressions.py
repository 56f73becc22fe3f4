"""Phrases for the regressions of a comparison that make a job fail."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.comparison.counts import Outcome
from analysis.comparison.runs import RunComparison
from analysis.comparison.statistics import TimeVerdict
from reports import text

KINDS = ("counts", "time")


def regressions(comparison: RunComparison, kind: str) -> Iterator[str]:
    """Counts that changed or are missing, or times that are slower, a phrase each."""
    if kind == "counts":
        for key in comparison.only_before:
            if key.has_counts:
                yield f"{key.label} at {key.shape}: missing in the second profile"
    for pair in comparison.pairs:
        where = f"{pair.label} at {pair.shape}: " if pair.shape else ""
        for lost in pair.lost if kind == "counts" or pair.status_after != "ok" else ():
            yield f"{where}{lost}"
        if kind == "counts":
            for one in pair.changed:
                counts = " → ".join(map(text.digits, (one.before, one.after)))
                yield f"{where}{one.name} ({one.grade}) {counts}"
        elif pair.time and pair.time.verdict == TimeVerdict.SLOWER:
            times = (pair.time.before_s, pair.time.after_s)
            yield f"{where}slower, {' → '.join(map(text.seconds, times))}"


def not_compared(comparison: RunComparison, kind: str) -> str:
    """Says that no number of a kind could be compared; empty where one was."""
    if kind == "counts":
        is_missing = comparison.counts == Outcome.NOT_COMPARED
        return "no count could be compared" if is_missing else ""
    if comparison.times != Outcome.NOT_COMPARED:
        return ""
    is_foreseen = comparison.predictions != Outcome.NOT_COMPARED
    but = " (predicted times are compared, but never fail a check)" if is_foreseen else ""
    return f"no measured time could be compared{but}"
