"""A few blocks, and a few values of K, that stand for the whole launch; and when they do not."""

from dataclasses import dataclass, replace
from functools import cache, partial
from threading import Event

import numpy as np
import pytest

from analysis.access import Tiling
from analysis.devices import find_device
from analysis.errors import LaunchError, ShapeError
from analysis.geometry import Geometry
from analysis.problem import parse_shape
from analysis.records.counters import InstructionCounts, totals
from analysis.timing.predicted import Effect, Predicted
from analysis.traffic.block_schedule import BlockProgress
from analysis.traffic.grid import in_bands
from analysis.traffic.pieces import READ
from kernels import LADDER, Selection, Variant, parse_selection
from kernels.warps import one_thread_per_element
from tests.cubins import cubin_of
from tests.recorded_accesses import all_recorded
from tests.records_by_hand import check
from tests.refusals import refusal
from tests.sampling import chosen_of, exhaustive
from toolkit.execution import declared, launch_time, plan_executor, rung_plan
from toolkit.execution.plan_executor import MOST_GUARDS, PlanExecutor, affine, merged
from toolkit.execution.rung_plan import k_points, period, timed_k
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.execution.simulator import Simulator
from toolkit.execution.traffic import Residence
from toolkit.machine_code.kernel import Kernel
from toolkit.profiling.on_simulator import line_counters
from toolkit.rungs.arguments import rung_arguments
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.core.binding import COUNT
from toolkit.sass.machine import run_blocks
from toolkit.sass.translate import translate

DEVICE = find_device("h200")
RAGGED = "300x333x65"


def ladder_at(shape):
    return LadderSimulator(Workload(parse_shape(shape), 3))


def simulated(label, shape, blocks_per_sm=None):
    """Predicted too, where it is said how many blocks an SM holds."""
    selection = parse_selection(label)
    residence = Residence(device=DEVICE, blocks_per_sm=blocks_per_sm) if blocks_per_sm else None
    return ladder_at(shape).simulate(compile_for(DEVICE, selection), selection, residence)


def whole_counters(label, shape):
    """The counters of all blocks, executed one and all."""
    selection = parse_selection(label)
    return all_executed(compile_for(DEVICE, selection), selection, shape)


def all_executed(cubin, selection, shape):
    return dict(whole_execution(cubin, selection, shape).counters)


def whole_execution(cubin, selection, shape):
    variant, problem = selection.variant, parse_shape(shape)
    executed = variant.executed(problem)
    a, b = Workload(problem, 3).padded(executed)
    c = np.full((executed.m, executed.n), np.nan, np.float32)
    return Simulator(arch=cubin.architecture).run(
        cubin,
        variant.geometry(selection.parameters, executed),
        rung_arguments(variant, selection.parameters, executed, (a, b, c)),
    )


RUNGS = [variant.name for variant in LADDER if not variant.max_extent]
SHARING = ("stream-k", "tall-thread-tile", "realigned")  # blocks of these share tiles
PREDICATED = "smsp__thread_inst_executed_pred_on.sum"
FFMA = "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"


@pytest.mark.parametrize(
    "label",
    chosen_of([*RUNGS, "tiled:tile=8", "coarsened-1d:bk=16,tm=8"], lambda label: label in RUNGS),
)
def test_representative_blocks_count_like_all_blocks(label):
    found = simulated(label, RAGGED)
    whole = whole_counters(label, RAGGED)
    assert_counts(found, whole)
    assert found.check.passed


def assert_counts(found, whole):
    """Counters that are no estimates are those of all blocks; bounds of the others hold."""
    assert found.counters.keys() == whole.keys()
    for name, count in found.counters.items():
        least, greatest = found.estimates.get(name, (count, count))
        assert least <= whole[name] <= greatest, name
        assert least <= count <= greatest <= least * 1.001, name
    assert found.estimates.keys() <= {PREDICATED}


def test_the_basis_says_what_was_executed_and_the_check_on_what():
    found = simulated("tiled", "512x512x64")
    blocks = found.executed_blocks
    assert 9 <= blocks < 256
    assert found.basis == (
        f"{blocks} of 256 blocks executed; the other blocks count like the executed blocks of "
        "the same region of the grid (corner, edge, interior), which agreed instruction by "
        "instruction"
    )
    assert found.check.bound.endswith(f"; on {blocks} of 256 blocks")
    assert found.cubin.architecture == "sm_90"
    assert found.cubin.compiler.startswith("NVRTC ")


def test_each_rung_drops_inputs_that_the_last_one_did_not_use(monkeypatch):
    begun = []

    def begin_rung(ladder):
        begun.append(ladder)

    monkeypatch.setattr(LadderSimulator, "begin_rung", begin_rung)
    ladder, selection = ladder_at("40x40x40"), parse_selection("tiled")
    for _ in range(2):
        ladder.simulate(compile_for(DEVICE, selection), selection)
    assert begun == [ladder, ladder]


def test_few_blocks_are_all_executed():
    found = simulated("one-block", "20x30x40")
    assert found.executed_blocks == 1
    assert found.basis == "the one block executed"
    assert simulated("tiled", "40x40x40").basis == "all 4 blocks executed"


def test_lines_carry_their_source_and_sum_to_the_launch():
    found = simulated("vectorized", "256x256x64")
    lines = line_counters(found.instructions, parse_selection("vectorized").variant)
    assert {line.file for line in lines} == {"07_vectorized.cu"}
    by_text = {line.text: line.counters for line in lines}
    assert by_text["sum[i][j] += a[i] * b[j];"][FFMA] == 256 * 256 * 64
    for name, count in found.counters.items():
        assert count >= sum(line.counters.get(name, 0) for line in lines)
    assert all(all(line.counters.values()) for line in lines)


# Blocks that differ.


def counted(label, shape):
    """Counts of a rung by its plan, and the executor that made them."""
    selection = parse_selection(label)
    ladder = ladder_at(shape)
    launch = RungLaunch(
        variant=selection.variant,
        parameters=selection.parameters,
        problem=ladder.workload.problem,
    )
    ladder.begin_rung()
    ladder.prepare_at_k(launch.executed)
    translated = translate(compile_for(DEVICE, selection))
    executor = PlanExecutor(ladder, translated, launch, notes=True)
    return executor.counted(), executor


def work_of_all_blocks(executor):
    """Instructions of each block, all of them executed."""
    launch = executor.launch
    c = np.zeros((launch.executed.m, launch.executed.n), np.float32)
    bound = replace(executor.bound(launch.executed.k, c), notes_work=True)
    (run,) = run_blocks(bound, [range(launch.geometry.blocks)])
    return run.work


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("fp16-parts", "300x320x64"),
        ("rasterised", "300x333x65"),  # blocks without a tile
        ("naive-coalesced", "40x70x4099"),  # by blocks at other values of K
        exhaustive("tf32-parts", "300x333x65"),
        exhaustive("coarsened-1d", "200x136x4099"),
    ],
)
def test_the_work_of_each_block_is_known(label, shape):
    found, executor = counted(label, shape)
    assert np.array_equal(found.work, work_of_all_blocks(executor))


def test_of_a_rung_whose_blocks_differ_the_sm_that_finishes_last_is_replayed():
    found, executor = counted("fp16-parts", "300x320x512")
    one = Residence(device=DEVICE, blocks_per_sm=1)
    schedule = found.schedule(one)
    replay = found.replay(one, schedule, ())
    executed = found.work["executed"]
    # nine blocks on nine SMs: one that exceeds C executes most
    assert executed[replay.blocks] == executed.max() > 1.05 * executed.mean()
    assert replay.of_sm.blocks == 1
    streams = found.sample(executor.translated, one, replay).streams
    assert (streams.blocks, streams.executed) == (1, executed.max())
    # reads of this block are later than those of a block within C, and last longer
    asked = found.asked(schedule)
    assert asked.lifetimes.argmax() == found.work["longest"].argmax()
    accesses = asked.in_time(np.zeros(9), BlockProgress.even(np.ones(9)))
    last = [accesses.time[accesses.block == block].max() for block in range(9)]
    # stores of C come last, at the mean of their steps
    assert last == pytest.approx(asked.lifetimes * stores_of(executor), rel=1e-3)


def stores_of(executor):
    """Mean step of the stores of each block, as a part of its last step: all are executed."""
    rows = all_recorded(executor)
    steps, blocks = rows["step"].astype(float), executor.launch.geometry.blocks
    last = np.zeros(blocks)
    np.maximum.at(last, rows["block"], steps)
    sectors = np.array([mask.bit_count() for mask in rows["mask"].tolist()])
    of_block, sectors, steps = (x[rows["kind"] != READ] for x in (rows["block"], sectors, steps))
    return np.bincount(of_block, sectors * steps) / np.bincount(of_block, sectors) / last


# Along K.

ENDS = (("256x256", 0), ("200x136", 3))


@pytest.fixture
def short_of_time(monkeypatch):
    """Every K is too large."""
    monkeypatch.setattr(rung_plan, "FULL_K_BUDGET", 0)


# One of each way to copy tiles, and to wait for them and for other blocks.
WAYS = ("naive-coalesced", "tiled", "vectorized", "async-copy", "bulk-copy", "fenced", "split-k")


@pytest.mark.parametrize(
    ("label", "extent", "remainder"),
    chosen_of(
        ((label, *rest) for label in RUNGS if label not in SHARING for rest in ENDS),
        lambda case: case[0] in WAYS and case[1:] == ENDS[WAYS.index(case[0]) % 2],
    ),
)
def test_counts_extrapolated_along_k_are_those_of_full_execution(
    label, extent, remainder, short_of_time
):
    variant = parse_selection(label).variant
    steps = period(variant.tiling(variant.defaults))
    shape = f"{extent}x{8 * steps + remainder}"  # the last value of K has 6
    found = simulated(label, shape)
    assert "instead of " in found.basis
    assert found.counters == whole_counters(label, shape)
    assert found.check.passed


@pytest.mark.parametrize(
    ("label", "extent", "per_element", "anchors"),
    [
        ("naive-coalesced", 128, 65536, " and by 1 block at K itself;"),
        ("vectorized", 512, 65536 + 1, ";"),  # one for beta; a block at K would take too long
    ],
)
def test_a_very_deep_product_takes_no_time(label, extent, per_element, anchors):
    found = simulated(label, f"{extent}x{extent}x65536")
    assert found.counters[FFMA] == extent**2 * per_element
    assert (
        "blocks executed at K = 64, 96, 128 and 192 instead of 65,536: every instruction's counts "
        f"are affine in K, fitted on two of these and verified by the others{anchors}"
    ) in found.basis
    assert found.check.passed
    assert found.check.bound.endswith(" at K = 64, 96, 128 and 192")


def test_a_small_k_is_executed_as_it_is(short_of_time):
    assert "instead of" not in simulated("tiled", "256x256x192").basis


def test_values_of_k_leave_the_same_remainder():
    assert k_points(65536, 32) == [64, 96, 128, 192]
    assert k_points(65537, 32) == [65, 97, 129, 193]
    assert k_points(192, 32) == []
    assert k_points(193, 32) == []  # 65, 97, 129 and 193 itself
    assert k_points(224, 32) == [64, 96, 128, 192]


def test_a_prediction_that_rests_on_other_values_of_k_is_not_taken(empty_cache, monkeypatch):
    first = simulated("tiled", "32x32x4096", 1).predicted
    monkeypatch.setattr(rung_plan, "TIMED_STEPS", rung_plan.TIMED_STEPS + 1)
    assert simulated("tiled", "32x32x4096", 1).predicted.basis != first.basis


@pytest.mark.parametrize(
    ("label", "steps"),
    [
        ("naive-coalesced", 32),
        ("tiled", 32),
        ("coarsened-1d:bk=16", 32),
        ("async-copy", 32),
        ("bulk-copy", 96),  # three phases of 32 are a turn of the ring
        ("bulk-copy:stages=2", 64),
    ],
)
def test_the_period_holds_whole_steps_phases_and_sectors(label, steps):
    selection = parse_selection(label)
    assert period(selection.variant.tiling(selection.parameters)) == steps


GUARDS = "count alike, except for guarded steps of divisions"


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("stream-k:workers=168", "1000x700x96"),  # fewer tiles than workers
        # 324 tiles for 264 workers: a turn of 264 behind them
        exhaustive("stream-k", "2304x2304x100"),
        exhaustive("stream-k", "2300x2292x100"),
        # 17 x 18 tiles, the last row beyond C
        exhaustive("tall-thread-tile", "2700x2304x68"),
        # rows that are copied first
        exhaustive("realigned", "2561x2301x67"),
        # fewer tiles than workers, and too large to run together
        exhaustive("realigned", "640x2301x1027"),
        ("realigned", "640x2304x68"),  # none to copy
    ],
)
def test_blocks_that_share_tiles_count_by_themselves_as_they_do_together(label, shape):
    found = simulated(label, shape)
    whole = whole_counters(label, shape)
    assert found.check.passed
    assert_counts(found, whole)
    assert found.basis.endswith(("blocks executed together", GUARDS))


@pytest.mark.parametrize("splits", [2, *(exhaustive(n) for n in (32, 132))])
def test_blocks_that_wait_for_each_other_count_alike(splits):
    """Neighbours wait for each other: executed together, they ask in vain until all have left."""
    selection = parse_selection(f"split-k:splits={splits}")
    variant, shape = selection.variant, "200x100x2052"
    cubin = compile_for(DEVICE, selection)
    found = simulated(selection.label, shape)
    whole = whole_execution(cubin, selection, shape).instructions
    assert found.check.passed
    of_each = [one.executed for one in whole]
    assert [one.executed for one in found.instructions] == of_each
    of_lines = line_counters(found.instructions, variant)
    assert accesses(of_lines) == accesses(line_counters(whole, variant))
    # what each block did by itself came to the same, else the basis would say that they differ
    assert found.basis == f"all {found.executed_blocks} blocks executed together"


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("split-k:splits=2", "100x132x700"),
        exhaustive("split-k:splits=32", "70x36x1028"),
        exhaustive("split-k:bn=64,slices=8,splits=132,stages=5", "65x68x500"),
        ("stream-k:workers=168", "200x300x700"),
    ],
)
def test_a_second_launch_finds_the_flags_as_the_first_one_did(label, shape):
    """All zero; whatever else is in the workspace, the product is right again."""
    selection, problem = parse_selection(label), parse_shape(shape)
    variant, parameters = selection.variant, selection.parameters
    cubin = compile_for(DEVICE, selection)
    workload = Workload(problem, 3)
    c = np.full((problem.m, problem.n), np.nan, np.float32)
    arguments = rung_arguments(variant, parameters, problem, (*workload.padded(problem), c))
    whole = (range(problem.m), range(problem.n))
    (reference,) = workload.tile_references([whole]).values()
    launch = RungLaunch(variant=variant, parameters=parameters, problem=problem)
    flags, *_ = launch.ready_words(is_last=False)
    for _ in range(2):
        execution = Simulator(arch=cubin.architecture).run(
            cubin, variant.geometry(parameters, problem), arguments
        )
        c, workspace = execution.outputs[-2:]
        assert reference.check(np.asarray(c, np.float32)).passed
        assert not workspace.view(np.uint32)[: flags.count].any()
        arguments[-1] = workspace


def accesses(lines):
    """Memory counters of each line, except lines that poll flags."""
    return {
        line.line: {name: n for name, n in line.counters.items() if "inst_executed" not in name}
        for line in lines
        if "ld.acquire" not in line.text
    }


def test_a_bug_that_shows_only_once_the_ring_is_full_is_seen(edit_rung):
    """640 x 2304 are 90 tiles for 264 workers: no block shows at K itself what it computes."""
    edit_rung("stream-k", "piece[2] + phase * BK", "piece[2] + phase % 6 * BK")
    found = simulated("stream-k", "640x2304x2048")
    assert " at K = 672" in found.check.bound  # 7 phases for each worker
    assert not found.check.passed


@pytest.mark.exhaustive  # compiling takes seconds
def test_blocks_that_share_tiles_alike_and_differ_are_all_executed(edit_rung):
    begin = "const int split = blockIdx.x % SPLITS, splits = SPLITS;"
    edit_rung("split-k", begin, begin + "for (int i = blockIdx.x / 8; i > 0; --i) __syncthreads();")
    of = "split-k:splits=2", "200x1100x96"
    found = simulated(*of, 1)
    assert found.basis == "all 72 blocks executed: blocks that share tiles in the same way differ"
    assert found.check.passed
    exact = whole_counters(*of)
    assert {name: found.counters[name] for name in exact} == exact
    assert found.predicted is None
    assert found.prediction_basis == (
        "not predicted: which of its blocks stand for those that share tiles is not known"
    )


def test_one_block_of_each_kind_is_enough():
    found = simulated("stream-k", "4096x4096x256")
    assert found.executed_blocks < 60  # of 1,056
    assert found.check.passed
    assert found.check.bound.endswith("; on 7 of 1,056 blocks, and on 264 at K = 64")
    least, greatest = found.estimates[PREDICATED]  # guards of divisions differ between blocks
    assert least < found.counters[PREDICATED] < greatest < least * 1.0002
    assert found.estimates.keys() == {PREDICATED}


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("realigned", "2561x2301x203"),  # blocks with tiles of their own need the copies
        ("stream-k", "1536x2816x1024"),  # 264 tiles: no worker has a part of one
    ],
)
def test_large_products_are_right_where_single_blocks_compute_them(label, shape):
    found = simulated(label, shape)
    assert found.check.passed
    assert " of " in found.check.bound.rsplit(";", 1)[-1]  # not all blocks
    assert found.executed_blocks < 400


@pytest.mark.exhaustive  # 3 s; test_one_path.py has the times of stream-k
def test_blocks_that_share_tiles_are_predicted_too():
    times = []
    for k in (512, 1024):
        predicted = simulated("stream-k", f"2304x2304x{k}", 2).predicted
        times.append(predicted.time_s - predicted.launch_s)
    assert 1.6 < times[1] / times[0] < 2.1  # sums are added once
    # 324 tiles, dealt out evenly: below the two turns that whole tiles would take
    flops = 2 * 2304 * 2304 * 1024
    assert times[1] < 0.75 * 2 * 264 * flops / 324 / 66.9e12 / 0.7


def test_kinds_of_blocks_that_take_too_long_are_refused():
    with pytest.raises(ShapeError, match=r"share tiles in 70 ways, and .*take a smaller shape"):
        simulated("stream-k", "1024x1024x262144")


def counts(*executed):
    found = np.zeros(len(executed), dtype=COUNT)
    found["executed"] = executed
    found["sectors"] = np.array(executed) * 3
    return found


@pytest.mark.parametrize(
    ("k", "shares", "points"),
    [
        (2048, 1, [2048]),  # short enough to be replayed whole
        (2056, 1, [32, 64]),  # 4 steps of 8, and twice as many
        (2059, 1, [35, 67]),  # the remainder of a step on top
        (2065, 3, [49, 97]),  # whole multiples of 3 steps, and of one left over
        (2056, 80, [2056]),  # 1.5 times the second point, 776 + 640, exceeds it
        (2056, 86, [2056]),  # so does the second point
    ],
)
def test_two_values_of_k_stand_for_one_far_behind_them(k, shares, points):
    assert timed_k(k, 8, Geometry(grid=(1, 1, 1), block=(64, 1, 1)), shares=8 * shares) == points


@pytest.mark.parametrize(
    ("guards", "executed", "requests", "agree"),
    [
        (0, 0, 0, True),
        (MOST_GUARDS, 0, 0, True),
        (MOST_GUARDS + 1, 0, 0, False),
        (0, 1, 0, False),
        (1, 1, 0, False),
        (1, 0, 1, False),  # the guard of an access
        (0, 0, 1, True),
    ],
)
def test_blocks_that_share_tiles_alike_may_differ_in_a_few_guards_alone(
    guards, executed, requests, agree
):
    one, other = counts(*[5] * 20), counts(*[5] * 20)
    other["predicated"][:guards] += 1
    other["executed"][0] += executed
    for counted in (one, other):
        counted["requests"][0] = requests
    assert plan_executor._agree_but_for_guards([one])
    assert plan_executor._agree_but_for_guards([one, other]) == agree
    assert plan_executor._agree_but_for_guards([one, one, other]) == agree


def test_guards_that_differ_between_blocks_bound_what_depends_on_them():
    code = compile_for(DEVICE, parse_selection("stream-k"))
    found = {one: number for number, one in enumerate(code.instructions) if one.guard}
    addition = next(n for one, n in found.items() if one.opcode in plan_executor.ADDITIONS)
    branch = next(n for one, n in found.items() if one.opcode == "BRA")
    one, other = (counts(*[0] * len(code.instructions)) for _ in range(2))
    for counted, true in ((one, 32), (other, 0)):
        counted["threads"][[addition, branch]] = 32
        counted["predicated"][[addition, branch]] = true
    assert plan_executor._guards_of_divisions(code, [one, one]).tolist() == []
    guards = plan_executor._guards_of_divisions(code, [one, other])
    assert guards.tolist() == [addition]
    bounds = plan_executor._bounds(translate(code), one, guards)
    assert bounds == {PREDICATED: (32, 64)}  # of the branch alone, and of both


def test_a_line_must_hold_every_point():
    points = {10: counts(5, 20), 12: counts(5, 24), 14: counts(5, 28), 18: counts(5, 36)}
    assert np.array_equal(affine(points, 1010), counts(5, 2020))  # 2 per step of 2 and 20 at 10
    assert affine(points | {18: counts(5, 37)}, 1010) is None
    bent = counts(5, 36)
    bent["sectors"][1] += 1
    assert affine(points | {18: bent}, 1010) is None


def test_a_count_that_would_fall_below_zero_is_on_no_line():
    points = {2: counts(9), 3: counts(6), 4: counts(3)}
    assert np.array_equal(affine(points, 5), counts(0))
    assert affine(points, 6) is None


# Kernels that were made up for what they do wrong.

HEAD = """
extern "C" __global__ void %s(const float* A, const float* B, float* C, int M, int N, int K,
                              float alpha, float beta)
{
    const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
"""
RIGHT = "C[row * N + col] = alpha * sum; }"
EXTRA = "float extra = 0; for (int i = 0; i < %s; ++i) extra += A[i %% 7]; sum += 0.0f * extra;"
BODIES = {  # behind the products
    "right": RIGHT,
    "quadratic": EXTRA % "(K / 16) * (K / 16)" + RIGHT,
    "of_its_block": EXTRA % "blockIdx.x" + RIGHT,
    "beyond_200": EXTRA % "(K > 200 ? 3 : 0)" + RIGHT,
    "leaves_one": "if (row != 17 || col != 33) " + RIGHT,
    "a_little_off": "sum += row == 127 && col == 3 ? 1e-3f : 0;" + RIGHT,
    "infinite": "sum += row == 3 && col == 99 ? 1e38f * 1e38f : 0;" + RIGHT,
    "wrong_at_96": "sum += K == 96;" + RIGHT,
    "writes_to_a": "((float*)A)[row] = sum;" + RIGHT,
    "reads_beyond_a": "sum += 0 * A[M * K + row];" + RIGHT,
}
IN_BANDS = """
extern "C" __global__ void in_bands(const float* A, const float* B, float* C, int M, int N, int K,
                                    float alpha, float beta)
{
    extern __shared__ float of_a[];
    const int row = (blockIdx.y * 4 + blockIdx.x % 4) * 16 + threadIdx.y;
    const int col = blockIdx.x / 4 * 16 + threadIdx.x;
    if (row - threadIdx.y >= M) return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        __syncthreads();
        if (threadIdx.x == 0) of_a[2000 + threadIdx.y] = row < M ? A[row * K + k] : 0.0f;
        __syncthreads();
        if (col < N) sum += of_a[2000 + threadIdx.y] * B[k * N + col];
    }
    if (row < M && col < N) C[row * N + col] = alpha * sum;
}
"""
SOURCE = "".join(HEAD % name + body for name, body in BODIES.items()) + IN_BANDS


@cache
def machine_code():
    """Image of all kernels: a compiler and a disassembler take as long for one."""
    return cubin_of(SOURCE, "right").image


@dataclass(frozen=True, kw_only=True)
class Made(Variant):
    """A variant whose source is given."""

    text: str = SOURCE

    @property
    def source(self):
        return self.text


def kernel(name):
    """A naive kernel in blocks of 16×16 with a body of BODIES."""
    variant = Made(
        name="made", rung=1, title="Made", idea="made up", file="made.cu", entry=name,
        tile=partial(Tiling, block_m=16, block_n=16), warp=one_thread_per_element,
    )  # fmt: skip
    return Kernel.from_image(machine_code(), name), Selection(variant=variant)


def made(name, shape):
    return ladder_at(shape).simulate(*kernel(name))


def test_blocks_that_take_tiles_in_an_order_of_their_own_stand_for_those_at_their_place():
    cubin, selection = kernel("in_bands")
    variant = replace(
        selection.variant,
        order=lambda p: in_bands(4),
        dynamic_shared_bytes=lambda tiling: 4 * 2016,
    )
    selection = Selection(variant=variant)
    residence = Residence(device=DEVICE, blocks_per_sm=6)
    found = ladder_at("200x171x65").simulate(cubin, selection, residence)
    assert found.executed_blocks < 100  # of 13 · 11, and 3 · 11 below C
    assert "the other blocks count like the executed blocks of the same region" in found.basis
    assert found.check.passed
    exact = all_executed(cubin, selection, "200x171x65")
    assert {name: found.counters[name] for name in exact} == exact
    assert isinstance(found.predicted, Predicted)


def test_counts_that_are_not_affine_in_k_are_not_shortened(short_of_time):
    found = made("quadratic", "64x64x256")
    assert "instead of" not in found.basis
    assert found.basis.endswith("; counts are not affine in K, so that nothing was extrapolated")
    assert found.check.passed
    assert found.counters == all_executed(*kernel("quadratic"), "64x64x256")


@pytest.mark.parametrize("k", [32, 256])  # as it is, and from small values of K
def test_blocks_of_one_place_that_differ_are_all_executed(k, short_of_time):
    found = made("of_its_block", f"128x128x{k}")
    assert found.executed_blocks == 64
    assert found.basis == (
        "all 64 blocks executed: blocks of one region of the grid (corner, edge, interior) differ"
    )
    whole = all_executed(*kernel("of_its_block"), f"128x128x{k}")
    assert found.counters == whole
    assert whole.keys() == totals([]).keys()  # every counter


def test_blocks_that_differ_in_a_grid_that_is_too_large_are_refused(monkeypatch):
    monkeypatch.setattr(rung_plan, "ALL_BLOCKS_BUDGET", 1000)
    assert "blocks that should have equal counts differ, and all 64 would" in refusal(
        ShapeError, made, "of_its_block", "128x128x32"
    )


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [
        ("leaves_one", 17, 33),  # NaN is left in it
        ("a_little_off", 127, 3),
        ("infinite", 3, 99),
    ],
)
def test_a_wrong_element_of_an_executed_block_fails(name, row, column):
    check = made(name, "128x112x32").check
    assert (check.passed, check.worst_row, check.worst_column) == (False, row, column)


def test_a_wrong_result_at_a_small_k_fails_too(short_of_time):
    check = made("wrong_at_96", "64x64x256").check
    assert not check.passed
    assert check.bound.endswith("; on 3 of 16 blocks, and on 15 at K = 64, 96, 128 and 192")


def test_a_store_to_an_input_is_a_fault():
    assert "writes_to_a" in refusal(LaunchError, made, "writes_to_a", "32x32x32")


def test_a_load_beyond_a_matrix_is_a_fault():
    assert "reads_beyond_a" in refusal(LaunchError, made, "reads_beyond_a", "32x32x32")


def test_a_shortage_of_memory_is_not_remembered(monkeypatch):
    ladder, selection = ladder_at("64"), parse_selection("tiled")
    with monkeypatch.context() as short:
        short.setattr("toolkit.launch.host_resources.available_bytes", lambda: 1000)
        assert "A and B take 0.0 GB at 64x64x64, which are not f" in refusal(
            ShapeError, ladder.simulate, compile_for(DEVICE, selection), selection
        )
    assert ladder.has_room(ladder.workload.problem)
    assert ladder.simulate(compile_for(DEVICE, selection), selection).check.passed


def test_what_is_being_made_leaves_no_room_for_others(monkeypatch):
    both = 4 * (2 * 64 * 64 + 2 * 64 * 72)
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: both - 1)
    ladder, begun, goes_on = ladder_at("64"), Event(), Event()
    workload, deeper = ladder.workload, ladder.at(72)
    padded = Workload.padded

    def slowly(workload, executed):
        begun.set()
        goes_on.wait(10)
        return padded(workload, executed)

    monkeypatch.setattr(Workload, "padded", slowly)
    ladder.prepare(workload, workload.problem)
    assert begun.wait(10)
    assert "not free" in refusal(ShapeError, ladder.matrices, deeper, deeper.problem)
    goes_on.set()
    for one in (workload, deeper):
        assert ladder.matrices(one, one.problem)[0].shape == (64, one.problem.k)


def test_the_matrices_stay_as_they_were_and_are_not_copied():
    ladder, selection = ladder_at("64"), parse_selection("tiled")
    workload = ladder.workload
    before = workload.a.copy()
    ladder.simulate(compile_for(DEVICE, selection), selection)
    assert np.array_equal(workload.a, before)
    a, b = ladder.matrices(workload, workload.problem)
    assert np.shares_memory(a, workload.a)
    assert np.shares_memory(b, workload.b)
    assert not a.flags.writeable
    assert workload.a.flags.writeable


def test_the_worst_of_several_verdicts_counts():
    worse = check(worst_ratio=0.3, worst_row=8, max_absolute_error=1e-7)
    found = merged([check(), worse, check()], "on two blocks")
    assert found == replace(worse, max_absolute_error=1e-6, bound="a bound; on two blocks")
    lost = check(passed=False, worst_ratio=None, worst_row=5, max_absolute_error=None)
    assert merged([worse, lost], "x") == replace(lost, bound="a bound; x")
    assert merged([lost, check(passed=False, worst_ratio=9.0)], "x").worst_row == 5


def test_without_room_for_whole_rows_small_values_of_k_are_enough(monkeypatch, short_of_time):
    monkeypatch.setattr("toolkit.launch.host_resources.available_bytes", lambda: 4 * 256 * 1000)
    found = simulated("tiled", "256x256x2048")
    assert found.basis.count("verified by the others;") == 1  # no block at K itself
    assert found.check.bound.endswith("; on 20 of 64 blocks at K = 64, 96, 128 and 192")


def test_a_line_that_k_itself_leaves_is_none(short_of_time):
    found = made("beyond_200", "64x64x256")
    assert found.basis.endswith("so that nothing was extrapolated")
    assert found.counters == all_executed(*kernel("beyond_200"), "64x64x256")


@pytest.mark.parametrize(
    ("path", "file", "text"),
    [
        ("/tmp/abc/kernel.cu", "made.cu", "second"),  # as PyCUDA names it
        ("made.cu", "made.cu", "second"),
        ("/usr/include/math.h", "math.h", ""),
    ],
)
def test_lines_are_of_the_rung_or_of_a_header(path, file, text):
    variant = replace(kernel("right")[1].variant, text="first\n  second\n")
    counted = InstructionCounts(
        address=0, opcode="NOP", text="NOP", file=path, line=2, executed=1, threads=32,
        predicated=32,
    )  # fmt: skip
    idle = replace(counted, line=1, executed=0, threads=0, predicated=0)
    (line,) = line_counters([counted, idle], variant)
    assert (line.file, line.line, line.text) == (file, 2, text)
    assert line.counters["smsp__inst_executed.sum"] == 1


@pytest.mark.parametrize(("k", "waves"), [(32, 4), (4096, 2)])
def test_more_waves_are_replayed_where_the_blocks_are_whole(monkeypatch, k, waves):
    asked = []
    given = declared.blocks_to_run

    def blocks_to_run(*counts, **how):
        asked.append(how["waves"])
        return given(*counts, **how)

    monkeypatch.setattr(declared, "blocks_to_run", blocks_to_run)
    monkeypatch.setattr(launch_time, "cached_prediction", lambda key, device, made: made())
    simulated("tiled", f"64x64x{k}", blocks_per_sm=2)
    assert set(asked) == {waves}


@pytest.mark.parametrize("label", [*map(exhaustive, ("tf32-parts", "fp16-parts")), "tiled"])
def test_the_parts_of_the_time_of_a_rung_add_up_to_it(label):
    predicted = simulated(label, "1024", 1).predicted
    assert all(part_s >= 0 for part_s in predicted.parts.values())
    assert sum(predicted.parts.values()) == pytest.approx(predicted.time_s, rel=1e-9)
    assert predicted.parts[Effect.LAUNCH] == predicted.launch_s
