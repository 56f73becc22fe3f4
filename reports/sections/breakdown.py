"""Breakdown of the times of a few variants: roofs, resources, limiters and parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.records.profile import Record
from analysis.timing.predicted import Predicted
from reports import text
from reports.ladder import Timing, View
from reports.sections.prediction import part_rows_of
from reports.sections.table import Cell, Table, head, plain_table

ROOFS = "roofs (theory)"
ALONE = "each resource alone (predicted)"
BUSIEST = "busiest, share of the time"
NO_ROOF = " (not a roof)"  # the bound of the source texts: caches serve most of these loads
PARTS, WHOLE = "parts of the time (predicted)", "the whole time"
NEGLIGIBLE = 0.01  # of the predicted times: too small to look for


@dataclass(frozen=True, kw_only=True)
class _Item:
    """One cell of the breakdown: its text, the time that it stands for, and details below."""

    group: str
    name: str
    text: str
    time_s: float = 0.0
    details: tuple[str, ...] = ()
    is_notable: bool = True


def breakdown(view: View) -> Table | None:
    """A row per roof, resource and part of the time, a column per rung; None without a rung."""
    records = [record for record in view.rungs if record.theory]
    if not records:
        return None
    of_each = [{(i.group, i.name): i for i in _items(view, record)} for record in records]
    return plain_table(
        ["time of", *((record.label, "", True) for record in records)], _rows(of_each)
    )


def _items(view: View, record: Record) -> Iterator[_Item]:
    yield from _roofs(record)
    found = view.timing(record)
    if found:
        yield from _alone(found)
        yield from _busiest(found.predicted)
        yield from _parts(found)


def _roofs(record: Record) -> Iterator[_Item]:
    if record.theory:
        uncached = record.theory.uncached
        yield _item(ROOFS, f"{uncached.name}{NO_ROOF}", uncached.time_s, text.seconds)
        for roof in record.theory.ceilings:
            yield _item(ROOFS, roof.name, roof.time_s, text.seconds)


def _alone(found: Timing) -> Iterator[_Item]:
    for bound in found.predicted.bounds:
        share = bound.time_s / found.predicted.time_s
        yield replace(_item(ALONE, bound.name, bound.time_s), is_notable=share >= NEGLIGIBLE)


def _busiest(predicted: Predicted) -> Iterator[_Item]:
    for name, resource, share in (
        ("limiter", predicted.limiter, predicted.limiter_share),
        ("next", predicted.next_limiter, predicted.next_share),
    ):
        yield _Item(group=BUSIEST, name=name, text=resource, details=(text.percent(share),))


def _parts(found: Timing) -> Iterator[_Item]:
    group = PARTS
    for row in part_rows_of(found):
        group = WHOLE if row.is_total else group  # what follows leads from one time to the next
        yield _Item(
            group=group,
            name=f"time, {row.name}" if row.is_total else row.name,
            time_s=row.time_s,
            text=row.text,
            is_notable=group == WHOLE or abs(row.time_s) >= NEGLIGIBLE * found.predicted.time_s,
        )


def _item(
    group: str, name: str, time_s: float, written: Callable[[float], str] = text.predicted_seconds
) -> _Item:
    return _Item(group=group, name=name, time_s=time_s, text=written(time_s))


def _rows(of_each: Sequence[dict[tuple[str, str], _Item]]) -> Iterator[list[Cell | str]]:
    """Items of all variants, each group under its name; a dash where a variant lacks the item."""
    keys = dict.fromkeys(key for each in of_each for key, one in each.items() if one.is_notable)
    for group in (ROOFS, ALONE, BUSIEST, PARTS, WHOLE):
        names = [name for of, name in keys if of == group]
        if group in (ALONE, PARTS):  # the longest first
            names.sort(key=lambda name: -max(_time(each, group, name) for each in of_each))
        if names:
            yield head(group, 1 + len(of_each))
        for name in names:
            found = [each.get((group, name)) for each in of_each]
            yield [
                f"  {name}",
                *(_cell(one) for one in found),
            ]


def _cell(item: _Item | None) -> Cell:
    return Cell(item.text, details=item.details) if item else Cell(text.ABSENT)


def _time(each: dict[tuple[str, str], _Item], group: str, name: str) -> float:
    found = each.get((group, name))
    return found.time_s if found else 0.0
