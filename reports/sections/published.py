"""What texts published of such kernels, beside the roofs of theory, for page and terminal."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.records.profile import Grade, Published, Record
from reports import text
from reports.ladder import View
from reports.sections.ladder_table import of_roof
from reports.sections.table import Cell, Table, plain_table


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What one source states of one shape, and what to know before comparing."""

    source: str
    caveat: str
    table: Table


def publications(view: View) -> tuple[Publication, ...]:
    """The published times of a shape by source, each beside the roof over its rung."""
    found: dict[tuple[str, str], list[tuple[Record, Published]]] = defaultdict(list)
    for record in view.records:
        for one in record.published:
            found[one.source, one.caveat].append((record, one))
    return tuple(
        Publication(source=source, caveat=caveat, table=_table(rows))
        for (source, caveat), rows in found.items()
    )


def _table(rows: Sequence[tuple[Record, Published]]) -> Table:
    titles = (
        "variant",
        ("time", Grade.PUBLISHED, True),
        ("rate", Grade.PUBLISHED, True),
        ("roof", Grade.THEORY, True),
        ("of the roof", "", True),
        "called there",
    )
    return plain_table(titles, (_row(record, one) for record, one in rows))


def _row(record: Record, one: Published) -> list[Cell | str]:
    differs = () if one.rung == record.label else (f"as {one.rung}",)
    roof = one.roof
    return [
        Cell(record.label, details=differs),
        text.seconds(one.time_s),
        text.flop_per_s(one.flop_per_s),
        text.flop_per_s(roof.flop_per_s if roof else None),
        of_roof(one.flop_per_s, roof.flop_per_s, roof.name) if roof else text.ABSENT,
        one.label,
    ]
