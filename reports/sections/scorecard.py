"""The scorecard of a shape: how many counters agree, per variant, and every counter by all grades.

A sign stands before each verdict, so that no reader depends on a colour.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from analysis.comparison.scorecard import (
    TRAFFIC_COUNTED,
    Tally,
    disagreements,
    predicted_and_reference,
    tally,
)
from analysis.records.counters import ALL_COUNTERS, CounterClass
from analysis.records.description import Metric
from analysis.records.metrics import BANK_CONFLICTS
from analysis.records.profile import Grade, Profile, Score, Verdict
from reports import text
from reports.ladder import View
from reports.sections.table import Cell, Table, plain_table

Scores = Mapping[str, tuple[Score, ...]]

WANTED = {
    CounterClass.EXACT: "equal",
    CounterClass.NOISY: "within",
    CounterClass.MODELLED: "within",
}
SIGNS = {Verdict.EQUAL: "=", Verdict.WITHIN: "≈", Verdict.APART: "≠", Verdict.ALONE: "·"}
GOOD, EXPLAINED, BAD = "✓", "≈", "✗"
MEASURED = Grade.MEASURED  # what the profile's own counts are called


@dataclass(frozen=True, kw_only=True)
class Scorecard:
    """The section of one shape: a verdict in words, a row per variant, and every counter of each.

    `is_measured` is True if hardware counted some of them. `bad` names the variants with an exact
    counter that differs for no known reason.
    """

    verdict: str
    overview: Table
    everything: tuple[tuple[str, Table], ...]
    is_measured: bool
    bad: tuple[str, ...]


def scorecard(view: View) -> Scorecard | None:
    """The section for one shape, None if no counter has two grades to compare."""
    found = view.scores
    compared = {label: own for label, own in found.items() if any(map(_is_compared, own))}
    if not compared:
        return None
    everyone = [one for own in compared.values() for one in own]
    is_measured = any(one.measured is not None for one in everyone)
    grade = _measured_grade(view) if is_measured else MEASURED
    counted_later = _counted_later(view.of_recorded, compared) if grade != MEASURED else ()
    return Scorecard(
        verdict=" ".join((_verdict(everyone, grade), *counted_later)),
        overview=overview(compared),
        everything=tuple((label, _everything(own, grade)) for label, own in found.items()),
        is_measured=is_measured,
        bad=tuple(label for label, own in compared.items() if disagreements(own)),
    )


def _is_compared(score: Score) -> bool:
    return predicted_and_reference(score) is not None


def _measured_grade(view: View) -> str:
    """Label of the hardware's counts: the profile's own, or an earlier run's."""
    is_own = any(record.counted for record in view.profile.records)
    return MEASURED if view.recorded is None or is_own else view.recorded_label


def _counted_later(recorded: View | None, labels: Collection[str]) -> Iterator[str]:
    """Sentences on how an earlier run counted traffic, if not together with all else."""
    records = recorded.records if recorded else ()
    notes = {
        record.label: note.partition(" (")[0]
        for record in records
        if record.label in labels
        for note in record.notes
        if note.startswith(TRAFFIC_COUNTED)
    }
    for note in dict.fromkeys(notes.values()):
        of_these = [label for label in labels if notes.get(label) == note]
        whose = f" (of {text.listing(of_these)})" if len(of_these) < len(labels) else ""
        yield f"{note}{whose}."


# In words.


def _verdict(found: Sequence[Score], grade: str) -> str:
    tallies = {name: tally(found, name) for name in CounterClass}
    parts = [_sentence(name, one) for name, one in tallies.items() if one.compared]
    return f"{_against(found, grade)}: {text.listing(parts)}."


def _against(found: Sequence[Score], grade: str) -> str:
    measured = [one for one in found if one.measured is not None and _is_compared(one)]
    if not measured:
        return "Simulated against closed forms: the hardware counted nothing"
    predicted = "Simulated" if any(one.simulated is not None for one in measured) else "Closed form"
    return f"{predicted} against the hardware's counters ({grade})"


def _sentence(name: CounterClass, of: Tally) -> str:
    close = f"{of.equal + of.within} of {of.compared} {name} counts are {_agreement(name, of)}"
    worst = (
        f" (the worst by {_error(of.worst)})" if name == CounterClass.MODELLED and of.worst else ""
    )
    explained = (
        f", {of.explained} {text.differ(of.explained)} for a known reason" if of.explained else ""
    )
    return f"{close}{explained}{worst}"


def _agreement(name: CounterClass, of: Tally) -> str:
    if not of.within:
        return "equal"
    return (
        "equal, except for arbitration and polls of waiting warps"
        if name == CounterClass.EXACT
        else "within the tolerance"
    )


def _error(worst: Score | None) -> str:
    """Signed error of a score, and its counter: '+8.3 %, bytes read from DRAM'."""
    if worst is None or worst.ratio is None:
        return text.ABSENT
    return f"{text.change(worst.ratio - 1)}, {_description(worst).label}"


def _description(score: Score) -> Metric:
    return ALL_COUNTERS[score.counter]


# As tables.


def overview(found: Scores) -> Table:
    """One row per variant: how many counters of each class agree, which do not, the worst error."""
    classes = [
        name for name in CounterClass if any(tally(own, name).compared for own in found.values())
    ]
    titles = [f"{name} {WANTED[name]}" for name in classes]
    titles += ["worst error"] if CounterClass.MODELLED in classes else []
    return plain_table(
        ["variant", *titles],
        ([label, *_cells(own, classes)] for label, own in found.items()),
    )


def _cells(found: tuple[Score, ...], classes: Iterable[CounterClass]) -> Iterator[Cell | str]:
    for name in classes:
        yield _cell(found, name)
        if name == CounterClass.MODELLED:
            yield _error(tally(found, name).worst)


def _cell(found: tuple[Score, ...], name: CounterClass) -> Cell:
    of = tally(found, name)
    if not of.compared:
        return Cell(text.ABSENT)
    sign = GOOD
    if of.mismatches:
        sign = BAD
    elif of.explained:
        sign = EXPLAINED
    return Cell(
        f"{sign} {of.equal + of.within} of {of.compared}",
        details=tuple(_details(found, name, of)),
        is_bad=of.mismatches > 0,
    )


def _details(found: tuple[Score, ...], name: CounterClass, of: Tally) -> Iterator[str]:
    if name != CounterClass.MODELLED:
        for one in found:
            if one.grade == name and one.is_apart:
                yield f"different: {_description(one).label}, {_ratio(one)}"
    if name == CounterClass.EXACT and of.within:
        yield f"{of.within} except for arbitration and polls of waiting warps"
    if of.explained:
        yield f"{of.explained} {text.differ(of.explained)} for a known reason"


def _ratio(score: Score) -> str:
    pair = predicted_and_reference(score)
    if pair is None:
        return text.ABSENT
    return text.ratio_or_difference(score.ratio, of=pair[0], to=pair[1])


def _everything(found: tuple[Score, ...], grade: str) -> Table:
    """Every counter of a variant that is not 0 by all grades; a grade without any is left out."""
    grades = [
        (title, badge, count)
        for title, badge, count in (
            ("closed form", Grade.THEORY, attrgetter("theory")),
            ("machine code", Grade.SIMULATED, attrgetter("simulated")),
            ("hardware", grade, attrgetter("measured")),
        )
        if any(count(one) is not None for one in found)
    ]
    return plain_table(
        (
            "counter",
            "verdict",
            "class",
            *((title, badge, True) for title, badge, _ in grades),
            ("ratio", "", True),
            "why",
        ),
        (
            _row(one, [count(one) for _, _, count in grades])
            for one in found
            if any((one.theory, one.simulated, one.measured))
        ),
    )


def _row(one: Score, counts: Iterable[int | None]) -> tuple[Cell | str, ...]:
    counter = _description(one)
    return (
        Cell(counter.label, details=tuple(filter(None, (counter.tag, counter.hint)))),
        Cell(verdict(one), details=_allowed(one), is_bad=one.is_apart),
        one.grade,
        *(text.written(counter, count) for count in counts),
        _ratio(one),
        one.reason or text.ABSENT,
    )


def verdict(one: Score) -> str:
    """The verdict with its sign, and whether a difference has a known reason."""
    word = "explained" if one.verdict == Verdict.APART and one.is_explained else one.verdict
    return f"{SIGNS[one.verdict]} {word}"


def _allowed(one: Score) -> tuple[str, ...]:
    if not one.tolerance or one.verdict not in (Verdict.WITHIN, Verdict.APART):
        return ()
    of = " of the wavefronts" if one.counter in BANK_CONFLICTS else ""
    return (f"allowed: {100 * one.tolerance:.3g} %{of}",)


def exact_disagreements(profile: Profile) -> list[str] | None:
    """The exact counters that differ without an explanation, a phrase each.

    None where no exact counter is known by two grades.
    """
    scores = [(record, score) for record in profile.records for score in record.scores]
    if not any(
        one.grade == CounterClass.EXACT and predicted_and_reference(one) for _, one in scores
    ):
        return None
    return [
        f"{record.label} at {record.shape}: {one.counter} is {_numbers(one)}"
        for record, one in scores
        if disagreements([one])
    ]


def _numbers(score: Score) -> str:
    """'1,234 simulated, 1,235 measured'"""
    return ", ".join(
        f"{text.written(_description(score), count)} {grade}"
        for grade, count in score.by_grade.items()
    )
