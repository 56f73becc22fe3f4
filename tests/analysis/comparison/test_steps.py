"""From rung to rung: what changed, and which change counts most."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from analysis.comparison.steps import QUANTITY_OF, Ends, step
from analysis.problem import parse_shape
from analysis.records.metrics import FFMA, SHARED_WAVEFRONTS, THREAD_INSTRUCTIONS, WARP_INSTRUCTIONS
from analysis.timing.predicted import Cost, Effect, TimeBound
from tests import records_by_hand
from tests.records_by_hand import counted, measured, occupancy, resources

SHAPE = parse_shape("64")
LOADS, STORES = (f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st"))
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"


def record(label, **more):
    return records_by_hand.record(SHAPE, label, **more)


def simulated(**counts):
    names = {
        "instructions": WARP_INSTRUCTIONS, "loads": LOADS, "wavefronts": SHARED_WAVEFRONTS[0],
        "threads": THREAD_INSTRUCTIONS, "ffma": FFMA, "read": READ,
    }  # fmt: skip
    counters = {STORES: 0, SHARED_WAVEFRONTS[1]: 0, WRITTEN: 0}
    counters |= {names[name]: count for name, count in counts.items()}
    return records_by_hand.simulated(counters)


def predicted(time_s, parts=None, **bounds):
    return records_by_hand.predicted(
        time_s,
        bounds=tuple(
            TimeBound(name=name.replace("_", " "), time_s=seconds, basis="")
            for name, seconds in bounds.items()
        ),
        costs=tuple(
            Cost(effect=effect, time_s=seconds, alone_s=seconds)
            for effect, seconds in (parts or {}).items()
        ),
    )


def test_every_quantity_of_both_rungs_is_there():
    before = record(
        "a",
        simulated=simulated(instructions=400, loads=64, wavefronts=0, threads=100, ffma=10),
        resources=resources(),
        occupancy=occupancy(),
        predicted=predicted(2.0),
        measured=measured(3.0),
        counted=counted({READ: 100, WRITTEN: 20}),
    )
    after = record(
        "b",
        simulated=simulated(instructions=100, loads=16, wavefronts=7, threads=100, ffma=40),
        resources=resources(registers_per_thread=64),
        occupancy=occupancy(warps_per_sm=24),
        predicted=predicted(1.0),
        measured=measured(2.0),
        counted=counted({READ: 50, WRITTEN: 10}),
    )
    found = {one.quantity: one for one in step(before, after).changes}
    assert list(found) == [
        "time", "L1 sectors", "shared wavefronts", "DRAM bytes", "warp instructions", "occupancy",
    ]  # fmt: skip
    assert found["time"].predicted == Ends(before=2.0, after=1.0)
    assert found["time"].measured == Ends(before=3.0, after=2.0)
    assert found["L1 sectors"].predicted == Ends(before=64, after=16)
    assert found["shared wavefronts"].predicted == Ends(before=0, after=7)
    assert found["shared wavefronts"].predicted.ratio is None
    assert found["DRAM bytes"].predicted is None  # bytes read were not simulated
    assert found["DRAM bytes"].measured == Ends(before=120, after=60)
    assert found["occupancy"].predicted == Ends(before=1.0, after=0.5)


def test_speeds_are_of_each_grade_and_measured_before_predicted():
    before = record("a", predicted=predicted(2.0), measured=measured(3.0))
    after = record("b", predicted=predicted(1.0), measured=measured(2.0))
    found = step(before, after)
    assert (found.predicted_speedup, found.measured_speedup) == (2.0, 1.5)
    assert found.speedup == 1.5
    warm = step(before, replace(after, measured=measured(2.0, l2="warm")))
    assert (warm.measured_speedup, warm.speedup) == (None, 2.0)


def test_the_reason_stood_in_the_way_and_not_only_fell():
    found = step(
        record("a", predicted=predicted(1.0, shared_memory=0.9, DRAM=0.2, L1=0.1)),
        record("b", predicted=predicted(0.8, shared_memory=0.75, DRAM=0.01, L1=0.3)),
    )
    # 0.15 s · 0.9 of shared memory against 0.19 s · 0.2 of DRAM
    assert (found.reason.resource, found.reason.quantity) == ("shared memory", "shared wavefronts")
    assert found.price.resource == "L1"
    assert found.basis == "predicted bounds"


def test_a_slower_rung_has_the_bound_that_rose_for_a_reason():
    found = step(
        record("a", measured=measured(1.0), predicted=predicted(2.0, issue=0.4, L1=0.9)),
        # measured decides
        record("b", measured=measured(1.5), predicted=predicted(1.0, issue=0.9, L1=0.1)),
    )
    assert found.reason.resource == "issue"
    assert found.price.resource == "L1"


def test_bounds_that_barely_move_are_no_reason():
    found = step(
        record("a", predicted=predicted(1.0, issue=0.5, L1=0.1)),
        record("b", predicted=predicted(0.9, issue=0.49, L1=0.1)),  # 2% less
    )
    assert (found.reason, found.price) == (None, None)


def test_a_bound_that_was_not_the_highest_is_no_reason():
    found = step(
        record("a", predicted=predicted(1.0, issue=0.9, shared_memory=0.5)),
        record("b", predicted=predicted(0.8, issue=0.9, shared_memory=0.1)),
    )
    assert found.reason is None


def test_parts_explain_where_both_times_have_them():
    first = {Effect.FP32_PIPE: 0.5, Effect.REGISTER_BANKS: 0.3, Effect.OTHER_INSTRUCTIONS: 0.2}
    second = {Effect.FP32_PIPE: 0.5, Effect.REGISTER_BANKS: 0.05, Effect.CONFLICTS: 0.05}
    before = record("a", predicted=predicted(1.0, first, issue=0.7, L1=0.2))
    after = record("b", predicted=predicted(0.6, second, issue=0.7, L1=0.1))
    found = step(before, after)
    assert found.basis == "predicted parts"
    assert found.reason.is_part
    assert (found.reason.resource, found.reason.time_s) == (
        Effect.REGISTER_BANKS,
        Ends(before=0.3, after=0.05),  # 0.25 s, instructions 0.2 s
    )
    assert found.price.resource == Effect.CONFLICTS
    # the other way round it is slower, and the same part is to blame
    assert step(after, before).reason == replace(found.reason, time_s=Ends(before=0.05, after=0.3))
    alone = replace(after, predicted=predicted(0.6, issue=0.7, L1=0.1))
    assert step(before, alone).basis == "predicted bounds"


def test_parts_that_are_little_of_the_time_are_no_reason():
    first = {Effect.LAUNCH: 0.02, Effect.REGISTER_BANKS: 0.98}
    before = record("a", predicted=predicted(1.0, first))
    after = record("b", predicted=predicted(0.96, {Effect.REGISTER_BANKS: 0.96}))
    assert step(before, after).reason is None  # each of them 2% of the time


def test_equal_times_need_no_reason():
    before = record("a", predicted=predicted(1.0, issue=0.9), measured=measured(1.0))
    after = record("b", predicted=predicted(0.98, issue=0.5), measured=measured(1.02))
    found = step(before, after)
    assert not found.is_worth_a_reason
    assert found.reason is None
    differing = step(before, replace(after, measured=measured(1.1)))
    assert differing.is_worth_a_reason


def test_without_predictions_there_is_no_reason():
    before = record("a", simulated=simulated(instructions=4_000, loads=10**6, wavefronts=0))
    after = record("b", simulated=simulated(instructions=4_000, loads=10**5, wavefronts=10**4))
    found = step(before, replace(after, predicted=predicted(1.0, L1=1.0)))
    assert [one.quantity for one in found.changes][:2] == ["L1 sectors", "shared wavefronts"]
    assert (found.weights, found.reason, found.basis) == ((), None, None)


def test_parts_of_one_time_alone_are_no_reason():
    costs = (Cost(effect=Effect.BARRIERS, time_s=2.0, alone_s=2.0),)
    before = record("a", predicted=replace(predicted(2.0, L1=1.0), costs=costs))
    found = step(before, record("b", predicted=predicted(1.0, L1=1.0)))
    assert (found.reason, found.basis) == (None, "predicted bounds")


def test_nothing_known_is_no_reason():
    found = step(record("a"), record("b"))
    assert (found.changes, found.weights, found.basis, found.speedup) == ((), (), None, None)


def test_a_failed_rung_has_no_numbers():
    made = record("a", simulated=simulated(loads=4), predicted=predicted(1.0, L1=1.0))
    found = step(made, replace(made, status="failed"))
    assert (found.changes, found.basis) == ((), None)


SECONDS = st.floats(0.0, 1.0)
BOUNDS = st.dictionaries(st.sampled_from(sorted(QUANTITY_OF)), SECONDS)


@given(BOUNDS, BOUNDS, st.floats(0.1, 1.0), st.floats(0.1, 1.0))
def test_a_reason_always_goes_the_way_of_the_time(before, after, first_s, second_s):
    found = step(
        record("a", predicted=predicted(first_s, **before)),
        record("b", predicted=predicted(second_s, **after)),
    )
    for one, sign in ((found.reason, 1), (found.price, -1)):
        if one:
            saved_s = one.time_s.before - one.time_s.after
            assert sign * saved_s * (1 if second_s <= first_s else -1) > 0
