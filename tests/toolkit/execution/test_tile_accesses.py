"""Accesses of all blocks of a rung, against those recorded of each block, and the closed form."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.traffic.block_schedule import BlockProgress, starts
from analysis.traffic.l2 import traffic
from kernels.closed_forms import pieces_of_c
from kernels.selection import parse_selection
from tests.sampling import chosen_of
from toolkit.execution import block_plan, plan_executor
from toolkit.execution.accesses import visits_in_time
from toolkit.execution.block_plan import period
from toolkit.execution.plan_executor import PlanExecutor
from toolkit.execution.tile_accesses import (
    ARRAYS,
    COPY_OF_A,
    COPY_OF_B,
    A,
    B,
    BlockAccesses,
    C,
    UnevenError,
    extrapolated,
    is_moved,
    is_same,
)
from toolkit.rungs.inputs import LadderInputs
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.translate import translate
from validation.traffic.gemm_accesses import gemm_accesses

H200 = find_device("h200")
PROLOGUE, PHASE_STEPS, ROWS = 3, 10, 4


def block(rows):
    """Accesses from rows (array, line, mask, kind, step, warp)."""
    array, line, mask, kind, step, warp = np.array(rows).T
    return BlockAccesses(
        array=array.astype(np.uint8),
        line=line,
        mask=mask.astype(np.uint8),
        kind=kind.astype(np.uint8),
        step=step,
        warp=warp,
    )


def loop(phases):
    """A warp that reads a line of A and four of B per phase, and one that stores C at the end."""
    rows = [(0, phase, 15, 0, PROLOGUE + PHASE_STEPS * phase, 0) for phase in range(phases)]
    rows += [
        (1, ROWS * phase + k, 15, 0, PROLOGUE + PHASE_STEPS * phase + k, 0)
        for phase in range(phases)
        for k in range(ROWS)
    ]
    rows.sort(key=lambda row: row[4])
    end = PROLOGUE + PHASE_STEPS * phases
    return block([*rows, (2, 7, 3, 1, end, 0), (2, 8, 3, 1, end + 1, 1)])


@pytest.mark.parametrize("further", [0, 1, 17])
def test_a_loop_is_repeated_up_to_a_larger_k(further):
    assert is_same(extrapolated(loop(6), loop(8), further), loop(8 + 2 * further))


def test_some_repetitions_stand_for_the_others():
    found = extrapolated(loop(6), loop(8), 9, one_of=5)  # repetitions 0 and 5 of ten
    assert (found.array >= ARRAYS).sum() == 2 * 2 * (1 + ROWS)
    assert found.step.max() == loop(26).step.max()


@pytest.mark.parametrize("change", ["mask", "array"])
def test_what_is_not_repeated_is_not_extrapolated(change):
    high = loop(8)
    values = getattr(high, change).copy()
    values[-8] += 1
    with pytest.raises(UnevenError, match="not repeated"):
        extrapolated(loop(6), replace(high, **{change: values}), 2)


def test_accesses_move_by_sectors_across_lines():
    one = block([(1, 4, 0b1100, 0, 9, 0), (0, 2, 15, 0, 10, 0)])
    moved = np.zeros(2 * ARRAYS, dtype=np.int64)
    moved[1] = 32
    # sectors 2 and 3 of line 4 become sector 3 of line 4 and sector 0 of line 5
    other = block([(1, 4, 0b1000, 0, 9, 0), (1, 5, 0b0001, 0, 9, 0), (0, 2, 15, 0, 10, 0)])
    assert is_moved(one, other, moved)
    assert not is_moved(one, other, 0 * moved)
    moved[1] = 16
    with pytest.raises(UnevenError, match="do not begin at sectors"):
        is_moved(one, other, moved)


# Of rungs.


def counted(label, shape):
    """Counts of a rung with their accesses, and the executor, which can execute further blocks."""
    selection = parse_selection(label)
    ladder = LadderInputs(Workload(parse_shape(shape), 3))
    launch = RungLaunch(
        variant=selection.variant, parameters=selection.parameters, problem=parse_shape(shape)
    )
    ladder.begin_rung()
    ladder.prepare_at_k(launch.executed)
    executor = PlanExecutor(ladder, translate(compile_for(H200, selection)), launch, notes=True)
    return executor.counted(), executor


EVERY = ("naive-uncoalesced", "tiled", "coarsened-1d", "vectorized", "async-copy", "rasterised")
SHAPES = ("300x264x72", "333x271x77", "512x512x256")


@pytest.mark.parametrize(
    ("label", "shape"),
    chosen_of(
        [(label, shape) for label in EVERY for shape in SHAPES],
        lambda case: case in [("coarsened-1d", SHAPES[1]), ("rasterised", SHAPES[0])],
    ),
)
def test_each_block_makes_the_accesses_of_its_class(label, shape):
    found, executor = counted(label, shape)
    assert found.blocks < found.launch.geometry.blocks
    every = list(range(found.launch.geometry.blocks))
    run = executor._execute(found.launch.executed.k, [every])
    assert all(found.tiles.makes(b, executor._accesses(run, b)) for b in every)


@pytest.mark.parametrize(
    "label", chosen_of(["tiled", "vectorized", "bulk-copy"], lambda label: label == "vectorized")
)
def test_accesses_extrapolated_along_k_are_those_at_k(label, monkeypatch):
    monkeypatch.setattr(block_plan, "FULL_K_BUDGET", 0)
    monkeypatch.setattr(block_plan, "ANCHORS", 0)
    variant = parse_selection(label).variant
    shape = f"384x384x{11 * period(variant.tiling(variant.defaults)) + 4}"
    found, executor = counted(label, shape)
    assert found.plan.points
    assert not found.plan.anchors
    some = [0, 1, found.launch.geometry.blocks - 1]
    run = executor._execute(found.launch.executed.k, [some])
    assert all(found.tiles.makes(b, executor._accesses(run, b)) for b in some)


def modelled(found, in_time, *, per_sm=1):
    pieces = pieces_of_c(found.launch.variant, found.launch.parameters, found.launch.executed)
    blocks = found.launch.geometry.blocks
    lifetimes = pieces.lifetimes(blocks)
    begins = starts(lifetimes, H200, per_sm, 256)
    return traffic(in_time(begins, BlockProgress.even(np.ones(blocks))), H200, in_step=0.0)


RUNGS = ("naive-coalesced", "tiled", "warp-tiled", "rasterised", "stream-k", "split-k")


@pytest.mark.parametrize(
    ("label", "shape"),
    chosen_of(
        [(label, shape) for label in RUNGS for shape in ("512", "1024", "1000x1016x520")],
        lambda case: case in [("tiled", "512"), ("stream-k", "512")],
    ),
)
def test_traffic_is_that_of_the_closed_form(label, shape):
    found, _ = counted(label, shape)
    launch = found.launch
    pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
    closed = modelled(found, lambda *at: gemm_accesses(launch.tiling, launch.executed, pieces, *at))
    recorded = modelled(found, found.asked(None).in_time)
    assert recorded.fetched_sectors == pytest.approx(closed.fetched_sectors, rel=0.01)
    assert recorded.written_sectors == pytest.approx(closed.written_sectors, rel=0.01)
    assert recorded.dram_read_bytes == pytest.approx(closed.dram_read_bytes, rel=0.01)
    assert recorded.l2_read_sectors == pytest.approx(closed.l2_read_sectors, rel=0.02)


def test_copies_of_matrices_are_accessed_but_no_counts_of_them():
    found, _ = counted("realigned", "127x129x31")
    assert found.plan.kinds  # blocks of a kind make the same accesses, so that not all are needed
    arrays = {array for one in found.tiles.accesses for array in one.array.tolist()}
    assert arrays == {A, B, C, COPY_OF_A, COPY_OF_B}  # K has one phase, of which no sums are left


def test_sums_are_read_after_they_are_written():
    found, _ = counted("stream-k", "512")
    visits, moments, exchanged = found.tiles.visits()
    lifetimes = found.asked(None).lifetimes
    begins, even = np.zeros(len(lifetimes)), BlockProgress.even(np.ones(len(lifetimes)))
    made = visits_in_time(
        visits[exchanged],
        moments,
        begins,
        even,
        lifetimes=lifetimes,
        exchanged=np.ones(exchanged.sum(), dtype=bool),
    )
    assert made.is_write.any()
    order = np.lexsort((made.is_write, made.time, made.piece))
    for before, after in pairwise(order.tolist()):
        if made.piece[before] != made.piece[after]:
            assert made.is_write[after]  # the first access to each piece


def test_few_repetitions_of_a_deep_product_move_as_many_bytes(monkeypatch):
    shape = "256x256x5000"
    every, _ = counted("vectorized", shape)
    monkeypatch.setattr(plan_executor, "MOST_SECTORS", 1 << 14)
    some, _ = counted("vectorized", shape)
    assert some.tiles.repeated > 2
    assert sum(map(len, some.tiles.accesses)) < sum(map(len, every.tiles.accesses)) / 2
    of_some, of_every = (modelled(one, one.asked(None).in_time) for one in (some, every))
    assert of_some.fetched_sectors == pytest.approx(of_every.fetched_sectors, rel=0.01)
    assert of_some.dram_read_bytes == pytest.approx(of_every.dram_read_bytes, rel=0.01)
