"""What to try next, from the steps of the gap and from what the machine code does."""

from dataclasses import replace

import pytest

from analysis.timing.predicted import GapStep
from reports.sections.advice import advice, loads_ahead, subject


def with_gap(build, made, steps_s, **more):
    """The profile whose fastest rung takes 5 ms, with these steps on top of nominal peak."""
    record = next(r for r in made.records if r.label == "vectorized")
    gap = tuple(GapStep(name=name, time_s=time_s, detail="") for name, time_s in steps_s.items())
    predicted = replace(record.predicted, time_s=5e-3, gap=gap, **more)
    return build.change(made, "vectorized", predicted=predicted)


def test_the_two_dearest_steps_are_told_with_their_remedies(build, in_prediction):
    steps = {"nominal peak": 3e-3, "register ports": 0.4e-3, "bank conflicts": 1e-3, "launch": 6e-4}
    assert advice(build.view(with_gap(build, in_prediction, steps))) == (
        "To try next on vectorized, of its 5.00 ms: 1.00 ms for bank conflicts of shared memory: "
        "a padded or swizzled layout has none. Then: 600 µs to launch it: several products in "
        "one launch, or in a CUDA graph, share that."
    )


def test_nothing_is_advised_for_less_than_the_model_errs(build, in_prediction):
    made = with_gap(build, in_prediction, {"nominal peak": 4.9e-3, "bank conflicts": 0.1e-3})
    assert advice(build.view(made)) == (
        "To try next: nothing that the model knows of costs vectorized more than 3.0 % of its time."
    )


def test_idle_sms_are_told_from_a_last_wave(build, in_prediction):
    made = with_gap(build, in_prediction, {"idle SMs and partial wave": 1e-3})
    assert "because the last wave leaves SMs idle" in advice(build.view(made))
    record = next(r for r in made.records if r.label == "vectorized")
    few = build.change(made, "vectorized", theory=replace(record.theory, busy_sms=16))
    assert "because only 16 of 82 SMs have a block" in advice(build.view(few))


def test_wasted_sectors_come_before_larger_tiles(build, in_prediction):
    made = with_gap(build, in_prediction, {"load/store wavefronts": 1e-3})
    record = next(r for r in made.records if r.label == "vectorized")
    access = next(one for one in record.simulated.accesses if one.space == "global")
    neat = replace(record.simulated, accesses=(replace(access, sectors=7, ideal=7),))
    said = advice(build.view(build.change(made, "vectorized", simulated=neat)))
    assert "twice as many elements per thread along both axes (8 × 8 now)" in said
    wild = replace(record.simulated, accesses=(replace(access, sectors=21, ideal=7),))
    said = advice(build.view(build.change(made, "vectorized", simulated=wild)))
    assert "touch 3.00× the sectors that their data needs" in said


def test_waits_are_of_bandwidth_or_of_too_few_warps(build, in_prediction):
    steps = {"exposed latency": 1e-3}
    made = with_gap(build, in_prediction, steps, limiter="DRAM")
    assert "1.00 ms to wait, mostly for DRAM: larger tiles" in advice(build.view(made))
    made = with_gap(build, in_prediction, steps)
    said = advice(build.view(made))  # two thirds of the warps fit
    assert "at barriers: loads of the next tile while this one is used would hide it." in said
    record = next(r for r in made.records if r.label == "vectorized")
    few = replace(record.occupancy, warps_per_sm=12)
    said = advice(build.view(build.change(made, "vectorized", occupancy=few)))
    assert "(occupancy 25.0 %, limited by registers and shared memory)" in said


def test_what_loads_ahead_is_not_told_to(build, in_prediction):
    made = with_gap(build, in_prediction, {"exposed latency": 1e-3})
    listing = replace(build.listing("vectorized"), sass=("LDGSTS.E.128 [R3], [R4]",), lines=(1,))
    said = advice(build.view(replace(made, listings=(listing,))))
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


def test_it_is_of_the_rung_that_a_recorded_run_found_fastest(build, in_prediction, on_gpu):
    faster = build.measured(1e-3, build.SHAPE)
    recorded = build.change(on_gpu, "tiled", measured=faster)
    assert "costs vectorized" in advice(build.view(in_prediction))
    assert "costs tiled" in advice(build.view(in_prediction, recorded))
    assert subject(build.view(in_prediction, recorded)) == "tiled"


def test_without_a_prediction_there_is_none(build, in_simulation, on_gpu):
    assert advice(build.view(in_simulation)) == ""
    assert advice(build.view(on_gpu)) == ""
    assert subject(build.view(on_gpu)) == ""
