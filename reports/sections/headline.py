"""Answer of a profile for one shape, in words that are computed from its numbers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from analysis.records.profile import Grade, Measured, Profile, Record
from analysis.roofline import share_of_peak
from reports import ladder, text
from reports.ladder import View
from reports.sections import rungs
from reports.sections.advice import advice
from reports.sections.prediction import told_steps, trust, verdict

# Roofs are upper bounds: a few percent between two of them do not tell which rung is faster,
# and a wider tolerance would call unequal rungs equal.
EQUAL_ROOFS = 0.95


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The answer for one shape: the main sentence, and further points.

    `trust` states how well the predicted times of the device have been checked; it is empty if
    nothing was predicted. Shape and device are not repeated here: the caller prints them above.
    """

    lead: str
    trust: str = ""
    points: tuple[str, ...] = ()


def standing(profile: Profile) -> tuple[str, ...]:
    """Warnings about the whole run: no records, or an interrupted run."""
    empty = "This profile holds no record: no rung was profiled."
    interrupted = "The run was interrupted: what is missing was not reached."
    return (
        *(() if profile.records else (empty,)),
        *((interrupted,) if profile.status == "interrupted" else ()),
    )


def answer(view: View) -> Headline:
    """The answer for one shape: measured, then recorded, then predicted, then theory.

    Sentences about the earlier run say so, and cover only variants that the profile has.
    """
    everything = view.of_recorded
    view = replace(view, recorded=ladder.of_variants_of(view.profile, view.recorded))
    lead, *rest = list(_known(view)) or [_theory(view), *_limiters(view)]
    points = (
        *rest,
        *_not_covered(everything),
        *filter(None, [advice(view)]),
        *_steps(view),
        *_troubles(view),
    )
    return Headline(
        lead=lead,
        trust=trust(view.profile.device) if view.timings else "",
        points=points,
    )


def _known(view: View) -> Iterator[str]:
    """The answers of all that has a time at a shape, the most certain one first."""
    best = view.fastest
    earlier = view.of_recorded
    if best:
        yield _fastest(view, best, Grade.MEASURED)
    if earlier and earlier.fastest:
        yield _fastest(earlier, earlier.fastest, ladder.recorded_on(earlier.profile))
    yield from _explanations(view)
    yield from _foreseen(view)


def _not_covered(recorded: View | None) -> Iterator[str]:
    """Sentence for a recorded run that does not cover this shape."""
    if recorded and not recorded.fastest:
        covered = text.listing([text.shape(other) for other in ladder.shapes(recorded.profile)])
        yield (
            f"The run {ladder.recorded_label(recorded.profile)} has no measurement at this shape "
            f"(it covers {covered})."
        )


def _fastest(run: View, best: Record, how: str) -> str:
    """Sentence on the fastest rung of a run: its rate, against the peak and against cuBLAS.

    It does not say "fastest" if only one rung was timed.
    """
    measured = best.trusted
    if measured is None:
        return ""
    against = _against_cublas(measured, run.cublas)
    unchecked = "" if best.check else " Its result was not checked."
    timed = [r for r in run.rungs if r.trusted]
    called = "is the fastest rung" if len(timed) > 1 else "was"
    return (
        f"{best.label} {called} {how}: {text.flop_per_s(measured.flop_per_s)} "
        f"(median {text.seconds(measured.median_s)}), "
        f"{_of_peak(measured.flop_per_s, run.profile)}{against}.{unchecked}"
    )


def _of_peak(flop_per_s: float, run: Profile) -> str:
    return f"{text.percent(share_of_peak(flop_per_s, run.device))} of the FP32 peak"


def _against_cublas(measured: Measured, cublas: Measured | None) -> str:
    share, bounds = ladder.of_cublas(measured, cublas)
    if share is None:
        return ""
    is_unclear = bounds is not None and bounds.low <= 1.0 <= bounds.high
    unclear = ", not told apart by these samples" if is_unclear else ""
    return f" and {text.percent(share)} of cuBLAS{unclear}"


def _foreseen(view: View) -> Iterator[str]:
    """Sentence on the rung predicted to be fastest, its limiter, and the error of predictions."""
    found = [o for o in view.timings if o.record.rung is not None]
    if not found:
        return
    best = min(found, key=lambda one: one.predicted.time_s)
    predicted = best.predicted
    called = "is predicted to be the fastest rung" if len(found) > 1 else "is predicted"
    busy = text.busy(predicted.limiter, predicted.limiter_share)
    peak = _of_peak(predicted.flop_per_s, view.profile)
    compared = f" {verdict(found)}" if any(one.ratio for one in found) else ""
    yield (
        f"{best.record.label} {called}: {text.flop_per_s(predicted.flop_per_s)} "
        f"({text.predicted_seconds(predicted.time_s)}), {peak}, "
        f"limited by {predicted.limiter} ({busy} of the time).{compared}"
    )


def _steps(view: View) -> Iterator[str]:
    """The step of the ladder that gains the most, and why."""
    told = told_steps(view)
    if told:
        largest = max(told, key=lambda one: one.speedup or 0.0)
        said = rungs.sentence(largest, grade=view.grade_of_times)
        yield f"The largest step of the ladder: {said}"


def _explanations(view: View) -> Iterator[str]:
    """Sentences of theory on the fastest rung, of the profile's own run or else the earlier one."""
    for run in (view, view.of_recorded):
        if run and run.fastest:
            yield from _explanation(run, run.fastest)
            return


def _explanation(run: View, best: Record) -> Iterator[str]:
    """Sentences on the fastest rung's limiter in theory, and on its gain over the first rung."""
    measured = best.trusted
    if measured and best.theory:
        roof = best.theory.attainable_flop_per_s
        yield (
            f"In theory {best.label} is limited by {_the(best.theory.limiter)} at "
            f"{text.flop_per_s(roof)}; it reaches {text.percent(measured.flop_per_s / roof)} "
            "of that ceiling."
        )
    first = next((r for r in run.rungs if r.trusted), best)
    slowest = first.trusted
    if measured and slowest and first is not best:
        gain = measured.flop_per_s / slowest.flop_per_s
        yield (
            f"{best.label} is {text.ratio(gain)} as fast as {first.label}, the first rung measured."
        )


def _theory(view: View) -> str:
    """Sentence on the rungs with the highest roofs, which says that this is theory."""
    rungs = view.rungs
    if not rungs:
        return "No rung of the ladder was profiled."
    records = [record for record in rungs if record.theory and record.status == "ok"]
    why = _NOT_MEASURED[view.profile.executor]
    if not records:
        return f"{why}: no rung ran, for the reasons below."
    highest = max(_roof(record) for record in records)
    peak = _of_peak(highest, view.profile)
    if len(records) == 1:
        return (
            f"In theory {records[0].label} reaches {text.flop_per_s(highest)} at most, "
            f"{peak}. {why}: this is a ceiling, not a time."
        )
    best = [record for record in records if _roof(record) >= EQUAL_ROOFS * highest]
    have = "have the highest roofs" if len(best) > 1 else "has the highest roof"
    rates = text.each([_roof(record) for record in best], text.flop_per_s)
    return (
        f"In theory {ladder.named([record.label for record in best], rungs)} {have}: "
        f"{rates}; the highest is {peak}. {why}: these are ceilings, not times."
    )


_NOT_MEASURED = {
    "gpu": "Nothing was measured",
    "simulate": "Nothing was timed",
    "theory": "Nothing was launched",
}


def _roof(record: Record) -> float:
    return record.theory.attainable_flop_per_s if record.theory else 0.0


def _limiters(view: View) -> Iterator[str]:
    """One sentence per limiter with the rungs that it limits; rungs of the same roof together."""
    limited: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for record in view.rungs:
        if record.theory and record.status == "ok":
            roof = text.flop_per_s(record.theory.attainable_flop_per_s)
            limited[record.theory.limiter][roof].append(record.label)
    for limiter, roofs in limited.items():
        among = view.rungs
        told = (f"{ladder.named(labels, among)} at {roof}" for roof, labels in roofs.items())
        yield f"Limited by {_the(limiter)}: {'; '.join(told)}."


def _the(limiter: str) -> str:
    return f"the {limiter}" if limiter.startswith("load/store") else limiter


def _troubles(view: View) -> Iterator[str]:
    """Everything that failed, was skipped or was computed wrong, references included.

    Records of one status and one reason share a sentence, at the first one's place.
    """
    troubles: dict[tuple[str, str], list[str]] = defaultdict(list)
    records = view.records
    for record in records:
        if record.check and not record.check.passed:
            why = f"{ladder.check_failure(record)}. No time is shown"
            troubles["failed the check", why].append(record.label)
        elif record.status != "ok":
            troubles[record.status, _reason(record)].append(record.label)
    for (what, why), labels in troubles.items():
        reason = why.replace(_ITSELF, "it" if len(labels) == 1 else "each", 1)
        yield f"{ladder.named(labels, records)} {_were(what, len(labels))}: {reason}."


_ITSELF = "\N{NULL}"  # stands for a record's own name in the reason that it shares with others


def _reason(record: Record) -> str:
    """Reason why a record has no result, worded alike for all records that share it."""
    reason = record.reason or "no reason was kept"
    for name in (record.label, record.variant):
        if reason.startswith(f"{name} "):
            return f"{_ITSELF}{reason.removeprefix(name)}"
    return reason


def _were(what: str, count: int) -> str:
    if what != "skipped":
        return what
    return "was skipped" if count == 1 else "were skipped"
