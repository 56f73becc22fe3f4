"""Barriers in shared memory and bulk copies, one instruction at a time."""

from pathlib import Path

import numpy as np
import pytest

from analysis.errors import LaunchError
from tests.probe import buffer_of, holding, probe
from toolkit import simulate
from toolkit.launch.tensor_map import MAP_BYTES, MapTiling
from toolkit.sass.machine import MISALIGNED, OUT_OF_BOUNDS
from toolkit.sass.tensor_maps import DESCRIPTION, MARK, description
from validation import recordings

LANES = np.arange(32)
AT = 64  # where the barrier is, in UR4
MOST = 1 << 20


def begun(count):
    """A barrier of so many arrivals in UR6 and UR7, as compiled code computes it."""
    return {"UR6": (MOST - count) << 1, "UR7": (MOST - count) << 11 & 0xFFFFFFFF}


def run(text, before, **options):
    return probe(text, before, shared_bytes=4096, **options)


def pending(high):
    """As `mbarrier.pending_count` is compiled."""
    return MOST - (int(high) >> 11 & (MOST - 1))


BEGIN = "SYNCS.EXCH.64 URZ, [UR4], UR6; "


@pytest.mark.parametrize("words", [0, 1, 5])
def test_zeros_of_shared_memory(words):
    """UMEMSETS writes words of 64 bits, once a warp."""
    before = holding(UR4=64, UR5=words, R2=64 + 4 * LANES, R3=LANES + 1)
    after = run("STS [R2], R3; UMEMSETS.64 URZ, [UR4], UR5; LDS R8, [R2]", before)
    np.testing.assert_array_equal(after.r[8], np.where(2 * words > LANES, 0, LANES + 1))


@pytest.mark.parametrize(
    ("at", "words", "kind"),
    [(4, 1, MISALIGNED), (4096, 1, OUT_OF_BOUNDS), (64, 512, OUT_OF_BOUNDS)],
)
def test_zeros_outside_of_shared_memory_are_a_fault(at, words, kind):
    with pytest.raises(LaunchError, match=f"fault of kind {kind}"):
        run("UMEMSETS.64 URZ, [UR4], UR5", holding(UR4=at, UR5=words))


def test_lanes_arrive_one_after_the_other():
    after = run(
        BEGIN + "SYNCS.ARRIVE.TRANS64.A1T0 R4, [UR4], RZ; LDS.64 R8, [UR4]",
        holding(UR4=AT, **begun(40)),
    )
    assert [pending(word) for word in after.r[5]] == [40 - lane for lane in LANES]
    assert {pending(word) for word in after.r[9]} == {8}


@pytest.mark.parametrize(
    ("arrival", "left"),
    [
        ("SYNCS.ARRIVE.TRANS64 R4, [UR4], R2", 39),
        ("SYNCS.ARRIVE.TRANS64.A1T0 R4, [UR4], R2", 39),
        ("SYNCS.ARRIVE.TRANS64.ART0 R4, [UR4], R2", 33),
        ("SYNCS.ARRIVE.TRANS64.RED.A0TR R4, [UR4], R2", 40),
        ("SYNCS.ARRIVE.TRANS64.OPTOUT.A1T0 R4, [UR4], R2", 39),
        ("ARRIVES.LDGSTSBAR.64.ARVCNT [UR4]", 39),
    ],
)
def test_what_an_arrival_counts(arrival, left):
    """R2 is 7: arrivals, or bytes."""
    before = holding(UR4=AT, **begun(40))
    before.r[2] = 7
    after = run(f"{BEGIN}{arrival}; LDS.64 R8, [UR4]", before, lanes=1)
    assert pending(after.r[9][0]) == left


TOGETHER = """
__global__ void k(unsigned *states, unsigned lanes, int per_lane, int count, int drops) {
    __shared__ unsigned long long barrier;
    const unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1000;" :: "r"(at));
    __syncthreads();
    unsigned long long state = 0;
    const int n = per_lane ? count + threadIdx.x : count;
    if (lanes >> threadIdx.x & 1) {
        if (drops)
            asm volatile("mbarrier.arrive_drop.noComplete.shared.b64 %0, [%1], %2;"
                         : "=l"(state) : "r"(at), "r"(n) : "memory");
        else
            asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], %2;"
                         : "=l"(state) : "r"(at), "r"(n) : "memory");
    }
    states[2 * threadIdx.x] = (unsigned)state;
    states[2 * threadIdx.x + 1] = state >> 32;
}"""
RECORDED = Path(__file__).parent / "recorded/arrivals_together_sm_90.json"


@pytest.mark.parametrize("arch", ["sm_90", "sm_100"])
def test_states_of_arrivals_that_complete_nothing_are_those_of_an_h200(arch):
    for row in recordings.read(RECORDED):
        given = [np.int32(row[name]) for name in ("per_lane", "count", "drops")]
        states = simulate(
            TOGETHER,
            grid=1,
            block=32,
            arguments=[np.zeros(64, np.uint32), np.uint32(row["lanes"]), *given],
            arch=arch,
            predict=False,
        ).outputs[0]
        active = [lane for lane in LANES if row["lanes"] >> lane & 1]
        assert states[0::2][active].tolist() == row["masks"]
        assert states[1::2][active].tolist() == row["uppers"]


@pytest.mark.parametrize("drops", ["", ".OPTOUT"])
@pytest.mark.parametrize("lanes", [0xFFFFFFFF, 0x5A5A1234, 0x80000000])
@pytest.mark.parametrize("counts", [LANES * 0 + 3, LANES + 1, LANES % 3 + 1])
def test_lanes_of_one_count_arrive_together(counts, lanes, drops):
    """The result has the mask of those lanes, and the count that lacked before all of them."""
    before = holding(UR4=AT, R2=counts, **begun(1000))
    arrive = f"SYNCS.ARRIVE.TRANS64.TMASK{drops}.ART0 R4, [UR4], R2"
    after = run(BEGIN + f"{arrive}; LDS.64 R8, [UR4]", before, lanes=lanes)
    lacking = 1000
    active = [lane for lane in LANES if lanes >> lane & 1]
    for count in dict.fromkeys(counts[active]):
        group = [lane for lane in active if counts[lane] == count]
        assert {int(after.r[4][lane]) for lane in group} == {sum(1 << int(x) for x in group)}
        assert {pending(after.r[5][lane]) for lane in group} == {lacking}
        lacking -= int(count) * len(group)
    assert {pending(after.r[9][lane]) for lane in active} == {lacking}


@pytest.mark.parametrize(("count", "phases"), [(32, 1), (16, 2), (64, 0)])
def test_the_phase_changes_when_all_have_arrived(count, phases):
    before = holding(UR4=AT, **begun(count))
    before.r[2] = LANES % 2 << 31  # even lanes ask for the phase of parity 0, odd ones for 1
    text = BEGIN + "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [UR4], RZ; SYNCS.PHASECHK.TRANS64 P0, [UR4], R2"
    after = run(text, before)
    even, odd = 0x55555555, 0xAAAAAAAA
    assert after.p[0] == (even if phases % 2 else odd)


def test_announced_bytes_hold_the_phase():
    before = holding(UR4=AT, **begun(1))
    before.r[2], before.r[3] = 48, 0
    announce = BEGIN + "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2; "
    came = "SYNCS.ARRIVE.TRANS64.RED.A0TX RZ, [UR4], R2; "
    check = "SYNCS.PHASECHK.TRANS64 P0, [UR4], R3"
    assert run(announce + check, before, lanes=1).p[0] == 0
    assert run(announce + came + check, before, lanes=1).p[0] == 1


def test_who_leaves_is_not_expected_again():
    text = BEGIN + "SYNCS.ARRIVE.TRANS64.OPTOUT.A1T0 RZ, [UR4], RZ; LDS.64 R8, [UR4]"
    before = holding(UR4=AT, **begun(1))
    before.ur[6] = (MOST - 3) << 1
    before.ur[7] = (MOST - 1) << 11 & 0xFFFFFFFF  # of 3 arrivals in a phase 1 lacks
    assert pending(run(text, before, lanes=1).r[9][0]) == 2


def test_a_barrier_stands_on_eight_bytes():
    with pytest.raises(LaunchError, match="kind 2"):  # MISALIGNED
        run(BEGIN, holding(UR4=AT + 4, **begun(1)))


def test_a_run_of_bytes_arrives_with_its_count():
    given = buffer_of(np.arange(64, dtype=np.uint32))
    sizes = {"UR8": 1024, "UR9": AT, "UR10_64": given.address, "UR12": 3}  # times 16 bytes
    before = holding(UR4=AT, **sizes, **begun(12))
    before.r[2, 0], before.r[3] = 48, 1024 + 4 * LANES  # one lane announces them
    text = (
        BEGIN
        + "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R2; UBLKCP.S.G [UR8], [UR10], UR12; "
        + "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], RZ; LDS R4, [R3]"
    )
    after = run(text, before, lanes=0xFFF, buffers=[given])
    assert after.p[0] == 0xFFF
    assert after.r[4, :12].tolist() == list(range(12))


def test_a_description_says_what_the_core_reads():
    tiling = MapTiling(shape=(7, 100, 64), dtype=np.dtype(np.float32), box=(1, 8, 32), swizzle=128)
    (made,) = np.frombuffer(description(tiling, 4096).tobytes(), dtype=DESCRIPTION)
    assert (made["mark"], made["address"], made["axes"], made["swizzle"]) == (MARK, 4096, 3, 128)
    assert made["size"].tolist() == [64, 100, 7, 0, 0]
    assert made["pitch"].tolist() == [4, 256, 25_600, 0, 0]
    assert made["box"].tolist() == [32, 8, 1, 0, 0]
    assert made.nbytes == MAP_BYTES


def test_before_sm_90_the_last_arrival_carries_into_the_parity():
    """Words as compiled code begins them: 2^30 and 2^31 less the arrivals."""
    begun = holding(R2=(1 << 30) - 16, R3=(1 << 31) - 16, UR4=AT)
    after = run("STS.64 [UR4], R2; ATOMS.ARRIVE.64 R4, [UR4]; LDS.64 R8, [UR4]", begun)
    assert after.r[5].tolist() == [(1 << 31) - 16 + lane for lane in range(16)] + [
        (1 << 32) - 16 + lane for lane in range(16)
    ]
    assert set(after.r[4]) == set(after.r[8]) == {(1 << 30) - 16}
    assert set(after.r[9]) == {(1 << 31) - 16}  # two phases are over: the parity is even


def test_before_sm_90_copies_arrive_as_their_lanes_do():
    begun = holding(R2=(1 << 30) - 40, R3=(1 << 31) - 40, UR4=AT)
    after = run("STS.64 [UR4], R2; ARRIVES.LDGSTSBAR.64 [UR4]; LDS.64 R8, [UR4]", begun)
    assert set(after.r[9]) == {(1 << 31) - 8}
