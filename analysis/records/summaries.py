"""Metrics of launches with their descriptions, for JSON and for tables of other libraries.

>>> from analysis.records.summaries import rows, summaries
>>> one = next(summaries({"smsp__inst_executed.sum": 64}))
>>> one["label"], one["value"], one["unit"], one["group"]
('warp instructions', 64, 'warp instructions', 'instructions')
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from analysis.records.counters import ALL_COUNTERS, Counter, InstructionCounts, by_line
from analysis.records.description import Metric
from analysis.records.metrics import METRICS
from analysis.records.profile import Grade, Profile, Record
from analysis.timing.predicted import Predicted

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


def rows_of_lines(
    instructions: Iterable[InstructionCounts], predicted: Predicted | None
) -> Iterator[Row]:
    """One row per source line: its predicted cost in seconds, and each counter under its tag.

    The cost is None where it is not known.
    """
    costs = {(one.file, one.line): one.time_s for one in predicted.lines} if predicted else {}
    for (file, line), counters in by_line(instructions).items():
        yield {"file": file, "line": line, "cost_s": costs.get((file, line)), **counters}


def rows_of_times(profile: Profile) -> Iterator[Row]:
    """One row per record: its predicted and measured time in seconds, and the limiter."""
    return map(_times, profile.records)


def rows_of_errors(profile: Profile) -> Iterator[Row]:
    """One row per record and class of inputs: rms and maximum error relative to |A||B|."""
    for record in profile.records:
        for one in record.errors:
            yield {
                "variant": record.label,
                "rung": record.rung,
                "data": one.data,
                "m": one.shape.m,
                "n": one.shape.n,
                "k": one.shape.k,
                "seed": one.seed,
                "elements": one.elements,
                "rms_error": one.rms,
                "max_error": one.maximum,
            }


def _times(record: Record) -> Row:
    predicted, measured = record.trusted_prediction, record.trusted
    interval = measured.interval_s if measured else None
    return {
        "variant": record.label,
        "rung": record.rung,
        "m": record.shape.m,
        "n": record.shape.n,
        "k": record.shape.k,
        "status": record.status,
        "measured_s": measured.median_s if measured else None,
        "measured_low_s": interval.low if interval else None,
        "measured_high_s": interval.high if interval else None,
        "predicted_s": predicted.time_s if predicted else None,
        "limiter": str(predicted.limiter) if predicted else None,
        "limiter_share": predicted.limiter_share if predicted else None,
        "theory_flop_per_s": record.theory.attainable_flop_per_s if record.theory else None,
        "registers_per_thread": (
            record.resources.registers_per_thread if record.resources else None
        ),
    }
