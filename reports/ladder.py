"""The records of a profile that a report shows, and the numbers of them that it compares.

A time counts only if the result is right: `measurement` is None for a launch that failed its
check. So no figure, table or sentence shows the time of a wrong kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter

from analysis.comparison.gap import over_measured
from analysis.comparison.scorecard import scores, scores_of
from analysis.comparison.steps import Step, step
from analysis.problem import Gemm
from analysis.records.profile import (
    Grade,
    Interval,
    Listing,
    Measured,
    Moment,
    Profile,
    Record,
    Score,
)
from analysis.roofline import TensorRoof, tensor_roofs
from analysis.timing.predicted import Predicted
from reports import text

CUBLAS = "cublas"
MANY = 5  # rungs in a row: a reader knows those between the first and the last


def shapes(profile: Profile) -> tuple[Gemm, ...]:
    """The shapes of a profile, in the order in which they were profiled."""
    return tuple(dict.fromkeys(record.shape for record in profile.records))


def named(labels: Sequence[str], among: Sequence[Record]) -> str:
    """Labels in words. Many rungs in a row are written as the first and the last of them."""
    places = {record.label: place for place, record in enumerate(among) if record.rung is not None}
    runs: list[list[str]] = []
    for label in labels:
        follows = runs and label in places and places.get(runs[-1][-1], -2) + 1 == places[label]
        if follows:
            runs[-1].append(label)
        else:
            runs.append([label])
    shown: list[str] = []
    for run in runs:
        shown += run if len(run) < MANY else [f"{run[0]} to {run[-1]} ({len(run)} rungs)"]
    return text.listing(shown)


def measurement(record: Record | None) -> Measured | None:
    """The measurement of a launch, None without one or if the check failed."""
    return record.trusted if record else None


def listing_of(profile: Profile, record: Record) -> Listing | None:
    """Source and machine code of a record; for "best", those of the rung that it selects."""
    own = record.simulated.listing if record.simulated else None
    label = own or record.label
    return next((one for one in profile.listings if one.label == label), None)


def why_not_measured(record: Record) -> str:
    """Reason in two or three words why `measurement` returns None."""
    if record.check and not record.check.passed:
        return "failed the check"
    return "not measured" if record.status == "ok" else record.status


def check_failure(record: Record) -> str:
    """Error of the worst element relative to its bound, with its row and column."""
    check = record.check
    if check is None:
        return text.absent("not checked")
    where = f"at row {check.worst_row}, column {check.worst_column}"
    if check.worst_ratio is None:
        return f"no finite ratio of error to bound {where} (NaN, infinity or a bound of 0)"
    return f"an error of {text.ratio(check.worst_ratio)} the bound {where}"


def moments(view: View) -> tuple[Moment, ...]:
    """States of the GPU while the shape of the view was sampled."""
    return next((o.moments for o in view.profile.conditions if o.shape == view.shape), ())


@dataclass(frozen=True, kw_only=True)
class Timing:
    """A predicted time, and a measured time of the same launch to compare it with.

    The measured time is the profile's own or one of an earlier run; `grade` says which. `ratio` is
    predicted over measured, None if nothing comparable was measured.
    """

    record: Record
    predicted: Predicted
    measured: Measured | None
    grade: str
    ratio: float | None


@dataclass(frozen=True)
class View:
    """The records of one shape of a profile, and an earlier run to show beside them.

    `recorded` is a measured run on the same GPU model, None where there is none.
    """

    profile: Profile
    shape: Gemm
    recorded: Profile | None = None

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The records of the shape: rungs in the ladder's order, then references."""
        records = (record for record in self.profile.records if record.shape == self.shape)
        return tuple(sorted(records, key=lambda r: (r.rung is None, r.rung or 0)))

    @property
    def rungs(self) -> tuple[Record, ...]:
        """The records that are rungs of the ladder."""
        return tuple(record for record in self.records if record.rung is not None)

    @cached_property
    def of_recorded(self) -> View | None:
        """The view of the earlier run alone."""
        return View(self.recorded, self.shape) if self.recorded else None

    @property
    def recorded_label(self) -> str:
        """Name of the earlier run beside its numbers; empty without one."""
        return recorded_label(self.recorded) if self.recorded else ""

    def record(self, label: str) -> Record | None:
        """The record of one label."""
        return next((record for record in self.records if record.label == label), None)

    def twin(self, record: Record) -> Record | None:
        """The record of the same variant, parameters and shape in the earlier run."""
        return self.of_recorded.record(record.label) if self.of_recorded else None

    def earlier(self, record: Record) -> Measured | None:
        """The measurement of the same variant in the earlier run."""
        return measurement(self.twin(record))

    @property
    def fastest(self) -> Record | None:
        """The measured rung with the highest rate."""
        measured = [(one.flop_per_s, r) for r in self.rungs if (one := r.trusted)]
        return max(measured, key=itemgetter(0), default=(0.0, None))[1]

    @property
    def cublas(self) -> Measured | None:
        """The measurement of cuBLAS."""
        found = (r.trusted for r in self.records if r.variant == CUBLAS and r.trusted)
        return next(found, None)

    @property
    def each_cublas(self) -> list[tuple[Measured, Grade]]:
        """The measurements of cuBLAS in the profile and in the earlier run."""
        views = ((self, Grade.MEASURED), (self.of_recorded, Grade.RECORDED))
        return [(one, grade) for view, grade in views if view and (one := view.cublas)]

    @property
    def timings(self) -> tuple[Timing, ...]:
        """The predicted times, each beside a measured one where there is one."""
        return tuple(one for one in map(self.timing, self.records) if one)

    def timing(self, record: Record) -> Timing | None:
        """The predicted time of a record beside a measured one that is comparable, if any."""
        predicted = record.trusted_prediction
        if predicted is None:
            return None
        own, theirs = record.trusted, self.earlier(record)
        for measured, grade in ((own, Grade.MEASURED), (theirs, self.recorded_label)):
            ratio = over_measured(predicted, measured)
            if ratio is not None:
                return Timing(
                    record=record, predicted=predicted, measured=measured, grade=grade, ratio=ratio
                )
        return Timing(record=record, predicted=predicted, measured=None, grade="", ratio=None)

    @property
    def grade_of_times(self) -> Grade:
        """Grade of the measured times that predictions are compared with."""
        is_own = any(record.trusted for record in self.rungs)
        return Grade.MEASURED if is_own else Grade.RECORDED

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Steps of the ladder: each rung compared with the nearest lower one that has a time."""
        rungs = [
            _with_recorded(record, self.twin(record))
            for record in self.rungs
            if record.trusted_prediction or record.trusted or self.earlier(record)
        ]
        found = (step(before, after) for after in rungs if (before := previous_rung(after, rungs)))
        return tuple(one for one in found if one.speedup)

    @cached_property
    def scores(self) -> dict[str, tuple[Score, ...]]:
        """The scores of every record that has any, by label.

        Where the profile has no hardware counters of its own, those of the earlier run stand in.
        """
        found = {}
        for record in self.records:
            earlier = self.twin(record)
            borrows = record.counted is None and earlier is not None and earlier.counted is not None
            of_record = scores(record, counted_in=earlier) if borrows else scores_of(record)
            if of_record:
                found[record.label] = of_record
        return found


def _with_recorded(record: Record, earlier: Record | None) -> Record:
    """The record with an earlier run's time and hardware counters where it lacks them."""
    if earlier is None:
        return record
    return replace(
        record,
        measured=record.trusted or measurement(earlier),
        counted=record.counted or earlier.counted,
    )


def roofs_of_tensor_cores(view: View) -> tuple[TensorRoof, ...]:
    """Roofs of the tensor cores that the rungs use, each once."""
    tilings = (one.theory.accesses.tiling for one in view.rungs if one.theory)
    return tensor_roofs(tilings, view.profile.device)


def of_cublas(measured: Measured, cublas: Measured | None) -> tuple[float | None, Interval | None]:
    """Speed relative to cuBLAS, and its 95% interval.

    If the run recorded cuBLAS sample by sample, both follow from these samples. Otherwise the speed
    is the quotient of the two rates, and there is no interval.
    """
    if measured.relative_to_cublas:
        return measured.relative_to_cublas.median, measured.relative_to_cublas.interval
    return (measured.flop_per_s / cublas.flop_per_s if cublas else None), None


def previous_rung(record: Record, among: Iterable[Record]) -> Record | None:
    """The nearest lower rung, None for the lowest one."""
    rung = record.rung or 0
    lower = (other for other in among if other.rung and other.rung < rung)
    return max(lower, key=lambda r: r.rung or 0, default=None)


def recorded_label(recorded: Profile) -> str:
    """Name of an earlier run beside its numbers: date and device."""
    return f"{recorded_on(recorded)} on {recorded.device.name}"


def recorded_on(recorded: Profile) -> str:
    """Short name of an earlier run for a legend: the date without the device."""
    return f"recorded {text.date(recorded.created)}"
