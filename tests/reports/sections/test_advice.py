"""Advice from the steps of the gap and from the machine code."""

from dataclasses import replace

import pytest

from analysis.timing.predicted import GapStep
from reports.sections.advice import advice, loads_ahead, subject
from tests.reports.profiles_by_hand import SHAPE, change, listing, measured, record_of, view


def with_gap(made, steps_s, **more):
    """The profile whose fastest rung takes 5 ms, with these steps on top of nominal peak."""
    record = record_of(made, "vectorized")
    gap = tuple(GapStep(name=name, time_s=time_s, detail="") for name, time_s in steps_s.items())
    predicted = replace(record.predicted, time_s=5e-3, gap=gap, **more)
    return change(made, "vectorized", predicted=predicted)


def test_the_two_dearest_steps_are_told_with_their_remedies(in_prediction):
    steps = {"nominal peak": 3e-3, "register ports": 0.4e-3, "bank conflicts": 1e-3, "launch": 6e-4}
    assert advice(view(with_gap(in_prediction, steps))) == (
        "To try next on vectorized, of its 5.00 ms: 1.00 ms for shared-memory bank conflicts: "
        "pad or swizzle the layout. Then: 600 µs for the launch itself: put several products into "
        "one launch or one CUDA graph."
    )


def test_nothing_is_advised_for_less_than_the_model_errs(in_prediction):
    made = with_gap(in_prediction, {"nominal peak": 4.9e-3, "bank conflicts": 0.1e-3})
    assert advice(view(made)) == (
        "To try next: nothing. No effect in the model costs vectorized more than 3.0 % of its time."
    )


def test_idle_sms_are_told_from_a_last_wave(in_prediction):
    made = with_gap(in_prediction, {"idle SMs and partial wave": 1e-3})
    assert "because the last wave leaves SMs idle" in advice(view(made))
    record = record_of(made, "vectorized")
    few = change(made, "vectorized", theory=replace(record.theory, busy_sms=16))
    assert "because only 16 of 82 SMs have a block" in advice(view(few))


def test_wasted_sectors_come_before_larger_tiles(in_prediction):
    made = with_gap(in_prediction, {"load/store wavefronts": 1e-3})
    record = record_of(made, "vectorized")
    access = next(one for one in record.simulated.accesses if one.space == "global")
    neat = replace(record.simulated, accesses=(replace(access, sectors=7, ideal=7),))
    said = advice(view(change(made, "vectorized", simulated=neat)))
    assert "twice as many elements per thread along both axes (8 × 8 now)" in said
    wild = replace(record.simulated, accesses=(replace(access, sectors=21, ideal=7),))
    said = advice(view(change(made, "vectorized", simulated=wild)))
    assert "touch 3.00× the sectors that their data needs" in said


def test_waits_are_of_bandwidth_or_of_too_few_warps(in_prediction):
    steps = {"exposed latency": 1e-3}
    made = with_gap(in_prediction, steps, limiter="DRAM")
    assert "1.00 ms to wait, mostly for DRAM: larger tiles" in advice(view(made))
    made = with_gap(in_prediction, steps)
    said = advice(view(made))  # two thirds of the warps fit
    assert "at barriers: loads of the next tile while this one is used would hide it." in said
    record = record_of(made, "vectorized")
    few = replace(record.occupancy, warps_per_sm=12)
    said = advice(view(change(made, "vectorized", occupancy=few)))
    assert "(occupancy 25.0 %, limited by registers and shared memory)" in said


def test_what_loads_ahead_is_not_told_to(in_prediction):
    made = with_gap(in_prediction, {"exposed latency": 1e-3})
    copies = replace(listing("vectorized"), sass=("LDGSTS.E.128 [R3], [R4]",), lines=(1,))
    said = advice(view(replace(made, listings=(copies,))))
    assert "it loads ahead; further stages or fewer barriers would hide more." in said


LOAD, STORE, MULTIPLY = "@!P0 LDG.E.128 R4, [R2]", "STS.128 [R9], R4", "FFMA R0, R1, R2, R0"


@pytest.mark.parametrize(
    ("sass", "is_ahead"),
    [
        ([LOAD, STORE, *[MULTIPLY] * 64], False),  # loads, stores, then computes
        ([LOAD, *[MULTIPLY] * 64, STORE], True),
        ([LOAD, *[MULTIPLY] * 4, STORE, *[MULTIPLY] * 64, STORE], False),  # alpha and beta
        ([*[MULTIPLY] * 64, STORE], False),
        (["UTMALDG.2D [UR4], [UR6]"], True),
        ([], False),
    ],
)
def test_loads_ahead_are_seen_in_the_machine_code(sass, is_ahead):
    assert loads_ahead(sass) is is_ahead


def test_it_is_of_the_rung_that_a_recorded_run_found_fastest(in_prediction, on_gpu):
    faster = measured(1e-3, SHAPE)
    recorded = change(on_gpu, "tiled", measured=faster)
    assert "costs vectorized" in advice(view(in_prediction))
    assert "costs tiled" in advice(view(in_prediction, recorded))
    assert subject(view(in_prediction, recorded)) == "tiled"


def test_without_a_prediction_there_is_none(in_simulation, on_gpu):
    assert advice(view(in_simulation)) == ""
    assert advice(view(on_gpu)) == ""
    assert subject(view(on_gpu)) == ""
