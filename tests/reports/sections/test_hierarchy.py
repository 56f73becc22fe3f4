"""Traffic at each memory level as rows: the best grade of each variant, and the lowest roof."""

from dataclasses import replace

from reports.sections.hierarchy import LEVELS, grades, launches, table
from tests.reports.profiles_by_hand import change, view


def row(rows, *names):
    return next(
        [cell.text for cell in cells]
        for cells in rows.rows
        if tuple(cell.text for cell in cells[: len(names)]) == names
    )


def test_what_is_not_known_or_does_not_move_is_a_dash(in_counters, in_simulation):
    rows = table(launches(view(in_counters)))
    assert row(rows, "naive-coalesced")[1] == "–"  # no shared memory
    assert row(table(launches(view(in_simulation))), "tiled")[3:5] == ["–", "–"]  # not modelled


def test_closed_forms_stand_in_for_a_simulation(on_gpu):
    found = launches(view(on_gpu))
    assert grades(found) == "theory"
    assert found[0].rate_grade == "measured"


def test_an_earlier_run_lends_counters_and_rates(in_simulation, in_counters):
    found = launches(view(in_simulation, in_counters))
    label = "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert {(one.counted_grade, one.rate_grade) for one in found} == {(label, label)}
    assert grades(found) == label
    own = launches(view(in_counters, in_counters))
    assert {(one.counted_grade, one.rate_grade) for one in own} == {("measured", "measured")}


def test_a_library_that_was_counted_has_rows_too(in_counters):
    counted = in_counters.records[3].counted
    made = change(in_counters, "cublas", counted=counted)
    rows = table(launches(view(made)))
    assert row(rows, "cublas")[4] == "68.72"  # 2^37 FLOP over 2 · 10^9 bytes


def test_the_table_is_a_line_per_variant(in_counters):
    found = launches(view(in_counters))
    rows = table(found)
    assert [column.title for column in rows.columns] == ["variant", *LEVELS, "lowest level"]
    assert len(rows.rows) == 6
    tiled = row(rows, "tiled")
    assert tiled[3:5] == ["2.147", "68.72"]
    assert tiled[5].startswith("shared at ")
    assert grades(found) == "measured"


def test_the_grades_of_the_table_are_said(in_simulation):
    assert grades(launches(view(in_simulation))) == "simulated"
    bare = replace(in_simulation, records=in_simulation.records[:1])
    assert launches(view(bare)) == ()
    assert table(()).rows == ()
