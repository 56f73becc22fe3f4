"""Accesses of blocks to memory that the core notes, and the traffic that follows."""

from collections import defaultdict
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from analysis.devices import find_device
from analysis.records.counters import MODELLED
from analysis.traffic.block_schedule import BlockProgress
from analysis.traffic.groups import VISIT
from analysis.traffic.l2 import WHOLE_LINES, Pairs
from analysis.traffic.pieces import ATOMIC, READ, WRITE
from tests.toolkit.sass.bound import bound_to, for_an_h200
from toolkit import simulate
from toolkit.execution.accesses import accesses_in_time, exchange, visits_in_time
from toolkit.execution.class_accesses import _shifted
from toolkit.sass.accesses import Below
from toolkit.sass.core.binding import ACCESS
from toolkit.sass.machine import run_blocks

SOURCE = r"""
extern "C" __global__ void gather(float *out, const float *in, const int *where, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[where[i]] + in[where[i]];
}
extern "C" __global__ void twice(float *out)  // both halves of a sector, one after the other
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 8; ++k) out[8 * i + k] = float(k);
}
extern "C" __global__ void by_column(float *out)  // a warp per column
{
    out[threadIdx.x % 32 * 8 + threadIdx.x / 32] = 1.0f;
}
extern "C" __global__ void tally(int *count, const int *in)
{
    atomicAdd(&count[in[blockIdx.x * blockDim.x + threadIdx.x]], 1);
}
// sums that are kept in memory, of which each lane has one in each of two columns of a matrix
extern "C" __global__ void keep_sums(float *out, int rows)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < 5; k++)
        for (int column = 0; column < 2; column++)
            for (int again = 0; again < 3; again++)
                ((volatile float *)out)[i * 256 + column * 128] = k;
}
extern "C" __global__ void copy(float *out, const float *in)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = in[i];
}
"""


def zeros(count):
    return np.zeros(count, np.float32)


def noted(kernel, arguments, blocks, threads, most=1 << 20):
    """Accesses of blocks, and the addresses of the buffers."""
    made = for_an_h200(SOURCE, kernel)
    bound, _, _ = bound_to(made, arguments, blocks=blocks, threads=threads)
    (run,) = run_blocks(replace(bound, most_accesses=most), [range(blocks)])
    return run.accesses, [buffer.address for buffer in bound.buffers[: len(arguments)]]


def sectors(accesses, kind):
    """The 32-byte sectors of each block, by number."""
    found = defaultdict(set)
    for row in accesses.rows[accesses.rows["kind"] == kind]:
        for k in range(4):
            if row["mask"] >> k & 1:
                found[int(row["block"])].add(4 * int(row["line"]) + k)
    return found


def test_requests_for_many_lines_that_are_repeated_are_noted_once():
    blocks, threads = 3, 64
    accesses, (out, *_) = noted("keep_sums", [zeros(256 * 192), np.int32(0)], blocks, threads)
    first = out // 32
    for block in range(blocks):
        rows = block * threads + np.arange(threads)
        wanted = {first + 32 * row + column for row in rows.tolist() for column in (0, 16)}
        assert sectors(accesses, WRITE)[block] == wanted
    assert len(accesses.rows) == 2 * threads * blocks
    assert accesses.below.written_by_warps == 2 * threads * blocks


def test_a_block_notes_each_sector_that_it_reads_once():
    rng = np.random.default_rng()
    n, blocks = 1000, 8
    where = rng.integers(0, 500, n).astype(np.int32)
    arguments = [zeros(n), zeros(500), where, np.int32(n)]
    accesses, (out, into, index) = noted("gather", arguments, blocks, 128)
    read, written = sectors(accesses, READ), sectors(accesses, WRITE)
    for block in range(blocks):
        mine = np.arange(128 * block, min(128 * (block + 1), n))
        looked_up = into + 4 * where[mine].astype(np.int64)
        expected = set(looked_up // 32) | set((index + 4 * mine) // 32)
        assert read[block] == expected
        assert written[block] == set((out + 4 * mine) // 32)
    assert accesses.below.read == sum(map(len, read.values()))


@pytest.mark.parametrize(
    ("kernel", "floats", "threads", "by_warps"),
    [
        ("twice", 8 * 64, 64, 64),  # 8 floats of each thread are one sector
        # 32 rows of 8 floats, a sector each, of which each of 8 warps writes one float
        ("by_column", 32 * 8, 256, 8 * 32),
    ],
)
def test_a_sector_counts_once_for_each_warp_that_writes_to_it(kernel, floats, threads, by_warps):
    accesses, _ = noted(kernel, [zeros(floats)], 1, threads)
    assert accesses.below == Below(read=0, written_by_warps=by_warps)


def test_atomics_are_a_kind_of_their_own():
    arguments = [np.zeros(8, np.int32), np.arange(64, dtype=np.int32) % 8]
    accesses, (count, _) = noted("tally", arguments, 2, 32)
    assert sectors(accesses, ATOMIC) == {0: {count // 32}, 1: {count // 32}}
    in_time = accesses_in_time(accesses.rows, np.ones(2), None, np.zeros(2))
    assert in_time.is_write.sum() == 2
    assert in_time.sectors.sum() == accesses.below.read == 2 * 4  # the atomics move none


def test_of_more_accesses_than_there_is_room_for_some_lines_are_recorded():
    arguments = [zeros(4096), zeros(4096)]
    # 128-byte lines: 128 that are read and 128 that are written
    every, _ = noted("copy", arguments, 4, 1024, most=256)
    some, _ = noted("copy", arguments, 4, 1024, most=64)
    assert (len(every.rows), every.spread, len(some.rows), some.spread) == (256, 0, 64, 2)
    assert some.below == every.below
    assert set(some.rows["line"]) < set(every.rows["line"])
    assert np.unique(some.rows["line"] // 4).size == 64  # one of each four neighbours
    assert some.rows.dtype == ACCESS
    assert noted("copy", arguments, 4, 1024, most=0)[0] is None


def test_accesses_have_their_time_in_the_lifetime_of_a_block():
    arguments = [zeros(4096), zeros(4096)]
    accesses, _ = noted("copy", arguments, 4, 1024)
    in_time = accesses_in_time(accesses.rows, np.ones(4), None, np.array([0.0, 0.0, 1.0, 1.0]))
    begins = np.array([0.0, 0.0, 1.0, 1.0])[in_time.block]
    assert ((in_time.time > begins) & (in_time.time <= begins + 1)).all()
    reads = in_time.time[~in_time.is_write] - begins[~in_time.is_write]
    writes = in_time.time[in_time.is_write] - begins[in_time.is_write]
    assert reads.max() < writes.min()
    assert in_time.size.tolist() == [128.0] * 256


def access(line, block, step, kind, mask=15):
    return line, block, step, 0, mask, kind


def test_sectors_that_blocks_have_to_themselves_are_pieces_of_their_own():
    accesses = [access(7, 0, 4, READ), access(7, 1, 4, READ)]  # the same four sectors: one piece
    accesses += [access(8, 0, 5, READ, 0b0011), access(8, 1, 5, READ, 0b0110)]  # they share one
    found = accesses_in_time(np.array(accesses, dtype=ACCESS), np.ones(2), None, np.zeros(2))
    assert found.sectors.sum() == 4 + 4 + 2 + 2
    by_piece = sorted(zip(found.piece.tolist(), found.block.tolist(), strict=True))
    blocks = [[block for piece, block in by_piece if piece == n] for n in range(4)]
    assert sorted(blocks) == [[0], [0, 1], [0, 1], [1]]
    assert sorted(found.size.tolist()) == [32, 32, 32, 32, 128, 128]


def test_a_block_reads_what_another_wrote_after_that_and_goes_on_then():
    accesses = np.array(
        [
            access(1, 0, 10, READ),
            access(2, 0, 90, WRITE),  # near the end of the lifetime of block 0
            access(3, 1, 5, READ),
            access(2, 1, 10, READ),
            access(4, 1, 20, WRITE),
            access(5, 1, 100, READ),
            access(1, 0, 100, WRITE),  # what block 0 itself read
        ],
        dtype=ACCESS,
    )
    found = exchange(accesses, 2)
    assert (found.read.tolist(), found.before.tolist()) == ([3], [1])
    assert (found.lines.tolist(), found.blocks.tolist()) == ([2], [0, 1])
    assert (found.bytes, found.writers) == (128, 1)
    assert found.read_by_block.tolist() == [4, 12]
    time = accesses_in_time(accesses, np.ones(2), found, np.zeros(2)).time
    assert time[1] == pytest.approx(0.9)
    assert time[[3, 4]] == pytest.approx(0.9 * 1.01)
    assert (time[2], time[5]) == pytest.approx((0.05, 1.0))


def test_lines_that_a_block_wrote_itself_are_in_l2_as_those_of_other_blocks():
    accesses = np.array(
        [
            access(1, 0, 10, WRITE),
            access(2, 0, 20, WRITE),
            access(2, 0, 30, READ),  # its own sum
            access(1, 1, 30, READ),  # that of the other block
            access(3, 1, 40, READ),  # an input, which nobody wrote
        ],
        dtype=ACCESS,
    )
    found = exchange(accesses, 2)
    assert found.lines.tolist() == [1, 2]
    assert found.read.tolist() == [3]  # only this read waits for another block
    assert found.bytes == 128


def test_nothing_is_exchanged_where_blocks_read_other_sectors_of_a_line():
    written, read = access(2, 0, 9, WRITE, 0b0001), access(2, 1, 9, READ, 0b0010)
    assert exchange(np.array([written, read], dtype=ACCESS), 2) is None


def test_blocks_that_differ_access_memory_after_as_many_instructions():
    accesses = np.array(
        [access(1, 0, 10, READ), access(2, 0, 20, WRITE), access(3, 1, 10, READ)], dtype=ACCESS
    )
    lifetimes, starts = np.array([1.0, 50.0]), np.array([0.0, 4.0])
    found = accesses_in_time(accesses, lifetimes, None, starts, typical_steps=20.0)
    assert found.time.tolist() == [0.5, 1.0, 4.5]  # 10 of 20 instructions are half a lifetime


def test_visits_of_blocks_that_differ_take_their_lifetimes():
    visits = np.zeros(2, dtype=VISIT)
    visits["block"], visits["moment"], visits["lines"], visits["mask"] = [0, 1], 24, 1, 15
    even = BlockProgress.even(np.ones(2))
    starts, lifetimes = np.array([0.0, 1.0]), np.array([1.0, 10.0])
    assert visits_in_time(visits, 48, starts, even).time.tolist() == [0.5, 1.5]
    assert visits_in_time(visits, 48, starts, even, lifetimes).time.tolist() == [0.5, 6.0]


def copied(n, **how):
    how = {"predict": "device" in how, "arguments": [zeros(n), zeros(n)]} | how
    return simulate(SOURCE, "copy", grid=n // 256, block=256, **how)


def test_a_simulation_for_a_device_models_its_traffic():
    n = 1 << 16
    execution = copied(n, device="h200")
    assert set(MODELLED) <= set(execution.counters)
    assert execution.counters["l1tex__m_xbar2l1tex_read_sectors.sum"] == n // 8
    assert execution.counters["dram__bytes_read.sum"] == 4 * n
    assert execution.counters["dram__bytes_write.sum"] < n  # stays in L2
    assert execution.traffic_basis.startswith("modelled for NVIDIA H200")


def test_traffic_takes_the_accesses_of_all_blocks():
    execution = copied(1 << 16, device=find_device("h200"), blocks=12)
    assert not set(MODELLED) & set(execution.counters)
    assert execution.traffic_basis == (
        "not modelled: it needs the accesses of all blocks: --blocks all executes them"
    )


def test_without_a_device_nothing_is_modelled():
    arguments = [zeros(64), zeros(64)]
    execution = simulate(SOURCE, "copy", grid=1, block=64, arguments=arguments, predict=False)
    assert execution.traffic_basis is None
    assert not set(MODELLED) & set(execution.counters)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [(7, READ, 0b0001), (8, READ, 0b1100)],
            Pairs(read=4 / 3, lone_read=1.0, read_again=4 / 3, lone_again=1.0, room=8 / 3),
        ),
        (  # both pairs of a line
            [(7, READ, 0b0001), (7, READ, 0b1000)],
            Pairs(read=2.0, read_again=2.0, room=2.0),
        ),
        (  # eight sectors of room for five
            [(7, WRITE, 0b0001), (8, READ, 15)],
            Pairs(written=2.0, lone_written=1.0, room=8 / 5),
        ),
        ([(7, WRITE, 15), (8, READ, 15)], WHOLE_LINES),
    ],
)
def test_dram_transfers_the_pairs_of_sectors_that_a_launch_accesses(rows, expected):
    noted = [access(line, 0, k, kind, mask) for k, (line, kind, mask) in enumerate(rows)]
    found = accesses_in_time(np.array(noted, dtype=ACCESS), np.ones(1), None, np.zeros(1)).pairs
    assert vars(found) == pytest.approx(vars(expected))


def test_each_block_reads_its_own_pairs_again():
    """Two blocks read a sector of each pair of a line, a third one the first pair."""
    rows = [access(7, block, 0, READ, mask) for block, mask in enumerate((0b0001, 0b1000, 0b0011))]
    times = np.ones(3), None, np.zeros(3)
    found = accesses_in_time(np.array(rows, dtype=ACCESS), *times).pairs
    assert (found.read, found.lone_read) == (4 / 3, 0)  # three sectors of a line, both pairs
    assert (found.read_again, found.lone_again) == (6 / 4, 1)  # a pair for 1, 1 and 2 sectors


@pytest.mark.parametrize(("shift", "masks"), [(4, [15]), (1, [1, 1, 1, 1])])
def test_sectors_of_a_line_that_shifts_as_a_whole_are_one_entry(shift, masks):
    """A block accesses the four sectors of a line, the next block those `shift` sectors behind."""
    rows = np.zeros(4, dtype=[("step", "u4"), ("warp", "u2"), ("kind", "u1")])
    one, other = (SimpleNamespace(rows=rows, sectors=8 + by + np.arange(4)) for by in (0, shift))
    found = _shifted([one, other], np.array([[0, 0, 0], [1, 0, 0]]), (1, 1, 1))
    assert found.entries["mask"].tolist() == masks
    assert found.shifts.tolist() == [[32 * shift, 0, 0]]
