"""The ladder on a terminal: the columns of the page's table that there is room for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from analysis.records.metrics import FFMA_SHARE
from analysis.records.profile import Grade, Record
from reports import text
from reports.ladder import View
from reports.sections.ladder_table import ladder_columns
from reports.sections.table import NO_CELL, Cell, Column, Table, says, table_of


def compact_table(view: View, width: int) -> Table:
    """One row per record of a shape, without details, for a terminal of `width` characters.

    Columns that are empty or do not fit are left out.
    """
    records = view.records
    found = _columns(view)
    columns = [c for c, least in found if width >= least and any(says(c.cell(r)) for r in records)]
    whole = table_of(columns, records)
    rows = (tuple(Cell(cell.text if says(cell) else "") for cell in row) for row in whole.rows)
    return replace(whole, rows=tuple(rows))


def replaces_times(view: View) -> bool:
    """True if the table shows the times of a recorded run, because no GPU was used."""
    return view.recorded is not None and view.profile.executor != "gpu"


def _columns(view: View) -> Iterator[tuple[Column, int]]:
    """All columns, each with the least width of a terminal that has room for it."""
    is_replaced, timed_as, earlier = replaces_times(view), _timed_as(view), view.recorded_label
    # the verdict belongs to this run, as the times do
    of_this_run = {Grade.MEASURED, "result"} if is_replaced else set()
    badges = {earlier: Grade.RECORDED} if earlier else {}
    columns = {(one.grade, one.title): one for one in (*ladder_columns(view), *_OF_TERMINALS)}
    for grade, title, least in _least_widths(view):
        one = columns.get((grade, title))
        if one is None or of_this_run & {grade, title}:
            continue
        if is_replaced and (grade, title) == (earlier, "time"):
            one = _or_status(one)
        badge = f"/ {timed_as}" if title == "over measured time" else badges.get(grade, grade)
        is_whole = (grade, title) != (Grade.THEORY, "limiter")
        yield replace(one, title=one.short or title, grade=badge, is_whole=is_whole), least


def _timed_as(view: View) -> str:
    """Grade of the measured times that the table shows; empty without any."""
    if view.profile.executor == "gpu":
        return Grade.MEASURED
    return Grade.RECORDED if view.recorded else ""


def _least_widths(view: View) -> Iterator[tuple[str, str, int]]:
    """Grade, title and least width of a terminal of each column, in their order.

    Predicted times take the room that theory has without them. Without a GPU only the CPU has a
    time: on a narrow terminal its rate is enough.
    """
    on_gpu, has_times = view.profile.executor == "gpu", bool(_timed_as(view))
    is_predicted = any(one.trusted_prediction for one in view.records)
    if is_predicted:
        own_time, roofs, others = 116, 160, 160
    else:
        own_time, roofs, others = 96, 96 if has_times else 80, 116
    yield "", "   variant", 0
    yield Grade.MEASURED, "time", 0 if on_gpu else own_time
    yield Grade.MEASURED, "rate", 0
    yield Grade.MEASURED, "of cuBLAS", 0
    for title in ("time", "rate", "of cuBLAS"):
        yield view.recorded_label, title, 0
    yield Grade.PREDICTED, "predicted time", 88 if on_gpu else 0
    yield Grade.PREDICTED, "predicted rate", 132 if has_times else 0
    yield Grade.PREDICTED, "over measured time", 0
    yield Grade.PREDICTED, "limiter, share", 112 if has_times else 96
    yield Grade.THEORY, "attainable", 116 if is_predicted else 0
    yield Grade.THEORY, "limiter", roofs
    yield Grade.SIMULATED, FFMA_SHARE.label, others
    yield Grade.COMPILED, "registers per thread", others
    yield Grade.COMPILED, "occupancy (theoretical)", others
    yield "", "result", 0


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
