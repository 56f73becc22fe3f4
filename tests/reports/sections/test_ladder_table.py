"""The ladder as rows and columns."""

from dataclasses import replace

import pytest

from analysis.problem import parse_shape
from reports.ladder import View
from reports.sections.ladder_table import ladder_columns, of_roof
from reports.sections.table import Cell, says, table_of
from tests.reports.cells import cell
from tests.reports.profiles_by_hand import change, passed, view


def ladder_table(shown):
    """The columns that say something."""
    records, columns = shown.records, ladder_columns(shown)
    return table_of([c for c in columns if any(says(c.cell(r)) for r in records)], records)


WRONG = replace(passed(), passed=False, worst_ratio=2.0)


def test_a_measured_row(on_gpu):
    table = ladder_table(view(on_gpu))
    assert cell(table, "vectorized", "time") == Cell(
        text="7.512 ms", details=("95%: 7.497 to 7.527 ms", "100 samples")
    )
    assert cell(table, "vectorized", "rate").text == "18.3 TFLOP/s"
    assert cell(table, "vectorized", "of FP32 peak").text == "51.4 %"
    assert cell(table, "vectorized", "of cuBLAS").text == "69.0 %"
    assert cell(table, "vectorized", "check") == Cell(
        text="passed", details=("worst error 0.0312× the bound",)
    )


def test_theory_and_compiler_columns(in_theory):
    table = ladder_table(view(in_theory))
    assert cell(table, "naive-coalesced", "intensity of loads").text == "0.25 FLOP/B"
    assert cell(table, "naive-coalesced", "attainable").text == "35.6 TFLOP/s"
    assert cell(table, "naive-coalesced", "limiter").text == "FP32"
    assert cell(table, "tiled", "shared per block").text == "8 KiB"  # 2 · 32 · 32 · 4 B
    assert cell(table, "tiled", "occupancy (theoretical)") == Cell(
        text="66.7 %", details=("limited by threads", "12.49 waves")
    )


def test_every_number_stands_under_its_grade(on_gpu):
    table = ladder_table(view(on_gpu))
    assert [grade for grade, _ in table.grades] == [
        "", "measured", "compiled", "checked", "theory", "",
    ]  # fmt: skip
    assert sum(width for _, width in table.grades) == len(table.columns)
    assert sum(table.starts) == len(table.grades)


def test_grades_that_no_record_has_are_left_out(in_theory):
    grades = {column.grade for column in ladder_table(view(in_theory)).columns}
    assert grades == {"", "theory", "compiled"}


def test_a_recorded_run_has_its_own_columns(in_theory, on_gpu):
    table = ladder_table(view(in_theory, on_gpu))
    grade = "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert cell(table, "vectorized", "time", grade).text == "7.512 ms"


def test_the_outcome_tells_reason_padding_and_notes(in_theory):
    padded = parse_shape("4096x4100x4096")
    changed = change(in_theory, "tiled", executed_shape=padded, notes=("a note",))
    table = ladder_table(view(changed))
    assert cell(table, "tiled", "outcome") == Cell(
        text="ok", details=("padded to 4096 × 4100 × 4096", "a note")
    )
    assert cell(table, "one-block", "outcome") == Cell(
        text="skipped", details=("a single block computes at most 32 × 32",)
    )


def test_a_wrong_result_has_no_time(on_gpu):
    table = ladder_table(view(change(on_gpu, "tiled", check=WRONG)))
    assert cell(table, "tiled", "time") == Cell("–", details=("failed the check",))
    assert cell(table, "tiled", "rate").text == "–"
    assert cell(table, "tiled", "check").text == "failed"


def test_references_have_times_and_no_theory(on_gpu):
    table = ladder_table(view(on_gpu))
    assert cell(table, "cublas", "rung").text == "–"
    assert cell(table, "cublas", "time").text == "5.187 ms"
    assert cell(table, "cublas", "attainable").text == "–"
    assert cell(table, "cpu", "of FP32 peak").text == "–"


def test_a_cpus_rate_is_no_share_of_a_gpus_peak():
    from toolkit.store.recorded_runs import recorded_run

    run = recorded_run("h200")
    table = ladder_table(View(run, run.records[0].shape))
    peak = next(i for i, column in enumerate(table.columns) if column.title == "of FP32 peak")
    shares = {row[1].text: row[peak].text for row in table.rows}
    assert shares["cpu"] == "–"
    assert shares["cublas"].endswith("%")


def test_simulated_counters_have_their_own_columns(in_simulation):
    table = ladder_table(view(in_simulation))
    assert cell(table, "tiled", "FFMA share", "simulated").text == "50.0 %"
    assert cell(table, "tiled", "warp instructions").text == "4.295 × 10⁹"  # 2 · 4096³ / 32
    assert cell(table, "tiled", "shared wavefronts") == Cell(
        text="4.429 × 10⁹", details=("25.0 % bank conflicts",)
    )  # loads: 2 · 4096³ / 32; stores: a 32nd of that
    assert cell(table, "one-block", "warp instructions").text == "–"


def test_a_check_of_some_blocks_says_which(in_simulation):
    assert cell(ladder_table(view(in_simulation)), "tiled", "check") == Cell(
        text="passed",
        details=("worst error 0.0312× the bound", "on 25 of 1,024 blocks"),
    )


def test_predicted_times_stand_in_the_ladder_beside_what_was_recorded(in_prediction, on_gpu):
    alone = ladder_table(view(in_prediction))
    assert [c.title for c in alone.columns if c.grade == "predicted"] == [
        "predicted time", "predicted rate", "limiter",
    ]  # fmt: skip
    beside = ladder_table(view(in_prediction, on_gpu))
    grades = [grade.partition(" ")[0] for grade, _ in beside.grades]
    assert grades[1:4] == ["recorded", "predicted", "compiled"]
    assert cell(beside, "tiled", "predicted time").text == "56.8 ms"  # 51.6459 ms + 10%
    assert cell(beside, "tiled", "over measured time").text == "1.10×"
    assert cell(beside, "tiled", "limiter", "predicted") == Cell(
        "shared memory", details=("busy 60.0 %", "then issue, 50.0 %")
    )


@pytest.mark.parametrize(
    ("rate", "roof", "why"),
    [
        (0.9e12, "load/store unit", ()),
        (1.1e12, "load/store unit", ("the roof is at the nominal clock",)),
        (1.1e12, "DRAM", ("caches serve a part",)),
    ],
)
def test_a_rate_above_a_roof_says_what_the_roof_leaves_out(rate, roof, why):
    found = of_roof(rate, 1e12, roof)
    assert found.text == f"{100 * rate / 1e12:.1f} %"
    assert found.details == why
