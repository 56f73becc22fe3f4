"""The ladder on a terminal: the columns of the page's table that there is room for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from analysis.problem import Gemm
from analysis.records.profile import Profile, Record
from reports import ladder, text
from reports.sections.table import NO_CELL, Cell, Column, Table, ladder_columns, says, table_of


def compact_table(
    profile: Profile, shape: Gemm, width: int, *, recorded: Profile | None = None
) -> Table:
    """One row per record of a shape, without details, for a terminal of `width` characters.

    Columns that say nothing, or find no room, are left out.
    """
    records = ladder.records_at(profile, shape)
    columns = _columns(profile, shape, records, recorded)
    return table_of(
        [
            replace(one.column, cell=_brief(one.column))
            for one in columns
            if width >= one.from_width and any(says(one.column.cell(r)) for r in records)
        ],
        records,
    )


def _brief(column: Column) -> Callable[[Record], Cell]:
    def cell(record: Record) -> Cell:
        whole = column.cell(record)
        return Cell(whole.text if says(whole) else "")

    return cell


def replaces_times(profile: Profile, recorded: Profile | None) -> bool:
    """True if the table has the times of a recorded run, for lack of a GPU of one's own."""
    return recorded is not None and profile.executor != "gpu"


@dataclass(frozen=True, kw_only=True)
class _Compact:
    """A column, and the least width of a terminal that has room for it."""

    column: Column
    from_width: int = 0


def _columns(
    profile: Profile, shape: Gemm, records: Sequence[Record], recorded: Profile | None
) -> Iterator[_Compact]:
    """All columns; predicted times take the room that theory has without them."""
    of_page = {
        (one.grade, one.title): one for one in ladder_columns(profile, shape, recorded=recorded)
    }

    def column(
        grade: str, title: str, shown: str = "", *, as_grade: str = "", from_width: int = 0
    ) -> Iterator[_Compact]:
        found = of_page.get((grade, title))
        if found:
            short = replace(found, title=shown or title, grade=as_grade or grade, is_whole=True)
            yield _Compact(column=short, from_width=from_width)

    on_gpu, is_replaced = profile.executor == "gpu", replaces_times(profile, recorded)
    is_predicted = any(map(ladder.prediction, records))
    yield _Compact(column=_words("   variant", _numbered))
    if not is_replaced:
        # without a GPU only the CPU has a time: on a narrow terminal its rate is enough
        time_from_width = 0 if on_gpu else 116 if is_predicted else 96
        yield from column("measured", "time", from_width=time_from_width)
        for title in ("rate", "of cuBLAS"):
            yield from column("measured", title)
    if recorded:
        for title in ("time", "rate", "of cuBLAS"):
            for one in column(ladder.recorded_label(recorded), title, as_grade="recorded"):
                tells_status = is_replaced and title == "time"
                yield replace(one, column=_or_status(one.column)) if tells_status else one
    timed_as = "measured" if on_gpu else "recorded" if recorded else ""
    yield from column(
        "predicted", "predicted time", "time", from_width=88 if timed_as == "measured" else 0
    )
    yield from column("predicted", "predicted rate", "rate", from_width=132 if timed_as else 0)
    yield from column("predicted", "over measured time", "predicted", as_grade=f"/ {timed_as}")
    limiter = _words("limiter, share", _limiter, grade="predicted")
    yield _Compact(column=limiter, from_width=112 if timed_as else 96)
    yield from column("theory", "attainable", "roof", from_width=116 if is_predicted else 0)
    for one in column("theory", "limiter"):
        yield _Compact(
            column=replace(one.column, is_whole=False),
            from_width=160 if is_predicted else 96 if on_gpu or recorded else 80,
        )
    for grade, title, shown in (
        ("simulated", "FFMA share", "FFMA"),
        ("compiled", "registers per thread", "regs"),
        ("compiled", "occupancy (theoretical)", "occupancy"),
    ):
        yield from column(grade, title, shown, from_width=160 if is_predicted else 116)
    if not is_replaced:  # the verdict belongs to this run, as the times do
        yield _Compact(column=_words("result", _result))


def _words(title: str, cell: Callable[[Record], Cell], grade: str = "") -> Column:
    return Column(title=title, grade=grade, cell=cell, is_number=False, is_whole=True)


def _numbered(record: Record) -> Cell:
    """The rung's number, where it has one, and the label."""
    return Cell(f"{record.rung or '':>2} {record.label}")


def _limiter(record: Record) -> Cell:
    found = ladder.prediction(record)
    return Cell(f"{found.limiter} {text.percent(found.limiter_share)}") if found else NO_CELL


def _or_status(column: Column) -> Column:
    """The column, with the status of a record that has no number at all."""

    def cell(record: Record) -> Cell:
        found = column.cell(record)
        has_nothing = record.status != "ok" and record.predicted is None
        return Cell(record.status) if has_nothing and not says(found) else found

    return replace(column, cell=cell)


def _result(record: Record) -> Cell:
    if record.status == "ok":
        return Cell("right" if record.check else "not run")
    return Cell(record.status)
