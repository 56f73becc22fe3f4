"""The rungs of one shape as rows: their rates, and each beside the rung before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparison.steps import Step
from analysis.records.profile import Grade, Measured, Record
from analysis.timing.predicted import Predicted
from reports import ladder
from reports.ladder import View
from reports.sections.product_errors import normal_error


@dataclass(frozen=True, kw_only=True)
class Row:
    """A rung with a rate in FLOP/s.

    `rate` is that of its bar, None where only a prediction is known beside measured rungs.
    `before` is the rate of the rung before, as a bar of the same grade, None without one. `step`
    compares the two rungs. `error` is the rms error on normal numbers, empty if it is unknown.
    """

    record: Record
    rate: float | None
    measured: Measured | None
    predicted: Predicted | None
    of_cublas: float | None
    before: float | None
    step: Step | None
    error: str

    @property
    def label(self) -> str:
        return self.record.label

    @property
    def name(self) -> str:
        """'14 fenced'"""
        return f"{self.record.rung} {self.label}"

    @property
    def speedup(self) -> float | None:
        """Time of the rung before over the time of this one."""
        return self.step.speedup if self.step else None

    @property
    def best_rate(self) -> float:
        """The rate of the bar or, without one, the predicted one."""
        return self.rate or (self.predicted.flop_per_s if self.predicted else 0.0)


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rungs of one shape that have a rate.

    `grade` is that of the bars: measured, recorded, predicted or theory. `cublas` is the
    measurement of cuBLAS that belongs to them. `same` maps a label that selects another rung, such
    as "best", to the label of that rung; `missing` are the rungs without a rate.
    """

    view: View
    rungs: tuple[Row, ...]
    grade: Grade
    cublas: Measured | None
    same: dict[str, str]
    missing: tuple[Record, ...]

    @property
    def is_measured(self) -> bool:
        return self.grade in (Grade.MEASURED, Grade.RECORDED)

    @property
    def peak(self) -> float:
        """The nominal FP32 rate of the device."""
        return self.view.profile.device.fp32_flop_per_s

    @property
    def roofs(self) -> list[tuple[str, float]]:
        """Name and rate of FP32, and of tensor cores if a rung uses them."""
        tensor = [(one.name, one.flop_per_s) for one in ladder.roofs_of_tensor_cores(self.view)]
        return [("FP32 peak", self.peak), *tensor]

    @property
    def fastest(self) -> Row | None:
        return max(
            (row for row in self.rungs if row.rate), key=lambda r: r.rate or 0.0, default=None
        )

    @property
    def reaching(self) -> Row | None:
        """The first rung that is as fast as cuBLAS, None if none is or cuBLAS was not timed."""
        return next((row for row in self.rungs if (row.of_cublas or 0.0) >= 1), None)

    @property
    def chosen(self) -> Row | None:
        """The rung that a page shows first: the first one to reach cuBLAS, or the fastest one."""
        return self.reaching or self.fastest or next(iter(self.rungs), None)

    def row(self, label: str) -> Row | None:
        return next((one for one in self.rungs if one.label == label), None)


def rows(view: View) -> Rows:
    """The rows of a shape; bars are measured if any rung was, else predicted, else theory."""
    grade = _grade(view)
    same = {a.label: b.label for a in view.rungs if (b := _selected(a, view.rungs))}
    own = [record for record in view.rungs if record.label not in same]
    rates = {record.label: _rate(view, record, grade) for record in own}
    steps = {one.after: one for one in view.steps}
    known = [one for one in own if rates[one.label] or one.trusted_prediction]
    cublas = next(iter(view.each_cublas), None) if grade in _OF_CLOCKS else None
    return Rows(
        view=view,
        rungs=tuple(
            _row(view, record, rates, steps.get(record.label), cublas[0] if cublas else None)
            for record in known
        ),
        grade=grade,
        cublas=cublas[0] if cublas else None,
        same=same,
        missing=tuple(record for record in own if record not in known),
    )


_OF_CLOCKS = (Grade.MEASURED, Grade.RECORDED)


def _grade(view: View) -> Grade:
    if any(record.trusted for record in view.rungs):
        return Grade.MEASURED
    if any(map(view.earlier, view.rungs)):
        return Grade.RECORDED
    if any(record.trusted_prediction for record in view.rungs):
        return Grade.PREDICTED
    return Grade.THEORY


def _rate(view: View, record: Record, grade: Grade) -> float | None:
    if grade in _OF_CLOCKS:
        measured = record.trusted or view.earlier(record)
        return measured.flop_per_s if measured else None
    if grade == Grade.PREDICTED:
        return record.trusted_prediction.flop_per_s if record.trusted_prediction else None
    is_right = record.theory and record.status == "ok"
    return record.theory.attainable_flop_per_s if record.theory and is_right else None


def _row(
    view: View,
    record: Record,
    rates: dict[str, float | None],
    step: Step | None,
    cublas: Measured | None,
) -> Row:
    measured = record.trusted or view.earlier(record)
    return Row(
        record=record,
        rate=rates[record.label],
        measured=measured,
        predicted=record.trusted_prediction,
        of_cublas=ladder.of_cublas(measured, cublas)[0] if measured else None,
        before=rates.get(step.before) if step else None,
        step=step,
        error=normal_error(view, record),
    )


def _selected(record: Record, among: Sequence[Record]) -> Record | None:
    """The rung that a record selects, if it has a row of its own: that of "best"."""
    if _is_itself(record):
        return None
    return next(
        (
            one
            for one in among
            if _is_itself(one)
            and (one.variant, one.parameters) == (record.variant, record.parameters)
        ),
        None,
    )


def _is_itself(record: Record) -> bool:
    return record.label.partition(":")[0] == record.variant
