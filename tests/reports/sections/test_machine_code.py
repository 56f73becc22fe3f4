"""The section that sets closed forms beside machine code, and the counters of source lines."""

from dataclasses import replace

from analysis.problem import Gemm
from analysis.records.profile import LineCounters, MachineAccess
from reports.ladder import View
from reports.sections.machine_code import lines_table, machine_code
from reports.sections.table import Cell
from tests.reports.cells import cell


def test_without_a_simulation_there_is_no_section(in_theory):
    assert machine_code(View(in_theory, in_theory.records[0].shape)) is None


def test_the_overview_says_what_is_equal_and_what_is_not(build, in_simulation):
    section = machine_code(build.view(in_simulation))
    assert section is not None
    assert cell(section.overview, "tiled", "shared loads") == Cell("equal")
    assert cell(section.overview, "naive-coalesced", "shared loads") == Cell("–")
    # alpha: 4096² multiplications beside 2 · 4096³ operations, too few for a ratio
    assert cell(section.overview, "tiled", "arithmetic") == Cell(
        text="explained", details=("FLOP +16,777,216",)
    )
    assert section.bases == (
        "naive-uncoalesced, naive-coalesced, tiled, coarsened-1d, coarsened-2d and vectorized: "
        "25 of 1,024 blocks executed; a basis.",
    )
    assert section.overview.rows[0][0].text == "naive-uncoalesced"  # one-block was skipped
    assert not section.is_riddled
    assert section.verdict == (
        "86 of 92 quantities are equal to the last digit and 6 differ for a reason that the "
        "counts show."
    )


def test_every_quantity_stands_with_both_numbers_and_the_reason(build, in_simulation):
    section = machine_code(build.view(in_simulation))
    assert section is not None
    rows = [[cell.text for cell in row] for row in section.everything.rows]
    assert len(rows) == 92
    assert ["tiled", "global loads", "elements", "4,294,967,296", "4,294,967,296", "=", "–"] in rows
    assert [
        "tiled", "arithmetic", "FLOP", "137,438,953,472", "137,455,730,688", "+16,777,216",
        "alpha and beta, 1 per element of C",
    ] in rows  # fmt: skip


def test_a_riddle_opens_the_numbers(build, in_simulation):
    record = next(r for r in in_simulation.records if r.label == "tiled")
    assert record.simulated is not None
    first, *others = record.simulated.accesses
    more = replace(first, lanes=2 * first.lanes)
    changed = replace(record.simulated, accesses=(more, *others))
    section = machine_code(build.view(build.change(in_simulation, "tiled", simulated=changed)))
    assert section is not None
    assert section.is_riddled
    assert "without a known reason" in section.verdict
    shown = cell(section.overview, "tiled", "global loads")
    assert shown.text == "not explained"
    assert shown.details[0] == "elements 1.50×"  # A twice and B once, over two


def test_accesses_of_which_theory_knows_nothing_have_a_column(build, in_simulation):
    record = next(r for r in in_simulation.records if r.label == "vectorized")
    assert record.simulated is not None
    spilled = MachineAccess(
        space="local", action="store", instruction_bytes=4, executed=9, requests=9, lanes=288,
        sectors=36, wavefronts=0, conflict_free=0, ideal=36,
    )  # fmt: skip
    changed = replace(record.simulated, accesses=(*record.simulated.accesses, spilled))
    section = machine_code(build.view(build.change(in_simulation, "vectorized", simulated=changed)))
    assert section is not None
    assert cell(section.overview, "vectorized", "local stores") == Cell(
        text="explained", details=("requests 9",)
    )
    assert cell(section.overview, "tiled", "local stores") == Cell("–")


def test_lines_have_their_source_and_only_columns_that_count(build, in_simulation):
    section = machine_code(build.view(in_simulation))
    assert section is not None
    labels = [label for label, _ in section.lines]
    assert labels == [row[0].text for row in section.overview.rows]
    table = dict(section.lines)["tiled"]
    assert [column.title for column in table.columns] == [
        "line", "code", "warp instructions", "FFMA",
    ]  # fmt: skip
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["42", "sum += a[k] * b[k] && k < K;", "3", "6.872 × 10¹⁰"],
        ["43", "–", "1", ""],
    ]


def test_lines_of_several_files_are_told_apart():
    lines = tuple(
        LineCounters(file=file, line=7, text="", counters={"smsp__inst_executed.sum": 1})
        for file in ("a.cu", "b.h")
    )
    assert [row[0].text for row in lines_table(lines).rows] == ["a.cu:7", "b.h:7"]


def test_a_shape_that_was_not_simulated_has_no_section(in_simulation):
    assert machine_code(View(in_simulation, Gemm(m=1, n=1, k=1))) is None
