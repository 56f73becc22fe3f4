"""What the core notes of memory requests: who, where, lane by lane."""

from dataclasses import replace

import numpy as np

from tests.toolkit.sass.bound import bound_to, for_an_h200
from toolkit.sass.machine import run_blocks
from toolkit.sass.requests import line_accesses, noted
from toolkit.sass.statistics import instruction_counts

SOURCE = r"""
extern "C" __global__ void scatter(float *out, const float *in, int stride, int n)
{
    __shared__ float kept[64];
    const int i = threadIdx.x;
    kept[i * 2 % 64] = in[i * stride];
    __syncthreads();
    if (i < n) out[i] = kept[63 - i];
}
"""


def run(most, threads=32):
    out, content = np.zeros(64, np.float32), np.zeros(1024, np.float32)
    arguments = [out, content, np.int32(8), np.int32(20)]
    kernel = for_an_h200(SOURCE, "scatter")
    bound, _, translated = bound_to(kernel, arguments, threads=threads)
    (ran,) = run_blocks(replace(bound, most_requests=most), [range(1)])
    instructions = instruction_counts(translated, ran.counts)
    found = noted(ran.requests, bound)
    return found, line_accesses(instructions, found, k=8, row_floats={"argument 1": 16})


def test_lanes_are_told_by_their_offset_in_a_buffer():
    (load, store, read, result), _ = run(1)
    assert load.buffer == "argument 1"
    assert load.lanes == tuple(32 * lane for lane in range(32))  # a stride of 8 floats
    assert store.buffer == read.buffer == "shared"
    assert store.lanes == tuple(8 * lane % 256 for lane in range(32))  # every other word
    assert read.lanes[0] == 252
    assert result.buffer == "argument 0"
    assert result.lanes == (*(4 * lane for lane in range(20)), *[None] * 12)  # who takes part


def test_as_many_requests_of_an_instruction_are_noted_as_asked():
    of_one, _ = run(1, threads=64)
    of_two, _ = run(2, threads=64)
    assert [one.warp for one in of_one] == [0, 0, 0, 0]
    # no lane of the second warp is below n, where it would read and store
    assert sorted(one.warp for one in of_two) == [0, 0, 0, 0, 1, 1]


def test_nothing_is_noted_unless_asked():
    assert run(0)[0] == ()


def test_instructions_carry_their_first_request_and_their_counts():
    _, instructions = run(1)
    load = instructions[0]
    assert (load.space, load.action, load.requests) == ("global", "load", 1)
    assert (load.sectors, load.ideal) == (32, 4)  # 128 B / 32 B
    assert (load.first.buffer, load.first.row_floats, load.first.k) == ("argument 1", 16, 8)


def test_unrolled_copies_of_an_access_are_one():
    source = """extern "C" __global__ void sums(float *out, const float *in) {
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 8; ++k) sum += in[32 * k + threadIdx.x];
    out[threadIdx.x] = sum; }"""
    arguments = [np.zeros(32, np.float32), np.zeros(256, np.float32)]
    bound, _, translated = bound_to(for_an_h200(source, "sums"), arguments)
    (ran,) = run_blocks(replace(bound, most_requests=1), [range(1)])
    counted = instruction_counts(translated, ran.counts)
    load, store = line_accesses(counted, noted(ran.requests, bound), k=1, row_floats={})
    assert (load.action, load.requests, load.sectors, load.ideal) == ("load", 8, 32, 32)
    assert load.first.lanes == tuple(4 * lane for lane in range(32))
    assert (store.action, store.requests) == ("store", 1)
