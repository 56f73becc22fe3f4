"""Every column of the ladder as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from analysis.records.counters import ALL_COUNTERS
from analysis.records.metrics import (
    CONFLICT_SHARE,
    FFMA_SHARE,
    SECTORS_LOADED,
    WARP_INSTRUCTIONS,
    WAVEFRONTS,
    Derived,
)
from analysis.records.profile import Grade, Measured, Profile, Record
from analysis.roofline import share_of_peak
from analysis.theory import Theory
from analysis.timing.predicted import Predicted, Resource
from reports import ladder, text
from reports.ladder import View
from reports.sections.table import (
    NO_CELL,
    Cell,
    Column,
    text_cell,
)


def ladder_columns(view: View) -> tuple[Column, ...]:
    """All columns of the ladder, in order: times first if there are any."""
    own_times = _times(view, view, Grade.MEASURED)
    earlier = _times(view, view.of_recorded, view.recorded_label) if view.of_recorded else ()
    foreseen = tuple(_predicted(view))
    has_times = view.recorded is not None or any(one.trusted_prediction for one in view.records)
    groups: tuple[Iterable[Column], ...]
    if view.profile.executor == "gpu":
        groups = own_times, earlier, foreseen, _compiled(), _checked(), _theory(), _simulated()
    elif has_times:
        groups = earlier, foreseen, _compiled(), _checked(), _theory(), _simulated(), own_times
    else:
        groups = _theory(), _compiled(), _checked(), _simulated(), own_times
    return (
        *_names(),
        *(column for group in groups for column in group),
        Column(title="outcome", grade="", cell=_outcome, is_number=False),
        Column(title="idea", grade="", cell=lambda r: Cell(r.idea), is_number=False),
    )


def _names() -> Iterator[Column]:
    yield Column(title="rung", grade="", cell=lambda r: text_cell(text.count(r.rung)))
    yield Column(
        title="variant",
        grade="",
        cell=lambda r: text_cell(r.label, "" if r.title == r.label else r.title),
        is_number=False,
    )


def _times(view: View, run: View, grade: str) -> Iterator[Column]:
    """Columns of one run's times: the profile's own, or an earlier one's."""

    def column(title: str, one: Callable[[Record, Measured], Cell]) -> Column:
        # the reason of an absence stands once, with the time
        absence = ladder.why_not_measured if title == "time" else lambda _: ""

        def cell(record: Record) -> Cell:
            own = record if run is view else run.record(record.label)
            measured = ladder.measurement(own)
            if own is None or measured is None:
                return text_cell(text.ABSENT, absence(own or record))
            return one(own, measured)

        return Column(title=title, grade=grade, cell=cell)

    yield column("time", _time)
    yield column("rate", lambda r, m: text_cell(text.flop_per_s(m.flop_per_s)))
    yield column("of FP32 peak", lambda r, m: _of_peak(m, run.profile))
    yield column("of attainable", _of_attainable)
    yield column("of cuBLAS", lambda r, m: _of_cublas(r, m, run.cublas))


def _time(record: Record, measured: Measured) -> Cell:
    bounds = measured.interval_s
    spread = f"95%: {text.interval(bounds, text.seconds)}" if bounds else "too few for an interval"
    samples = text.many(len(measured.samples_s), "sample")
    return text_cell(text.seconds(measured.median_s), spread, samples)


def _of_peak(measured: Measured, run: Profile) -> Cell:
    if measured.clock == "host clock":  # a CPU's rate is no share of a GPU's peak
        return NO_CELL
    return text_cell(text.percent(share_of_peak(measured.flop_per_s, run.device)))


def _of_attainable(record: Record, measured: Measured) -> Cell:
    if record.theory is None:
        return NO_CELL
    theory = record.theory
    return of_roof(measured.flop_per_s, theory.attainable_flop_per_s, theory.limiter)


def of_roof(flop_per_s: float, roof_flop_per_s: float, roof: str) -> Cell:
    """Fraction of a roof that a rate reaches; above 1, with the effects that the roof ignores."""
    share = flop_per_s / roof_flop_per_s
    left_out = (
        "caches serve a part" if roof == Resource.DRAM else "the roof is at the nominal clock"
    )
    return text_cell(text.percent(share), left_out if share > 1 else "")


def _of_cublas(record: Record, measured: Measured, cublas: Measured | None) -> Cell:
    share, bounds = ladder.of_cublas(measured, cublas)
    spread = f"95%: {text.interval(bounds, text.percent)}" if bounds else ""
    return text_cell(text.percent(share), spread)


Part = TypeVar("Part")


def _column(
    title: str,
    one: Callable[[Part], Cell],
    *,
    of: Callable[[Record], Part | None],
    grade: str,
    short: str = "",
    is_number: bool = True,
) -> Column:
    """A column of one part of each record, such as its theory; empty where a record has none."""

    def cell(record: Record) -> Cell:
        found = of(record)
        return NO_CELL if found is None else one(found)

    return Column(title=title, short=short, grade=grade, cell=cell, is_number=is_number)


def _predicted(view: View) -> Iterator[Column]:
    """Predicted times, and their ratios to the measured ones."""
    column = partial(_column, of=lambda r: r.trusted_prediction, grade=Grade.PREDICTED)

    def limiter(predicted: Predicted) -> Cell:
        share = text.busy(predicted.limiter, predicted.limiter_share)
        behind = f"then {predicted.next_limiter}, {text.percent(predicted.next_share)}"
        return text_cell(predicted.limiter, share, behind)

    def time(predicted: Predicted) -> Cell:
        return text_cell(text.predicted_seconds(predicted.time_s))

    def rate(predicted: Predicted) -> Cell:
        return text_cell(text.flop_per_s(predicted.flop_per_s))

    yield column("predicted time", time, short="time")
    yield column("predicted rate", rate, short="rate")
    yield column("limiter", limiter, is_number=False)
    yield _column(
        "over measured time",
        lambda timing: text_cell(text.ratio(timing.ratio)),
        of=view.timing,
        grade=Grade.PREDICTED,
        short=Grade.PREDICTED,
    )


def _theory() -> Iterator[Column]:
    column = partial(_column, of=lambda r: r.theory, grade=Grade.THEORY)

    def intensity(theory: Theory) -> Cell:
        return text_cell(text.flop_per_byte(theory.intensity_loads))

    def attainable(theory: Theory) -> Cell:
        return text_cell(text.flop_per_s(theory.attainable_flop_per_s))

    yield column("intensity of loads", intensity)
    yield column("attainable", attainable, short="roof")
    yield column("limiter", lambda theory: Cell(theory.limiter), is_number=False)


def _simulated() -> Iterator[Column]:
    column = partial(_column, of=_counters, grade=Grade.SIMULATED)

    def of(metric: Derived) -> Callable[[Mapping[str, int]], Cell]:
        return lambda counters: text_cell(_brief(metric, metric.of(counters)))

    def instructions(counters: Mapping[str, int]) -> Cell:
        return text_cell(_brief(issued, counters.get(WARP_INSTRUCTIONS, 0)))

    def wavefronts(counters: Mapping[str, int]) -> Cell:
        conflicts = CONFLICT_SHARE.of(counters)
        if conflicts is None:
            return NO_CELL
        share = f"{_brief(CONFLICT_SHARE, conflicts)} {CONFLICT_SHARE.label}" if conflicts else ""
        return text_cell(_brief(WAVEFRONTS, WAVEFRONTS.of(counters)), share)

    issued = ALL_COUNTERS[WARP_INSTRUCTIONS]
    yield column(issued.label, instructions, short=issued.short)
    yield column(FFMA_SHARE.label, of(FFMA_SHARE), short=FFMA_SHARE.short)
    yield column(SECTORS_LOADED.label, of(SECTORS_LOADED))
    yield column(WAVEFRONTS.label, wavefronts)


_brief = partial(text.written, is_brief=True)


def _counters(record: Record) -> Mapping[str, int] | None:
    return record.simulated.counters if record.simulated else None


def _compiled() -> Iterator[Column]:
    yield Column(title="registers per thread", short="regs", grade=Grade.COMPILED, cell=_registers)
    yield Column(title="shared per block", grade=Grade.COMPILED, cell=_shared)
    yield Column(
        title="occupancy (theoretical)", short="occupancy", grade=Grade.COMPILED, cell=_occupancy
    )


def _registers(record: Record) -> Cell:
    resources = record.resources
    if resources is None:
        return NO_CELL
    spilled = f"{text.size(resources.local_bytes)} local memory" if resources.local_bytes else ""
    return text_cell(text.count(resources.registers_per_thread), spilled)


def _shared(record: Record) -> Cell:
    if record.resources is None:
        return NO_CELL
    dynamic = record.geometry.dynamic_shared_bytes if record.geometry else 0
    total = record.resources.static_shared_bytes + dynamic
    return text_cell(text.size(total), f"{text.size(dynamic)} dynamic" if dynamic else "")


def _occupancy(record: Record) -> Cell:
    occupancy = record.occupancy
    if occupancy is None:
        return NO_CELL
    waves = f"{text.count(round(record.waves, 2))} waves" if record.waves is not None else ""
    limits = f"limited by {text.listing(occupancy.limiters)}"
    return text_cell(text.percent(occupancy.fraction), limits, waves)


def _checked() -> Iterator[Column]:
    yield Column(title="check", grade=Grade.CHECKED, cell=_check, is_number=False)


def _check(record: Record) -> Cell:
    check = record.check
    if check is None:
        return text_cell(text.ABSENT, "not checked")
    if not check.passed:
        failed = text_cell("failed", ladder.check_failure(record))
        return replace(failed, is_bad=True)
    _, _, where = check.bound.rpartition("; on ")  # where not every element was looked at
    looked_at = f"on {where}" if where != check.bound else ""
    return text_cell("passed", f"worst error {text.ratio(check.worst_ratio)} the bound", looked_at)


def _outcome(record: Record) -> Cell:
    is_padded = record.executed_shape != record.shape
    padded = f"padded to {text.shape(record.executed_shape)}" if is_padded else ""
    compiled = record.resources.note if record.resources else None
    return text_cell(record.status, record.reason or "", padded, compiled or "", *record.notes)
