"""The times of a few variants taken apart."""

from dataclasses import replace

from analysis.timing.predicted import TimeBound
from reports.sections.breakdown import ALONE, BUSIEST, PARTS, ROOFS, breakdown
from tests.reports.profiles_by_hand import change, predicted, record_of, view


def rows(profile, label, recorded=None):
    """'name: text' of every row of one variant's column."""
    table = breakdown(view(profile, recorded))
    (place,) = (k for k, column in enumerate(table.columns) if column.title == label)
    return [f"{row[0].text.strip()}: {row[place].text}" for row in table.rows]


def test_theory_alone_has_roofs_alone(in_theory):
    shown = rows(in_theory, "naive-coalesced")
    assert shown[:4] == [
        f"{ROOFS}: ",
        "DRAM, uncached (not a roof): 587.2 ms",  # 2 · 4096³ · 4 B / 936.2 GB/s
        "FP32: 3.863 ms",  # 2 · 4096³ / 35.58 TFLOP/s
        "DRAM: 215.0 µs",  # 3 · 4096² · 4 B / 936.2 GB/s
    ]
    assert not {f"{ALONE}: ", f"{PARTS}: "} & set(shown)


def test_the_parts_end_at_what_was_measured(on_gpu):
    tiled = record_of(on_gpu, "tiled")
    made = change(
        on_gpu,
        "tiled",
        measured=replace(tiled.measured, before=None, after=None),  # clocks are not known
        predicted=predicted(tiled, 0.0506459).predicted,
    )
    shown = rows(made, "tiled")
    assert shown[-3:] == [
        "time, predicted: 50.6 ms",
        "remainder: +1.00 ms",
        "time, measured: 51.65 ms",
    ]


def test_a_recorded_run_stands_for_a_measurement(in_prediction, on_gpu):
    assert "time, recorded: 51.65 ms" in rows(in_prediction, "tiled", on_gpu)
    assert not any("recorded" in row for row in rows(in_prediction, "tiled"))


def test_the_longest_resource_stands_first_and_negligible_ones_nowhere(in_prediction):
    tiled = record_of(in_prediction, "tiled")
    bounds = [
        TimeBound(name=name, time_s=share * tiled.predicted.time_s, basis="")
        for name, share in (("issue", 0.4), ("L1", 0.009), ("L2", 0.01), ("FP32", 0.5))
    ]
    made = change(in_prediction, "tiled", predicted=replace(tiled.predicted, bounds=tuple(bounds)))
    alone = replace(made, records=tuple(r for r in made.records if r.label == "tiled"))
    shown = [row.partition(":")[0] for row in rows(alone, "tiled")]
    assert shown[shown.index(ALONE) + 1 : shown.index(BUSIEST)] == ["FP32", "issue", "L2"]


def test_the_limiter_and_the_next_one_stand_with_their_shares(in_prediction):
    table = breakdown(view(in_prediction))
    place = [column.title for column in table.columns].index("tiled")
    cells = {row[0].text.strip(): row[place] for row in table.rows}
    assert (cells["limiter"].text, cells["limiter"].details) == ("shared memory", ("60.0 %",))
    assert (cells["next"].text, cells["next"].details) == ("issue", ("50.0 %",))


def test_a_resource_that_is_notable_of_one_variant_is_shown_of_all(in_prediction):
    tiled = record_of(in_prediction, "tiled")
    none = replace(tiled.predicted, bounds=(TimeBound(name="L1", time_s=0.0, basis=""),))
    assert "L1: 0 s" in rows(change(in_prediction, "tiled", predicted=none), "tiled")


def test_what_one_variant_lacks_is_a_dash(in_prediction):
    made = change(in_prediction, "tiled", predicted=None)
    assert "time, predicted: –" in rows(made, "tiled")


def test_references_alone_have_none(on_gpu):
    alone = tuple(record for record in on_gpu.records if record.rung is None)
    assert breakdown(view(replace(on_gpu, records=alone))) is None
