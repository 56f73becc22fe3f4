"""Verdicts on counters by three grades: what must be equal, what may differ, and why."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.access import Pattern, Tiling, access_counts
from analysis.comparison.agreement import closed_forms
from analysis.comparison.scorecard import (
    TOLERANCES,
    disagreements,
    predicted_and_reference,
    scored,
    scores,
    scores_of,
    tally,
)
from analysis.devices import find_device
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from analysis.records.counters import ALL_COUNTERS, COUNTERS, MODELLED
from analysis.records.metrics import BANK_CONFLICTS, FFMA, GLOBAL_LOAD_SECTORS, SHARED_WAVEFRONTS
from analysis.records.profile import MachineAccess
from analysis.theory import theory
from tests import records_by_hand

SQUARE = parse_shape("64")
RAGGED = parse_shape("33x40x64")
TILED = Tiling(block_m=32, block_n=32, block_k=32)
NVRTC = "NVRTC 13.0.88"

WARPS = "smsp__inst_executed.sum"
LOADS, STORES = SHARED_WAVEFRONTS
LOAD_CONFLICTS, STORE_CONFLICTS = BANK_CONFLICTS
REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
L2_READS, DRAM_READS = "lts__t_sectors_op_read.sum", "dram__bytes_read.sum"


def record(
    simulated=None,
    counted=None,
    *,
    shape=SQUARE,
    is_foreseen=False,
    compiler=NVRTC,
    accesses=(),
    tiling=TILED,
):
    """A launch of which the given counters are known."""
    counts = access_counts(tiling, shape)
    patterns = tuple(
        Pattern(
            space=a.space, operation=a.operation, operand=a.operand, instruction_bytes=4,
            requests=a.instructions // 32, cycles=1,
            **({"sectors": 4} if a.space == "global" else {"wavefronts": 1}),
        )
        for a in counts.accesses
    )  # fmt: skip
    made = records_by_hand.record(
        shape,
        theory=theory(counts, patterns, find_device("t4")) if is_foreseen else None,
        resources=records_by_hand.resources(architecture="sm_75", compiler=compiler),
    )
    if simulated is not None:
        code = {"architecture": "sm_75", "compiler": NVRTC, "accesses": accesses}
        made = replace(made, simulated=records_by_hand.simulated(simulated, **code))
    if counted is not None:
        made = replace(made, counted=records_by_hand.counted(counted))
    return made


def score(name, *arguments, **more):
    return {one.counter: one for one in scores(record(*arguments, **more))}[name]


def verdict_on(name, ours, theirs):
    return score(name, {name: ours}, {name: theirs}).verdict


def test_every_counter_that_some_grade_has_gets_a_score_in_one_order():
    found = scores(record(dict.fromkeys(ALL_COUNTERS, 1), {WARPS: 1}))
    assert [one.counter for one in found] == list(ALL_COUNTERS)
    assert scores(record()) == ()
    assert scores(record({"foo.sum": 1}, {"bar.sum": 2})) == ()  # without a class no verdict


def test_exact_counters_agree_to_the_last_digit():
    assert verdict_on(WARPS, 10**12, 10**12) == "equal"
    off = score(WARPS, {WARPS: 10**12}, {WARPS: 10**12 + 1})
    assert (off.verdict, off.is_explained, off.tolerance) == ("apart", False, 0.0)
    assert (off.theory, off.simulated, off.measured) == (None, 10**12, 10**12 + 1)
    assert disagreements([off]) == (off,)


def test_a_counter_of_one_grade_is_alone():
    for arguments in (({WARPS: 5},), (None, {WARPS: 5})):
        alone = score(WARPS, *arguments)
        assert (alone.verdict, alone.ratio, alone.is_explained) == ("alone", None, True)
        assert predicted_and_reference(alone) is None


def test_nothing_counted_by_both_is_equal_and_has_no_ratio():
    nothing = score(WARPS, {WARPS: 0}, {WARPS: 0})
    assert (nothing.verdict, nothing.ratio) == ("equal", None)
    assert verdict_on(WARPS, 1, 0) == "apart"


@pytest.mark.parametrize(
    ("measured", "verdict"),
    [
        (1000, "equal"),
        (1175, "within"),  # as recorded: 1 - 1000/1175 = 0.149
        (1220, "apart"),  # 1 - 1000/1220 = 0.1803
        (999, "apart"),  # arbitration takes nothing away
    ],
)
def test_store_wavefronts_of_hardware_are_never_fewer(measured, verdict):
    found = score(STORES, {STORES: 1000}, {STORES: measured})
    assert (found.grade, found.tolerance, found.verdict) == ("noisy", 0.18, verdict)


COPIES = Tiling(block_m=32, block_n=32, block_k=32, bulk=True)
SUMS = replace(COPIES, leaves_sums=True)
SLICES = replace(SUMS, thread_m=2, slices=2)
LANES = "smsp__thread_inst_executed_pred_on.sum"
SHARED_LOADS = "smsp__sass_inst_executed_op_shared_ld.sum"


@pytest.mark.parametrize(
    ("name", "tiling", "measured", "verdict"),
    [
        (WARPS, COPIES, 10**6 + 99, "within"),
        (WARPS, COPIES, 10**6 + 102, "apart"),
        (WARPS, COPIES, 10**6 - 1, "apart"),  # nobody waits less than not at all
        (WARPS, TILED, 10**6 + 1, "apart"),
        (SHARED_LOADS, COPIES, 10**6 + 99, "within"),  # barriers are in shared memory
        (SHARED_LOADS, SUMS, 10**6 + 102, "apart"),
        (REQUESTS, COPIES, 10**6 + 1, "apart"),  # flags in global memory
        (REQUESTS, SUMS, 10**6 + 50_000, "within"),
        (REQUESTS, SUMS, 10**6 + 53_000, "apart"),
        (WARPS, SUMS, 10**6 + 5_000, "within"),
        (WARPS, SUMS, 10**6 + 5_100, "apart"),
        (LANES, SUMS, 10**6 - 900, "within"),  # guarded steps of divisions
        (LANES, SUMS, 10**6 - 1_100, "apart"),
        (LANES, COPIES, 10**6 - 1, "apart"),
        ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", SUMS, 10**6 + 1, "apart"),
    ],
)
def test_hardware_asks_again_for_what_it_waits_for(name, tiling, measured, verdict):
    made = record({name: 10**6}, {name: measured}, is_foreseen=True, tiling=tiling)
    found = {one.counter: one for one in scores(made)}[name]
    assert (found.grade, found.verdict) == ("exact", verdict)
    if verdict == "within":
        more, fewer = "hardware polls repeatedly while it waits", "guarded steps of divisions"
        assert (found.reason or "").startswith(more if measured > 10**6 else fewer)
        assert abs(measured - 10**6) <= found.tolerance * measured


@pytest.mark.parametrize(("splits", "verdict"), [(1, "apart"), (2, "within")])
def test_slices_of_a_block_wait_for_no_flags_of_others(splits, verdict):
    made = record({WARPS: 10**6}, {WARPS: 10**6 + 5_000}, is_foreseen=True, tiling=SLICES)
    tiles = (SQUARE.m // 32, SQUARE.n // 32)
    grid = Geometry(grid=(splits * tiles[1], tiles[0], 1), block=(SLICES.threads_per_block, 1, 1))
    found = {one.counter: one for one in scores(replace(made, geometry=grid))}[WARPS]
    assert found.verdict == verdict


def test_conflicts_are_held_to_a_share_of_the_wavefronts():
    ours = {STORES: 1000, STORE_CONFLICTS: 0}
    found = score(STORE_CONFLICTS, ours, {STORES: 1140, STORE_CONFLICTS: 140})
    assert (found.verdict, found.ratio) == ("within", 0.0)  # 140 <= 0.18 · 1140
    assert score(STORE_CONFLICTS, ours, {STORES: 1140, STORE_CONFLICTS: 206}).verdict == "apart"
    assert verdict_on(STORE_CONFLICTS, 5, 4) == "apart"


def test_shared_loads_are_exact_less_what_the_hardware_calls_conflicts():
    ours = {LOADS: 10_000, LOAD_CONFLICTS: 300}
    noisy = score(LOADS, ours, {LOADS: 10_500, LOAD_CONFLICTS: 800})
    assert (noisy.grade, noisy.verdict) == ("exact", "within")
    assert noisy.reason == "arbitration on the hardware adds conflicts"
    # 100 wavefronts more that are no conflicts: 1% where 0.2% may remain
    off = score(LOADS, ours, {LOADS: 10_100, LOAD_CONFLICTS: 300})
    assert (off.verdict, disagreements([off])) == ("apart", (off,))
    assert score(LOADS, ours, {LOADS: 9_999, LOAD_CONFLICTS: 299}).verdict == "apart"


def test_shared_loads_without_conflicts_beside_them_have_the_noise_that_was_seen():
    assert verdict_on(LOADS, 10_000, 10_113) == "within"  # 1.13%
    assert verdict_on(LOADS, 10_000, 10_200) == "apart"  # 1.96% of 10,200


@pytest.mark.parametrize(
    ("name", "tolerance"), [(L2_READS, 0.10), (DRAM_READS, 0.15)], ids=["L2", "DRAM"]
)
@pytest.mark.parametrize("sign", [1, -1])
def test_modelled_counters_are_graded_by_their_error(name, tolerance, sign):
    counted = 10**8
    close, far = (counted + sign * round(counted * tolerance + more) for more in (0, 1))
    found = score(name, {name: close}, {name: counted})
    assert (found.grade, found.tolerance, found.verdict) == ("modelled", tolerance, "within")
    assert verdict_on(name, far, counted) == "apart"
    assert disagreements(scores(record({name: far}, {name: counted}))) == ()  # an estimate


def test_traffic_that_every_launch_has_is_no_error():
    assert verdict_on(DRAM_READS, 3, 0) == "within"
    assert verdict_on(DRAM_READS, 0, 2**20 - 1) == "within"
    assert verdict_on(DRAM_READS, 0, 2**20) == "apart"
    # 32 bytes each
    assert verdict_on(L2_READS, 0, 2**15 - 1) == "within"
    assert verdict_on(L2_READS, 0, 2**15) == "apart"


def test_every_counter_has_a_tolerance_and_exact_ones_none():
    assert TOLERANCES.keys() == ALL_COUNTERS.keys()
    strict = {name for name, one in ALL_COUNTERS.items() if one.counter_class == "exact"} - {LOADS}
    assert {name for name, tolerance in TOLERANCES.items() if tolerance == 0} == strict
    assert all(TOLERANCES[name] >= 0.1 for name in MODELLED)


# The closed forms.


def test_closed_forms_stand_under_the_names_of_counters():
    found = closed_forms(record(is_foreseen=True).theory)
    assert found.keys() <= COUNTERS.keys()
    assert found[FFMA] == 64**3
    assert found[REQUESTS] == 2 * 64**3 // 32 // 32  # K/16 floats per element of C, in warps
    assert found[GLOBAL_LOAD_SECTORS] == 4 * found[REQUESTS]
    assert found[LOADS] == 2 * 64**3 // 32


def test_without_hardware_simulation_is_held_against_theory_without_any_noise():
    requests = 2 * 64 * 64 * 2 // 32  # A and B, by two rows or columns of blocks, in warps
    equal = score(REQUESTS, {REQUESTS: requests}, is_foreseen=True)
    assert (equal.theory, equal.verdict, equal.ratio) == (512, "equal", 1.0)
    off = score(STORES, {STORES: 513}, is_foreseen=True)
    assert off.theory == 512  # what was loaded is stored
    assert (off.verdict, off.tolerance) == ("apart", 0.0)


def test_edges_explain_a_closed_form_but_not_a_simulation():
    lanes = 33 * 64 * 2 + 64 * 40 * 2  # 2 x 2 blocks
    loads = MachineAccess(
        space="global", action="load", instruction_bytes=4, executed=400, requests=400,
        lanes=lanes, sectors=1600, wavefronts=0, conflict_free=0, ideal=1600,
    )  # fmt: skip
    settings = {"shape": RAGGED, "is_foreseen": True, "accesses": (loads,)}
    reason = "guards leave 23.36 of 32 lanes active on average"  # 9344 / 400
    edge = score(REQUESTS, {REQUESTS: 400}, **settings)
    assert (edge.theory, edge.verdict, edge.is_explained) == (292, "apart", True)  # 9344 / 32
    assert edge.reason == reason
    counted = score(REQUESTS, {REQUESTS: 400}, {REQUESTS: 400}, **settings)
    assert (counted.verdict, counted.ratio) == ("equal", 1.0)
    assert counted.reason == reason  # why theory has another number
    off = score(REQUESTS, {REQUESTS: 400}, {REQUESTS: 401}, **settings)
    assert (off.verdict, disagreements([off])) == ("apart", (off,))
    assert off.reason == f"theory: {reason}"


def test_edges_explain_a_closed_form_also_where_nothing_was_simulated():
    edge = score(REQUESTS, None, {REQUESTS: 400}, shape=RAGGED, is_foreseen=True)
    assert edge.reason == "tiles extend beyond the matrices, where guards deactivate lanes"
    assert disagreements([edge]) == ()


def test_beta_explains_a_multiply_add_more_per_element():
    of_c = 64 * 64
    found = score(FFMA, None, {FFMA: 64**3 + of_c}, is_foreseen=True)
    assert (found.verdict, found.reason) == ("apart", "beta · C is 1 per element of C")
    assert disagreements([found]) == ()
    assert disagreements([score(FFMA, None, {FFMA: 64**3 + 1}, is_foreseen=True)])


# Other machine code.


def test_other_machine_code_is_said_and_no_disagreement():
    found = score(WARPS, {WARPS: 100}, {WARPS: 90}, compiler="nvcc 13.0.88")
    assert (found.verdict, found.is_explained) == ("apart", True)
    assert found.reason == (
        "different machine code: simulated sm_75 by NVRTC 13.0.88, counted sm_75 by nvcc 13.0.88"
    )
    assert disagreements([found]) == ()


def test_counts_of_an_earlier_run_are_scored_by_its_machine_code():
    own = record({WARPS: 100})
    same, other = (record(None, {WARPS: 90}, compiler=name) for name in (NVRTC, "nvcc 12.9"))
    assert disagreements(scores(own, counted_in=same))
    assert not disagreements(scores(own, counted_in=other))
    unknown = replace(same, resources=None)
    (found,) = scores(own, counted_in=unknown)
    assert "an unknown compiler" in found.reason


# Sums.


def test_a_tally_counts_verdicts_of_a_class_and_finds_the_worst():
    ours = {L2_READS: 105 * 10**6, DRAM_READS: 80 * 10**6, "dram__bytes_write.sum": 0, WARPS: 7}
    theirs = {L2_READS: 10**8, DRAM_READS: 10**8}
    found = scores(record(ours, ours | theirs))
    modelled = tally(found, "modelled")
    assert (modelled.equal, modelled.within, modelled.mismatches, modelled.compared) == (0, 1, 1, 2)
    assert (modelled.worst.counter, modelled.worst.ratio) == (DRAM_READS, 0.8)
    assert (tally(found, "exact").equal, tally(found, "noisy").compared) == (1, 0)


def test_scores_are_derived_once_and_for_old_files_again():
    old = record({WARPS: 1}, {WARPS: 1})
    new = scored(old)
    assert new.scores == scores_of(old) == scores_of(new) != ()
    assert scored(new) == new


@given(
    st.dictionaries(st.sampled_from(list(ALL_COUNTERS)), st.integers(0, 2**40)),
    st.dictionaries(st.sampled_from(list(ALL_COUNTERS)), st.integers(0, 2**40)),
)
def test_no_counts_break_the_scorecard(ours, theirs):
    for one in scores(record(ours, theirs)):
        pair = predicted_and_reference(one)
        assert (pair is None) == (one.verdict == "alone")
        assert (one.verdict == "equal") == (pair is not None and pair[0] == pair[1])
        if one.verdict == "within" and one.grade == "modelled" and max(pair or ()) >= 2**20:
            assert abs(one.ratio - 1) <= one.tolerance + 1e-9


def test_traffic_that_is_too_little_to_compare_is_never_the_worst():
    few, much = {DRAM_READS: 10_000, L2_READS: 10**6}, {DRAM_READS: 500_000, L2_READS: 1_040_000}
    found = [one for one in scores(record(few, much)) if one.grade == "modelled"]
    verdicts = {one.counter: one.verdict for one in found}
    assert verdicts[DRAM_READS] == verdicts[L2_READS] == "within"
    worst = tally(found, "modelled").worst
    assert worst.counter == L2_READS
    far = [one for one in scores(record(few, {DRAM_READS: 10**9})) if one.grade == "modelled"]
    worst = tally(far, "modelled").worst
    assert worst.counter == DRAM_READS
