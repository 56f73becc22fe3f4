"""The ladder on a terminal: the columns of the page's table that there is room for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from analysis.problem import Gemm
from analysis.records.profile import Grade, Profile, Record
from reports import ladder, text
from reports.sections.ladder_table import ladder_columns
from reports.sections.table import NO_CELL, Cell, Column, Table, says, table_of


def compact_table(
    profile: Profile, shape: Gemm, width: int, *, recorded: Profile | None = None
) -> Table:
    """One row per record of a shape, without details, for a terminal of `width` characters.

    Columns that say nothing, or find no room, are left out.
    """
    records = ladder.records_at(profile, shape)
    found = _columns(profile, shape, records, recorded)
    columns = [c for c, least in found if width >= least and any(says(c.cell(r)) for r in records)]
    whole = table_of(columns, records)
    rows = (tuple(Cell(cell.text if says(cell) else "") for cell in row) for row in whole.rows)
    return replace(whole, rows=tuple(rows))


def replaces_times(profile: Profile, recorded: Profile | None) -> bool:
    """True if the table has the times of a recorded run, for lack of a GPU of one's own."""
    return recorded is not None and profile.executor != "gpu"


def _columns(
    profile: Profile, shape: Gemm, records: Sequence[Record], recorded: Profile | None
) -> Iterator[tuple[Column, int]]:
    """All columns, each with the least width of a terminal that has room for it.

    Predicted times take the room that theory has without them.
    """
    on_gpu, is_replaced = profile.executor == "gpu", replaces_times(profile, recorded)
    is_predicted = any(map(ladder.prediction, records))
    timed_as = Grade.MEASURED if on_gpu else Grade.RECORDED if recorded else ""
    earlier = ladder.recorded_label(recorded) if recorded else None
    # without a GPU only the CPU has a time: on a narrow terminal its rate is enough
    own_time = 0 if on_gpu else 116 if is_predicted else 96
    roofs = 160 if is_predicted else 96 if timed_as else 80
    others = 160 if is_predicted else 116
    # the verdict belongs to this run, as the times do
    of_this_run = {Grade.MEASURED, "result"} if is_replaced else set()
    columns = {
        (one.grade, one.title): one
        for one in (
            *ladder_columns(profile, shape, recorded=recorded),
            *_OF_TERMINALS,
        )
    }
    for grade, title, shown, shown_grade, least in (
        ("", "   variant", "   variant", "", 0),
        (Grade.MEASURED, "time", "time", Grade.MEASURED, own_time),
        (Grade.MEASURED, "rate", "rate", Grade.MEASURED, 0),
        (Grade.MEASURED, "of cuBLAS", "of cuBLAS", Grade.MEASURED, 0),
        (earlier, "time", "time", Grade.RECORDED, 0),
        (earlier, "rate", "rate", Grade.RECORDED, 0),
        (earlier, "of cuBLAS", "of cuBLAS", Grade.RECORDED, 0),
        (Grade.PREDICTED, "predicted time", "time", Grade.PREDICTED, 88 if on_gpu else 0),
        (Grade.PREDICTED, "predicted rate", "rate", Grade.PREDICTED, 132 if timed_as else 0),
        (Grade.PREDICTED, "over measured time", Grade.PREDICTED, f"/ {timed_as}", 0),
        (
            Grade.PREDICTED,
            "limiter, share",
            "limiter, share",
            Grade.PREDICTED,
            112 if timed_as else 96,
        ),
        (Grade.THEORY, "attainable", "roof", Grade.THEORY, 116 if is_predicted else 0),
        (Grade.THEORY, "limiter", "limiter", Grade.THEORY, roofs),
        (Grade.SIMULATED, "FFMA share", "FFMA", Grade.SIMULATED, others),
        (Grade.COMPILED, "registers per thread", "regs", Grade.COMPILED, others),
        (Grade.COMPILED, "occupancy (theoretical)", "occupancy", Grade.COMPILED, others),
        ("", "result", "result", "", 0),
    ):
        one = columns.get((grade or "", title))
        if one and not of_this_run & {grade, title}:
            if is_replaced and (grade, title) == (earlier, "time"):
                one = _or_status(one)
            is_whole = (grade, title) != (Grade.THEORY, "limiter")
            yield replace(one, title=shown, grade=shown_grade, is_whole=is_whole), least


def _numbered(record: Record) -> Cell:
    """The rung's number, where it has one, and the label."""
    return Cell(f"{record.rung or '':>2} {record.label}")


def _limiter(record: Record) -> Cell:
    found = record.trusted_prediction
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


_OF_TERMINALS = (
    Column(title="   variant", grade="", cell=_numbered, is_number=False),
    Column(title="limiter, share", grade=Grade.PREDICTED, cell=_limiter, is_number=False),
    Column(title="result", grade="", cell=_result, is_number=False),
)
