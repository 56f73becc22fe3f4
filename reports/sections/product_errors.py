"""Errors of the products of a shape on classes of inputs, beside those of cuBLAS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis.product_errors import DATA_CLASSES, ProductError
from analysis.records.profile import Record
from reports import text
from reports.ladder import CUBLAS, View
from reports.sections.table import NO_CELL, Cell, Table, Title, plain_table

# Of rms errors of 65,536 elements: those of two seeds differ less.
NOTICEABLE = 1.05
FEW = 3  # classes that a sentence names
TITLE = "Errors relative to |A||B|"


@dataclass(frozen=True, kw_only=True)
class Worse:
    """A variant whose error on a class is larger than that of cuBLAS.

    `times` is the ratio of the rms errors, None if the result is not finite.
    """

    label: str
    data: str
    times: float | None


def errors_of(view: View, record: Record) -> tuple[ProductError, ...]:
    """The errors of a variant, or else those of the earlier run."""
    earlier = view.twin(record)
    return record.errors or (earlier.errors if earlier else ())


def normal_error(view: View, record: Record) -> str:
    """The rms error on normal numbers: '1.75e-8'; empty if it is not known."""
    found = next((one for one in errors_of(view, record) if one.data == "normal"), None)
    return text.relative_error(found.rms) if found else ""


def has_errors(view: View) -> bool:
    """True if the error of some variant is known."""
    return any(errors_of(view, one) for one in view.records)


def table(view: View) -> Table:
    """A row per variant and a column per class: rms, maximum, and the ratio to cuBLAS."""
    names = [one for one in DATA_CLASSES if any(_error(view, r, one) for r in view.records)]
    titles: list[Title] = ["variant", *((name, "", True) for name in names)]
    return plain_table(
        titles,
        [
            [Cell(record.label), *(_cell(view, record, name) for name in names)]
            for record in view.records
            if errors_of(view, record)
        ],
    )


def sentences(view: View) -> Iterator[str]:
    """Say which variants are less accurate than cuBLAS and where, and what was measured."""
    found = [one for record in view.rungs if (one := tuple(_worse(view, record)))]
    if found:
        yield f"Less accurate than cuBLAS: {'; '.join(map(_told, found))}."
    shown = [one for record in view.records for one in errors_of(view, record)]
    if shown:
        shapes = dict.fromkeys(text.shape(one.shape) for one in shown)
        most = max(one.elements for one in shown)
        yield (
            f"Errors: against float64, relative to |A||B|, of {text.count(most)} elements at most, "
            f"at {text.listing(list(shapes))}."
        )


def readings() -> Iterator[tuple[str, str]]:
    """Name and meaning of each class."""
    for name, one in DATA_CLASSES.items():
        yield name, one.meaning


def _told(worse: Sequence[Worse]) -> str:
    """'tf32-parts on one-term (2.76x)', or the number of classes where there are many."""
    label, times = worse[0].label, [one.times for one in worse if one.times is not None]
    if len(worse) > FEW:
        most = f", up to {text.three_digits(max(times))}×" if times else ""
        return f"{label} on {len(worse)} of {len(DATA_CLASSES)} classes{most}"
    named = [f"{one.data} ({_times(one.times)})" for one in worse]
    return f"{label} on {text.listing(named)}"


def _times(times: float | None) -> str:
    return "not finite" if times is None else f"{text.three_digits(times)}×"


def _worse(view: View, record: Record) -> Iterator[Worse]:
    for one in errors_of(view, record):
        ratio = _ratio(view, one)
        if one.rms is None or (ratio is not None and ratio > NOTICEABLE):
            yield Worse(label=record.label, data=one.data, times=ratio)


def _cell(view: View, record: Record, data: str) -> Cell:
    error = _error(view, record, data)
    if error is None:
        return NO_CELL
    if error.rms is None:
        return Cell("not finite", is_bad=True)
    ratio = None if record.variant == CUBLAS else _ratio(view, error)
    details = [f"max {text.relative_error(error.maximum)}"]
    details += [f"{_times(ratio)} cuBLAS"] if ratio is not None else []
    is_worse = None
    if ratio is not None and not 1 / NOTICEABLE <= ratio <= NOTICEABLE:
        is_worse = ratio > 1
    return Cell(text.relative_error(error.rms), details=tuple(details), is_worse=is_worse)


def _error(view: View, record: Record, data: str) -> ProductError | None:
    return next((one for one in errors_of(view, record) if one.data == data), None)


def _ratio(view: View, error: ProductError) -> float | None:
    """Rms error over that of cuBLAS on the same inputs' class and shape; None without one."""
    for record in view.records:
        if record.variant == CUBLAS:
            peer = _error(view, record, error.data)
            if peer and peer.rms and error.rms is not None and peer.shape == error.shape:
                return error.rms / peer.rms
    return None
