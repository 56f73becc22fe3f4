"""Metrics of launches with their descriptions, for JSON and for tables of other libraries.

>>> from analysis.records.summaries import rows, summaries
>>> one = next(summaries({"smsp__inst_executed.sum": 64}))
>>> one["label"], one["value"], one["unit"], one["group"]
('warp instructions', 64, 'warp instructions', 'instructions')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from analysis.records.counters import ALL_COUNTERS, Counter
from analysis.records.description import Metric
from analysis.records.metrics import METRICS
from analysis.records.profile import Grade, Profile

Row = dict[str, object]


def description(metric: Metric) -> Row:
    """Description of a metric without its value; `class` is None unless it is a counter."""
    return {
        "tag": metric.tag,
        "label": metric.label,
        "unit": str(metric.unit),
        "format": str(metric.format),
        "group": str(metric.group),
        "hint": metric.hint,
        "class": str(metric.counter_class) if isinstance(metric, Counter) else None,
    }


def summaries(counters: Mapping[str, int]) -> Iterator[Row]:
    """The counters of a launch and what follows from them, each with its description."""
    for tag, value in counters.items():
        if tag in ALL_COUNTERS:
            yield description(ALL_COUNTERS[tag]) | {"value": value}
    for metric in METRICS.values():
        found = metric.of(counters) if metric.is_known(counters) else None
        if found is not None:
            yield description(metric) | {"value": found}


def rows(profile: Profile) -> list[Row]:
    """One row per metric of each record and grade: `pandas.DataFrame(rows(profile))` is a table."""
    found = []
    for record in profile.records:
        key = {"variant": record.label, "m": record.shape.m, "n": record.shape.n}
        key["k"] = record.shape.k
        for grade, source in (
            (Grade.SIMULATED, record.simulated),
            (Grade.MEASURED, record.counted),
        ):
            for one in summaries(source.counters) if source else ():
                found.append(key | {"grade": str(grade)} | one)
    return found
