"""The answer of a profile for one shape: its number, a verdict, the limit, and what to try next."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.records.profile import Grade, Profile, Record
from analysis.roofline import share_of_peak
from analysis.timing.predicted import Predicted, Resource
from reports import ladder, text
from reports.sections.advice import advice
from reports.sections.effect_names import in_table
from reports.sections.ladder_rows import Row, Rows

# Roofs are upper bounds: a few percent between two of them do not tell which rung is faster,
# and a wider tolerance would call unequal rungs equal.
EQUAL_ROOFS = 0.95

RESOURCES = {Resource.ISSUE: "instruction issue"}


@dataclass(frozen=True, kw_only=True)
class LadderAnswer:
    """The first sentences of the page.

    `value` is the highest rate of a rung as text, of which `grade` says how it was obtained; empty
    without any. `verdict` is a short sentence, `rest` what follows it. `lead` says all of that in
    a sentence. `limit` says what limits the fastest rung, `advice` what to try next, both empty if
    unknown.
    """

    value: str
    unit: str
    grade: str
    verdict: str
    lead: str
    rest: str = ""
    limit: str = ""
    advice: str = ""


def standing(profile: Profile) -> tuple[str, ...]:
    """Warnings about the whole run: no records, or an interrupted run."""
    empty = "This profile holds no record: no rung was profiled."
    interrupted = "The run was interrupted: what is missing was not reached."
    return (
        *(() if profile.records else (empty,)),
        *((interrupted,) if profile.status == "interrupted" else ()),
    )


def answer(rows: Rows) -> LadderAnswer:
    """The answer for the shape of some rows."""
    best = rows.fastest
    if best is None or best.rate is None:
        return LadderAnswer(
            value="", unit="", grade="", verdict=_nothing(rows), lead=_nothing(rows)
        )
    value, _, unit = text.flop_per_s(best.rate).partition(" ")
    if rows.grade == Grade.THEORY:
        ceiling = _in_theory(rows, best.rate)
        return LadderAnswer(
            value=value,
            unit=unit,
            grade="at most, in theory",
            verdict=ceiling,
            lead=f"{value} {unit} in theory: {ceiling}",
            rest=f"Nothing was {_OBTAINED[rows.view.profile.executor]}: these are ceilings.",
            limit=" ".join(_limits_in_theory(rows)),
        )
    verdict, rest = _against_cublas(rows, best) or _fastest(rows, best)
    return LadderAnswer(
        value=value,
        unit=unit,
        grade=f"{graded(rows)}, {best.label}",
        verdict=verdict,
        lead=_lead(rows, best, f"{value} {unit}"),
        rest=rest,
        limit=limited(best.predicted) if best.predicted else "",
        advice=advice(rows),
    )


def _lead(rows: Rows, best: Row, rate: str) -> str:
    """'53.8 TFLOP/s with tall-thread-tile: 105 % of cuBLAS, 80.4 % of the FP32 peak.'"""
    of_peak = f"{share(_of_peak(rows, best))} of the FP32 peak."
    if rows.grade == Grade.PREDICTED:
        return f"{rate} predicted with {best.label}: {of_peak}"
    of_cublas = f"{share(best.of_cublas)} of cuBLAS, " if best.of_cublas else ""
    when = f"{graded(rows)} " if rows.grade == Grade.RECORDED else ""
    return f"{rate} {when}with {best.label}: {of_cublas}{of_peak}"


def graded(rows: Rows) -> str:
    """Name the source of the bars: 'measured', 'recorded 2026-11-21', 'predicted'."""
    if rows.grade == Grade.RECORDED and rows.view.recorded:
        return ladder.recorded_on(rows.view.recorded)
    return rows.grade


def share(value: float) -> str:
    """A share to three digits: '105 %'."""
    return f"{text.three_digits(100 * value)} %"


def limited(predicted: Predicted) -> str:
    """'Largest parts of the time: FP32 pipe, 82.5 %; waiting at barriers, 6.1 %.'

    Without parts of the time: what limits it, and the next resource.
    """
    if predicted.costs:
        told = [f"{in_table(one.cause)}, {share(one.share)}" for one in predicted.causes[:2]]
        return f"Largest parts of the time: {'; '.join(told)}."
    name, busy = _resource(predicted.limiter), share(predicted.limiter_share)
    if predicted.limiter != Resource.LATENCY:
        busy = f"busy {busy} of the time"
    after = f"{_resource(predicted.next_limiter)}, {share(predicted.next_share)}"
    return f"Limited by {name}, {busy}; next {after}."


def _resource(name: str) -> str:
    return RESOURCES.get(Resource(name), name) if name in set(Resource) else name


def _against_cublas(rows: Rows, best: Row) -> tuple[str, str] | None:
    """Verdict against cuBLAS and what follows, None if cuBLAS was not timed in the same run."""
    if best.of_cublas is None or not rows.is_measured:
        return None
    at = f"{share(_of_peak(rows, best))} of the FP32 peak."
    if best.of_cublas < 1:
        return f"{_rung(best)} reaches {share(best.of_cublas)} of cuBLAS,", at
    beats = f"beats {{}} by {text.three_digits(100 * (best.of_cublas - 1))} %,"
    first = rows.reaching
    if first is None or first is best:
        return f"{_rung(best)} {beats.format('cuBLAS')}", at
    return f"{_rung(first)} reaches cuBLAS; {_rung(best).lower()} {beats.format('it')}", at


def _rung(row: Row) -> str:
    """'Rung 14', or the label where it has other parameters than the rung."""
    is_plain = row.label == row.record.variant
    return f"Rung {row.record.rung}" if is_plain else row.label


def _fastest(rows: Rows, best: Row) -> tuple[str, str]:
    is_predicted = rows.grade == Grade.PREDICTED
    if len(rows.rungs) == 1:
        found = f"{best.label} would reach" if is_predicted else f"{best.label} reaches"
    else:
        verb = "is predicted to be" if is_predicted else "is"
        found = f"{best.label} {verb} fastest,"
    return found, f"{share(_of_peak(rows, best))} of the FP32 peak."


def _of_peak(rows: Rows, best: Row) -> float:
    run = rows.view.recorded if rows.grade == Grade.RECORDED else rows.view.profile
    assert run is not None
    assert best.rate is not None
    return share_of_peak(best.rate, run.device)


# Without a time.


def _nothing(rows: Rows) -> str:
    if not rows.view.rungs:
        return "No rung of the ladder was profiled."
    return f"Nothing was {_OBTAINED[rows.view.profile.executor]}. No rung ran."


_OBTAINED = {"gpu": "measured", "simulate": "timed", "theory": "launched"}


def _in_theory(rows: Rows, highest: float) -> str:
    names = [row.label for row in rows.rungs if (row.rate or 0.0) >= EQUAL_ROOFS * highest]
    if len(rows.rungs) == 1:
        return f"{names[0]} reaches at most {share(_part(rows, highest))} of the FP32 peak."
    have = "have the highest ceilings" if len(names) > 1 else "has the highest ceiling"
    return f"{ladder.named(names, rows.view.rungs)} {have}."


def _part(rows: Rows, rate: float) -> float:
    return share_of_peak(rate, rows.view.profile.device)


def _limits_in_theory(rows: Rows) -> Iterator[str]:
    """One sentence per limiter with the rungs that it limits."""
    limited: dict[str, list[str]] = defaultdict(list)
    for row in rows.rungs:
        if row.record.theory:
            limited[row.record.theory.limiter].append(row.label)
    for limiter, labels in limited.items():
        yield f"Limited by {limiter}: {ladder.named(labels, rows.view.rungs)}."


# What has no row.


def left_out(rows: Rows) -> Iterator[str]:
    """Sentences on rungs that select others, and on those that did not run."""
    for label, other in rows.same.items():
        row = rows.row(other)
        yield f"{label} chooses {f'rung {row.record.rung}' if row else other} at this size."
    reasons: dict[str, list[str]] = defaultdict(list)
    for record in rows.missing:
        if record.status == "skipped":
            reasons[_reason(record)].append(record.label)
    for why, labels in reasons.items():
        said = why.replace("needs ", "need ", 1) if len(labels) > 1 else why
        yield f"Not run: {ladder.named(labels, rows.view.records)} ({said})."


def on_host(rows: Rows) -> Iterator[str]:
    """A sentence for each reference that ran on the CPU: 'The host's cpu reaches 61.5 GFLOP/s.'"""
    for record in rows.view.records:
        measured = record.trusted
        if measured and measured.clock == "host clock":
            yield f"The host's {record.label} reaches {text.flop_per_s(measured.flop_per_s)}."


def failures(rows: Rows) -> Iterator[str]:
    """Sentences on all that failed or computed a wrong result, references included.

    What did not run for one reason has one sentence.
    """
    ended: dict[tuple[str, str], list[str]] = defaultdict(list)
    for record in rows.view.records:
        if record.check and not record.check.passed:
            why = ladder.check_failure(record)
            yield f"{record.label} failed the check: {why}. No time is shown."
        elif record.status not in ("ok", "skipped"):
            ended[record.status, _reason(record)].append(record.label)
    for (status, reason), labels in ended.items():
        yield f"{ladder.named(labels, rows.view.records)} {status}: {reason}."


def _reason(record: Record) -> str:
    """Reason why a record has no result, without its rung and without what to do about it.

    Of 'tiled needs sm_90: choose another device' it is 'needs sm_90'.
    """
    reason = (record.reason or "no reason was kept").rstrip(".")
    match reason.split(": "):
        case [_, why, _]:
            pass
        case [why, advice] if advice.startswith(("choose ", "take ")):
            pass
        case _:
            why = reason
    return why.removeprefix(f"{record.label} ").removeprefix(f"{record.variant} ")
