"""Table of the bytes that every variant moves at each memory level, and of its intensities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.comparison.hierarchy import (
    MOVEMENTS,
    Hierarchy,
    LevelBound,
    measured_hierarchy,
    predicted_hierarchy,
)
from analysis.records.profile import Grade, Record
from analysis.roofline import LevelName
from reports import ladder, text
from reports.ladder import View
from reports.sections.table import Table, plain_table

LEVELS: tuple[LevelName, ...] = tuple(MOVEMENTS)


@dataclass(frozen=True, kw_only=True)
class LaunchTraffic:
    """One variant at one shape: predicted traffic, counted traffic, and the rate that was reached.

    `counted_grade` and `rate_grade` say whose these two are: the profile's own, or an earlier
    run's. `predicted_flop_per_s` is the rate of the predicted time.
    """

    label: str
    predicted: Hierarchy | None
    counted: Hierarchy | None
    counted_grade: str
    rate_flop_per_s: float | None
    rate_grade: str
    predicted_flop_per_s: float | None = None

    def pair(self, level: LevelName) -> tuple[LevelBound | None, LevelBound | None]:
        """A level as predicted and as counted, None where a grade does not have it."""
        return (
            self.predicted.level(level) if self.predicted else None,
            self.counted.level(level) if self.counted else None,
        )


def launches(view: View) -> tuple[LaunchTraffic, ...]:
    """Every variant of a shape whose traffic some grade has."""
    found = (_launch(view, record) for record in view.records)
    return tuple(one for one in found if one.predicted or one.counted)


def _launch(view: View, record: Record) -> LaunchTraffic:
    earlier, device, label = view.twin(record), view.profile.device, view.recorded_label
    own, theirs = record.trusted, ladder.measurement(earlier)
    counted = measured_hierarchy(record, device)
    counted_earlier = measured_hierarchy(earlier, device) if earlier else None
    rate, foreseen = own or theirs, record.trusted_prediction
    return LaunchTraffic(
        label=record.label,
        predicted=predicted_hierarchy(record, device),
        counted=counted or counted_earlier,
        counted_grade=label if counted_earlier and not counted else Grade.MEASURED,
        rate_flop_per_s=rate.flop_per_s if rate else None,
        rate_grade=Grade.MEASURED if own else label,
        predicted_flop_per_s=foreseen.flop_per_s if foreseen else None,
    )


# As a table.


def table(found: Sequence[LaunchTraffic]) -> Table:
    """One row per variant: FLOP per byte at every level by the best grade, and the lowest roof."""
    titles = [(level, "", True) for level in LEVELS]
    return plain_table(
        ["variant", *titles, "lowest level"],
        (
            [
                launch.label,
                *(_intensity(launch, level) for level in LEVELS),
                _lowest(launch.counted or launch.predicted),
            ]
            for launch in found
        ),
    )


def grades(found: Sequence[LaunchTraffic]) -> str:
    """Grades of the numbers in `table`, such as 'simulated'."""
    return " or ".join(dict.fromkeys(filter(None, map(_grade, found))))


def _grade(launch: LaunchTraffic) -> str:
    if launch.counted:
        return launch.counted_grade
    return launch.predicted.grade if launch.predicted else ""


def _intensity(launch: LaunchTraffic, level: LevelName) -> str:
    predicted, counted = launch.pair(level)
    bound = counted if launch.counted else predicted
    return text.flop_per_byte(bound.flop_per_byte if bound else None).split()[0]


def _lowest(by: Hierarchy | None) -> str:
    bound = by.level(by.limiting_level) if by and by.limiting_level else None
    return f"{bound.level} at {text.flop_per_s(bound.flop_per_s)}" if bound else text.ABSENT
