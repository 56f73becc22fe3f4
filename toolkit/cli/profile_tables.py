"""What `profile` and `report` print: for every shape the answer in words, and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from analysis.comparison.agreement import unexplained
from analysis.problem import Gemm
from analysis.records.metrics import ffma_share
from analysis.records.profile import Measured, Profile, Record
from analysis.theory import Theory
from analysis.timing.predicted import Predicted
from reports import ladder, rungs, text
from reports.breakdown import breakdown
from reports.headline import answer, standing
from reports.hierarchy import grades, launches, summary
from reports.ladder import Timing, measurement, records_at, shapes, twin
from reports.prediction import told_steps
from reports.published import publications
from reports.scorecard import scorecard
from toolkit.cli.terminal import out, plain_table, rich_table
from toolkit.store.profile_json import dumps

STATUS_STYLES = {"ok": "green", "skipped": "yellow", "failed": "bold red"}


def print_profile(profile: Profile, recorded: Profile | None) -> None:
    """For every shape: the answer in words, and the ladder."""
    for sentence in standing(profile):
        out.print(f"[yellow]{escape(sentence)}[/]", soft_wrap=True)
    for shape in shapes(profile):
        records = records_at(profile, shape)
        beside = recorded if any(measurement(twin(r, recorded)) for r in records) else None
        said = answer(profile, shape, recorded=beside)
        out.print(f"{text.shape(shape)} on {escape(profile.device.name)}", soft_wrap=True)
        out.print(f"[bold]{escape(said.lead)}[/]")
        if said.trust:
            out.print(escape(said.trust))
        out.print(_bullets(said.points))
        out.print(_ladder_table(profile, records, beside))
        if _replaced(profile, beside):
            for line in _own_rates(records):
                out.print(line, soft_wrap=True)
        for line in _riddles(records):
            out.print(line, soft_wrap=True)
        _print_breakdown(profile, shape, recorded)
        _print_steps(profile, shape, recorded)
        _print_published(profile, shape)
        _print_levels(profile, shape, recorded)
        _print_scorecard(profile, shape, recorded)


def _bullets(points: Sequence[str]) -> Table:
    """Sentences below each other, their further lines under the first word."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=3, justify="right")
    grid.add_column()
    for point in points:
        grid.add_row("-", escape(point))
    return grid


def _print_steps(profile: Profile, shape: Gemm, recorded: Profile | None) -> None:
    """Why each rung beats the one before, where a time was predicted."""
    steps = told_steps(profile, shape, recorded)
    if steps and ladder.timings(profile, shape):
        rows = rungs.compact_table(steps, grade=ladder.grade_of_times(profile, shape))
        out.print("why each rung beats the one before, or does not")  # the table may be narrower
        out.print(rich_table(rows))


def _print_breakdown(profile: Profile, shape: Gemm, recorded: Profile | None) -> None:
    """What the times of a few variants are made of; the report has it for many."""
    rows = breakdown(profile, shape, recorded=recorded)
    if rows is None:
        return
    table = rich_table(rows)
    if table.__rich_measure__(out, out.options).minimum <= out.width:
        out.print("where the time goes")  # the table may be narrower
        out.print(table)


def _print_published(profile: Profile, shape: Gemm) -> None:
    """What texts state of such kernels, source and caveat below it."""
    for one in publications(profile, shape):
        table = one.table if out.width >= 96 else one.table.without_last_column
        out.print(rich_table(table, title=f"published elsewhere, {text.shape(shape)}"))
        out.print(f"{escape(one.source)}. [dim]{escape(one.caveat)}[/]\n", soft_wrap=True)


def _print_levels(profile: Profile, shape: Gemm, recorded: Profile | None) -> None:
    """The intensity of every variant at each memory level, where traffic below L1 is known."""
    found = [
        one
        for one in launches(profile, shape, recorded)
        if any(one.pair("L2")) or any(one.pair("DRAM"))
    ]
    if found:
        about = f"FLOP per byte at each level, {text.shape(shape)} ({grades(found)})"
        out.print(escape(about), soft_wrap=True)  # a title would be as narrow as its table
        out.print(rich_table(summary(found)))


def _print_scorecard(profile: Profile, shape: Gemm, recorded: Profile | None) -> None:
    """How the counters of a shape came out, where hardware counted some or an exact one is off.

    That simulation and closed forms agree is said in the answer.
    """
    found = scorecard(profile, shape, recorded=recorded)
    if found and (found.is_measured or found.bad):
        out.print(escape(found.verdict))
        out.print(rich_table(found.overview.brief, title=f"scorecard, {text.shape(shape)}"))


def _replaced(profile: Profile, recorded: Profile | None) -> bool:
    """Whether the table shows the times of a recorded run, for lack of a GPU of one's own."""
    return recorded is not None and profile.executor != "gpu"


def _own_rates(records: Sequence[Record]) -> Iterator[str]:
    """What this machine measured itself, apart from the recorded numbers of the table."""
    for record in records:
        measured = measurement(record)
        if measured:
            rate = text.flop_per_s(measured.flop_per_s)
            yield f"{escape(record.label)} on this machine: {rate} (measured)"


def _riddles(records: Sequence[Record]) -> Iterator[str]:
    """Where closed form and machine code disagree for a reason that is not known."""
    for record in records:
        for one in unexplained(record):
            yield (
                f"[yellow]{escape(record.label)}: {one.quantity} of {one.subject}: "
                f"{one.closed_form:,} by the closed form, {one.simulated:,} simulated: "
                f"{escape(one.reason or '')}[/]"
            )


@dataclass(frozen=True, kw_only=True)
class _Column:
    """One column: its title and grade, what it shows of a record, how wide a terminal it asks."""

    title: str
    cell: Callable[[Record], str]
    grade: str = ""
    numeric: bool = True
    wraps: bool = False
    from_width: int = 0


def _ladder_table(profile: Profile, records: Sequence[Record], recorded: Profile | None) -> Table:
    """The records of one shape; columns that say nothing, or find no room, are left out."""
    table = plain_table()
    is_predicted = any(map(ladder.prediction, records))
    columns = [
        column
        for column in _columns(profile, recorded, is_predicted=is_predicted)
        if out.width >= column.from_width and any(column.cell(record) for record in records)
    ]
    for column in columns:
        table.add_column(
            f"{column.title}\n[dim]{column.grade}[/]",
            justify="right" if column.numeric else "left",
            no_wrap=not column.wraps,
        )
    for record in records:
        table.add_row(*(column.cell(record) for column in columns))
    return table


def _columns(
    profile: Profile, recorded: Profile | None, *, is_predicted: bool
) -> Iterator[_Column]:
    """All columns; predicted times take the room that theory has without them."""

    def of_theory(show: Callable[[Theory], str]) -> Callable[[Record], str]:
        return lambda r: show(r.theory) if r.theory else ""

    def occupied(record: Record) -> str:
        return text.percent(record.occupancy.fraction) if record.occupancy else ""

    def multiply_adds(record: Record) -> str:
        return text.percent(ffma_share(record.simulated.counters)) if record.simulated else ""

    def registers(record: Record) -> str:
        return str(record.resources.registers_per_thread) if record.resources else ""

    on_gpu = profile.executor == "gpu"
    yield _Column(title="   variant", cell=_numbered, numeric=False)
    if not _replaced(profile, recorded):
        # without a GPU only the CPU has a time: on a narrow terminal its rate is enough
        time_from_width = 0 if on_gpu else 116 if is_predicted else 96
        yield from _time_columns("measured", measurement, time_from_width=time_from_width)
    yield from _time_columns(
        "recorded",
        lambda r: measurement(twin(r, recorded)),
        tells_status=_replaced(profile, recorded),
    )
    timed_as = "measured" if on_gpu else "recorded" if recorded else ""
    yield from _predicted_columns(recorded, timed_as=timed_as)
    yield _Column(
        title="roof",
        cell=of_theory(lambda t: text.flop_per_s(t.attainable_flop_per_s)),
        grade="theory",
        from_width=116 if is_predicted else 0,
    )
    yield _Column(
        title="limiter",
        cell=of_theory(lambda t: escape(t.limiter)),
        grade="theory",
        numeric=False,
        wraps=True,
        from_width=160 if is_predicted else 96 if on_gpu or recorded else 80,
    )
    for title, grade, cell in (
        ("FFMA", "simulated", multiply_adds),
        ("regs", "compiled", registers),
        ("occupancy", "compiled", occupied),
    ):
        yield _Column(title=title, cell=cell, grade=grade, from_width=160 if is_predicted else 116)
    if not _replaced(profile, recorded):  # the verdict belongs to this run, as the times do
        yield _Column(title="result", cell=_result, numeric=False)


def _numbered(record: Record) -> str:
    """The rung's number, where it has one, and the label."""
    return f"{record.rung or '':>2} {escape(record.label)}"


def _predicted_columns(recorded: Profile | None, *, timed_as: str) -> Iterator[_Column]:
    """The model's time, limiter and distance from the measured time, which is called `timed_as`."""

    def shown(show: Callable[[Timing], str]) -> Callable[[Record], str]:
        def cell(record: Record) -> str:
            found = ladder.timing(record, recorded)
            return show(found) if found else ""

        return cell

    yield _Column(
        title="time",
        cell=shown(lambda t: text.predicted_seconds(t.predicted.time_s)),
        grade="predicted",
        from_width=88 if timed_as == "measured" else 0,
    )
    yield _Column(
        title="rate",
        cell=shown(lambda t: text.flop_per_s(t.predicted.flop_per_s)),
        grade="predicted",
        from_width=132 if timed_as else 0,
    )
    yield _Column(
        title="predicted",
        cell=shown(lambda t: text.ratio(t.ratio) if t.ratio else ""),
        grade=f"/ {timed_as}",
    )
    yield _Column(
        title="limiter, share",
        cell=shown(lambda t: escape(f"{t.predicted.limiter} {_share(t.predicted)}")),
        grade="predicted",
        numeric=False,
        from_width=112 if timed_as else 96,
    )


def _share(predicted: Predicted) -> str:
    return text.percent(predicted.limiter_share)


def _time_columns(
    grade: str,
    find: Callable[[Record], Measured | None],
    *,
    time_from_width: int = 0,
    tells_status: bool = False,
) -> Iterator[_Column]:
    """Time, rate and share of cuBLAS of the measurements that `find` finds.

    A record without any number has its status there, if no other column tells it.
    """

    def shown(show: Callable[[Measured], str]) -> Callable[[Record], str]:
        def cell(record: Record) -> str:
            measured = find(record)
            return show(measured) if measured else ""

        return cell

    def of_cublas(m: Measured) -> str:
        return text.percent(m.relative_to_cublas.median) if m.relative_to_cublas else ""

    def time(record: Record) -> str:
        found = shown(lambda m: text.seconds(m.median_s))(record)
        return found or (_why_nothing(record) if tells_status else "")

    yield _Column(title="time", cell=time, grade=grade, from_width=time_from_width)
    yield _Column(title="rate", cell=shown(lambda m: text.flop_per_s(m.flop_per_s)), grade=grade)
    yield _Column(title="of cuBLAS", cell=shown(of_cublas), grade=grade)


def _why_nothing(record: Record) -> str:
    """Its status, of a record that has no number at all."""
    has_nothing = record.status != "ok" and record.predicted is None
    return f"[{STATUS_STYLES[record.status]}]{record.status}[/]" if has_nothing else ""


def _result(record: Record) -> str:
    if record.status == "ok" and record.check is None:
        return "not run"
    word = "right" if record.status == "ok" else record.status
    return f"[{STATUS_STYLES[record.status]}]{word}[/]"


def shown(result: Profile, recorded: Profile | None, as_json: bool) -> str:
    """What standard output gets, whole before anything is written."""
    if as_json:
        return dumps(result)
    with out.capture() as capture:
        print_profile(result, recorded)
    return capture.get()
