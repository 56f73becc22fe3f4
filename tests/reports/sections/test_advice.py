"""Advice from the parts of the time and from the machine code."""

from dataclasses import replace

import pytest

from analysis.timing.predicted import Cost, Effect
from reports.sections.advice import advice, loads_ahead
from reports.sections.ladder_rows import rows
from tests.reports.profiles_by_hand import SHAPE, change, listing, measured, record_of, view


def parts_of(parts_s):
    return tuple(Cost(effect=effect, time_s=s, alone_s=s) for effect, s in parts_s.items())


def with_parts(made, parts_s, **more):
    """The profile whose fastest rung takes 5 ms, with these parts."""
    record = record_of(made, "vectorized")
    predicted = replace(record.predicted, time_s=5e-3, costs=parts_of(parts_s), **more)
    return change(made, "vectorized", predicted=predicted)


def advised(made, recorded=None):
    return advice(rows(view(made, recorded)))


def test_the_dearest_part_is_told_with_its_remedy(in_prediction):
    parts = {
        Effect.FP32_PIPE: 3e-3,
        Effect.REGISTER_BANKS: 0.4e-3,
        Effect.CONFLICTS: 1e-3,
        Effect.LAUNCH: 6e-4,
    }
    assert advised(with_parts(in_prediction, parts)) == (
        "Try next: pad or swizzle the shared arrays (bank conflicts cost 1.00 ms)."
    )


def test_nothing_is_advised_for_less_than_the_model_errs(in_prediction):
    made = with_parts(in_prediction, {Effect.FP32_PIPE: 4.9e-3, Effect.CONFLICTS: 0.1e-3})
    assert advised(made) == (
        "Try next: nothing. No effect in the model costs vectorized more than 3.0 % of its time."
    )


def test_idle_sms_are_told_from_a_last_wave(in_prediction):
    made = with_parts(in_prediction, {Effect.IDLE_SMS: 1e-3})
    assert "(the last wave costs 1.00 ms)" in advised(made)
    record = record_of(made, "vectorized")
    few = change(made, "vectorized", theory=replace(record.theory, busy_sms=16))
    assert "(66 of 82 SMs have no block, 1.00 ms)" in advised(few)


def test_wasted_sectors_come_before_larger_tiles(in_prediction):
    made = with_parts(in_prediction, {Effect.L1_WAVEFRONTS: 1e-3})
    record = record_of(made, "vectorized")
    access = next(one for one in record.simulated.accesses if one.space == "global")
    neat = replace(record.simulated, accesses=(replace(access, sectors=7, ideal=7),))
    said = advised(change(made, "vectorized", simulated=neat))
    assert "a larger tile per thread (8 × 8 now)" in said
    wild = replace(record.simulated, accesses=(replace(access, sectors=21, ideal=7),))
    said = advised(change(made, "vectorized", simulated=wild))
    assert "requests take 3.00× the ideal sectors" in said


def test_waits_are_of_bandwidth_or_of_too_few_warps(in_prediction):
    parts = {Effect.BARRIERS: 1e-3}
    made = with_parts(in_prediction, parts, limiter="DRAM")
    assert "waiting for DRAM costs 1.00 ms" in advised(made)
    made = with_parts(in_prediction, parts)  # two thirds of the warps fit
    assert advised(made) == (
        "Try next: hide 1.00 ms of stalls on memory and barriers: load the next tile early."
    )
    record = record_of(made, "vectorized")
    few = replace(record.occupancy, warps_per_sm=12)
    assert "(occupancy 25.0 %)" in advised(change(made, "vectorized", occupancy=few))


def test_what_loads_ahead_is_not_told_to(in_prediction):
    made = with_parts(in_prediction, {Effect.BARRIERS: 1e-3})
    copies = replace(listing("vectorized"), sass=("LDGSTS.E.128 [R3], [R4]",), lines=(1,))
    said = advised(replace(made, listings=(copies,)))
    assert said == "Try next: hide 1.00 ms of stalls on memory and barriers."


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
    made = in_prediction
    for record in in_prediction.records:
        if record.predicted:
            made = change(
                made,
                record.label,
                predicted=replace(record.predicted, costs=parts_of({Effect.LAUNCH: 1e-9})),
            )
    assert "costs vectorized" in advised(made)
    assert "costs tiled" in advised(made, recorded)


def test_without_a_prediction_there_is_none(in_simulation, on_gpu):
    assert advised(in_simulation) == ""
    assert advised(on_gpu) == ""
