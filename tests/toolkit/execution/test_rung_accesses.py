"""Accesses of all blocks of a rung, from executed blocks: as recorded, and as the closed form."""

import numpy as np
import pytest

from analysis.coalescing import SECTOR_BYTES
from analysis.devices import find_device
from analysis.problem import parse_shape
from analysis.traffic.block_schedule import BlockProgress
from analysis.traffic.l2 import traffic
from analysis.traffic.pieces import READ
from kernels.closed_forms import pieces_of_c
from kernels.selection import parse_selection
from tests.analysis.traffic.gemm_accesses import gemm_accesses
from tests.recorded_accesses import all_recorded
from toolkit.execution import rung_plan
from toolkit.execution.footprint import Data, Footprint, Recorder
from toolkit.execution.plan_executor import PlanExecutor
from toolkit.execution.rung_accesses import RungAccesses
from toolkit.execution.rung_simulation import LadderSimulator
from toolkit.rungs.launch import RungLaunch, compile_for
from toolkit.rungs.matrices import Workload
from toolkit.sass.translate import translate

DEVICE = find_device("h200")


def executor_of(label, shape):
    selection = parse_selection(label)
    ladder = LadderSimulator(Workload(parse_shape(shape), 3))
    launch = RungLaunch(
        variant=selection.variant, parameters=selection.parameters, problem=parse_shape(shape)
    )
    ladder.prepare_at_k(launch.executed)
    return PlanExecutor(ladder, translate(compile_for(DEVICE, selection)), launch, notes=True)


def accesses_of(executor, counts=None):
    counts = counts or executor.counted()
    return RungAccesses(
        executor.launch,
        counts.footprints,
        counts.plan.region_of,
        waits=bool(executor.launch.order.kinds),
    )


def in_time(accesses, blocks):
    each = np.ones(blocks)
    return accesses.in_time(each, 0 * each, BlockProgress.even(each))


PLAIN = [
    ("naive-coalesced", "40x70x65"),
    ("tiled", "96x64x96"),
    ("vectorized", "264x136x72"),
    ("async-copy", "300x333x65"),  # rows begin anywhere in a sector
    ("rasterised", "300x333x65"),  # blocks without a tile
    ("fp16-parts", "300x333x65"),
]


@pytest.mark.parametrize(("label", "shape"), PLAIN)
def test_each_block_has_the_sectors_that_it_accesses_when_all_are_executed(label, shape):
    executor = executor_of(label, shape)
    found, rows = accesses_of(executor), all_recorded(executor)
    blocks = executor.launch.geometry.blocks
    sectors = np.array([mask.bit_count() for mask in rows["mask"].tolist()])
    for kind in (rows["kind"] == READ, rows["kind"] != READ):
        is_kind = found.is_write if not (rows["kind"][kind] == READ).all() else ~found.is_write
        expected = np.bincount(rows["block"][kind].astype(int), sectors[kind], blocks)
        ours = np.bincount(found.block[is_kind], found.entries["sectors"][is_kind], blocks)
        assert ours == pytest.approx(expected)
        assert expected.sum() > 0


@pytest.mark.parametrize(("label", "shape"), [one for one in PLAIN if one[0] != "rasterised"])
def test_a_sector_that_two_tiles_share_is_in_one_piece(label, shape):
    """Not for bulk copies: each asks for the sector in which a row ends and the next begins."""
    executor = executor_of(label, shape)
    found = in_time(accesses_of(executor), executor.launch.geometry.blocks)
    sizes = np.zeros(found.piece.max() + 1)
    sizes[found.piece] = found.size
    assert sizes.sum() == pytest.approx(executor.launch.executed.matrix_bytes, rel=1e-3)


@pytest.mark.parametrize(
    ("label", "shape"),
    [("coarsened-2d", "512"), ("vectorized", "1024x512x512"), ("async-copy", "520x512x512")],
)
def test_traffic_is_that_of_the_closed_form(label, shape):
    executor = executor_of(label, shape)
    launch = executor.launch
    found = in_time(accesses_of(executor), launch.geometry.blocks)
    pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
    each = np.zeros(launch.geometry.blocks)
    closed = gemm_accesses(launch.tiling, launch.executed, pieces, each)
    ours, expected = (traffic(one, DEVICE, in_step=1.0) for one in (found, closed))
    for name in ("fetched_sectors", "merged_sectors", "l2_read_sectors", "dram_read_bytes"):
        assert getattr(ours, name) == pytest.approx(getattr(expected, name), rel=0.02), name
    assert found.size[found.is_write].sum() == closed.size[closed.is_write].sum()


@pytest.mark.parametrize(
    ("label", "shape"),
    [
        ("naive-coalesced", "40x70x4096"),
        ("vectorized", "256x256x512"),
        ("async-copy", "136x136x455"),
    ],
)
def test_accesses_extrapolated_along_k_are_those_at_k_itself(label, shape, monkeypatch):
    """`async-copy` reads the last 7 of 455 columns of A first."""
    at_k = executor_of(label, shape)
    monkeypatch.setattr(rung_plan, "FULL_K_BUDGET", 10**12)
    expected = at_k.counted()
    monkeypatch.setattr(rung_plan, "FULL_K_BUDGET", 0)
    found = executor_of(label, shape).counted()
    assert found.plan.points
    assert not expected.plan.points
    for ours, theirs in zip(found.footprints, expected.footprints, strict=True):
        assert ours.same_accesses(theirs)
        assert ours.last == theirs.last
        assert ours.last_read == pytest.approx(theirs.last_read, abs=1)
        steps = [by_data(one)["step"] for one in (ours, theirs)]
        assert steps[0] == pytest.approx(steps[1], abs=0.01 * theirs.last)


def by_data(footprint):
    return np.sort(footprint.entries, order=("data", "kind", "own", "slot", "bin"))


def test_where_other_places_are_accessed_at_k_itself_nothing_is_extrapolated(monkeypatch):
    monkeypatch.setattr(rung_plan, "FULL_K_BUDGET", 0)
    executor = executor_of("vectorized", "256x256x512")
    assert "affine in K, fitted" in executor.counted().basis
    monkeypatch.setattr(Footprint, "same_accesses", lambda self, other: False)
    found = executor.counted()
    assert not found.plan.points
    assert "nothing was extrapolated" in found.basis


def test_blocks_that_share_tiles_access_what_they_do_when_all_are_executed():
    """The kinds of `stream-k`: each sum is written by one block and read by another, later."""
    executor = executor_of("stream-k", "512")
    launch = executor.launch
    blocks = launch.geometry.blocks
    counts, rows = executor.counted(), all_recorded(executor)
    found = accesses_of(executor, counts)
    workspace = found.entries["data"] == Data.SUMS
    written, read = (workspace & kind for kind in (found.is_write, ~found.is_write))
    sums = 4 * launch.tiling.block_m * launch.tiling.block_n
    leaves = int((pieces_of_c(launch.variant, launch.parameters, launch.executed).ends < 1).sum())
    assert leaves > 0
    for kind in (written, read):
        assert SECTOR_BYTES * found.entries["sectors"][kind].sum() == leaves * sums
    assert sorted(found.piece[written]) == sorted(found.piece[read])
    assert (found.sums_bytes, found.sums_writers) == (leaves * sums, len(set(found.block[written])))
    at = in_time(found, blocks)
    assert (at.time[found.read] > at.time[found.before]).all()
    assert (at.block[found.read] != at.block[found.before]).all()
    # A and B: as when all blocks run together
    recorder = Recorder(launch, executor.bound(launch.executed.k, np.zeros((512, 512), np.float32)))
    for block in (0, blocks // 2, blocks - 1):
        whole = recorder.footprint(block, rows[rows["block"] == block])
        ours = counts.footprints[counts.plan.region_of[block]]
        for data in (Data.A, Data.B, Data.C):
            one, other = (x.entries[x.entries["data"] == data] for x in (ours, whole))
            assert one["sectors"].sum() == other["sectors"].sum()


@pytest.mark.parametrize(
    ("label", "shape"), [("stream-k", "1024x1024x256"), ("tall-thread-tile", "1000x1016x520")]
)
def test_a_block_stores_the_tile_whose_k_it_ends_and_not_the_one_that_it_begins(label, shape):
    """Both are in one column of tiles, where C has no position along K."""
    executor = executor_of(label, shape)
    launch, counts = executor.launch, executor.counted()
    pieces = pieces_of_c(launch.variant, launch.parameters, launch.executed)
    found = accesses_of(executor, counts)
    of_c = found.entries["data"] == Data.C
    own = np.searchsorted(pieces.block, found.block[of_c]) + found.entries["own"][of_c]
    assert (np.bincount(pieces.block)[found.block[of_c]] > 1).any()
    assert (pieces.ends[own] == 1).all()
    assert len(np.unique(found.piece[of_c])) == launch.tiles.tiles
    sizes = np.zeros(found.piece.max() + 1)
    sizes[found.piece[of_c]] = found.size[of_c]
    assert sizes.sum() == 4 * launch.executed.m * launch.executed.n


def test_blocks_that_read_copies_of_a_and_b_share_what_they_would_share_of_a_and_b():
    """Rows of 129 and 131 floats: `realigned` copies A and B to rows of whole quads."""
    executor = executor_of("realigned", "300x131x129")
    launch = executor.launch
    found = accesses_of(executor)
    at = in_time(found, launch.geometry.blocks)
    sizes = np.zeros(at.piece.max() + 1)
    sizes[at.piece] = at.size
    for data, floats in ((Data.A, 300 * 132), (Data.B, 129 * 132), (Data.C, 300 * 131)):
        own = np.unique(found.piece[found.entries["data"] == data])
        # no worker reads all of a part of K in which two of them meet
        assert sizes[own].sum() == pytest.approx(4 * floats, rel=0.15)
    copying = launch.parameters["workers"]  # the first blocks
    assert (found.block >= copying).all()
