"""Several runs side by side: the same variant at the same shape, one column per run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from analysis.records.profile import Grade, Profile, Record
from reports import ladder, text
from reports.ladder import View
from reports.sections.table import Cell, Table, plain_table

Named = tuple[str, Profile]


def names(profiles: Sequence[Profile]) -> list[str]:
    """Distinct names of the runs: the device, with date and number if devices are equal."""
    devices = Counter(one.device.name for one in profiles)
    moments = Counter((one.device.name, text.moment(one.created)) for one in profiles)
    return [_name(one, devices, moments, place) for place, one in enumerate(profiles, start=1)]


def _name(
    one: Profile, devices: Counter[str], moments: Counter[tuple[str, str]], place: int
) -> str:
    device, moment = one.device.name, text.moment(one.created)
    if devices[device] == 1:
        return device
    same = moments[device, moment] > 1
    return f"{device}, {moment}{f' ({place})' if same else ''}"


def side_by_side(runs: Sequence[Named]) -> Table | None:
    """A row per shape and variant that some run has, a column per run; None for a single run."""
    if len(runs) < 2:
        return None
    names = [(name, "", True) for name, _ in runs]
    return plain_table(["shape", "variant", *names], _rows(runs))


def _rows(runs: Sequence[Named]) -> Iterator[list[Cell | str]]:
    keys = dict.fromkeys(
        (shape, record.label)
        for _, profile in runs
        for shape in ladder.shapes(profile)
        for record in View(profile, shape).records
    )
    for shape, label in keys:
        cells = [_cell(View(profile, shape), label) for _, profile in runs]
        if any(cell.text != text.ABSENT for cell in cells):
            yield [text.shape(shape), label, *cells]


def _cell(view: View, label: str) -> Cell:
    """The best time that a run has of a variant, with its grade, and its limiter."""
    record = view.record(label)
    if record is None:
        return Cell(text.ABSENT)
    measured, foreseen = record.trusted, record.trusted_prediction
    if measured:
        return _timed(measured.median_s, measured.flop_per_s, Grade.MEASURED, record)
    if foreseen:
        return _timed(foreseen.time_s, foreseen.flop_per_s, Grade.PREDICTED, record)
    if record.theory and record.status == "ok":
        roof = text.flop_per_s(record.theory.attainable_flop_per_s)
        return Cell(f"≤ {roof}", details=(Grade.THEORY, f"limited by {record.theory.limiter}"))
    return Cell(text.ABSENT)


def _timed(time_s: float, flop_per_s: float, grade: str, record: Record) -> Cell:
    foreseen = record.trusted_prediction
    limiter = (f"limited by {foreseen.limiter}",) if foreseen else ()
    rate = f"{text.flop_per_s(flop_per_s)} ({grade})"
    shown = text.seconds if grade == Grade.MEASURED else text.predicted_seconds
    return Cell(shown(time_s), details=(rate, *limiter))
