"""The pane of one rung: what changed, why, and what its time is spent on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.comparison.steps import Step
from analysis.records.profile import Grade
from analysis.timing.predicted import NAMED, Effect, Predicted
from reports import text
from reports.sections import rungs
from reports.sections.effect_names import in_table
from reports.sections.ladder_answer import RESOURCES, share
from reports.sections.ladder_rows import Row, Rows
from reports.svg.busy import Bar

LEAST_PART = 0.002  # of the time: smaller parts are left out
OTHERS = "smaller parts"


@dataclass(frozen=True, kw_only=True)
class Length:
    """A value as text, and the length of its bar in percent."""

    value: str
    percent: float


@dataclass(frozen=True, kw_only=True)
class PartPair:
    """A part of the predicted time, of the rung before (None without one) and of this one."""

    name: str
    before: Length | None
    after: Length
    is_reason: bool


@dataclass(frozen=True, kw_only=True)
class Pane:
    """The pane of a rung.

    `numbers` are (value, what it is). `reason` is the heading of the two times of the largest
    reason, `kind` says what these times are. `parts` are in `unit`; `note` completes them.
    """

    number: str
    label: str
    limit: str
    idea: str
    numbers: Sequence[tuple[str, str]]
    why: str
    reason: str = ""
    kind: str = ""
    times: Sequence[tuple[str, Length]] = ()
    parts: Sequence[PartPair] = ()
    unit: str = ""
    note: str = ""


def pane(shown: Rows, row: Row) -> Pane:
    """The pane of a rung of some rows."""
    step, predicted = row.step, row.predicted
    has_reason = step is not None and rungs.has_reason(step)
    before = shown.row(step.before) if step else None
    parts, unit = _parts(row, before)
    return Pane(
        number=f"{row.record.rung or ''}",
        label=row.label,
        limit=_limit(row),
        idea=_idea(row.record.idea),
        numbers=list(_numbers(shown, row, before)),
        why=rungs.why(step) if step and step.basis else "",
        reason=text.capital(rungs.reason_name(step)) if step and has_reason else "",
        kind=_kind(step) if step and has_reason else "",
        times=list(_times(step)) if step and has_reason else (),
        parts=parts,
        unit=unit,
        note=_note(predicted, parts) if predicted and parts else "",
    )


def _idea(words: str) -> str:
    return f"{text.capital(words)}." if words else ""


def _limit(row: Row) -> str:
    """'most time: FP32 pipe', or 'limited by shared memory' where parts are not known."""
    if row.predicted and row.predicted.costs:
        return f"most time: {in_table(row.predicted.causes[0].cause)}"
    limiter = row.record.theory.limiter if row.record.theory else ""
    if row.predicted:
        limiter = str(RESOURCES.get(row.predicted.limiter, row.predicted.limiter))
    return f"limited by {limiter}" if limiter else ""


def _numbers(shown: Rows, row: Row, before: Row | None) -> Iterator[tuple[str, str]]:
    if row.measured:
        yield text.predicted_seconds(row.measured.median_s), str(shown.grade)
    elif row.predicted:
        yield text.predicted_seconds(row.predicted.time_s), "predicted"
    if row.of_cublas:
        yield share(row.of_cublas), "of cuBLAS"
    elif row.best_rate:
        yield share(row.best_rate / shown.peak), "of the FP32 peak"
    if row.speedup and before:
        yield text.ratio(row.speedup), f"the speed of rung {before.record.rung}"
    elif shown.grade != Grade.THEORY:
        rate, _, unit = text.flop_per_s(row.best_rate).partition(" ")
        yield rate, unit


def _kind(step: Step) -> str:
    assert step.reason is not None
    return "part of the predicted time" if step.reason.is_part else "time that it alone needs"


def _times(step: Step) -> Iterator[tuple[str, Length]]:
    """The two times of the largest reason; one below 0 is hidden behind other work."""
    assert step.reason is not None
    ends = step.reason.time_s
    longest = max(ends.before, ends.after)
    for label, end_s in ((step.before, ends.before), (step.after, ends.after)):
        shown_s = max(0.0, end_s)
        yield (
            label,
            Length(
                value=rungs.time_in_words(step.reason, shown_s),
                percent=round(72 * shown_s / longest, 1),
            ),
        )


# Parts of the predicted time.


def _parts(row: Row, before: Row | None) -> tuple[list[PartPair], str]:
    """Parts of the time but the launch, and their unit; none if the parts are not known."""
    if row.predicted is None or not (own := _parts_of(row.predicted)):
        return [], ""
    earlier = _parts_of(before.predicted) if before and before.predicted else {}
    longest_s = max(sum(own.values()), sum(earlier.values()))
    own, earlier = _named(own, earlier, NAMED * longest_s)
    least = LEAST_PART * row.predicted.time_s
    names = [
        name
        for name in dict.fromkeys([*own, *earlier])
        if max(own.get(name, 0.0), earlier.get(name, 0.0)) >= least
    ]
    longest = max((max(own.get(name, 0.0), earlier.get(name, 0.0)) for name in names), default=0.0)
    if not longest:
        return [], ""
    scale, unit = text.time_unit(longest)
    reason = row.step.reason if row.step and rungs.has_reason(row.step) else None

    def length(time_s: float) -> Length:
        share = round(100 * time_s / longest, 1)
        return Length(value=text.three_digits(time_s / scale), percent=share)

    return [
        PartPair(
            name=in_table(name),
            before=length(earlier.get(name, 0.0)) if earlier else None,
            after=length(own.get(name, 0.0)),
            is_reason=bool(reason and reason.is_part and reason.resource == name),
        )
        for name in names
    ], unit


def _named(
    own: dict[str, float], earlier: dict[str, float], least: float
) -> tuple[dict[str, float], dict[str, float]]:
    """Parts of at least `least` seconds in one of two times, the largest first, and the others."""
    most = {n: max(own.get(n, 0.0), earlier.get(n, 0.0)) for n in {**own, **earlier}}
    order = sorted(most, key=lambda name: (name == Effect.REMAINDER, -most[name]))
    shown = [name for name in order if most[name] >= least]

    def divided(of: dict[str, float]) -> dict[str, float]:
        others_s = sum(time_s for name, time_s in of.items() if name not in shown)
        return {name: of.get(name, 0.0) for name in shown} | {OTHERS: others_s}

    return divided(own), divided(earlier) if earlier else {}


def _parts_of(predicted: Predicted) -> dict[str, float]:
    return {name: time_s for name, time_s in predicted.parts.items() if name != Effect.LAUNCH}


def _note(predicted: Predicted, parts: Sequence[PartPair]) -> str:
    told = []
    if any(part.before for part in parts):
        told.append("Upper bar: the rung before. Lower bar: this one.")
    launch, whole = map(text.predicted_seconds, (predicted.launch_s, predicted.time_s))
    told.append(f"With the launch itself, {launch}, they add up to {whole}.")
    return " ".join(told)


def time_bars(predicted: Predicted) -> list[Bar]:
    """The parts of the predicted time, the largest first."""
    shown = sorted(
        (one for one in predicted.costs if one.time_s >= LEAST_PART * predicted.time_s),
        key=lambda one: -one.time_s,
    )
    worst = next((one for one in shown if one.is_avoidable), None)
    return [
        Bar(
            name=in_table(one.effect),
            share=one.time_s / shown[0].time_s,
            value=text.predicted_seconds(one.time_s),
            class_="s1" if one.is_roof else "c0" if one is worst else "s2",
        )
        for one in shown
    ]


def times_sentence(row: Row, grade: Grade) -> str:
    """'2.74 ms predicted, 2.69 ms measured: median of 20, 95 % interval 2.689 to 2.692 ms.'

    `grade` says whether times were measured in this run, or recorded in an earlier one.
    """
    told = []
    if row.predicted:
        told.append(f"{text.predicted_seconds(row.predicted.time_s)} predicted")
    if row.measured:
        told.append(f"{text.predicted_seconds(row.measured.median_s)} {grade}")
    found = ", ".join(told)
    if row.measured and row.measured.interval_s:
        number = len(row.measured.samples_s)
        ends = text.interval(row.measured.interval_s, text.seconds)
        found += f": median of {number:,}, 95 % interval {ends}"
    return f"{found}." if found else "It has no time: nothing was launched."
