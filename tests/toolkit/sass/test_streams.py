"""Streams of executed instructions: order, lines, flags; compared with the counters."""

from dataclasses import replace

import numpy as np
import pytest

from analysis.errors import UnavailableError
from analysis.sm import Kind
from tests.cubins import cubin_of, kernel_of
from tests.toolkit.sass.bound import bound_to as bound_of
from tests.toolkit.sass.one_by_one import one_by_one
from toolkit.execution.replayed_streams import streams_of
from toolkit.sass import streams as recorded_streams
from toolkit.sass.machine import run_blocks
from toolkit.sass.timing_table import machine_code

TAKEN, OFF = 1, 2
MOST = 1 << 16

SOURCE = r"""
extern "C" __global__ void phases(float *out, const float *in, int n)
{
    __shared__ float tile[128];
    float sum = 0.0f;
    for (int k = 0; k < n; ++k) {
        tile[threadIdx.x] = in[k * 128 + threadIdx.x];
        __syncthreads();
        sum += tile[threadIdx.x ^ 33];
        __syncthreads();
    }
    out[blockIdx.x * 128 + threadIdx.x] = sum;
}
extern "C" __global__ void column(float *out, const float *in)
{
    out[threadIdx.x] = in[32 * threadIdx.x] + in[2 * threadIdx.x];
}
extern "C" __global__ void indexed(float *out, const int *where)
{
    float mine[16];
    for (int k = 0; k < 16; ++k) mine[(where[k] + threadIdx.x) & 15] = float(k);
    out[blockIdx.x * blockDim.x + threadIdx.x] = mine[where[threadIdx.x & 7]];
}
extern "C" __global__ void guarded(float *out, const float *in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = 0.0f;
    if (i < n) x = in[i];
    out[i] = x;
}
extern "C" __global__ void some_leave(float *out, int n)
{
    if (threadIdx.x / 32 % 2 == 1) return;
    for (int k = 0; k < n + int(threadIdx.x) / 32; ++k) out[threadIdx.x + k] = 1.0f;
}
extern "C" __global__ void copies(float *out, const float *in)
{
    __shared__ alignas(16) float tile[512];
    unsigned to = (unsigned)__cvta_generic_to_shared(tile + 4 * threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(in + 4 * threadIdx.x)
                 : "memory");
    asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = tile[511 - threadIdx.x];
}
"""
FLOATS = np.arange(4096, dtype=np.float32)


def bound_to(kernel, arguments, blocks=1, threads=128, arch="sm_90"):
    made = kernel_of(SOURCE, kernel, arch)
    bound, _, translated = bound_of(made, arguments, blocks=blocks, threads=threads)
    return bound, translated.kernel


def ran(bound, blocks=1, most=MOST, workers=1):
    (run,) = run_blocks(replace(bound, most_steps=most), [range(blocks)], workers=workers)
    return run


def streams(bound, blocks=1):
    return ran(bound, blocks).streams


def of_warps(found):
    """The steps of each, one for each instruction."""
    return [one_by_one(part) for part in np.split(found.steps, found.first_step[1:].astype(int))]


def lines_of(found, warp):
    """The (line, sectors) of each step of a warp."""
    at, result = int(found.first_line[warp]), []
    for step in of_warps(found)[warp]:
        mine = found.lines[at : at + int(step["lines"])]
        result.append([(int(x) >> 4, int(x) & 15) for x in mine])
        at += int(step["lines"])
    return result


def of_opcode(program, *opcodes):
    return [n for n, i in enumerate(program.instructions) if i.opcode in opcodes]


def zeros(count):
    return np.zeros(count, np.float32)


LAUNCHES = {
    "phases": [zeros(512), FLOATS, np.int32(5)],
    "column": [zeros(128), FLOATS],
    "indexed": [zeros(512), np.arange(16, dtype=np.int32) * 7 % 16],
    "guarded": [zeros(512), FLOATS, np.int32(70)],
    "some_leave": [zeros(512), np.int32(3)],
    "copies": [zeros(128), FLOATS],
}


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("kernel", LAUNCHES)
def test_there_are_as_many_steps_as_instructions_executed(kernel, arch):
    """For each instruction there are smsp__inst_executed steps, with its wavefronts and sectors."""
    bound, program = bound_to(kernel, LAUNCHES[kernel], blocks=3, arch=arch)
    run = ran(bound, 3)
    found = run.streams
    length = len(program.instructions)
    steps = one_by_one(found.steps)
    executed = np.bincount(steps["pc"], minlength=length)
    assert (executed == run.counts["executed"]).all()
    assert found.executed == executed.sum()
    assert found.blocks == 3
    assert len(found.lines) == found.steps["lines"].sum()
    table = machine_code(program)
    shared = np.isin(table["kind"], [Kind.SHARED_LOAD, Kind.SHARED_STORE])
    clocks = np.bincount(steps["pc"], weights=steps["clocks"], minlength=length)
    assert (clocks[shared] == run.counts["wavefronts"][shared]).all()
    sectors = sum(bin(int(line) & 15).count("1") for line in found.lines)
    of_memory = np.isin(table["kind"], [Kind.LOAD, Kind.STORE, Kind.COPY])
    assert sectors == run.counts["sectors"][of_memory].sum()


def test_warps_stay_in_order_across_barriers():
    """The core runs a warp from barrier to barrier; a stream has its parts one after the other."""
    bound, program = bound_to("phases", LAUNCHES["phases"])
    found = streams(bound)
    warps = of_warps(found)
    assert len(warps) == 4
    bars = of_opcode(program, "BAR")
    for warp in warps:
        assert np.isin(warp["pc"], bars).sum() == 2 * 5  # two of each phase
        assert program.instructions[warp["pc"][-1]].opcode == "EXIT"
        follows = np.diff(warp["pc"].astype(int)) == 1
        jumps = warp["flags"][:-1] & TAKEN != 0
        assert (follows ^ jumps).all()  # one after the other, but for jumps
    assert all((warp["pc"] == warps[0]["pc"]).all() for warp in warps)


@pytest.mark.parametrize("workers", [1, 2])
def test_streams_outlive_the_workers_that_recorded_them_and_depend_on_none(workers):
    bound, _ = bound_to("phases", LAUNCHES["phases"], blocks=4)
    whole = streams(bound, 4)
    kept = replace(bound, most_steps=MOST)
    runs = run_blocks(kept, [range(b, b + 1) for b in range(4)], workers=workers)
    (together,) = run_blocks(kept, [range(4)], workers=workers)
    del bound, kept
    for name in ("steps", "lines"):
        parts = np.concatenate([getattr(run.streams, name) for run in runs])
        assert np.array_equal(getattr(whole, name), parts), name
    for name in ("steps", "lines", "first_step", "first_line", "first_warp"):
        assert np.array_equal(getattr(whole, name), getattr(together.streams, name)), name


def test_a_request_has_its_lines_with_their_sectors():
    bound, program = bound_to("column", LAUNCHES["column"], threads=32)
    found = streams(bound)
    loads = of_opcode(program, "LDG")
    (warp,) = of_warps(found)
    requests = [
        lines for step, lines in zip(warp, lines_of(found, 0), strict=True) if step["pc"] in loads
    ]
    base = bound.buffers[1].address // 128
    # a float of each row of 128 bytes: 32 lines of one sector; and every other one: 2 whole lines
    assert sorted(map(len, requests)) == [2, 32]
    rows, pairs = sorted(requests, key=len, reverse=True)
    assert rows == [(base + lane, 0b0001) for lane in range(32)]
    assert pairs == [(base, 0b1111), (base + 1, 0b1111)]


def test_local_memory_has_lines_of_each_warp_and_block():
    bound, program = bound_to("indexed", LAUNCHES["indexed"], blocks=2, threads=64)
    found = streams(bound, 2)
    local = of_opcode(program, "LDL", "STL")
    assert local
    seen = []
    for number, warp in enumerate(of_warps(found)):
        lines = zip(warp, lines_of(found, number), strict=True)
        seen.append({line for step, mine in lines if step["pc"] in local for line, _ in mine})
    assert len(seen) == 4
    for number, mine in enumerate(seen):
        assert 0 < len(mine) <= 16  # a line per word of the array
        assert min(mine) >> 55 == 1  # apart from global memory
        assert all(mine.isdisjoint(others) for others in seen[:number])


def test_copies_have_the_lines_that_they_read():
    bound, program = bound_to("copies", LAUNCHES["copies"])
    found = streams(bound)
    (copy,) = of_opcode(program, "LDGSTS")
    first = bound.buffers[1].address // 128
    for number, warp in enumerate(of_warps(found)):
        (at,) = np.flatnonzero(warp["pc"] == copy)
        lines = lines_of(found, number)[at]
        # 32 lanes of 16 bytes are 4 lines
        assert lines == [(first + 4 * number + k, 0b1111) for k in range(4)]
        assert warp["clocks"][at] >= 4
    kinds = machine_code(program)["kind"]
    assert {Kind.COPY, Kind.COPY_GROUP, Kind.WAIT_GROUP} <= set(kinds)


def test_steps_of_no_lane_are_flagged():
    """70 of 128 threads load: two warps all, the third six lanes, the fourth none."""
    bound, program = bound_to("guarded", LAUNCHES["guarded"])
    found = streams(bound)
    (load,) = of_opcode(program, "LDG")
    flags = []
    for number, warp in enumerate(of_warps(found)):
        for at in np.flatnonzero(warp["pc"] == load):
            flags.append(int(warp["flags"][at]))
            lines = lines_of(found, number)[at]
            sectors = sum(bin(mask).count("1") for _, mask in lines)
            assert sectors == [4, 4, 1][number] if number < 3 else not lines
    assert flags in ([0, 0, 0, OFF], [0, 0, 0])  # predicated, or jumped over


def test_warps_may_leave_early_and_do_different_things():
    bound, program = bound_to("some_leave", LAUNCHES["some_leave"])
    found = streams(bound)
    stores = of_opcode(program, "STG")
    executed = [int(np.isin(warp["pc"], stores).sum()) for warp in of_warps(found)]
    off = [
        int((np.isin(warp["pc"], stores) & (warp["flags"] & OFF != 0)).sum())
        for warp in of_warps(found)
    ]
    assert [a - b for a, b in zip(executed, off, strict=True)] == [3, 0, 5, 0]  # n + warp, or none


def test_more_steps_than_there_is_room_for_are_said_to_be_lost():
    bound, _ = bound_to("phases", LAUNCHES["phases"])
    whole = streams(bound).executed
    assert ran(bound, most=whole - 1).streams is None
    kept = ran(bound, most=whole).streams
    assert kept.executed == whole


def test_a_block_that_is_too_long_says_so(monkeypatch):
    bound, _ = bound_to("phases", LAUNCHES["phases"])
    monkeypatch.setattr("toolkit.execution.replayed_streams.MOST_STEPS", 10)
    with pytest.raises(UnavailableError, match="more than 10 warp instructions"):
        streams_of(bound, [0])


@pytest.mark.parametrize("blocks", [(3, 1), (3, 1, 3)])  # a block may stand for several
def test_streams_of_chosen_blocks_are_those_of_each(blocks):
    bound, _ = bound_to("phases", LAUNCHES["phases"], blocks=4)
    chosen, everything = streams_of(bound, blocks), streams(bound, 4)
    assert chosen.blocks == len(blocks)
    mine, all_of_them = of_warps(chosen), of_warps(everything)
    for place, block in enumerate(blocks):
        for warp in range(4):
            assert (mine[4 * place + warp] == all_of_them[4 * block + warp]).all()
            assert lines_of(chosen, 4 * place + warp) == lines_of(everything, 4 * block + warp)


CONSTANTS = r"""
__constant__ float table[1024];
extern "C" __global__ void filtered(float *out, const float *in, const int *at, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = table[at[i] & 1023];
    for (int k = 0; k < n; ++k) sum += table[k] * in[(i + 64 * k) & 4095];
    out[i] = sum;
}
"""


@pytest.mark.parametrize("arch", ["sm_75", "sm_90", "sm_120"])
def test_only_requests_and_constants_at_registers_have_words(arch):
    """The model of an SM skips no words of others: it would take them for those of a later step."""
    cubin = cubin_of(CONSTANTS, "filtered", arch)
    arguments = [
        np.zeros(64, np.float32),
        np.zeros(4096, np.float32),
        np.arange(64, dtype=np.int32),
    ]
    bound, *_ = bound_of(cubin, [*arguments, np.int32(40)], threads=64)
    steps = streams_of(bound, [0]).steps
    kinds = machine_code(cubin)["kind"][steps["pc"]]
    words = steps["lines"] > 0
    assert not words[kinds == Kind.PLAIN].any()
    for kind in (Kind.CONSTANT, Kind.UNIFORM_CONSTANT):
        assert words[kinds == kind].all()
    assert (kinds == Kind.CONSTANT).any()


def test_many_segments_are_joined_warp_by_warp(monkeypatch):
    arguments = [np.zeros(256, np.float32), np.zeros(5 * 128, np.float32), np.int32(5)]
    bound, *_ = bound_of(kernel_of(SOURCE, "phases"), arguments, blocks=2, threads=128)
    (run,) = run_blocks(replace(bound, most_steps=MOST), [range(2)], workers=1)
    plain = run.streams
    monkeypatch.setattr(recorded_streams, "MANY_SEGMENTS", 0)
    for name in ("steps", "lines", "first_step", "first_line", "first_warp"):
        np.testing.assert_array_equal(getattr(run.streams, name), getattr(plain, name))
