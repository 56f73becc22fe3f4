"""Several runs in one table."""

from dataclasses import replace

from analysis.devices import find_device
from reports.sections.side_by_side import names, side_by_side


def test_a_single_run_has_none(on_gpu):
    assert side_by_side([("one", on_gpu)]) is None


def test_every_run_has_a_column_with_its_best_grade(build, on_gpu, in_prediction, in_theory):
    table = side_by_side([("a", on_gpu), ("b", in_prediction), ("c", in_theory)])
    assert [column.title for column in table.columns] == ["shape", "variant", "a", "b", "c"]
    row = next(row for row in table.rows if row[1].text == "tiled")
    assert row[0].text == "4096 × 4096 × 4096"
    assert row[2].text == "51.65 ms"
    assert row[2].details[0] == "2.66 TFLOP/s (measured)"
    assert row[3].text == "56.8 ms"  # 10% more
    assert row[3].details[1] == "limited by shared memory"
    assert row[4].text.startswith("≤ ")
    assert "theory" in row[4].details


def test_what_one_run_lacks_is_a_dash(on_gpu, in_theory):
    table = side_by_side([("a", on_gpu), ("b", in_theory)])
    row = next(row for row in table.rows if row[1].text == "cublas")
    assert [cell.text for cell in row[2:]] == ["5.187 ms", "–"]
    assert "one-block" not in [row[1].text for row in table.rows]  # skipped by both


def test_runs_are_told_apart(on_gpu):
    other = replace(on_gpu, device=find_device("t4"))
    later = replace(on_gpu, created="2026-02-04T04:05:06Z")
    assert names([on_gpu, other]) == ["NVIDIA GeForce RTX 3090", "NVIDIA T4"]
    assert names([on_gpu, later]) == [
        "NVIDIA GeForce RTX 3090, 2026-02-03 04:05 UTC",
        "NVIDIA GeForce RTX 3090, 2026-02-04 04:05 UTC",
    ]
    assert names([on_gpu, on_gpu])[1].endswith("(2)")
