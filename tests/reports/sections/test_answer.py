"""The answer on a launch: its sentences, for any kind of cause."""

from dataclasses import replace

import pytest

from analysis.devices import DEVICES
from analysis.l2_state import L2State
from analysis.records.counters import InstructionCounts
from analysis.timing.costs import OF_INTEGERS
from analysis.timing.predicted import NAMED, Cost, Effect, LineCost, Predicted, Resource
from reports.sections.answer import answer

H100 = DEVICES["h100-sxm"]


def instruction(line, *, requests=0, units=0, ideal=0, space=None, action="load", file="k.cu"):
    is_shared = space == "shared"
    return InstructionCounts(
        address=0,
        opcode="LDG",
        text="LDG",
        file=file,
        line=line,
        executed=max(1, requests),
        threads=32,
        predicated=32,
        space=space,
        action=action if space else None,
        requests=requests,
        sectors=0 if is_shared else units,
        wavefronts=units if is_shared else 0,
        conflict_free=ideal if is_shared else 0,
        ideal=ideal,
    )


def predicted(parts, lines=()):
    """A prediction of parts in µs."""
    costs = [Cost(effect=e, time_s=us * 1e-6, alone_s=us * 1e-6) for e, us in parts.items()]
    return Predicted(
        time_s=sum(cost.time_s for cost in costs),
        cycles=1.0,
        clock_hz=H100.boost_clock_hz,
        launch_s=3e-6,
        flop_per_s=0.0,
        l2="dirty",
        limiter=Resource.DRAM,
        limiter_share=0.9,
        next_limiter=Resource.L2,
        next_share=0.2,
        bounds=(),
        constants="sm_90",
        basis="",
        is_fitted=True,
        costs=tuple(costs),
        lines=tuple(LineCost(file="k.cu", line=n, time_s=us * 1e-6) for n, us in lines),
    )


def of(parts, instructions=(), *, lines=(), **more):
    return answer("k", predicted(parts, lines), instructions, H100, "k.cu", **more)


def test_an_avoidable_cause_is_named_with_its_line():
    conflicts = [instruction(19, requests=10, units=320, ideal=10, space="shared")]
    found = of({Effect.CONFLICTS: 16.1, Effect.DRAM_BANDWIDTH: 9, Effect.LAUNCH: 3}, conflicts)
    assert found.time_sentence == "k: 28.1 µs predicted on NVIDIA H100 SXM5 80 GB, L2 dirty."
    assert (
        found.cause_sentence == "Shared-memory bank conflicts take the most time: 16.1 of 28.1 µs."
    )
    assert found.line_sentence == "Line 19 takes 32 wavefronts per shared load, ideal 1."
    assert (found.cause.effect, found.place) == (Effect.CONFLICTS, ("k.cu", 19))


def test_a_roof_limits_and_an_avoidable_cause_costs():
    found = of({Effect.DRAM_BANDWIDTH: 34.8, Effect.UNCOALESCED: 2, Effect.LAUNCH: 2.7})
    assert found.cause_sentence == (
        "DRAM bandwidth limits it: 34.8 of 39.5 µs. Uncoalesced accesses cost 2.00 µs."
    )


def test_beside_a_roof_a_cause_within_the_error_of_the_model_is_not_named():
    found = of({Effect.DRAM_BANDWIDTH: 34.8, Effect.UNCOALESCED: 1.8, Effect.LAUNCH: 2.7})
    assert found.cause is None  # 1.8 < 5% of 39.3
    assert found.cause_sentence == "DRAM bandwidth limits it: 34.8 of 39.3 µs."
    far = of(
        {
            Effect.DRAM_BANDWIDTH: 20,
            Effect.UNCOALESCED: 1.8,
            Effect.DRAM_LATENCY: 1.7,
            Effect.REMAINDER: 12,
        }
    )
    assert far.cause.effect == Effect.UNCOALESCED  # 20 of 35.5 is no limit


def test_local_memory_is_named_with_the_line_that_accesses_it_most():
    """Its sectors are avoidable even if all of their bytes are used; the dearest line has none."""
    coalesced = [
        instruction(5, requests=2, units=8, ideal=8, space="local", action="store"),
        instruction(9, requests=6, units=24, ideal=24, space="local"),
        instruction(12, requests=9, units=36, ideal=36, space="global"),
    ]
    parts = {Effect.LOCAL_MEMORY: 20, Effect.LAUNCH: 3}
    found = of(parts, coalesced, lines=[(12, 18.0), (9, 1.0)])
    assert found.line_sentence == "Line 9 accesses local memory most: 75.0 %."  # 24 of 8 + 24
    assert found.place == ("k.cu", 9)


def test_an_avoidable_cause_leads_if_the_roof_is_far():
    found = of({Effect.CONFLICTS: 10, Effect.DRAM_BANDWIDTH: 15, Effect.LAUNCH: 3})
    assert found.cause_sentence == (
        "Shared-memory bank conflicts cost 10.0 of 28.0 µs. DRAM bandwidth needs 15.0 µs."
    )


def test_tensor_cores_are_many():
    found = of({Effect.BARRIERS: 10, Effect.TENSOR_PIPE: 15, Effect.LAUNCH: 3})
    assert found.cause_sentence == (
        "Waiting at barriers costs 10.0 of 28.0 µs. Tensor cores need 15.0 µs."
    )


def test_issue_for_integer_products_is_not_for_fp32_arithmetic():
    found = predicted({Effect.FP32_PIPE: 20, Effect.OTHER_INSTRUCTIONS: 15, Effect.LAUNCH: 3})
    pipe, *others = found.costs
    costs = (replace(pipe, detail=OF_INTEGERS), *others)
    assert answer("k", replace(found, costs=costs), (), H100, "k.cu").cause_sentence == (
        "Instruction issue limits it: 35.0 of 38.0 µs; 20.0 of it for integer products."
    )


def test_the_start_of_blocks_is_one_cause():
    found = of({Effect.BLOCK_START: 112, Effect.DRAM_BANDWIDTH: 35, Effect.LAUNCH: 3})
    assert found.cause_sentence == "The start of blocks limits it: 112 of 150 µs."


def test_the_two_parts_of_issue_are_one_roof():
    found = of({Effect.FP32_PIPE: 20, Effect.OTHER_INSTRUCTIONS: 15, Effect.LAUNCH: 3})
    assert found.cause_sentence == (
        "Instruction issue limits it: 35.0 of 38.0 µs; 20.0 of it for FP32 arithmetic."
    )
    found = of({Effect.CONFLICTS: 25, Effect.FP32_PIPE: 20, Effect.OTHER_INSTRUCTIONS: 15})
    assert found.cause_sentence == (
        "Shared-memory bank conflicts cost 25.0 of 60.0 µs. Instruction issue needs 35.0 µs."
    )
    found = of({Effect.OTHER_INSTRUCTIONS: 35, Effect.LAUNCH: 3})
    assert found.cause_sentence == "Instruction issue limits it: 35.0 of 38.0 µs."


def test_the_fp32_pipe_is_a_roof_of_its_own():
    found = of({Effect.FP32_PIPE: 35, Effect.LAUNCH: 3})
    assert found.cause_sentence == "The FP32 pipe limits it: 35.0 of 38.0 µs."


def test_a_negligible_cause_is_not_named():
    small = NAMED * 50 * 0.9
    found = of({Effect.DRAM_BANDWIDTH: 50, Effect.IDLE_SMS: small}, blocks=8)
    assert found.cause_sentence == "DRAM bandwidth limits it: 50.0 of 50.9 µs."
    assert found.cause is None


def test_idle_sms_are_counted():
    found = of({Effect.IDLE_SMS: 186, Effect.LAUNCH: 3}, blocks=8)
    assert found.cause_sentence == (
        "Idle SMs limit it: 186 of 189 µs; 124 of 132 SMs have no block."  # 132 - 8
    )


def test_two_accesses_of_a_line_keep_their_values():
    line = [
        instruction(3, requests=10, units=320, ideal=40, space="global"),
        instruction(3, requests=10, units=160, ideal=40, space="global"),
        instruction(3, requests=10, units=40, ideal=40, space="global"),  # not wasted
    ]
    found = of({Effect.UNCOALESCED: 10, Effect.LAUNCH: 3}, line)
    assert found.line_sentence == "Line 3 takes 32 and 16 sectors per global load, ideal 4."
    line.append(instruction(3, requests=10, units=160, ideal=80, space="global"))
    assert of({Effect.UNCOALESCED: 10}, line).line_sentence == (
        "Line 3 takes 32 and 16 sectors per global load, ideal 4 (worst 2 of 3)."
    )


def test_of_lines_that_waste_the_same_the_most_expensive_is_named():
    alike = [instruction(n, requests=10, units=80, ideal=40, space="global") for n in (12, 13)]
    parts = {Effect.UNCOALESCED: 34, Effect.L2_BANDWIDTH: 36}
    for dearest, other in ((12, 13), (13, 12)):
        found = of(parts, alike, lines=[(other, 31.4), (dearest, 44.2)])
        assert found.line_sentence == f"Line {dearest} takes 8 sectors per global load, ideal 4."


def test_the_most_expensive_line_is_named_without_a_wasteful_access():
    code = [instruction(4), instruction(7, file="util.cuh")]
    found = of({Effect.DRAM_LATENCY: 6, Effect.LAUNCH: 3}, code, lines=[(4, 5.0), (7, 1.0)])
    assert found.line_sentence == "Line 4 costs most: 5.00 of 9.00 µs."


@pytest.mark.parametrize("instructions", [[instruction(None, file=None)]])
def test_without_source_lines_it_says_so(instructions):
    found = of({Effect.LAUNCH: 3}, instructions)
    assert found.cause_sentence == "The launch itself takes the most time: 3.00 of 3.00 µs."
    assert "without -lineinfo" in found.line_sentence
    assert found.place is None


def test_lines_of_a_launch_that_was_not_executed_are_not_counted():
    found = of({Effect.LAUNCH: 3})
    assert found.line_sentence == "Its source lines were not counted."


def test_grades():
    code = [instruction(4)]
    both = of({Effect.DRAM_BANDWIDTH: 30}, code, measured_s=33e-6)
    assert both.time_sentence == (
        "k: 33.0 µs measured on NVIDIA H100 SXM5 80 GB, L2 dirty, 30.0 µs predicted."
    )
    assert both.cause_sentence == "DRAM bandwidth limits it: 30.0 of 30.0 µs predicted."
    measured = answer("k", None, code, H100, "k.cu", measured_s=33e-6, l2=L2State.WARM)
    assert measured.time_sentence == "k: 33.0 µs measured on NVIDIA H100 SXM5 80 GB, L2 warm."
    assert measured.cause_sentence == "What limits it is unknown without a predicted time."
    assert measured.line_sentence == "Line 4 has the most warp instructions: 100.0 %."
    neither = answer("k" * 300, None, code, None, "k.cu", basis="not predicted: it waits")
    assert neither.time_sentence == f"{'k' * 60}…: not predicted: it waits."


def test_a_clock_that_is_not_the_boost_clock_stands_beside_the_time():
    at_1500 = replace(predicted({Effect.DRAM_BANDWIDTH: 10}), clock_hz=1.5e9)
    said = answer("k", at_1500, [], H100, "k.cu").time_sentence
    assert " predicted on NVIDIA H100 SXM5 80 GB at 1,500 MHz, L2 dirty." in said
