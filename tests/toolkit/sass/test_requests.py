"""Memory requests that the core notes: instruction, warp and address of each lane."""

from dataclasses import replace

import numpy as np

from analysis.records.source_lines import line_accesses
from tests.toolkit.sass.bound import bound_to, for_an_h200
from toolkit.sass.machine import run_blocks
from toolkit.sass.requests import first_requests
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


def run(*, notes_requests=True):
    out, content = np.zeros(64, np.float32), np.zeros(1024, np.float32)
    arguments = [out, content, np.int32(8), np.int32(20)]
    kernel = for_an_h200(SOURCE, "scatter")
    bound, _, translated = bound_to(kernel, arguments)
    (ran,) = run_blocks(replace(bound, notes_requests=notes_requests), [range(1)])
    instructions = instruction_counts(translated, ran.counts)
    found = first_requests(ran.requests, bound, k=8, row_floats={"argument 1": 16})
    return found, line_accesses(instructions, found)


def test_lanes_are_told_by_their_offset_in_a_buffer():
    load, store, read, result = run()[0].values()
    assert load.buffer == "argument 1"
    assert load.lanes == tuple(32 * lane for lane in range(32))  # a stride of 8 floats
    assert store.buffer == read.buffer == "shared"
    assert store.lanes == tuple(8 * lane % 256 for lane in range(32))  # every other word
    assert read.lanes[0] == 252
    assert result.buffer == "argument 0"
    assert result.lanes == (*(4 * lane for lane in range(20)), *[None] * 12)  # who takes part


def test_nothing_is_noted_unless_asked():
    assert run(notes_requests=False)[0] == {}


def test_the_first_of_many_runs_has_the_requests_of_all():
    arguments = [np.zeros(64, np.float32), np.zeros(1024, np.float32), np.int32(8), np.int32(20)]
    bound, _, _ = bound_to(for_an_h200(SOURCE, "scatter"), arguments, blocks=3)
    runs = run_blocks(replace(bound, notes_requests=True), [range(k, k + 1) for k in range(3)])
    assert [run.requests is None for run in runs] == [False, True, True]
    assert len(runs[0].requests) == 4
    assert not runs[0].requests["block"].any()


def test_instructions_carry_their_first_request_and_their_counts():
    _, instructions = run()
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
    (ran,) = run_blocks(replace(bound, notes_requests=True), [range(1)])
    counted = instruction_counts(translated, ran.counts)
    found = first_requests(ran.requests, bound, k=1, row_floats={})
    load, store = line_accesses(counted, found)
    assert (load.action, load.requests, load.sectors, load.ideal) == ("load", 8, 32, 32)
    assert load.first.lanes == tuple(4 * lane for lane in range(32))
    assert (store.action, store.requests) == ("store", 1)
