"""Traffic at each memory level as rows: predicted, counted, their gap, and the lowest roof."""

from dataclasses import replace

from reports.sections.hierarchy import LEVELS, grades, launches, summary, table
from tests.reports.profiles_by_hand import change, view, with_ceilings


def row(rows, *names):
    return next(
        [cell.text for cell in cells]
        for cells in rows.rows
        if tuple(cell.text for cell in cells[: len(names)]) == names
    )


def details(rows, *names):
    cells = next(r for r in rows.rows if tuple(cell.text for cell in r[: len(names)]) == names)
    return [detail for cell in cells for detail in cell.details]


def test_every_variant_stands_at_every_level(in_counters):
    found = launches(view(in_counters))
    assert len(found) == 6  # without the rung that was skipped, and references that none counted
    rows = table(found)
    assert [[cell.text for cell in cells[:2]] for cells in rows.rows[:4]] == [
        ["naive-uncoalesced", level] for level in LEVELS
    ]
    assert rows.grades == (("", 2), ("simulated", 3), ("measured", 3), ("", 1))


def test_a_row_holds_bytes_intensity_and_roof_of_both(in_counters):
    rows = table(launches(view(in_counters)))
    # read and written: simulated 0.9 and 1.2 times 10^9 bytes, counted 10^9 each; 2^37 FLOP
    assert row(rows, "tiled", "DRAM") == [
        "tiled", "DRAM",
        "1.956 GiB", "65.45 FLOP/B", "61.3 TFLOP/s",  # at 936.2 GB/s
        "1.863 GiB", "68.72 FLOP/B", "64.3 TFLOP/s",
        "1.05×",
    ]  # fmt: skip


def test_what_is_not_known_is_said(in_counters):
    rows = table(launches(view(in_counters)))
    assert row(rows, "tiled", "L2")[4] == "–"
    assert details(rows, "tiled", "L2") == ["bandwidth not known"] * 2
    assert row(rows, "naive-coalesced", "shared")[2:5] == ["0 B", "–", "–"]
    assert details(rows, "naive-coalesced", "shared") == ["nothing moves"] * 2
    assert "lowest of the levels" in details(rows, "tiled", "shared")
    known = with_ceilings(in_counters)
    rows = table(launches(view(known)))
    # 2^37 FLOP over 32 B x 2 x 10^9: 2.147 FLOP/B, at 2.9 TB/s and at 2.2 TB/s
    assert row(rows, "tiled", "L2")[5:8] == ["59.6 GiB", "2.147 FLOP/B", "6.23 TFLOP/s"]
    assert "reached: 4.72 TFLOP/s" in details(rows, "tiled", "L2")


def test_a_simulation_alone_has_no_gap(in_simulation):
    rows = table(launches(view(in_simulation)))
    assert rows.grades == (("", 2), ("simulated", 3))
    assert [cells[1].text for cells in rows.rows[:2]] == ["shared", "L1"]  # nothing was modelled


def test_closed_forms_stand_in_for_a_simulation(on_gpu):
    found = launches(view(on_gpu))
    assert table(found).grades == (("", 2), ("theory", 3))
    assert found[0].rate_grade == "measured"


def test_an_earlier_run_lends_counters_and_rates(in_simulation, in_counters):
    found = launches(view(in_simulation, in_counters))
    label = "recorded 2026-02-03 on NVIDIA GeForce RTX 3090"
    assert {(one.counted_grade, one.rate_grade) for one in found} == {(label, label)}
    assert table(found).grades == (("", 2), ("simulated", 3), (label, 3), ("", 1))
    own = launches(view(in_counters, in_counters))
    assert {(one.counted_grade, one.rate_grade) for one in own} == {("measured", "measured")}


def test_a_library_that_was_counted_has_rows_too(in_counters):
    counted = in_counters.records[3].counted
    made = change(in_counters, "cublas", counted=counted)
    rows = table(launches(view(made)))
    assert row(rows, "cublas", "DRAM")[2:] == [
        "–", "–", "–", "1.863 GiB", "68.72 FLOP/B", "64.3 TFLOP/s", "–",
    ]  # fmt: skip


def test_the_summary_is_a_line_per_variant(in_counters):
    found = launches(view(in_counters))
    rows = summary(found)
    assert [column.title for column in rows.columns] == ["variant", *LEVELS, "lowest level"]
    assert len(rows.rows) == 6
    tiled = row(rows, "tiled")
    assert tiled[3:5] == ["2.147", "68.72"]
    assert tiled[5].startswith("shared at ")
    assert grades(found) == "measured"


def test_the_grades_of_a_summary_are_said(in_simulation):
    assert grades(launches(view(in_simulation))) == "simulated"
    bare = replace(in_simulation, records=in_simulation.records[:1])
    assert launches(view(bare)) == ()
    assert summary(()).rows == ()
